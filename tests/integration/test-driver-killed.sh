#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client that copies an image does not notice that the captive driver is
# killed again and again meanwhile; and neither the driver nor its private
# directory outlives the daemon, however that ends.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version

random_file disk.img 104857600 1
blobpager import --store=store --name=disk disk.img > /dev/null
start_blobpagerd --store=store --cache-size=64M --profile=off

# The captive nbdkit: the daemon's only child.
captive ()
{
  cat /proc/"$blobpagerd_pid"/task/*/children | tr -d " "
}

sessions ()
{
  blobpager status --control="$control" --json |
    sed 's/.*"sessions":\([0-9]*\).*/\1/'
}

has_sessions ()
{
  [ "$(sessions)" -ge "$1" ]
}

for round in 1 2 3; do
  sha_of_uri "$(uri disk)" > copied &
  copy=$!
  for kill in 1 2 3; do
    wait_until 20 has_sessions $((round * 3 - 3 + kill))
    kill -9 "$(captive)"
  done
  wait $copy || fail "the copy failed"
  expect_equal "copy $round" "$(sha_of disk.img)" "$(cat copied)"
done
wait_until 20 has_sessions 10

socket=$(blobpager status --control="$control" --json |
  sed 's/.*socket=\([^"]*\)".*/\1/')
[ -S "$socket" ] || fail "no socket '$socket'"
expect_equal "mode" 700 "$(stat -c %a "${socket%/*}")"
driver=$(captive)
stop_blobpagerd
[ ! -e "${socket%/*}" ] || fail "the private directory is left"
process_is_gone "$driver" || fail "the driver is left"

# Killed, the daemon takes the driver with it.
start_blobpagerd --store=store --profile=off
driver=$(captive)
kill -9 "$blobpagerd_pid"
wait_until 20 process_is_gone "$driver"

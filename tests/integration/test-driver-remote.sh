#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A driver that runs elsewhere, over TCP and a long link: an image is copied
# in far fewer round trips than it has segments, and a client outlives a
# restart of the driver.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version

random_file disk.img 41943040 1
blobpager import --store=store --name=disk disk.img > /dev/null

# start_remote: nbdkit on a TCP port.
port=$((20000 + $$ % 10000))
start_remote ()
{
  rm -f remote.pid
  "${BLOBPAGER_NBDKIT:-nbdkit}" -f -i 127.0.0.1 -p $port -P "$tmp/remote.pid" \
    "$BLOBPAGER_PLUGIN" store="$tmp/store" 2>> remote.log &
  remote=$!
  cleanup_fn stop_process $remote
  wait_until 30 test -e remote.pid
}
start_remote
lagsim --pidfile=lagsim.pid "$tmp/far" "127.0.0.1:$port" 20 &
cleanup_fn stop_process $!
wait_until 30 test -e lagsim.pid

start_blobpagerd --driver="nbd+unix:///session?socket=$tmp/far" --profile=off
start=$(date +%s%N)
expect_equal "far" "$(sha_of disk.img)" "$(sha_of_uri "$(uri disk)")"
took=$((($(date +%s%N) - start) / 1000000))
segments=$(blobpager info --store=store --json disk |
  sed 's/.*"segments":\([0-9]*\).*/\1/')
[ "$segments" -gt 500 ] || fail "only $segments segments"
[ $took -lt $((segments * 20 / 4)) ] || fail "$segments segments: $took ms"
stop_blobpagerd

# Restarted, under a client: it copies through the kill.
start_blobpagerd --driver="nbd://127.0.0.1:$port" --profile=off
sha_of_uri "$(uri disk)" > copied &
copy=$!
kill -9 $remote
wait $remote || :
start_remote
wait $copy || fail "the copy failed"
expect_equal "restarted" "$(sha_of disk.img)" "$(cat copied)"

# nbdkit ends when its last client has gone.
stop_blobpagerd

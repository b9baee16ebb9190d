#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The link simulator passes every byte on, later; it refuses what it does
# not understand, and leaves no socket behind.

. "$srcdir/harness/functions.sh"
requires nbdkit --version
requires nbdcopy --version

random_file disk.img 3000000 1
nbdkit -f -U "$tmp/target" -P target.pid file disk.img &
cleanup_fn stop_process $!
wait_until 30 test -e target.pid

# Through two links, of which one is TCP: bytes are the same.
port=$((20000 + $$ % 10000))
lagsim --pidfile=near.pid "$tmp/near" "127.0.0.1:$port" 20 &
near=$!
cleanup_fn stop_process $near
lagsim --pidfile=far.pid "127.0.0.1:$port" "$tmp/target" 20 1000 &
cleanup_fn stop_process $!
wait_until 30 test -e near.pid -a -e far.pid
expect_equal "bytes" "$(sha_of disk.img)" \
  "$(sha_of_uri "nbd+unix:///?socket=$tmp/near")"

# A conversation of three round trips and more takes at least as long.
start=$(date +%s%N)
nbdinfo --size "nbd+unix:///?socket=$tmp/near" > /dev/null
took=$((($(date +%s%N) - start) / 1000000))
[ $took -ge 120 ] || fail "three round trips of 40 ms took $took ms"

# A target that is not there ends the connection, not the simulator.
lagsim --pidfile=lost.pid "$tmp/lost" "$tmp/nobody" 1 &
cleanup_fn stop_process $!
wait_until 30 test -e lost.pid
expect_fail 1 nbdinfo "nbd+unix:///?socket=$tmp/lost"
expect_fail 1 nbdinfo "nbd+unix:///?socket=$tmp/lost"
kill -0 "$(cat lost.pid)" || fail "the simulator ended with its target"

# Asked to end, it takes its files with it.
kill $near
wait $near
[ ! -e near ] && [ ! -e near.pid ] || fail "files are left"

lagsim --help | grep -q RTT_MS || fail "--help"
expect_fail 2 lagsim
expect_fail 2 lagsim a b x
expect_fail 2 lagsim a b 1 0
expect_fail 2 lagsim --no-such a b 1
expect_fail 1 lagsim "$tmp/no/such/directory" b 1

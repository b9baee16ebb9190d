#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Under systemd the daemon serves the socket that it was given, leaves it
# where it is, and says when it is ready and when it stops.

. "$srcdir/harness/functions.sh"
requires python3 --version

text_file disk.img 200000 systemd
blobpager import --store=store disk.img > import.log
control=$tmp/control

python3 "$srcdir/harness/as-systemd.py" given notify notify.txt \
  blobpagerd --store=store --control="$control" --pidfile="$tmp/pid" \
  2> blobpagerd.log &
systemd_pid=$!
cleanup_fn stop_process "$tmp/pid"
wait_until 30 grep -qx READY=1 notify.txt
[ -e pid ] || fail "ready without a pidfile"

sock=$tmp/given
expect_equal "image" "$(sha_of disk.img)" "$(sha_of_uri "$(uri disk)")"

# Its nbdkit was not given the socket, nor the names of systemd's variables.
nbdkit_pid=$(pgrep -P "$(cat pid)")
tr '\0' '\n' < "/proc/$nbdkit_pid/environ" > environ.txt
expect_equal "variables" "" "$(grep '^LISTEN_' environ.txt || :)"
given=$(readlink "/proc/$(cat pid)/fd/3")
[[ $given == socket:* ]] || fail "descriptor 3 is $given"
readlink "/proc/$nbdkit_pid/fd/"* > fds.txt || :
expect_equal "the socket" "" "$(grep -F "$given" fds.txt || :)"

kill "$(cat pid)"
wait $systemd_pid || fail "exit status $?"
expect_equal "what was said" "READY=1 STOPPING=1" \
  "$(paste -s -d ' ' notify.txt)"
[ -S given ] || fail "systemd's socket was removed"
[ ! -e control ] || fail "the control socket was left behind"

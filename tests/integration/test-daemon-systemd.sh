#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Under systemd the daemon serves the sockets that it was given, leaves them
# where they are, and says when it is ready and when it stops.  It may end
# when nobody is connected: the next client starts another.

. "$srcdir/harness/functions.sh"
requires python3 --version
requires /usr/bin/python3 -c 'import nbd' # The distribution's.

text_file disk.img 200000 1
blobpager import --store=store disk.img > import.log
control=$tmp/control

port=$(free_port)
python3 "$srcdir/harness/as-systemd.py" given,tcp:"$port" notify notify.txt \
  now \
  blobpagerd --store=store --control="$control" --pidfile="$tmp/pid" \
  2> blobpagerd.log &
systemd_pid=$!
cleanup_fn stop_process "$tmp/pid"
wait_until 30 grep -qx READY=1 notify.txt
[ -e pid ] || fail "ready without a pidfile"

sock=$tmp/given
expect_equal "image" "$(sha_of disk.img)" "$(sha_of_uri "$(uri disk)")"
expect_equal "image over TCP" "$(sha_of disk.img)" \
  "$(sha_of_uri "nbd://127.0.0.1:$port/disk")"

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

# On demand.  A client that comes after the end of a daemon waits in the
# backlog of the socket, and is the next one's.
python3 "$srcdir/harness/as-systemd.py" again notify-again again.txt 2 \
  blobpagerd --store=store --control="$control" --pidfile="$tmp/pid" \
  --exit-when-idle=1 2> again.log &
systemd_pid=$!
cleanup_fn stop_process "$tmp/pid"
cleanup_fn stop_process $systemd_pid
sock=$tmp/again
wait_until 30 test -S again
/usr/bin/python3 -c '
import sys, nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
h.poll(2500)
h.pread(200000, 0)' "$(uri disk)" || fail "idle with a client connected"
wait_until 30 grep -qx STOPPING=1 again.txt
[ -S again ] || fail "systemd's socket was removed"
expect_equal "image" "$(sha_of disk.img)" "$(sha_of_uri "$(uri disk)")"
wait $systemd_pid || fail "exit status $?"
expect_equal "what was said" "READY=1 STOPPING=1 READY=1 STOPPING=1" \
  "$(paste -s -d ' ' again.txt)"
expect_equal "ends" 2 "$(grep -c 'no client for 1 seconds: stopping' again.log)"

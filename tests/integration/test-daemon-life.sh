#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the daemon makes it removes: pidfile, sockets.  What is in its way is
# replaced if nobody serves it, and never if somebody does.

. "$srcdir/harness/functions.sh"

expect_gone ()
{
  local f
  for f; do [ ! -e "$f" ] || fail "left behind: $f"; done
}

text_file disk.img 300000 1
blobpager import --store=store disk.img > import.log
sha=$(sha_of disk.img)

# SIGTERM and SIGINT end it, with status 0 and nothing left.
for signal in TERM INT; do
  start_blobpagerd --store=store
  expect_equal "pidfile" "$blobpagerd_pid" "$(cat blobpagerd.pid)"
  expect_equal "mode of the control socket" 600 "$(stat -c %a "$control")"
  expect_equal "mode of the listener" 600 "$(stat -c %a "$sock")"
  kill "-$signal" "$blobpagerd_pid"
  wait "$blobpagerd_pid" || fail "exit status $? after SIG$signal"
  expect_gone blobpagerd.pid "$sock" "$control"
done

# After SIGKILL its sockets are stale; the next one replaces them.  The
# nbdkit that it had started is gone, too.
start_blobpagerd --store=store
nbdkit_pid=$(pgrep -P "$blobpagerd_pid")
kill -KILL "$blobpagerd_pid"
wait "$blobpagerd_pid" || :
wait_until 20 process_is_gone "$nbdkit_pid"
[ -S "$sock" ] && [ -S "$control" ] || fail "SIGKILL removed sockets"
start_blobpagerd --store=store
expect_equal "image" "$sha" "$(sha_of_uri "$(uri disk)")"

# A second daemon on either socket of a live one is refused, in one line,
# and the first goes on.
expect_fail 1 timeout 30 blobpagerd --store=store --listen=unix:"$tmp/other" \
  --control="$control"
grep -q "^blobpagerd: control socket: '$control': " err.log ||
  fail "no clear error: $(cat err.log)"
expect_equal "lines" 1 "$(wc -l < err.log)"
expect_gone "$tmp/other"
expect_fail 1 timeout 30 blobpagerd --store=store --listen=unix:"$sock" \
  --control="$tmp/other"
grep -q "$sock" err.log || fail "no clear error: $(cat err.log)"
expect_gone "$tmp/other"
blobpager status --control="$control" > status.txt
expect_equal "image" "$sha" "$(sha_of_uri "$(uri disk)")"

# SIGHUP does not end it.
kill -HUP "$blobpagerd_pid"
expect_equal "image" "$sha" "$(sha_of_uri "$(uri disk)")"
stop_blobpagerd
expect_gone blobpagerd.pid "$sock" "$control"

# The default control socket: a directory is made for it.
RUNTIME_DIRECTORY=$tmp/run:/nowhere
export RUNTIME_DIRECTORY
mkdir run
blobpagerd --store=store --listen=unix:"$sock" \
  --pidfile="$tmp/blobpagerd.pid" 2>> blobpagerd.log &
blobpagerd_pid=$!
cleanup_fn stop_process "$blobpagerd_pid"
wait_until 30 test -e blobpagerd.pid
[ -S run/control.sock ] || fail "no socket in RUNTIME_DIRECTORY"
blobpager status > status.txt
stop_blobpagerd
expect_gone run/control.sock
expect_fail 1 blobpager status
grep -q "^blobpager: control socket '.*': connect: .*is blobpagerd running" \
  err.log || fail "no clear error: $(cat err.log)"

# A listener for a group; the mode is what was asked for.
start_blobpagerd --store=store --listen=unix:"$tmp/group",mode=0660,group=0
expect_equal "mode" 660 "$(stat -c %a group)"
stop_blobpagerd
expect_gone group

# The private directory of a daemon that was killed is swept by the next
# one; that of one that lives is not.
RUNTIME_DIRECTORY=$tmp/private
mkdir private
private_dirs () { find private -name 'blobpagerd.*' | wc -l; }
start_blobpagerd --store=store
kill -9 "$blobpagerd_pid"
wait "$blobpagerd_pid" || :
expect_equal "directories after SIGKILL" 1 "$(private_dirs)"
start_blobpagerd --store=store
expect_equal "directories of the next one" 1 "$(private_dirs)"
blobpagerd --store=store --listen=unix:"$tmp/second" \
  --control="$tmp/second-control" --pidfile="$tmp/second.pid" \
  2>> blobpagerd.log &
second_pid=$!
cleanup_fn stop_process "$second_pid"
wait_until 30 test -e second.pid
expect_equal "directories of two" 2 "$(private_dirs)"
expect_equal "image" "$sha" "$(sha_of_uri "$(uri disk)")"
stop_process "$second_pid"
stop_blobpagerd
expect_equal "directories at the end" 0 "$(private_dirs)"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The mode and group of a listener decide which users may connect, whoever
# runs the daemon; the control socket is for its own user and root.

. "$srcdir/harness/functions.sh"
requires qemu-img --version
[ "$(id -u)" = 0 ] || skip "needs root, to be others"

# Users and a group that need not exist.
client=54321 daemon=54322 group=54323
as ()
{
  local user=$1 groups=$2
  shift 2
  setpriv --reuid="$user" --regid="$user" $groups "$@"
}
requires as $daemon --clear-groups test -r "$BLOBPAGER_PLUGIN"

text_file disk.img 3000000 1
make_store disk.img vm
chmod 711 "$tmp"
# The daemon's directory, which its group may enter.
mkdir run
chown $daemon:$group run
chmod 750 run
chown -R $daemon "$store"
chmod 644 disk.img

# can_read SOCKET GROUPS: the client, with these groups.
can_read ()
{
  (cd / && as $client "$2" qemu-img compare -f raw -F raw "$tmp/disk.img" \
    "nbd+unix:///vm?socket=$1") > qemu.log 2>&1
}

expect_refused ()
{
  ! can_read "$@" || fail "$1 is open to $2"
  grep -q 'Permission denied' qemu.log || fail "$1: $(cat qemu.log)"
}

# The daemon as an ordinary user, who is in the group.
start ()
{
  rm -f run/pid
  (cd run && exec setpriv --reuid=$daemon --regid=$daemon --groups=$group \
    blobpagerd --store="$store" --profile=off --pidfile="$tmp/run/pid" \
    --control="$tmp/run/control" \
    --listen=unix:"$tmp/run/private" \
    --listen=unix:"$tmp/run/group",mode=0660,group=$group \
    --listen=unix:"$tmp/run/all",mode=0666) 2>> blobpagerd.log &
  blobpagerd_pid=$!
  cleanup_fn stop_process "$blobpagerd_pid"
  wait_until 30 test -e run/pid
}
start
expect_equal "owner, group and mode" "$daemon $group 660" \
  "$(stat -c '%u %g %a' run/group)"
can_read "$tmp/run/group" --groups=$group ||
  fail "a member of the group: $(cat qemu.log)"
can_read "$tmp/run/all" --groups=$group || fail "anybody: $(cat qemu.log)"
expect_refused "$tmp/run/private" --groups=$group
# The directory keeps out who is not in the group, whatever the mode.
expect_refused "$tmp/run/all" --clear-groups
chmod 711 run
can_read "$tmp/run/all" --clear-groups || fail "anybody: $(cat qemu.log)"
expect_refused "$tmp/run/group" --clear-groups

# The control socket.
(cd / && ! as $client --groups=$group blobpager status \
  --control="$tmp/run/control") > /dev/null 2> err.log ||
  fail "another user may use the control socket"
blobpager status --control="$tmp/run/control" > status.txt

# What is not the user's to give cannot be given.
stop_blobpagerd
expect_fail 1 as $daemon --clear-groups blobpagerd --store="$store" \
  --control="$tmp/run/control" --listen=unix:"$tmp/run/other",group=0
grep -q "'$tmp/run/other': .*Operation not permitted" err.log ||
  fail "no clear error: $(cat err.log)"
[ ! -e run/other ] || fail "left behind"

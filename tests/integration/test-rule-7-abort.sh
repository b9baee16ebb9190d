#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An abort, the daemon's exit, the loss of the driver, and the end of the
# control connection that owns it end a recording without a word written,
# and release the pins.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 12
put_profile boot 1@0 2@0

nothing_has_changed ()
{
  expect_records boot "1@0 2@0"
  expect_equal recordings "" "$(recordings)"
  expect_equal "pinned bytes" 0 "$(pinned_bytes)"
}

# Abort.
start_driver "store=$store"
start_blobpagerd --driver="nbd+unix:///session?socket=$driver" --profile=off
client_open a debian
profile start boot
wait_for_replay drained
[ "$(pinned_bytes)" -gt 0 ] || fail "nothing is pinned"
client_read a 5
expect_equal "output of abort" "" "$(profile abort boot)"
nothing_has_changed
expect_fail 1 profile abort boot

# The owner is killed.
blobpager profile start boot --foreground --control="$control" &
owner=$!
wait_for_replay drained
expect_equal recordings boot "$(recordings)"
client_read a 6
kill -9 $owner
wait $owner 2> /dev/null || :
wait_until 10 nothing_is_recorded
wait_until 10 replay_is ended
nothing_has_changed

# The driver is lost, and comes back.
profile start boot
wait_for_replay drained
client_read a 7
kill -9 "$driver_pid"
wait "$driver_pid" 2> /dev/null || :
wait_until 10 nothing_is_recorded
wait_until 10 replay_is ended
nothing_has_changed
expect_equal "lines about it" 1 \
  "$(count_lines "profile 'boot': the driver was lost" blobpagerd.log)"
start_driver "store=$store"
driver_is_connected ()
{
  [ "$(status "j['driver']['connected']")" = True ]
}
wait_until 20 driver_is_connected
expect_fail 1 profile stop boot
client_read a 8

# The daemon exits.
profile start boot
wait_for_replay drained
client_read a 9
client_close a
stop_blobpagerd
expect_records boot "1@0 2@0"

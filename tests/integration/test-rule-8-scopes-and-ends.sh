#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A recording is of one export or of all, records and replays or does one
# of them, and ends by stop, by --for, by --quiet or with the last client;
# the stop of one that ended by itself prints its result once.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 30
blobpager import --store="$store" --name=twin spots.img > /dev/null
start_blobpagerd --store="$store" --profile=off

# One export.
client_open a debian
client_open b twin
profile start one --export=debian
client_read a 1
client_read b 2
profile stop one > /dev/null
expect_records one "index@0 1@0"

# All, and those that come later.
client_close b
profile start all
client_read a 3
client_open c twin
client_read c 4
profile stop all > /dev/null
client_close c
expect_records all "index@0 3@0 4@0"

# --for.
began=$SECONDS
profile start for --for=1
client_read a 5
wait_until 10 nothing_is_recorded
[ $((SECONDS - began)) -le 10 ] || fail "--for=1 took $((SECONDS - began)) s"
expect_records for "index@0 5@0"
result=$(profile stop for)
expect_equal "result" "for 2" "$(echo "$result" | awk '{ print $1, $3 }')"
expect_fail 1 profile stop for

# --quiet: each new blob puts it off, one that is not new does not.
profile start quiet --quiet=2
for n in 6 8 10; do
  began=${EPOCHREALTIME/./}
  client_read a $n
  while [ $((${EPOCHREALTIME/./} - began)) -lt 1100000 ]; do
    client_read a 6
  done
done
expect_equal "still recording" quiet "$(recordings)"
began=$SECONDS
while ! nothing_is_recorded; do
  client_read a 6
  [ $((SECONDS - began)) -lt 20 ] || fail "--quiet does not end"
done
profile stop quiet > /dev/null
expect_records quiet "index@0 6@0 8@0 10@0"

# --until-exit: the last client's.
profile start exit --until-exit --export=debian
client_open b "debian@$root"
client_read a 20
client_close a
client_read b 14
expect_equal "still recording" exit "$(recordings)"
client_close b
wait_until 10 nothing_is_recorded
profile stop exit > /dev/null
expect_records exit "index@0 20@0 14@0"

# Replay xor record: first no profile, then one.
client_open a debian
profile start xor --mode=replay-xor-record
client_read a 11
profile stop xor > /dev/null
expect_records xor "index@0 11@0"
client_close a
stop_blobpagerd
start_blobpagerd --store="$store" --profile=off
client_open a debian
profile start xor --mode=replay-xor-record
wait_for_replay drained
expect_equal recordings "" "$(recordings)"
client_read a 12
expect_equal "result" "xor 2" \
  "$(profile stop xor | awk '{ print $1, $3 }')"
expect_records xor "index@0 11@0"
expect_equal "pinned bytes" 0 "$(pinned_bytes)"
client_close a

# In the foreground, a replay alone lasts until its owner ends.
client_open a debian
blobpager profile start xor --mode=replay-xor-record --foreground \
  --control="$control" &
owner=$!
wait_for_replay drained
client_read a 11 13
expect_equal "owner" running "$(process_is_gone $owner || echo running)"
kill $owner
wait $owner 2> /dev/null || :
wait_until 10 replay_is ended
client_close a

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# By itself the daemon records the first reader of an image until its last
# client has left, replays its profile to the next that comes, and leaves
# alone what is no boot.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 80
start_blobpagerd --store="$store" --verbose

# boot EXPORT SPOT…: a client comes, reads, and leaves.
boot ()
{
  local export=$1
  shift
  client_open boot "$export"
  client_read boot "$@"
  client_close boot
  wait_until 10 nothing_is_recorded
}

# Looking is not reading.
nbdinfo --size "$(uri debian)" > /dev/null
expect_records debian none

# The first boot.
boot debian 3 1 4 15 9 2 6
expect_records debian "index@0 3@0 1@0 4@0 15@0 9@0 2@0 6@0"
profile_records debian > /dev/null
grep -q '^automatic *true' show.txt || fail "$(cat show.txt)"

# All resident: no replay.  Then a cold cache: it is replayed for the
# client, whether it reads or not.
client_open a debian
expect_equal "replays" none "$(replay state)"
client_close a
stop_blobpagerd
start_blobpagerd --store="$store" --verbose
client_open a "debian@$root"
wait_for_replay drained
expect_equal bytes_used 0 "$(replay bytes_used)"
[ "$(pinned_bytes)" -gt 0 ] || fail "nothing is pinned"
client_read a 3 1 4
[ "$(replay bytes_used)" -ge 24576 ] || fail "used: $(replay bytes_used)"
client_read a 15 9 2 6 5 35
client_close a
wait_until 10 nothing_is_recorded
wait_until 10 replay_is ended
expect_equal "pinned bytes" 0 "$(pinned_bytes)"
expect_records debian "index@0 3@0 1@0 4@0 15@0 9@0 2@0 6@0 5@0 35@0"

# By root: the first tag in byte order that names it.
blobpager import --store="$store" --name=albatross spots.img > /dev/null
boot "$root" 7 20
expect_records albatross "index@0 7@0 20@0"
blobpager rm --store="$store" albatross

# A second reader is not recorded.
client_open a debian
client_open b debian
client_read a 40
wait_until 10 recordings_are debian
profile abort debian
client_read b 41
expect_equal "recordings" "" "$(recordings)"
client_close a
client_close b

# Not written: too few blobs, too much of the image, a copy.
put_profile debian {1..30}@0
old=$(profile_records debian)
boot debian 7
log_has "not written: .*a tenth" || fail "a small one: $(tail -3 blobpagerd.log)"
boot debian {60..2..2}
log_has "not written: .*a quarter" || fail "a large one: $(tail -3 blobpagerd.log)"
expect_records debian "$old"
random_file copy.img $((8 << 20)) rule-10
blobpager import --store="$store" --name=copy --compress=none copy.img \
  > /dev/null
client_open a copy
for ((i = 0; i < 16; i++)); do
  echo "$((i * 65536)) 65536" >&"$client_in_a"
  client_answer a > /dev/null
done
client_close a
wait_until 10 nothing_is_recorded
log_has "not written: .*a copy" || fail "a copy: $(tail -3 blobpagerd.log)"
expect_records copy none
expect_equal "refusals in the log" 3 \
  "$(count_lines "not written" blobpagerd.log)"

# A person's recording takes the export, and its cache.
client_open a debian
client_read a 50
wait_until 10 recordings_are debian
profile start mine --export=debian
expect_equal "recordings" mine "$(recordings)"
client_read a 51
profile stop mine > /dev/null
client_close a
expect_records mine "index@0 51@0"
expect_records debian "$old"

# Off is off.
stop_blobpagerd
profile_before=$(profile_records debian)
start_blobpagerd --store="$store" --profile=off
boot debian {12..1}
expect_equal "replays" none "$(replay state)"
expect_records debian "$profile_before"

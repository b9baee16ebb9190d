#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A replay is counted: blobs named, opened and missing; bytes prefetched,
# used and wasted; what came late; what was left out; and the stalls
# meanwhile.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 12
put_profile boot 1@0 2@0 missing@0 3@0 4@0
start_blobpagerd --store="$store" --profile=off
client_open a debian
profile start boot --mode=replay-xor-record
wait_for_replay drained
client_read a 2 1 9

expect_equal blobs_named 5 "$(replay blobs_named)"
expect_equal blobs_opened 4 "$(replay blobs_opened)"
expect_equal blobs_missing 1 "$(replay blobs_missing)"
expect_equal bytes_prefetched 32768 "$(replay bytes_prefetched)"
expect_equal bytes_used 16384 "$(replay bytes_used)"
expect_equal wasted 16384 "$(replay wasted)"
expect_equal late 0 "$(replay late)"
expect_equal not_pinned 0 "$(replay not_pinned)"

# The driver is told at the end, and keeps it with the profile.
profile stop boot > /dev/null
blobpager profile show --store="$store" --json boot > show.json
last ()
{
  json "j['last_replay']['$1']" < show.json
}
expect_equal "blobs_named, kept" 5 "$(last blobs_named)"
expect_equal "blobs_missing, kept" 1 "$(last blobs_missing)"
expect_equal "bytes_used, kept" 16384 "$(last bytes_used)"
[ "$(last stalls)" -ge 1 ] || fail "spot 9 did not stall"
python3 -c "import sys; sys.exit(not 0 < $(last stall_seconds) < 60)" ||
  fail "stall_seconds: $(last stall_seconds)"

# Records made: messages logged and client opens.
before=$(status "j['recordings']")
expect_equal "recordings" "[]" "$before"
profile start count
client_read a 7 1
made=$(status "j['recordings'][0]['records']")
# Spot 7 was logged and opened; spot 1 and the index were opened.
expect_equal "records made" 4 "$made"
profile stop count > /dev/null
client_close a

# Late: at a window in two seconds, the client comes first for two of four.
stop_blobpagerd
put_profile boot 1@0 2@0 3@0 4@0
start_blobpagerd --store="$store" --profile=off --replay-rate=4K
client_open a debian
profile start boot
client_read a 4 2
wait_for_replay drained
expect_equal late 2 "$(replay late)"
expect_equal bytes_prefetched 16384 "$(replay bytes_prefetched)"
expect_equal wasted 16384 "$(replay wasted)"
profile abort boot
client_close a

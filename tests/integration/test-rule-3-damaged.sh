#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A profile that cannot be decoded fails an explicit start, which says how
# to delete it; an automatic one logs it once and records afresh.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 12
put_profile damaged 1@0 2@0
put_profile large 3@0 4@0
damaged_file=$(python3 -c 'import json
print(json.load(open("store/profiles/damaged.json"))["root"])').profile
large_file=$(python3 -c 'import json
print(json.load(open("store/profiles/large.json"))["root"])').profile
printf '\1' | dd of="store/profiles/$damaged_file" bs=1 seek=100 \
  conv=notrunc status=none
truncate -s 17M "store/profiles/$large_file"

start_blobpagerd --store="$store"
for name in damaged large; do
  expect_fail 1 profile start $name
  grep -q "blobpager profile delete $name" err.log ||
    fail "$name: no advice: $(cat err.log)"
  nothing_is_recorded || fail "$name: recording: $(recordings)"
done
grep -q "too large" err.log || fail "large: $(cat err.log)"
profile delete damaged
profile start damaged
profile abort damaged

# Automatic: damage its profile, then boot twice.
put_profile debian 5@0 6@0
debian_file=$(python3 -c 'import json
print(json.load(open("store/profiles/debian.json"))["root"])').profile
printf '\1' | dd of="store/profiles/$debian_file" bs=1 seek=100 \
  conv=notrunc status=none
client_open a debian
client_open b debian
wait_until 10 log_has "warning: profile 'debian'.*not replaying"
client_read a 1 2
client_close a
client_close b
wait_until 10 nothing_is_recorded
expect_equal "times that it was logged" 1 \
  "$(count_lines "warning: profile 'debian'" blobpagerd.log)"
expect_records debian "index@0 1@0 2@0"

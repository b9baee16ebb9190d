#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A start that is busy, or that fails, leaves nothing recording; and one
# that succeeds records before it replays, so that what replay pages in is
# logged, too.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 12
put_profile boot 1@0 2@0 3@0
put_profile logged 7@0 9@0 11@0
put_profile files 1@0
text_file other.img 20000 1
blobpager import --store="$store" --name=other other.img > import.txt
sed -i 's/"kind": *"blob"/"kind":"file"/' store/profiles/files.json
start_blobpagerd --store="$store" --profile=off

# A tag that is not there.
expect_fail 1 profile start boot --export=nosuch
grep -q "nosuch" err.log || fail "it does not say which: $(cat err.log)"
expect_equal "recordings" 0 "$(status 'len(j["recordings"])')"

# The same name, or a scope that overlaps: busy.
profile start boot --export=debian
for args in boot "boot --export=other" other "other --export=debian"; do
  # shellcheck disable=SC2086
  expect_fail 1 profile start $args
  grep -q "is being recorded" err.log || fail "$args: $(cat err.log)"
done
profile start other --export=other
profile abort other
expect_equal recordings boot "$(recordings)"

# A profile that cannot be replayed at all: everything is aborted.
profile abort boot
expect_fail 1 profile start files
nothing_is_recorded || fail "a failed start left: $(recordings)"
expect_fail 1 profile stop files

# The driver logged the three page-ins of the replay.
profile start logged
wait_for_replay drained
expect_equal "result of stop" logged "$(profile stop logged |
  cut -d ' ' -f 1)"
profile_records logged > /dev/null
grep -q '^messages *3$' show.txt || fail "not logged: $(cat show.txt)"

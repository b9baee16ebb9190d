#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An import killed at any moment leaves the old image or the new one, a
# store that verifies, and leftovers that the next import sweeps.

. "$srcdir/harness/functions.sh"

random_file old.img 3000000 1
text_file tail 20000000 2
cat old.img tail > new.img
old=$(blobpager import --store=store --name=disk old.img | cut -d ' ' -f 1)
cp -a store pristine
start=$(date +%s%N)
new=$(blobpager import --store=other --name=disk new.img | cut -d ' ' -f 1)
whole=$((($(date +%s%N) - start) / 1000)) # Microseconds.
[ "$old" != "$new" ] || fail "both versions have one root"

seen_old=0 seen_new=0 seen_left=0
RANDOM=7
for i in $(seq 25); do
  rm -rf store
  cp -a pristine store
  # From the start to a little behind the end.
  delay=$((whole * 12 / 10 * i / 25 + RANDOM % 2000))
  blobpager import --store=store --name=disk new.img > /dev/null 2>&1 &
  pid=$!
  read -r -t "$((delay / 1000000)).$(printf %06d $((delay % 1000000)))" <> <(:) || :
  kill -9 $pid 2> /dev/null || :
  wait $pid 2> /dev/null || :

  [ -z "$(ls store/tmp)" ] || seen_left=$((seen_left + 1))
  case $(blobpager ls --store=store | cut -d ' ' -f 1) in
    "$old") seen_old=$((seen_old + 1)) ;;
    "$new") seen_new=$((seen_new + 1)) ;;
    *) fail "neither the old image nor the new one after $delay us" ;;
  esac
  blobpager verify --store=store > verify.log ||
    fail "verify after $delay us: $(cat verify.log)"
  blobpager import --store=store --name=other old.img > /dev/null
  [ -z "$(ls store/tmp)" ] || fail "leftovers stay: $(find store/tmp)"
done
echo "old $seen_old, new $seen_new, with leftovers $seen_left"
[ $seen_old -gt 0 ] || fail "no import was killed before its end"
[ $seen_left -gt 0 ] || fail "no import was killed in the middle"

# And once uncut: the killed ones cost nothing.
blobpager import --store=store --name=disk new.img > /dev/null
expect_equal "the image in the end" "$new" \
  "$(blobpager info --store=store --json disk | json 'j["root"]')"
blobpager verify --store=store

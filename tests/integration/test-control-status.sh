#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# status has the members that scripts depend on, with the numbers of what
# was done; the metrics say the same.

. "$srcdir/harness/functions.sh"
requires python3 --version
# nbdsh of the distribution, whose python has libnbd.
PATH=/usr/bin:$PATH
requires nbdsh --version

# status_member PATH: of the last status, as JSON; PATH as in Python.
status_member ()
{
  python3 -c "import json; s = json.load(open('status.json'))
print(json.dumps(s$1))"
}

# expect_members PATH NAME...: the object there has them.
expect_members ()
{
  local path=$1 name
  shift
  for name; do status_member "${path}['$name']" > /dev/null; done
}

random_file disk.img 1000000 status
blobpager import --store=store --compress=none disk.img > import.log
start_blobpagerd --store=store --cache-size=100M --profile=off

# A client that stays, so that its export is there to be seen.
mkfifo hold
nbdsh -u "$(uri disk)" -c 'h.pread(1000000, 0)
open("hold").read()' &
cleanup_fn stop_process $!
export_was_read ()
{
  blobpager status --control="$control" --json > status.json
  grep -q '"bytes_read": *1000000' status.json
}
wait_until 20 export_was_read

expect_members "['exports'][0]" name root size clients reads bytes_read \
  stalls stall_seconds
expect_members "['cache']" budget_bytes used_bytes pinned_bytes hits \
  misses evictions
expect_members "['verify']" blobs bytes corrupt sha256
expect_members "['driver']" uri connected reads bytes errors missing retries
expect_equal "recordings" "[]" "$(status_member "['recordings']")"
expect_equal "replay" "[]" "$(status_member "['replay']")"

read -r root _ < import.log
expect_equal "name" '"disk"' "$(status_member "['exports'][0]['name']")"
expect_equal "root" "\"$root\"" "$(status_member "['exports'][0]['root']")"
expect_equal "size" 1000000 "$(status_member "['exports'][0]['size']")"
expect_equal "clients" 1 "$(status_member "['exports'][0]['clients']")"
expect_equal "stalls" True "$(python3 -c "import json
e = json.load(open('status.json'))['exports'][0]
print(e['stalls'] > 0 and 0 < e['stall_seconds'] < 30)")"
expect_equal "budget" $((100 << 20)) \
  "$(status_member "['cache']['budget_bytes']")"
expect_equal "corrupt" 0 "$(status_member "['verify']['corrupt']")"
expect_equal "connected" true "$(status_member "['driver']['connected']")"
[ "$(status_member "['verify']['bytes']")" -ge 1000000 ] ||
  fail "too few bytes verified: $(status_member "['verify']")"

# The same numbers, as Prometheus reads them.
blobpager status --control="$control" --metrics > metrics
for pair in verify_bytes:verify:bytes driver_bytes:driver:bytes \
  cache_misses:cache:misses; do
  IFS=: read -r metric object member <<< "$pair"
  expect_equal "$metric" "$(status_member "['$object']['$member']")" \
    "$(sed -n "s/^blobpager_${metric}_total //p" metrics)"
done
expect_equal "lines that are no metric" "" \
  "$(grep -vE '^(# (HELP|TYPE) blobpager_[a-z_]+ |blobpager_[a-z_]+ [0-9]+$)' \
      metrics || :)"

# For people.
blobpager status --control="$control" > status.txt
grep -Eq '^disk +1 ' status.txt || fail "no line for the export: $(cat status.txt)"
echo > hold

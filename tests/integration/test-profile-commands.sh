#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# blobpager profile: what each action prints, as text and as JSON, from the
# daemon and from the store; and what it says when it cannot.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

# expect_error STATUS TEXT ARG...: of blobpager profile.
expect_error ()
{
  local status=$1 text=$2
  shift 2
  expect_fail "$status" blobpager profile "$@"
  expect_equal "lines of error" 1 "$(wc -l < err.log)"
  grep -qF -- "$text" err.log || fail "wanted '$text': $(cat err.log)"
}

make_spots 4
put_profile boot 1@0 2@0
start_blobpagerd --store="$store" --profile=off
client_open a debian

# start and abort print nothing, stop one line.
expect_equal "start" "" "$(profile start web --export=debian)"
client_read a 3
read -r name web_root records rest <<< "$(profile stop web)"
expect_equal "name" web "$name"
expect_equal "records" 2 "$records" # Of the index, and of the spot.
expect_equal "rest" "" "$rest"
[ "${#web_root}" = 64 ] || fail "no root: $web_root"
expect_equal "start" "" "$(profile start other)"
expect_equal "abort" "" "$(profile abort other)"

# The daemon and the store say the same.
profile list > list.daemon
blobpager profile list --store="$store" > list.store
cmp list.daemon list.store || fail "the lists differ"
expect_equal "names" "NAME boot web" \
  "$(awk '{ print $1 }' list.daemon | paste -s -d ' ')"
profile show web > show.daemon
blobpager profile show --store="$store" web > show.store
cmp show.daemon show.store || fail "what is shown differs"
grep -qE "^root +$web_root\$" show.store || fail "no root is shown"
expect_equal "records" 2 "$(sed '1,/^$/d' show.store | wc -l)"

# As JSON.
json ()
{
  python3 -c "import json, sys
j = json.load(sys.stdin)
print($1)"
}
expect_equal "list --json" "['boot', 'web']" \
  "$(profile list --json | json "[p['name'] for p in j['profiles']]")"
expect_equal "show --json" "web blob $web_root 2 2" \
  "$(profile show --json web |
     json "j['name'], j['kind'], j['root'], j['records'], len(j['entries'])" |
     tr -d "(),'")"
profile start again
client_read a 4
expect_equal "stop --json" "again 2" \
  "$(profile stop --json again | json "j['name'], j['records']" |
     tr -d "(),'")"

# A recording in the foreground ends when it ends.
profile start short --foreground --for=1
grep -q "profile 'short'" blobpagerd.log || fail "it has not ended"
expect_equal "recordings" "" "$(recordings)"

# delete, from either.
expect_equal "delete" "" "$(profile delete web)"
expect_error 1 "web" show --control="$control" web
expect_equal "delete" "" "$(blobpager profile delete --store="$store" boot)"
expect_error 1 "boot" show --store="$store" boot
expect_error 1 "boot" delete --store="$store" boot

# What cannot be.
expect_error 1 "web" stop --control="$control" web
expect_error 1 "web" abort --control="$control" web
expect_error 1 "is blobpagerd running" list --control="$tmp/nowhere"
expect_error 2 "an action is missing"
expect_error 2 "'dance': no such action" dance
expect_error 2 "NAME is missing" stop
expect_error 2 "too many operands" stop a b
expect_error 2 "'../a': not a profile's name" stop ../a
expect_error 2 "stop takes no --export" stop --export=debian a
expect_error 2 "start takes no --store" start --store="$store" a
expect_error 2 "--for: could not parse '1m'" start --for=1m a
expect_error 2 "--mode: 'fast'" start --mode=fast a
expect_error 2 "--attach needs --export" start --attach
expect_error 2 "exclude each other" list --store="$store" \
  --control="$control"
client_close a

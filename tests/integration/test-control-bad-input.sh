#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is no request costs one error and the connection, and neither the
# daemon nor another client notices: a line of 1 GiB, nested arrays, half a
# line, a number where a name should be.

. "$srcdir/harness/functions.sh"
requires python3 --version

talk ()
{
  python3 "$srcdir/harness/control-talk.py" "$control" "$@"
}

# expect_code CODE: of the one reply on standard input.
expect_code ()
{
  local reply
  reply=$(cat)
  expect_equal "lines of reply" 1 "$(wc -l <<< "$reply")"
  [[ $reply == '{"ok":false,"code":"'$1'",'* ]] ||
    fail "wanted $1, got $reply"
}

random_file disk.img 100000 control
blobpager import --store=store disk.img > import.log
start_blobpagerd --store=store

talk $((1 << 30)) | expect_code ERANGE
talk 60000 < /dev/null > out.log
expect_equal "half a line" "" "$(cat out.log)"
{ printf '{"command":'; head -c 1000 < /dev/zero | tr '\0' '['; echo; } |
  talk | expect_code EPROTO
printf '{"command":"stat' | talk > out.log
expect_equal "half a line" "" "$(cat out.log)"
echo 'GET / HTTP/1.1' | talk | expect_code EPROTO
head -c 1000 disk.img | tr -d '\n' > garbage
{ cat garbage; echo; } | talk | expect_code EPROTO
echo '{"command":"profile-show","name":["a"]}' | talk | expect_code EINVAL
echo '{"command":"profile-show","name":"../../etc/passwd"}' | talk |
  expect_code EINVAL

# It lives, and serves.
expect_equal "image" "$(sha_of disk.img)" "$(sha_of_uri "$(uri disk)")"
blobpager status --control="$control" > status.txt
expect_equal "lines about corruption" 1 "$(grep -c '0 corrupt' status.txt)"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The command line of blobpager-nbd-conform, and servers that cannot be
# tested: one line on standard error, and the right exit status.

. "$srcdir/harness/functions.sh"
. "$srcdir/conform/functions.sh"

# says PATTERN: err.log is one line that matches.
says ()
{
  [ "$(wc -l < err.log)" = 1 ] || fail "not one line: $(cat err.log)"
  grep -qE "^blobpager-nbd-conform: $1" err.log ||
    fail "wanted '$1', got: $(cat err.log)"
}

# ---- Usage ----

for words in "" "--no-such-option nbd://h" "-x nbd://h" "--only" \
  "--list=yes" "--timeout=0 nbd://h" "--timeout=x nbd://h" \
  "nbd://h nbd://h" "--list nbd://h" "--only=no/such nbd://h" \
  "http://h/" "nbd://" "nbd+unix:///" "nbd://h/%0" "nbd://h/%00" \
  "nbd://h:0/" "nbd://h:70000/" "nbd://[::1/" "nbd://h/?x=1"; do
  # shellcheck disable=SC2086
  expect_fail 2 blobpager-nbd-conform $words
  says '.*; see blobpager-nbd-conform --help'
done
blobpager-nbd-conform --help | grep -q 'Does an NBD server keep' ||
  fail "--help"
blobpager-nbd-conform --version | grep -q '^blobpager-nbd-conform [0-9]' ||
  fail "--version"

blobpager-nbd-conform --list > list
grep -qx 'write/it-fails' list || fail "--list lacks a check"
expect_equal "checks in --list without a sentence" 0 \
  "$(awk '/^[^ ]/ { if (n && lines < 2) print n; n = $0; lines = 0; next }
          { lines++ }' list | wc -l)"
expect_equal "names that are there twice" "" "$(grep '^[^ ]' list | uniq -d)"
[ "$(grep -c '^[^ ]' list)" -gt 180 ] || fail "few checks"
expect_equal "--only and --except" "write/trim-is-not-permitted" \
  "$(blobpager-nbd-conform --list --only='write/*' --only='read/*' \
       --except='read/*' --except='write/[!t]*' | grep '^[^ ]')"
expect_fail 1 bash -c 'blobpager-nbd-conform --list > /dev/full'
says 'standard output: '

# ---- Nothing to test ----

expect_fail 1 blobpager-nbd-conform "nbd+unix:///?socket=$tmp/none"
says ".*connect: No such file or directory"
expect_fail 1 blobpager-nbd-conform nbd://127.0.0.1:1/
says ".*connect: Connection refused"
expect_fail 1 blobpager-nbd-conform --reference=none nbd://127.0.0.1:1/
says "'none': open: No such file"

uri="nbd+unix:///?socket=$tmp/nbdkit.sock"

serve_nbdkit memory 1M
expect_fail 1 blobpager-nbd-conform "$uri"
says '.*the export is not read-only'
expect_fail 1 blobpager-nbd-conform "nbds+unix:///?socket=$tmp/nbdkit.sock"
says '.*the server does not offer TLS'

serve_nbdkit -r --filter=exportname memory 1M exportname-strict=true exportname=disk
expect_fail 1 blobpager-nbd-conform "$uri"
says ".*the server has no export ''"
conform --only='handshake/*' "nbd+unix:///disk?socket=$tmp/nbdkit.sock"
expect_all_ok "an export with a name"

# ---- A server that hangs has failed the check, and no more ----

serve_nbdkit -r --filter=delay memory 1M rdelay=60
expect_fail 1 blobpager-nbd-conform --timeout=1 \
  --only=read/it-sends-what-is-asked --only=info/has-flags-is-set "$uri"
grep -q '^not ok .* - read/it-sends-what-is-asked$' out.log ||
  fail "a server that hangs passes: $(cat out.log)"
grep -q '^#   timed out waiting for a reply$' out.log ||
  fail "the diagnostics do not say what was waited for"
grep -q '^ok .* - info/has-flags-is-set$' out.log ||
  fail "the checks beside it are spoilt: $(cat out.log)"

# ---- A reference that differs ----

serve_nbdkit -r memory 1M
truncate -s 1M same.img
truncate -s 1048577 longer.img
cp same.img other.img
flip_bit other.img 77777
name=read/the-export-is-the-reference
conform --only=$name --reference=same.img "$uri"
expect_all_ok "the reference"
conform --only=$name --reference=longer.img "$uri"
expect_not_ok "a longer reference" $name
conform --only=$name --reference=other.img "$uri"
expect_not_ok "another reference" $name
grep -q 'byte 77777: expected 0x04, got 0x00' tap ||
  fail "the diagnostics do not name the byte"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# add, ls, info, verify, rm and merkle: what they print, as text and as
# JSON, and their exit status.

. "$srcdir/harness/functions.sh"

random_file small 5000 1
random_file large 700000 2
text_file text 700000 3
: > empty

# merkle is what add stores under.
empty_root=15ec7bf0b50732b49f8228e07d24365338f9e3ab994b00af08e5a3bffe55fd8b
expect_equal "merkle of nothing" "$empty_root  empty" "$(blobpager merkle empty)"
expect_equal "merkle of standard input" "$empty_root  -" \
  "$(blobpager merkle - < /dev/null)"
blobpager merkle small large text > merkle.log
for file in small large text; do blobpager add --store=store $file; done > add.log
diff merkle.log add.log || fail "add and merkle disagree"
expect_equal "merkle --json" "$(cut -d ' ' -f 1 merkle.log | xargs)" \
  "$(blobpager merkle --json small large text |
    json '" ".join(f["root"] for f in j)')"
expect_fail 1 blobpager merkle small absent large
expect_equal "merkle goes on behind a file it cannot read" 2 "$(wc -l < out.log)"
expect_fail 2 blobpager merkle

root=$(blobpager merkle text | cut -d ' ' -f 1)
expect_equal "info of a blob" "700000 zstd" \
  "$(blobpager info --store=store --json "$root" |
    json '"%d %s" % (j["blob_size"], j["codec"])')"
blobpager info --store=store "$root" | grep -q '^blob: *683.6 KiB (700000 bytes)$' ||
  fail "info of a blob, as text"

# Images.
blobpager import --store=store --name=b large > /dev/null
image=$(blobpager import --store=store --name=a --json text | json 'j["root"]')
expect_equal "ls" "a b" "$(blobpager ls --store=store | awk '{print $NF}' | xargs)"
expect_equal "ls --json" "a 700000 $image" \
  "$(blobpager ls --store=store --json |
    json '"%s %d %s" % tuple(j["images"][0][k] for k in ("name", "size", "root"))')"
expect_equal "the URI for a VM" \
  "nbd+unix:///a@$image?socket=/run/my%20vm/sock" \
  "$(blobpager info --store=store --socket='/run/my vm/sock' a | sed -n 's/^uri: *//p')"
expect_equal "an image by its root" "['a']" \
  "$(blobpager info --store=store --json "$image" | json 'j["images"]')"
expect_fail 1 blobpager info --store=store absent
expect_fail 1 blobpager info --store=store "$empty_root"
expect_fail 2 blobpager info --store=store ../a
expect_fail 2 blobpager info --store=store

# verify.
blobpager verify --store=store > verify.log
blobpager verify --store=store a b >> verify.log
[ ! -s verify.log ] || fail "verify of a store in order: $(cat verify.log)"
expect_equal "verify --json" "[]" \
  "$(blobpager verify --store=store --json | json 'j["problems"]')"
expect_fail 1 blobpager verify --store=store absent
expect_fail 2 blobpager verify --store=store ../a

# The first stored byte of a pack is its first blob's.
pack=$(grep -l . store/packs/*.pack | while read -r p; do
  [ "$(head -c 5064 "$p" | tail -c 5000 | cmp - small > /dev/null && echo yes)" = yes ] && echo "$p"
done || :)
[ -n "$pack" ] || fail "no pack begins with the first blob"
printf '\377\376' | dd of="$pack" bs=1 seek=100 conv=notrunc status=none
expect_fail 1 blobpager verify --store=store
expect_equal "verify of one corrupt blob" \
  "corrupt     $(blobpager merkle small | cut -d ' ' -f 1)  no image, offset 0: digest mismatch" \
  "$(cat out.log)"
blobpager verify --store=store a b || fail "images without it do verify"
expect_fail 1 blobpager verify --store=store --json
expect_equal "verify --json of it" "corrupt" \
  "$(json '" ".join(p["state"] for p in j["problems"])' < out.log)"

# rm.
expect_fail 2 blobpager rm --store=store
expect_fail 2 blobpager rm --store=store ../a
blobpager rm --store=store a > rm.log
[ ! -s rm.log ] || fail "rm printed something"
expect_fail 1 blobpager rm --store=store a
expect_equal "ls without a" b "$(blobpager ls --store=store | awk '{print $NF}')"

# Help, version, and output that cannot be written.
blobpager --version | grep -q '^blobpager [0-9]' || fail "--version"
for command in import add ls info verify rm merkle; do
  blobpager $command --help > help.txt
  grep -q "^blobpager $command " help.txt || fail "$command --help"
  ! grep -q "^blobpager $command  " help.txt ||
    fail "$command --help: the rest of a line looks like a command"
done
[ ! -e /dev/full ] || {
  status=0
  blobpager ls --store=store > /dev/full 2> err.log || status=$?
  expect_equal "ls on a full disk" 1 $status
}

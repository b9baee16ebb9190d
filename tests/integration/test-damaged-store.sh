#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A store that is damaged gets one clear error for what is damaged; the
# daemon lives and serves everything else.

. "$srcdir/harness/functions.sh"

# is_served TAG FILE
is_served ()
{
  expect_equal "$1" "$(sha_of "$2")" "$(sha_of_uri "$(uri "$1")")"
}

# is_refused TAG: and not as if it were not there.
is_refused ()
{
  expect_fail 1 nbdinfo --size "$(uri "$1")"
  ! grep -q 'No such file' err.log || fail "$1: it looks absent: $(cat err.log)"
}

text_file good.img 300000 1
text_file bad.img 300000 500000
make_store good.img good
cp -r store/packs good-packs
make_store bad.img bad
pack=$(comm -13 <(ls good-packs) <(ls store/packs))
cp "store/packs/$pack" whole.pack
cp store/images/bad.json whole.json

for damage in magic short empty; do
  cp whole.pack damaged.pack
  case $damage in
  magic) flip_bit damaged.pack 0 ;;
  short) truncate -s -1000 damaged.pack ;;
  empty) : > damaged.pack ;;
  esac
  cp damaged.pack "store/packs/$pack"
  : > blobpagerd.log
  start_blobpagerd --store="$store" --profile=off
  is_refused bad
  grep -q 'a client is turned away' blobpagerd.log || fail "nothing is logged"
  is_served good good.img
  expect_fail 1 blobpager verify --store="$store"
  stop_blobpagerd
done
cp whole.pack "store/packs/$pack"

# Tags: not JSON, cut short, without a root, a root of 63 digits, a link, a
# FIFO, and one that says another size.
: > blobpagerd.log
start_blobpagerd --store="$store" --profile=off
for damage in noise short rootless digits link fifo size; do
  rm -f store/images/bad.json
  case $damage in
  noise) head -c 500 /dev/urandom > store/images/bad.json ;;
  short) head -c 60 whole.json > store/images/bad.json ;;
  rootless) sed 's/"root"/"toor"/' whole.json > store/images/bad.json ;;
  digits) sed 's/\("root":"\)./\1/' whole.json > store/images/bad.json ;;
  link) ln -s "$tmp/whole.json" store/images/bad.json ;;
  fifo) mkfifo store/images/bad.json ;;
  size) sed 's/"size":300000/"size":300001/' whole.json > store/images/bad.json ;;
  esac
  is_refused bad
  is_served good good.img
done
rm -f store/images/bad.json
cp whole.json store/images/bad.json
is_served bad bad.img

# Names that are none.
for name in ../good ../../etc/passwd session GOOD "$(printf 'a%.0s' {1..200})" \
  "${root%?}" "blob/${root%?}" "good@${root%?}"; do
  expect_fail 1 nbdinfo --size "$(uri "$name")"
done
is_served "good" good.img
is_served "bad@$root" bad.img
stop_blobpagerd

# A store that is a file, and one that is no store.
expect_fail 1 blobpagerd --store="$tmp/good.img" --listen=unix:"$tmp/s2" --control="$tmp/c2"
[ "$(wc -l < err.log)" -le 3 ] || fail "many lines for a store that is a file"
mkdir other && touch other/file
expect_fail 1 blobpagerd --store="$tmp/other" --listen=unix:"$tmp/s2" --control="$tmp/c2"

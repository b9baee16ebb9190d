#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A second version of an image, with bytes inserted, removed and changed
# here and there, stores less than a third of its bytes anew; importing
# the same disk again stores nothing but what its tag says.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version

# Files on a disk begin at blocks: so does what was inserted.
random_file a 6000000 1
random_file b 30000000 2
python3 - << 'END'
a = bytearray(open("b", "rb").read())
new = open("a", "rb").read()
at = 8 << 20
a[at:at] = new[:1 << 20]                    # inserted
del a[20 << 20:(20 << 20) + 40960]          # removed
a[25 << 20:(25 << 20) + 4096] = new[-4096:] # changed
open("b2", "wb").write(a)
END
blobpager import --store=store --name=v1 b
blobpager import --store=store --name=v2 b2

# new_of NAME: its bytes that no earlier import had, all its bytes, and
# what was stored for it.
new_of ()
{
  blobpager info --store=store --json "$1" |
    json 'j["bytes_new"], j["bytes"], j["stored_new"]' | tr -d '(,)'
}

read -r new all _ < <(new_of v1)
expect_equal "the first version's new bytes" "$all" "$new"
read -r new all _ < <(new_of v2)
[ "$new" -ge $((1 << 20)) ] || fail "the new bytes were not stored: $new"
[ $((3 * new)) -lt "$all" ] || fail "v2 stored $new of $all bytes anew"

packs=$(ls store/packs)
blobpager import --store=store --name=again b2
read -r new _ stored < <(new_of again)
expect_equal "new bytes of the same disk" "0 0" "$new $stored"
expect_equal "packs" "$packs" "$(ls store/packs)"

start_driver store="$PWD/store"
for pair in v1:b v2:b2 again:b2; do
  expect_equal "$pair" "$(sha_of "${pair#*:}")" \
    "$(sha_of_uri "nbd+unix:///${pair%:*}?socket=$driver")"
done

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What nbdinfo learns of the daemon's exports: size, flags, block sizes and
# description by each of their names, and the list of them.

. "$srcdir/harness/functions.sh"
requires nbdinfo --version

random_file disk.img 300001 1
make_store disk.img debian:12
start_blobpagerd --store="$store" --profile=off

# info EXPORT FILTER: as json has it, of the one export.
info ()
{
  nbdinfo --json --no-content "$(uri "$1")" | tee info.log > info.json
  json "$2" < info.json
}

for name in debian:12 "debian:12@$root" "$root" ""; do
  expect_equal "size of '$name'" 300001 \
    "$(info "$name" 'j["exports"][0]["export-size"]')"
done
segments=$(blobpager info --store="$store" --json debian:12 |
  json 'j["segments"]')
expect_equal "size of the index, as a blob" $((64 + 48 * segments)) \
  "$(info "blob/$root" 'j["exports"][0]["export-size"]')"

for flag in is_read_only can_multi_conn can_cache; do
  expect_equal $flag True "$(info debian:12 "j['exports'][0]['$flag']")"
done
for flag in can_flush can_fua can_trim can_zero is_rotational; do
  expect_equal $flag False "$(info debian:12 "j['exports'][0]['$flag']")"
done
expect_equal "block sizes" "1 4096 33554432" \
  "$(info debian:12 "' '.join (str (j['exports'][0]['block_size_' + s])
     for s in ('minimum', 'preferred', 'maximum'))")"
expect_equal "description" "image of 293.0 KiB, root $root" \
  "$(info debian:12 'j["exports"][0]["description"]')"

# The list: tags, and never the session.
text_file second.img 5000 1
blobpager import --store="$store" --name=second second.img > /dev/null
nbdinfo --list --json --no-content "nbd+unix://?socket=$sock" > info.json
expect_equal "list" "debian:12 second" "$(json \
  "' '.join (sorted (e['export-name'] for e in j['exports']))" < info.json)"

# Two images now, so the empty name is none; and what never was one.
for name in "" nobody session ../x "${root%?}" "debian:12@${root%?}" \
  "blob/${root%?}0g" "$(printf 'x%.0s' {1..4000})"; do
  expect_fail 1 nbdinfo --size "$(uri "$name")"
done
grep -q . err.log || fail "nothing is said of an export that is not there"
expect_equal "clients after all that" 0 \
  "$(status "sum (e['clients'] for e in j['exports'])")"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What nbdinfo learns of the daemon's exports: size, flags, block sizes and
# description by each of their names, and the list of them.

. "$srcdir/harness/functions.sh"
requires nbdinfo --version
requires qemu-nbd --version

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

# All that it tells of one, but the address.
nbdinfo --json --no-content "$(uri debian:12)" | grep -v '"uri":' > info.json
cat > golden.json << END
{
"protocol": "newstyle-fixed",
"TLS": false,
"structured": true,
"exports": [
	{
	"export-name": "debian:12",
	"description": "image of 293.0 KiB, root $root",
	"contexts": [
		"base:allocation",
		"blobpager:residency"
	],
	"is_rotational": false,
	"is_read_only": true,
	"can_cache": true,
	"can_df": true,
	"can_fast_zero": false,
	"can_flush": false,
	"can_fua": false,
	"can_multi_conn": true,
	"can_trim": false,
	"can_zero": false,
	"block_size_minimum": 1,
	"block_size_preferred": 4096,
	"block_size_maximum": 33554432,
	"export-size": 300001,
	"export-size-str": "300001"
	} ]
}
END
diff golden.json info.json || fail "it tells something else"

# The list: tags, and never the session.
text_file second.img 5000 1
blobpager import --store="$store" --name=second second.img > /dev/null
nbdinfo --list --json --no-content "nbd+unix://?socket=$sock" > info.json
expect_equal "list" "debian:12 second" "$(json \
  "' '.join (sorted (e['export-name'] for e in j['exports']))" < info.json)"
expect_equal "description in the list" \
  "$(info debian:12 'j["exports"][0]["description"]')" \
  "$(qemu-nbd -L -k "$sock" | sed -n "/'debian:12'/,/size/s/^ *description: //p")"

# Two images now, so the empty name is none; and what never was one.
for name in "" nobody session ../x "${root%?}" "debian:12@${root%?}" \
  "blob/${root%?}0g" "$(printf 'x%.0s' {1..4000})"; do
  expect_fail 1 nbdinfo --size "$(uri "$name")"
done
grep -q . err.log || fail "nothing is said of an export that is not there"
expect_equal "clients after all that" 0 \
  "$(status "sum (e['clients'] for e in j['exports'])")"

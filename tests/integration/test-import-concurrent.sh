#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Imports side by side, into a store that does not exist yet, all succeed,
# whether their disks are alike or not, and take object ids of their own.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version

for i in 1 2 3 4; do
  random_file "disk$i.img" 2000000 $((i / 3)) # 1 and 2 are alike, 3 and 4.
  text_file tail 500000 "$i"
  cat tail >> "disk$i.img"
done
pids=()
for i in 1 2 3 4; do
  blobpager import --store=store "disk$i.img" > "line$i.log" 2> "err$i.log" &
  pids+=($!)
done
blobpager import --store=store --name=disk1 disk1.img > line5.log 2> err5.log &
pids+=($!)
for pid in "${pids[@]}"; do
  wait "$pid" || fail "an import failed: $(cat err*.log)"
done

blobpager verify --store=store
expect_equal "tags" "disk1 disk2 disk3 disk4" \
  "$(blobpager ls --store=store | awk '{print $NF}' | xargs)"
start_driver store="$PWD/store"
for i in 1 2 3 4; do
  expect_equal "disk$i" "$(sha_of "disk$i.img")" \
    "$(sha_of_uri "nbd+unix:///disk$i?socket=$driver")"
done

# No object id twice: the table of each pack, read as the manual says.
python3 - store/packs/*.pack << 'END'
import struct, sys
seen = set()
for name in sys.argv[1:]:
    data = open(name, "rb").read()
    table, count = struct.unpack("<QQ", data[-112:-96])
    assert count > 0, name
    for i in range(count):
        ident, = struct.unpack_from("<Q", data, table + 76 * i + 32)
        assert ident not in seen and ident > 0, (name, ident)
        seen.add(ident)
next_id, = struct.unpack("<Q", open("store/lock", "rb").read())
assert max(seen) < next_id, (max(seen), next_id)
END

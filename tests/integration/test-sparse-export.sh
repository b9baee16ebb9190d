#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A sparse disk of 1 TiB with three blocks written is imported, attached,
# read and mapped through the daemon without being read whole; and one of
# 4 EiB, the largest that there is, to its last byte.

. "$srcdir/harness/functions.sh"
requires /usr/bin/python3 -c "import nbd" # The distribution's.

truncate -s 1T disk.img
for place in 0 549755813888 1099511623680; do
  random_file block 4096 $place
  dd if=block of=disk.img bs=4096 seek=$((place / 4096)) conv=notrunc status=none
done
make_store disk.img disk
start_blobpagerd --store="$store" --profile=off

expect_equal size 1099511627776 "$(nbdinfo --size "$(uri disk)")"
/usr/bin/python3 - "$(uri disk)" << 'END' > wrong.log
import nbd, random, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
random.seed(1)
places = [0, 549755813888, 1099511623680, 4095, 549755813887, 1099511627775]
places += [random.randrange(1 << 40) for _ in range(100)]
with open("disk.img", "rb") as f:
    for place in places:
        length = min(random.randrange(1, 100000), (1 << 40) - place)
        f.seek(place)
        if h.pread(length, place) != f.read(length):
            print("wrong at", place)
END
expect_equal "places that differ" "" "$(cat wrong.log)"
expect_equal "little is fetched" True "$(status 'j["driver"]["bytes"] < 2 << 20')"

# Its map is three blocks, and holes of which each takes many answers.
expect_equal "map" "0 4096 0
4096 549755809792 3
549755813888 4096 0
549755817984 549755805696 3
1099511623680 4096 0" "$(nbdinfo --map --json "$(uri disk)" |
  json "'\n'.join ('%d %d %d' % (e['offset'], e['length'], e['type'])
        for e in j)")"
expect_equal "still little is fetched" True \
  "$(status 'j["driver"]["bytes"] < 2 << 20')"
stop_blobpagerd

# 4 EiB, where a file system can hold them.
vast=$(mktemp -d "/dev/shm/bp.XXXXXX") && cleanup_fn rm -rf "$vast" &&
  truncate -s 4E "$vast/vast.img" || exit 0
random_file block 4096 1
for place in 0 1125899906842623; do
  dd if=block of="$vast/vast.img" bs=4096 seek=$place conv=notrunc \
    status=none
done
make_store "$vast/vast.img" vast
start_blobpagerd --store="$store" --profile=off
expect_equal size 4611686018427387904 "$(nbdinfo --size "$(uri vast)")"
/usr/bin/python3 - "$(uri vast)" << 'END' > wrong.log
import nbd, sys
h = nbd.NBD()
h.add_meta_context("base:allocation")
h.connect_uri(sys.argv[1])
size = 1 << 62
block = open("block", "rb").read()
found = []
def extents(context, offset, entries, error):
    found.append((offset, entries))
for count, offset, wanted in [
        (0xfffffe00, 4096, [0xfffffe00, 3]),
        (0xfffffe00, size // 2, [0xfffffe00, 3]),
        (8192, size - 8192, [4096, 3, 4096, 0]),
        (1, size - 1, [1, 0]),
        (4097, size - 4097, [1, 3, 4096, 0])]:
    found.clear()
    h.block_status(count, offset, extents)
    if found != [(offset, wanted)]:
        print("status at", offset, found)
if h.pread(4096, size - 4096) != block or h.pread(1, size - 1) != block[-1:]:
    print("the last block differs")
if h.pread(1 << 20, size // 2) != bytes(1 << 20):
    print("the middle differs")
for count, offset in [(1, size), (2, size - 1), (4096, (1 << 63) - 4096)]:
    for call in h.pread, lambda n, at: h.block_status(n, at, extents):
        try:
            h.set_strict_mode(0)
            call(count, offset)
            print("no error at", offset)
        except nbd.Error as e:
            if e.errno != "EINVAL":
                print(e.errno, "at", offset)
END
expect_equal "what differs" "" "$(cat wrong.log)"

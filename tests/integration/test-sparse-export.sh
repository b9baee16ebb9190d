#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A sparse disk of 1 TiB with three blocks written is imported, attached
# and read through the daemon without being read whole.

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

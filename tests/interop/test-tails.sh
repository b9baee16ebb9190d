#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The ends of images whose sizes are one more and one less than what others
# round to: every byte is there, none follows, and the map ends with them.

. "$srcdir/harness/functions.sh"
requires /usr/bin/python3 -c "import nbd" # The distribution's.
requires qemu-img --version

sizes=()
for around in 512 4096 8192 131072 262144; do
  for size in $((around - 1)) $around $((around + 1)); do
    sizes+=("$size")
    random_file "d$size.img" "$size" "$size"
    make_store "d$size.img" "d$size"
    # The same with a hole before its last byte.
    truncate -s "$size" "h$size.img"
    printf x | dd of="h$size.img" bs=1 seek=$((size - 1)) conv=notrunc \
      status=none
    make_store "h$size.img" "h$size"
  done
done
start_blobpagerd --store="$store" --profile=off

/usr/bin/python3 - "$sock" "${sizes[@]}" << 'END' > wrong.log
import nbd, sys

def check(name, size):
    data = open(name + ".img", "rb").read()
    h = nbd.NBD()
    h.add_meta_context("base:allocation")
    h.set_strict_mode(0)
    h.connect_uri("nbd+unix:///%s?socket=%s" % (name, sys.argv[1]))
    if h.get_size() != size:
        print(name, "has size", h.get_size())
    for n in (1, 2, 511, 512, 513, 4095, 4096, 4097, size):
        n = min(n, size)
        if h.pread(n, size - n) != data[size - n:]:
            print(name, "differs in the last", n)
        for count, offset in ((n + 1, size - n), (n, size)):
            try:
                h.pread(count, offset)
                print(name, "has", count, "bytes at", offset)
            except nbd.Error as e:
                if e.errno != "EINVAL":
                    print(name, e.errno, "for", count, "bytes at", offset)
    extents = []
    h.block_status(size, 0, lambda c, o, e, err: extents.extend(e))
    if sum(extents[0::2]) != size:
        print(name, "has a map of", extents)
    h.shutdown()

for size in map(int, sys.argv[2:]):
    check("d%d" % size, size)
    check("h%d" % size, size)
END
expect_equal "what differs" "" "$(cat wrong.log)"

for size in "${sizes[@]}"; do
  qemu-img compare -f raw -F raw "h$size.img" "$(uri "h$size")" > compare.log ||
    fail "qemu-img finds a difference in h$size.img"
done

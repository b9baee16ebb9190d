#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdcopy of an export is the file that was imported, to the last byte:
# files of awkward sizes, holes, and a larger disk over four connections.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version

: > empty.img
for size in 1 511 4097 131073; do
  random_file "$size.img" $size $size
done
truncate -s 1M zeros.img

# 40 MiB: noise, text and holes in turn.
truncate -s 41943041 mixed.img
for i in 0 1 2 3; do
  random_file part $((3000000 + i)) $i
  dd if=part of=mixed.img bs=1M seek=$((i * 10)) conv=notrunc status=none
  text_file part 2500000 $i
  dd if=part of=mixed.img bs=1M seek=$((i * 10 + 5)) conv=notrunc status=none
done
printf x | dd of=mixed.img bs=1 seek=41943040 conv=notrunc status=none

for image in empty 1 511 4097 131073 zeros mixed; do
  make_store $image.img "t$image"
done
start_blobpagerd --store="$store" --profile=off

for image in empty 1 511 4097 131073 zeros mixed; do
  expect_equal "sha256 of $image.img" "$(sha_of $image.img)" \
    "$(sha_of_uri "$(uri t$image)")"
done

# Cold and hot, large requests and small ones, over four connections.
for size in 4096 65536 33554432; do
  rm -f copy.img
  nbdcopy --connections=4 --request-size=$size "$(uri tmixed)" copy.img
  cmp mixed.img copy.img || fail "the copy in requests of $size differs"
done

# A copy asks where the holes are, and neither reads nor writes them; but
# nbdcopy reads on to a whole request at the end of each of 9 runs.
bytes_read ()
{
  status 'sum (e["bytes_read"] for e in j["exports"])'
}
data=$(nbdinfo --map --totals --json "$(uri tmixed)" |
  json "[e['size'] for e in j if e['type'] == 0][0]")
[ "$data" -gt 20000000 ] && [ "$data" -lt 25000000 ] ||
  fail "of 22 MB, $data bytes are data"
before=$(bytes_read)
rm -f copy.img
nbdcopy --request-size=65536 "$(uri tmixed)" copy.img
cmp mixed.img copy.img || fail "the sparse copy differs"
[ $(($(bytes_read) - before)) -le $((data + 9 * 65536)) ] ||
  fail "$(($(bytes_read) - before)) bytes are read, of $data that are data"
[ $(($(stat -c %b copy.img) * 512)) -le $((data + 65536)) ] ||
  fail "the copy is not sparse"

# The other way to skip them: a client that asks for all, in structured
# replies, and one that takes simple ones and gets the zeros.
for extra in --no-extents "--no-extents --synchronous"; do
  # shellcheck disable=SC2086
  nbdcopy $extra "$(uri tmixed)" - | cmp mixed.img - ||
    fail "the copy with $extra differs"
done
expect_equal "corrupt" 0 "$(status 'j["verify"]["corrupt"]')"

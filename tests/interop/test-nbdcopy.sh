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
expect_equal "corrupt" 0 "$(status 'j["verify"]["corrupt"]')"

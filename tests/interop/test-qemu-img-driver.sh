#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# qemu-img finds no difference between a file system and what the plugin
# serves of it, and finds the one that is there.

. "$srcdir/harness/functions.sh"
requires qemu-img --version
requires mkfs.ext4 -V

mkdir tree
cp -r "$top_srcdir/lib" "$top_srcdir/tests" tree 2> /dev/null || :
truncate -s 64M disk.img
mkfs.ext4 -q -d tree disk.img
make_store disk.img disk
start_driver store="$store"
uri="nbd+unix:///disk?socket=$driver"

qemu-img compare -f raw -F raw disk.img "$uri" || fail "they differ"
nbdinfo --map --totals "$uri" | grep -q hole || fail "no holes in the map"

cp --sparse=always disk.img other.img
printf x | dd of=other.img bs=1 seek=5000000 conv=notrunc status=none
expect_fail 1 qemu-img compare -f raw -F raw other.img "$uri"

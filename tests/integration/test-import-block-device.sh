#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A block device imports to the same root as the file behind it.

. "$srcdir/harness/functions.sh"
[ "$(id -u)" = 0 ] || skip "a loop device needs root"

truncate -s $((3 * 1024 * 1024 + 512)) disk.img
text_file text 1000000 7
dd if=text of=disk.img bs=4096 seek=64 conv=notrunc status=none
device=$(losetup --find --show --read-only disk.img) ||
  skip "there are no loop devices"
cleanup_fn losetup --detach "$device"

make_store disk.img file
wanted=$root
make_store "$device" device
expect_equal root "$wanted" "$root"
expect_equal size 3146240 \
  "$(blobpager info --store="$store" --json device | json 'j["size"]')"
# Without a name, the device's own is taken.
blobpager import --store="$store" "$device" > line.txt
expect_equal "the line" "$wanted  ${device##*/}" "$(cat line.txt)"

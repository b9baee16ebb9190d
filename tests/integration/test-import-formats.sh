#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A qcow2, VMDK or VHDX file is refused with the two commands that import
# the disk in it; run as they are printed, they do.  --raw takes the file
# as it is.

. "$srcdir/harness/functions.sh"
requires qemu-img --version
requires qemu-nbd --version

random_file part 300000 1
truncate -s 8M disk.img
dd if=part of=disk.img bs=64K seek=20 conv=notrunc status=none
raw_root=$(blobpager import --store=reference disk.img | cut -d ' ' -f 1)

for format in qcow2 vmdk vhdx; do
  name="d-$format-$$"
  qemu-img convert -O $format disk.img "my $name.$format"
  expect_fail 1 blobpager import --store=store --name="$name" "my $name.$format"
  expect_equal "$format: lines" 1 "$(wc -l < err.log)"
  commands=$(sed -n 's/.*not a disk: run: \(.*\) (or give --raw.*/\1/p' err.log)
  [ -n "$commands" ] || fail "$format: no recipe in: $(cat err.log)"
  [ ! -e store/images/"$name".json ] || fail "$format: imported all the same"

  cleanup_fn rm -f "/tmp/$name.sock"
  bash -e -c "$commands" > line.log || fail "$format: the recipe failed"
  expect_equal "$format: the disk" "$raw_root  $name" "$(cat line.log)"

  blobpager import --store=store --name=raw --raw "my $name.$format" > line.log
  expect_equal "$format: the file's size" \
    "$(stat -c %s "my $name.$format")" \
    "$(blobpager info --store=store --json raw | json 'j["size"]')"
done

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Disks of odd sizes, empty, tiny, of zeros and of noise, come back byte
# for byte, and have the same root whatever they are compressed with.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version

: > empty.img
printf x > one.img
random_file r511.img 511 1
random_file r4097.img 4097 2
random_file r131073.img 131073 3
truncate -s 1M zeros.img
text_file text.img 1000001 4
{ cat r131073.img; head -c 300000 /dev/zero; cat text.img; } > mixed.img

for image in empty one r511 r4097 r131073 zeros text mixed; do
  blobpager import --store=zstd $image.img > line.log
  root=$(cut -d ' ' -f 1 line.log)
  expect_equal "$image: the line" "$root  $image" "$(cat line.log)"
  expect_equal "$image: root without compression" "$root  $image" \
    "$(blobpager import --store=none --compress=none $image.img)"
done
blobpager verify --store=zstd > verify.log || fail "verify: zstd"
blobpager verify --store=none >> verify.log || fail "verify: none"
[ ! -s verify.log ] || fail "verify printed something"

for compress in zstd none; do
  start_driver store="$PWD/$compress"
  for image in empty one r511 r4097 r131073 zeros text mixed; do
    uri="nbd+unix:///$image?socket=$driver"
    expect_equal "$compress: $image: size" "$(stat -c %s $image.img)" \
      "$(nbdinfo --size "$uri")"
    expect_equal "$compress: $image" "$(sha_of $image.img)" \
      "$(sha_of_uri "$uri")"
  done
  stop_process "$driver_pid"
done

# Nothing is stored for zeros but the index; text compresses.
[ "$(du -sb zstd/packs | cut -f 1)" -lt 1200000 ] || fail "zstd saves nothing"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The plugin alone serves images and blobs of any size, byte for byte, by
# tag, by root and as the only image; lists the tags; says where the holes
# are; and lets nobody write.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version
requires nbdinfo --version
requires qemu-io --version

# driver_uri EXPORT
driver_uri ()
{
  echo "nbd+unix:///$1?socket=$driver"
}

: > size-0
for size in 1 511 4097 131073 1000000; do
  random_file "size-$size" $size $size
done
text_file text 3000001 1
truncate -s 1M zeros
# Data, a hole, data, a hole to the end.
truncate -s 5M holes
dd if=text of=holes bs=4096 count=16 conv=notrunc status=none
dd if=text of=holes bs=4096 seek=512 count=3 conv=notrunc status=none

# Of one image, "" is a name.
make_store text text
start_driver store="$store"
expect_equal "the only image" "$(sha_of text)" \
  "$(sha_of_uri "$(driver_uri '')")"

# Images that come while it runs are served.
for file in size-* zeros holes; do
  for compress in zstd none; do
    make_store $file "$file-$compress" --compress=$compress
    for name in "$file-$compress" "$root"; do
      expect_equal "size of $name" "$(stat -c %s $file)" \
        "$(nbdinfo --size "$(driver_uri "$name")")"
      expect_equal "bytes of $name" "$(sha_of $file)" \
        "$(sha_of_uri "$(driver_uri "$name")")"
    done
  done
done
expect_fail 1 nbdinfo --size "$(driver_uri '')"

# Blobs are served whole, whatever their size.
for file in size-0 size-1 text; do
  root=$(blobpager add --store="$store" $file | cut -d ' ' -f 1)
  expect_equal "bytes of blob $file" "$(sha_of $file)" \
    "$(sha_of_uri "$(driver_uri "blob/$root")")"
done

# The list has the tags, and not the session.
nbdinfo --list --json "$(driver_uri '')" > list.log
expect_equal "listed exports" \
  "$({ ls -d size-* zeros holes | sed 's/.*/&-none\n&-zstd/'; echo text; } | LC_ALL=C sort | xargs)" \
  "$(json '" ".join(e["export-name"] for e in j["exports"])' < list.log)"
nbdinfo "$(driver_uri text)" | grep -q "description: image [0-9a-f]\{64\}" ||
  fail "no description"

# Holes are where the index has them, inside what was asked for.
nbdinfo --map "$(driver_uri holes-zstd)" > map.log
expect_equal "map" "0 65536 0 65536 2031616 3 2097152 12288 0 2109440 3133440 3" \
  "$(awk '{ print $1, $2, $3 }' map.log | xargs)"

# Every name that is none is refused, and the driver lives.
hex=0123456789abcdef
for name in nobody ../text images/text.json blob/ blob/nobody \
  $hex$hex$hex$hex $hex$hex$hex${hex%f} session/nobody; do
  expect_fail 1 nbdinfo --size "$(driver_uri "$name")"
done

# Writing is not possible.
nbdinfo "$(driver_uri text)" | grep -q "is_read_only: true" ||
  fail "is not read-only"
expect_fail 1 qemu-io -f raw -c 'write 0 512' "$(driver_uri text)"
expect_equal "bytes after all that" "$(sha_of text)" \
  "$(sha_of_uri "$(driver_uri text)")"

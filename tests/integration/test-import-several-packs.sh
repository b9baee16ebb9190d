#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What does not fit a pack of 1 GiB makes several, each within the limit;
# blobs of a pack that the import has finished are not stored again; a
# blob that is larger has a pack of its own.

. "$srcdir/harness/functions.sh"
skip_if_fast

random_file disk.img $(((1 << 30) + (30 << 20))) 1
head -c 20000000 disk.img > start
cat start >> disk.img # Deep in the second pack: known from the first.
/usr/bin/time -f %M -o memory.log true 2> /dev/null && timed="/usr/bin/time -f %M -o memory.log"
${timed:-} blobpager import --store=store --compress=none disk.img > line.log
expect_equal "packs" 2 "$(find store/packs -name '*.pack' | wc -l)"
for pack in store/packs/*.pack; do
  table=$(od -An -v -tu8 -j $(($(stat -c %s "$pack") - 112)) -N 8 "$pack")
  [ "$table" -le $(((1 << 30) + 64)) ] || fail "a pack holds $table bytes"
done
blobpager info --store=store --json disk > info.log
read -r bytes new < <(json 'j["bytes"], j["bytes_new"]' < info.log | tr -d '(,)')
[ $((bytes - new)) -gt 19000000 ] ||
  fail "of $bytes bytes $new were new: what was in the first pack, too"
[ -z "${timed:-}" ] || [ -n "${BLOBPAGER_SANITIZER_RUNTIME:-}" ] ||
  [ "$(tail -1 memory.log)" -lt 65536 ] ||
  fail "import took $(tail -1 memory.log) KiB of memory"
blobpager verify --store=store

blobpager add --store=store --compress=none disk.img > add.log
expect_equal "packs with the blob" 3 "$(find store/packs -name '*.pack' | wc -l)"
expect_equal "its root" "$(blobpager merkle disk.img)" "$(cat add.log)"
blobpager verify --store=store

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A sparse disk of 1 TiB with three blocks written imports in seconds, in
# little memory, and compares with its source.

. "$srcdir/harness/functions.sh"
requires qemu-img --version

truncate -s 1T sparse.img
offsets=(0 549755813888 1099511623680)
for offset in "${offsets[@]}"; do
  random_file block 4096 "$offset"
  dd if=block of=sparse.img bs=4096 seek=$((offset / 4096)) conv=notrunc \
    status=none
done

# Far below what the image would need; a sanitizer needs more.
limit=$((400 << 10))
[ -z "${BLOBPAGER_SANITIZER_RUNTIME:-}" ] || limit=unlimited
started=$SECONDS
(ulimit -v $limit && blobpager import --store=store sparse.img) > line.log
[ $((SECONDS - started)) -lt 10 ] || fail "import took $((SECONDS - started)) s"
expect_equal "size, segments, bytes" "1099511627776 3 12288" \
  "$(blobpager info --store=store --json sparse |
    json 'j["size"], j["segments"], j["bytes"]' | tr -d '(,)')"
blobpager verify --store=store sparse

start_driver store="$PWD/store"
qemu-img compare -f raw -F raw sparse.img "nbd+unix:///sparse?socket=$driver" \
  > compare.log
grep -q '^Images are identical' compare.log || fail "$(cat compare.log)"

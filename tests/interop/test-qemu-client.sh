#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# qemu as the client: it compares an export with its source, reads at odd
# offsets, is not let write, and puts a writable overlay on top.

. "$srcdir/harness/functions.sh"
requires qemu-img --version
requires qemu-io --version

truncate -s 10000000 disk.img
text_file part 3000000 1
dd if=part of=disk.img conv=notrunc status=none
random_file part 2000000 2
dd if=part of=disk.img bs=1M seek=6 conv=notrunc status=none
truncate -s 10000384 disk.img # A whole number of sectors, not of blocks.
make_store disk.img vm
start_blobpagerd --store="$store" --profile=off
uri=$(uri "vm@$root")

qemu-img compare -f raw -F raw disk.img "$uri" ||
  fail "qemu-img finds a difference"

# read OFFSET LENGTH: qemu-io's bytes are the file's.
read_and_compare ()
{
  qemu-io -r -f raw -c "read -v $1 $2" "$uri" |
    sed -n 's/^[0-9a-f]*:  \(\([0-9a-f]\{2\} \)*\).*/\1/p' |
    tr -d ' \n' > got
  dd if=disk.img skip="$1" count="$2" iflag=skip_bytes,count_bytes \
    status=none | od -An -v -tx1 | tr -d ' \n' > wanted
  [ "$(stat -c %s wanted)" = $(($2 * 2)) ] || fail "qemu-io's output"
  cmp wanted got || fail "read of $2 bytes at $1"
}
read_and_compare 511 3
read_and_compare 131071 4098
read_and_compare 2999999 5000
read_and_compare 10000383 1

# Read-only is read-only.
qemu-io -f raw -c 'write 0 512' "$uri" > out.log 2>&1 &&
  fail "qemu-io could write"
qemu-img compare -f raw -F raw disk.img "$uri" ||
  fail "the refused write changed the disk"

# The way a VM gets a disk that it may write to.
qemu-img create -q -f qcow2 -b "$uri" -F raw overlay.qcow2
qemu-io -f qcow2 -c 'write -P 7 4000 1000' overlay.qcow2 > /dev/null
cp disk.img wanted.img
head -c 1000 /dev/zero | tr '\0' '\7' |
  dd of=wanted.img bs=1 seek=4000 conv=notrunc status=none
qemu-img compare -f raw -F qcow2 wanted.img overlay.qcow2 ||
  fail "the overlay differs"

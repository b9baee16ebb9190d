#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the suite says of qemu-nbd.

. "$srcdir/harness/functions.sh"
. "$srcdir/conform/functions.sh"
requires qemu-nbd --version
[[ $(qemu-nbd --version) == "qemu-nbd 7.2."* ]] ||
  skip "the table is for qemu-nbd 7.2"

truncate -s 4194816 disk.img # qemu-nbd counts in sectors.
random_file part 70000 1
dd if=part of=disk.img conv=notrunc status=none
dd if=part of=disk.img conv=notrunc status=none bs=1M seek=2
qemu-nbd -r -t -e 0 -f raw -x disk -k "$tmp/qemu.sock" \
  --pid-file="$tmp/qemu.pid" disk.img 2> qemu-nbd.log &
cleanup_fn stop_process $!
wait_until 30 test -S qemu.sock

# How much of what is in flight it answers before it closes is a race; that
# it is not always all of it, the manual page says.
conform --reference=disk.img \
  --except=commands/disc-answers-what-is-in-flight \
  "nbd+unix:///disk?socket=$tmp/qemu.sock"
expect_not_ok "qemu-nbd" \
  meta/trailing-data-is-invalid \
  write/beyond-the-end-fails \
  write/it-is-not-permitted \
  write/trim-is-not-permitted \
  write/write-zeroes-is-not-permitted

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A real Debian disk, served by blobpagerd, is the same disk to nbdcopy,
# to qemu-img, and to the kernel's ext4 over nbdfuse and a loop mount; the
# second version of it, one package later, stores less than a third of its
# bytes anew.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version
requires qemu-img --version
requires nbdfuse --version
debian_image debian-1
first=$debian
debian_image debian-2 nano
second=$debian

make_store "$first/disk.img" debian
start_blobpagerd --store="$store" --profile=off

expect_equal "sha256 of the copied export" \
  "$(sha_of "$first/disk.img")" "$(sha_of_uri "$(uri debian)")"

qemu-img compare -f raw -F raw "$first/disk.img" "$(uri debian@"$root")" ||
  fail "qemu-img finds a difference"

# The kernel's own ext4 over it.
mkdir nbd mnt
nbdfuse -r -P "$tmp/nbdfuse.pid" nbd/disk "$(uri debian)" &
nbdfuse_pid=$!
cleanup_fn stop_process $nbdfuse_pid
wait_until 20 test -e "$tmp/nbdfuse.pid"
e2fsck -fn nbd/disk || fail "e2fsck"
if mount -o loop,ro,noload nbd/disk mnt 2> mount.log; then
  cleanup_fn umount "$tmp/mnt"
  debugfs -R 'cat /usr/lib/os-release' "$first/disk.img" 2> /dev/null |
    cmp - mnt/usr/lib/os-release || fail "os-release differs"
  (cd mnt && find . -xdev -type f -exec cat {} +) > /dev/null ||
    fail "a file cannot be read"
fi

# The next version.
blobpager import --store="$store" --name=debian-2 "$second/disk.img"
blobpager info --store="$store" --json debian-2 > info.json
json 'j["bytes_new"] * 3 < j["bytes"]' < info.json | grep -q True ||
  fail "the second version is not shared: $(cat info.json)"
expect_equal "sha256 of the second version" \
  "$(sha_of "$second/disk.img")" "$(sha_of_uri "$(uri debian-2)")"
blobpager verify --store="$store"

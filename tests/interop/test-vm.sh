#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The recipes boot a real VM: under a qcow2 overlay, while the daemon is
# killed and started again and the guest notices nothing; and as
# vhost-user-blk.

. "$srcdir/harness/functions.sh"
requires qemu-system-x86_64 --version
requires qemu-storage-daemon --version
debian_image debian-1

make_store "$debian/disk.img" debian
start_blobpagerd --store="$store" --profile=off
guest=(-machine accel=tcg -cpu max -nographic -no-reboot -net none
  -kernel "$debian/vmlinuz" -initrd "$debian/initrd"
  -append 'console=ttyS0 root=/dev/vda ro quiet')

# boots NAME CMD ARG...: CMD runs the VM to its end.
boots ()
{
  local name=$1
  shift
  timeout 300 "$@" < /dev/null > "$name.log" 2>&1 || fail "$name: qemu failed"
  grep -aq BOOT-DONE "$name.log" || fail "$name: did not come up"
  ! grep -aqE 'I/O error|EXT4-fs error' "$name.log" ||
    fail "$name: the guest saw an I/O error"
}

boots overlay "$top_srcdir/examples/vm-overlay.sh" "$sock" "debian@$root" \
  overlay.qcow2 "${guest[@]}" &
vm=$!
# Once the guest reads its disk, the daemon dies and comes back.
disk_is_read () { [ "$(status 'sum(e["reads"] for e in j["exports"]) > 50')" = True ]; }
wait_until 120 disk_is_read
kill -9 "$blobpagerd_pid"
wait "$blobpagerd_pid" || :
start_blobpagerd --store="$store" --profile=off
wait $vm || fail "the boot over a restart of the daemon"

boots vhost-user "$top_srcdir/examples/vm-vhost-user.sh" "$sock" \
  "debian@$root" "${guest[@]}"

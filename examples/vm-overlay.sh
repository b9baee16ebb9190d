#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# vm-overlay.sh SOCKET EXPORT OVERLAY [QEMU-ARG...]: a writable disk.
#
# OVERLAY is a qcow2 file that keeps what the guest writes; it is made if
# it is not there.  Everything else is read from EXPORT (TAG@ROOT, as
# blobpager info TAG prints it), which any number of VMs share.

[ $# -ge 3 ] || { echo "usage: vm-overlay.sh SOCKET EXPORT OVERLAY [QEMU-ARG...]" >&2; exit 2; }
socket=$1 export=$2 overlay=$3
shift 3

[ -e "$overlay" ] ||
  qemu-img create -q -f qcow2 -F raw \
    -b "nbd+unix:///$export?socket=$socket" "$overlay" || exit 1

exec qemu-system-x86_64 -M q35,accel=kvm:tcg -m 1024 \
  -blockdev driver=nbd,node-name=base,read-only=on,server.type=unix,server.path="$socket",export="$export",reconnect-delay=30 \
  -blockdev driver=qcow2,node-name=disk,file.driver=file,file.filename="$overlay",backing=base \
  -device virtio-blk-pci,drive=disk \
  "$@"

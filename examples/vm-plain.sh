#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# vm-plain.sh SOCKET EXPORT [QEMU-ARG...]: the disk as it is, read-only;
# what the guest writes goes to a temporary file that is thrown away.
#
# EXPORT is TAG@ROOT (blobpager info TAG prints it), so that a reconnect
# never finds other bytes.  reconnect-delay=30: a restart of blobpagerd is
# waited out; the guest sees a slow read, not an error.

[ $# -ge 2 ] || { echo "usage: vm-plain.sh SOCKET EXPORT [QEMU-ARG...]" >&2; exit 2; }
socket=$1 export=$2
shift 2

exec qemu-system-x86_64 -M q35,accel=kvm:tcg -m 1024 \
  -blockdev driver=nbd,node-name=base,read-only=on,server.type=unix,server.path="$socket",export="$export",reconnect-delay=30 \
  -device virtio-blk-pci,drive=base \
  "$@"

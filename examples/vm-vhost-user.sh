#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vm-vhost-user.sh SOCKET EXPORT [QEMU-ARG...]: the disk as a
# vhost-user-blk device, for monitors that speak that and not NBD.
#
# qemu-storage-daemon is the NBD client; the VM talks to it through shared
# memory.  A monitor other than qemu connects to vhost.sock in the same way.

set -eu
[ $# -ge 2 ] || { echo "usage: vm-vhost-user.sh SOCKET EXPORT [QEMU-ARG...]" >&2; exit 2; }
socket=$1 export=$2
shift 2

dir=$(mktemp -d)
trap 'kill "$(cat "$dir/pid")" 2> /dev/null; rm -rf "$dir"' EXIT

qemu-storage-daemon --daemonize --pidfile "$dir/pid" \
  --blockdev driver=nbd,node-name=base,read-only=on,server.type=unix,server.path="$socket",export="$export",reconnect-delay=30 \
  --export type=vhost-user-blk,id=disk,node-name=base,writable=off,addr.type=unix,addr.path="$dir/vhost.sock"

qemu-system-x86_64 -M q35,accel=kvm:tcg -m 1024 \
  -object memory-backend-memfd,id=memory,size=1024M,share=on \
  -numa node,memdev=memory \
  -chardev socket,id=disk,path="$dir/vhost.sock" \
  -device vhost-user-blk-pci,chardev=disk \
  "$@"

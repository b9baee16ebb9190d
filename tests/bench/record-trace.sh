#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# record-trace.sh IMAGEDIR TRACE: boot the disk of make-image.sh once from
# plain nbdkit and keep its reads, in order, as "OFFSET LENGTH" lines.

set -euo pipefail
[ $# = 2 ] || { echo "usage: record-trace.sh IMAGEDIR TRACE" >&2; exit 2; }
dir=$1 trace=$2
tmp=$(mktemp -d)
trap 'kill "$(cat "$tmp/pid")" 2> /dev/null || :; rm -rf "$tmp"' EXIT

nbdkit -r -U "$tmp/sock" -P "$tmp/pid" --filter=log \
  file "$dir/disk.img" logfile="$tmp/log"
timeout "${BOOT_TIMEOUT:-300}" qemu-system-x86_64 -M q35,accel=tcg -cpu max \
  -m 1024 -nographic -no-reboot -net none \
  -kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
  -append 'console=ttyS0 root=/dev/vda ro quiet' \
  -drive file="nbd+unix:///?socket=$tmp/sock",if=virtio,format=raw,snapshot=on \
  < /dev/null > "$tmp/console" 2>&1
grep -aq BOOT-DONE "$tmp/console" ||
  { tail -5 "$tmp/console" >&2; exit 1; }

grep -o ' Read id=[0-9]* offset=0x[0-9a-f]* count=0x[0-9a-f]*' "$tmp/log" |
  sed 's/.*offset=\(0x[0-9a-f]*\) count=\(0x[0-9a-f]*\)/\1 \2/' |
  while read -r offset count; do echo $((offset)) $((count)); done > "$trace"
echo "$(wc -l < "$trace") reads"

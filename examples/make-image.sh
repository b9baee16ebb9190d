#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make-image.sh OUTDIR [EXTRA-PACKAGE...]: a real Debian disk.
#
# Leaves OUTDIR/disk.img (1 GiB, ext4), OUTDIR/vmlinuz and OUTDIR/initrd.
# The disk boots under qemu with that kernel, says BOOT-DONE and the
# guest's uptime on its serial console, and powers off.  With extra
# packages it is "the next version" of the same disk.
#
# Needs root, debootstrap and e2fsprogs; takes the Debian mirror from the
# machine's apt set-up, or $MIRROR and $SUITE.  About a minute.

set -euo pipefail

[ $# -ge 1 ] || { echo "usage: make-image.sh OUTDIR [EXTRA-PACKAGE...]" >&2; exit 2; }
out=$1
shift
[ "$(id -u)" = 0 ] ||
  { echo "make-image.sh: debootstrap needs root" >&2; exit 1; }

# shellcheck source=/dev/null
suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
# shellcheck disable=SC2016 # apt expands these.
mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE) $(RELEASE)' |
  awk '/debian *[^ ]*$/ && !/security/ { print $1; exit }')}
[ -n "$mirror" ] ||
  { echo "make-image.sh: apt knows no Debian mirror; set MIRROR" >&2; exit 1; }

mkdir -p "$out"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

packages=systemd-sysv,udev,linux-image-cloud-amd64,python3-minimal
for package; do packages=$packages,$package; done
debootstrap --variant=minbase --include="$packages" "$suite" "$root" \
  "$mirror" > "$out/debootstrap.log" 2>&1 ||
  { tail -5 "$out/debootstrap.log" >&2; exit 1; }

cp "$root"/boot/vmlinuz-* "$out/vmlinuz"
cp "$root"/boot/initrd.img-* "$out/initrd"
echo '/dev/vda / ext4 ro 0 1' > "$root/etc/fstab"
cat > "$root/etc/systemd/system/boot-done.service" << 'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo BOOT-DONE $(cut -d" " -f1 /proc/uptime) > /dev/ttyS0; systemctl poweroff --force --force'
UNIT
ln -s ../boot-done.service \
  "$root/etc/systemd/system/multi-user.target.wants/boot-done.service"

# No login prompt: the console says BOOT-DONE, and that is the end.
ln -s /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"

truncate -s 1G "$out/disk.img.new"
mkfs.ext4 -q -F -d "$root" "$out/disk.img.new"
mv "$out/disk.img.new" "$out/disk.img"

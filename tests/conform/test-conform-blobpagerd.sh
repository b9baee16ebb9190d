#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# blobpagerd keeps to the standard, every SHOULD included, over Unix sockets
# and over TCP, whatever the size of the image.

. "$srcdir/harness/functions.sh"
. "$srcdir/conform/functions.sh"

disk_image disk.img
random_file tiny.img 513 3
truncate -s 5G large.img
dd if=part of=large.img conv=notrunc status=none bs=1M seek=4095
make_store disk.img disk
make_store tiny.img tiny
make_store large.img large
tcp_port=$(free_port)
start_blobpagerd --store="$store" --profile=off \
  --listen="tcp:127.0.0.1:$tcp_port"

for image in disk tiny large; do
  conform --reference="$image.img" "$(uri "$image")"
  expect_all_ok "$image"
done
conform --reference=disk.img "nbd://127.0.0.1:$tcp_port/disk"
expect_all_ok "disk, over TCP"

# Nothing of all that was an error of the daemon's.
status 'j["verify"]["corrupt"], j["driver"]["errors"]' > counts
expect_equal "errors" "(0, 0)" "($(sed 's/ /, /' counts))"
stop_blobpagerd

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A new profile holds what clients opened, in the order of the driver's
# log: what replay fetched in vain falls out, and a blob that was evicted
# and opened again counts once.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

# h1, h2, h3 are 8192 bytes of 0x42, 0x24 and 0x99.
h1=$((0x42)) h2=$((0x24)) h3=$((0x99))
make_spots $h3
put_profile .boot missing@0 missing@4096 $h1@0 $h2@0
random_file big.img $((160 << 20)) rule-5
blobpager import --store="$store" --name=big --compress=none big.img > big.txt

driver_options=(-v -D blobpager.keys=1)
start_driver "store=$store"
start_blobpagerd --driver="nbd+unix:///session?socket=$driver" \
  --profile=off --cache-size=64M
client_open a debian
profile start .boot --export=debian
wait_for_replay drained
expect_fail 1 profile start .boot

# Clients open h1 and h3; h3 is evicted by another image, and opened anew.
client_read a $h1 $h3
nbdcopy "$(uri big)" null:
nbdcopy "$(uri big)" null:
client_read a $h3
opened=$(count_lines " open [0-9]* $(spot_root $h3): 0" driver.log)
[ "$opened" -ge 2 ] || fail "h3 was opened $opened times"
expect_equal "times that missing was opened" 1 \
  "$(count_lines " open [0-9]* $missing: " driver.log)"

profile stop .boot > /dev/null
expect_records .boot "$h1@0 index@0 $h3@0"
client_close a

# h2's key goes with the pins.
key=$(sed -n "s/.* open \([0-9]*\) $(spot_root $h2): .*/\1/p" driver.log |
  tail -1)
wait_until 20 grep -q " close $key\$" driver.log

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A replay keeps to its rate, and leaves out, last first, what does not fit
# the pin share of the cache.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

random_file disk.img $((40 << 20)) rule-2
make_store disk.img disk --compress=none

# Its profile: all of it, in order (read by one connection, in order).
start_blobpagerd --store="$store" --profile=off --cache-size=256M
profile start whole
nbdcopy --connections=1 --threads=1 --requests=1 "$(uri disk)" null:
profile stop whole > stopped
records=$(awk '{ print $3 }' stopped)
stop_blobpagerd

# Half of 64 MiB may be pinned: the rest is not even fetched.
start_blobpagerd --store="$store" --profile=off --cache-size=64M
profile start whole
wait_for_replay drained
left=$(replay not_pinned) fetched=$(replay bytes_prefetched)
[ "$left" -gt 0 ] && [ "$left" -lt "$records" ] ||
  fail "not_pinned: $left of $records"
[ "$fetched" -gt $((28 << 20)) ] && [ "$fetched" -le $((32 << 20)) ] ||
  fail "bytes_prefetched: $fetched"
before=$(status "j['driver']['reads']")
nbdcopy "$(uri disk)" - 2> /dev/null | head -c $((16 << 20)) > head.img || :
after=$(status "j['cache']['misses']")
cmp -n $((16 << 20)) head.img disk.img || fail "other bytes"
[ "$before" -gt 0 ] && [ "$after" -ge 0 ] || fail "no counts"
profile abort whole
stop_blobpagerd

# 1 MiB a second, over five seconds.
start_blobpagerd --store="$store" --profile=off --replay-rate=1M
has_fetched ()
{
  [ "$(replay bytes_prefetched)" -ge $(($1 << 20)) ]
}
profile start whole
wait_until 20 has_fetched 1
began=${EPOCHREALTIME/./} first=$(replay bytes_prefetched)
wait_until 20 has_fetched 6
took=$((${EPOCHREALTIME/./} - began))
rate=$((($(replay bytes_prefetched) - first) * 1000000 / took))
[ $rate -gt $((9 << 20)) ] && fail "unlimited: $rate bytes a second"
[ $((rate * 10)) -ge $((9 << 20)) ] && [ $((rate * 10)) -le $((11 << 20)) ] ||
  fail "$rate bytes a second"
profile abort whole

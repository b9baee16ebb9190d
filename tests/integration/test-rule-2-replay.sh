#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A replay opens each blob once, in order, skips what it cannot open, and
# pins what it paged in until it is stopped.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 12
put_profile boot 7@0 missing@0 3@0 missing@4096 7@4096 \
  5@18446744073709551615 9@0 9@8192
driver_options=(-v -D blobpager.keys=1)
start_driver "store=$store"
start_blobpagerd --driver="nbd+unix:///session?socket=$driver" \
  --profile=off --verbose

profile start boot
wait_for_replay drained

# 7, missing, 3, 5 (an open marker: opened, not paged in), 9.
sed -n 's/.* open [0-9]* \([0-9a-f]*\): \(-\?[0-9]*\)$/\1 \2/p' driver.log |
  sed -f names.sed > opens
expect_equal opens "7 0 missing -2 3 0 5 0 9 0" "$(paste -s -d ' ' opens)"
key=$(sed -n "s/.* open \([0-9]*\) $missing: .*/\1/p" driver.log)
wait_until 10 grep -q " close $key\$" driver.log
expect_equal "times that missing was closed" 1 \
  "$(count_lines " close $key\$" driver.log)"
log_has "debug: .*$missing: skipped" || fail "no debug line for missing"
expect_equal "errors in the log" 0 \
  "$(count_lines 'error: \|warning: ' blobpagerd.log)"

expect_equal blobs_named 5 "$(replay blobs_named)"
expect_equal blobs_opened 4 "$(replay blobs_opened)"
expect_equal bytes_prefetched 24576 "$(replay bytes_prefetched)"
[ "$(pinned_bytes)" -ge 24576 ] || fail "pinned: $(pinned_bytes)"

# They are in the cache: a client of them asks the driver for nothing but
# the index.
client_open a debian
before=$(status "j['driver']['reads']")
client_read a 7 3 9
expect_equal "reads of the driver" "$before" "$(status "j['driver']['reads']")"
client_close a
profile abort boot
expect_equal "pinned after the end" 0 "$(pinned_bytes)"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Of a blob of several windows, a new profile keeps those that a client
# touched.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 2
random_file blob.bin $((5 << 17)) rule-5
blob=$(blobpager add --store="$store" blob.bin | cut -d ' ' -f 1)
"$harness/put-profile" "$store" windows \
  "$blob@0" "$blob@131072" "$blob@262144" "$blob@393216"
echo "s/$blob/blob/" >> names.sed

start_blobpagerd --store="$store" --profile=off
profile start windows
wait_for_replay drained
expect_equal bytes_prefetched $((4 << 17)) "$(replay bytes_prefetched)"

# The second window, which replay has fetched, and the fifth.
qemu-io -r -f raw -c 'read 140000 1' -c 'read 600000 10' \
  "$(uri "blob/$blob")" > io.log
profile stop windows > /dev/null
records=$(profile_records windows)
case $records in
"blob@131072 blob@524288" | "blob@131072 blob@0 blob@524288" | \
  "blob@0 blob@131072 blob@524288") ;; # qemu looks at the first sector.
*) fail "records: $records" ;;
esac

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A stop waits for the replay to drain, but not longer than the driver's
# timeout, then releases its pins and writes; a shutdown waits for none.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 40
all=()
for ((i = 1; i <= 40; i++)); do all+=("$i@0"); done
put_profile slow "${all[@]}"

# 320 KiB at 160 KiB a second: two seconds, which a stop waits for.
start_blobpagerd --store="$store" --profile=off --replay-rate=160K
profile start slow
expect_equal "state of the replay" running "$(replay state)"
profile stop slow > /dev/null
expect_equal bytes_prefetched $((40 * 8192)) "$(replay bytes_prefetched)"
expect_equal "pinned after a stop" 0 "$(pinned_bytes)"
expect_fail 1 profile stop slow
grep -q "not being recorded" err.log || fail "$(cat err.log)"
stop_blobpagerd

# At 8 KiB a second it would be forty: a stop waits for one, and writes.
put_profile slow "${all[@]}"
start_blobpagerd --store="$store" --profile=off --replay-rate=8K \
  --driver-timeout=1
client_open a debian
profile start slow
client_read a 30 20
began=$SECONDS
profile stop slow > /dev/null
[ $((SECONDS - began)) -le 15 ] || fail "stop took $((SECONDS - began)) s"
[ "$(replay bytes_prefetched)" -lt $((20 * 8192)) ] || fail "no limit"
expect_equal "pinned after a stop" 0 "$(pinned_bytes)"
case " $(profile_records slow) " in
*" 30@0 20@0 "*) ;;
*) fail "records: $(profile_records slow)" ;;
esac

# Shutdown, in the middle of a replay.
put_profile slow "${all[@]}"
profile start slow
client_close a
began=$SECONDS
stop_blobpagerd
[ $((SECONDS - began)) -le 15 ] || fail "exit took $((SECONDS - began)) s"
expect_records slow "${all[*]}"

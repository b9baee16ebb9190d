#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# While clients stall, vanish and break the protocol, all others get every
# byte that they ask for, right and in time; and the daemon's memory and
# descriptors are the same after a while as before.

. "$srcdir/harness/functions.sh"
requires nbdcopy --version

# Three times the cache: most of what is read stays in it, the rest is
# fetched and verified again and again.  Every fourth MiB is a hole.
random_file random 151000001 1
python3 - << 'END'
with open("random", "rb") as source, open("disk.img", "wb") as disk:
    while piece := source.read(3 << 20):
        disk.write(piece)
        disk.seek(1 << 20, 1)
    disk.write(b"end")
END
make_store disk.img disk --compress=none

# A sanitizer keeps what was freed for a while: less than the growth that
# is allowed.
growth=16
case ${BLOBPAGER_SANITIZER_RUNTIME:-} in
*asan*) growth=64 ;;
*tsan*) growth=64 ;;
esac
export ASAN_OPTIONS="quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
# TLS is on offer, so that there is something to break.
(umask 077 && echo "storm:$(openssl rand -hex 32)" > keys.psk)
start_blobpagerd --store="$store" --cache-size=64M --profile=off \
  --tls-psk=keys.psk

# The cache is full before the memory is looked at.
nbdcopy "$(uri disk)" - | cmp - disk.img

crowd=(--seconds=4 --good=20 --stalled=6 --malformed=6)
[ -z "${BLOBPAGER_TORTURE:-}" ] ||
  crowd=(--seconds=60 --good=200 --stalled=50 --malformed=50)
"$top_builddir/tests/torture/storm" "$sock" disk disk.img \
  "$blobpagerd_pid" --growth-mib=$growth "${crowd[@]}" 2>&1 |
  tee storm.log || fail "the storm"

nbdcopy "$(uri disk)" - | cmp - disk.img || fail "bytes after the storm"
expect_equal "corrupt windows" 0 "$(status 'j["verify"]["corrupt"]')"
expect_equal "errors of the driver" 0 "$(status 'j["driver"]["errors"]')"
blobpager status --control="$control" --metrics |
  grep -q '^blobpager_client_tls_failures_total [1-9]' ||
  fail "no client was as far as to break TLS"
stop_blobpagerd || fail "blobpagerd's exit status"

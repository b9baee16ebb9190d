#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many clients at once.  An idle one costs little memory, one that takes no
# replies costs no more than its share and nobody else's time, and port
# probes cost nothing and fill no log.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
requires openssl version

random_file disk.img 100000000 1
make_store disk.img vm --compress=none

# rss: of the daemon, in KiB.
rss ()
{
  awk '/^VmRSS:/ { print $2 }' "/proc/$blobpagerd_pid/status"
}

# expect_at_most WHAT LIMIT GOT: not in sanitizer builds, where memory is
# another thing.
expect_at_most ()
{
  echo "$1: $3 (at most $2)"
  [ -n "${BLOBPAGER_TEST_FAST:-}" ] || [ "$3" -le "$2" ] ||
    fail "$1: $3, at most $2"
}

# gather COUNT KIND: a crowd that stays until disperse; see crowd.py.
gather ()
{
  rm -f hold crowd.log
  mkfifo hold
  python3 "$srcdir/harness/crowd.py" "$sock" vm "$@" < hold > crowd.log 2>&1 &
  crowd_pid=$!
  cleanup_fn stop_process $crowd_pid
  exec 5> hold
  wait_until 120 grep -q . crowd.log
  expect_equal "the crowd" here "$(cat crowd.log)"
}

no_clients ()
{
  [ "$(status 'sum(e["clients"] for e in j["exports"])')" = 0 ]
}

disperse ()
{
  exec 5>&-
  wait "$crowd_pid" || fail "the crowd: $(cat crowd.log)"
  wait_until 30 no_clients
}

expect_copy ()
{
  expect_equal "a copy" "$(sha_of disk.img)" "$(sha_of_uri "$(uri vm)")"
}

# --- Idle clients: with a soft limit of files that they do not fit.
make_ca ca
make_certificate ca pki server server
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 3000 ] ||
  skip "not enough open files"
ulimit -Sn 256
start_blobpagerd --store="$store" --profile=off --cache-size=64M \
  --tls-certificates="$tmp/pki" --tls=on
expect_copy
gather 50 idle
disperse
before=$(rss)
gather 1000 idle
expect_equal "clients" 1000 "$(status 'j["exports"][0]["clients"]')"
expect_at_most "KiB of 1000 idle clients" 32000 $(($(rss) - before))
expect_copy
disperse
gather 1000 tls
expect_at_most "KiB of 1000 idle clients over TLS" 32000 $(($(rss) - before))
expect_copy
disperse

# --- Clients that ask for much more than they take: the cache, 64 MiB, and
# 256 KiB each.
for kind in stalled trickle; do
  gather 100 $kind
  expect_copy
  expect_copy
  expect_at_most "KiB with 100 clients of kind $kind" \
    $((65536 + 65536 + 100 * 256)) "$(rss)"
  disperse
done

# --- Probes.
nr_files ()
{
  find "/proc/$blobpagerd_pid/fd" -type l | wc -l
}
files=$(nr_files) before=$(rss) lines=$(wc -l < blobpagerd.log)
for kind in probe noise; do
  gather 1000 $kind
  disperse
done
expect_copy # All of them have been accepted before it.
expect_equal "lines in the log" "$lines" "$(wc -l < blobpagerd.log)"
wait_until 30 test "$(nr_files)" -le "$files"
expect_at_most "KiB of probes" 1000 $(($(rss) - before))
stop_blobpagerd

# --- One client too many is hung up on, and that is said once.
start_blobpagerd --store="$store" --profile=off --max-clients=3
gather 3 idle
lines=$(wc -l < blobpagerd.log)
for _ in {1..20}; do
  expect_fail 1 nbdinfo --size "$(uri vm)"
done
expect_equal "lines in the log" $((lines + 1)) "$(wc -l < blobpagerd.log)"
grep -q 'clients are kept out: too many of them' blobpagerd.log ||
  fail "not said: $(cat blobpagerd.log)"
disperse
expect_copy
stop_blobpagerd

# --- A limit of files that the clients do not fit is said at the start.
(
  ulimit -Sn 1000 && ulimit -Hn 1000
  blobpagerd --store="$store" --stdio --max-clients=1000 \
    < /dev/null > /dev/null 2> files.log
)
grep -q 'only 1000 files may be open' files.log ||
  fail "not said: $(cat files.log)"

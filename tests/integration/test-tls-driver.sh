#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A driver that insists on TLS, with certificates or with keys, on TCP and on
# a Unix socket: every byte comes through, also after it was restarted; one
# that shows the wrong certificate is not spoken to.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
requires nbdcopy --version
requires "${BLOBPAGER_NBDKIT:-nbdkit}" --tls=require --version

random_file disk.img 41943040 1
wanted=$(sha_of disk.img)
make_store disk.img disk
make_ca ca
make_ca other-ca
make_certificate ca tls server server
make_certificate ca tls client client
make_certificate other-ca other client other
(umask 077 && make_key daemon > keys.psk)
port=$(free_port)

# start_secure ARG...: nbdkit, which takes nothing but TLS.
start_secure ()
{
  driver_options=(--tls=require "$@")
  start_driver store="$tmp/store"
}

# expect_served URI: through a daemon with that driver.
expect_served ()
{
  start_blobpagerd --driver="$1" --profile=off
  expect_equal "$1" "$wanted" \
    "$(nbdcopy --connections=4 "$(uri disk)" - | sha256sum | cut -d ' ' -f 1)"
  stop_blobpagerd
}

# expect_refused URI TEXT
expect_refused ()
{
  expect_fail 1 timeout 30 blobpagerd --driver="$1" --driver-timeout=1 \
    --listen=unix:"$tmp/sock" --control="$tmp/control" --check
  grep -qi "$2" err.log || fail "$1: $(cat err.log)"
}

# ---- Certificates ----

start_secure --tls-certificates="$tmp/tls" --tls-verify-peer
unix="nbds+unix:///session?socket=$driver&tls-certificates=$tmp"
expect_served "$unix/tls"
expect_refused "$unix/other" certificate
expect_refused "nbd+unix:///?socket=$driver" "requires TLS: use nbds://"

# Restarted under a client.
start_blobpagerd --driver="$unix/tls" --profile=off
sha_of_uri "$(uri disk)" > copied &
copy=$!
kill -9 "$driver_pid"
wait "$driver_pid" || :
start_secure --tls-certificates="$tmp/tls" --tls-verify-peer
wait $copy || fail "the copy failed"
expect_equal "restarted" "$wanted" "$(cat copied)"
stop_blobpagerd
stop_process "$driver_pid"

# ---- Keys, on TCP ----

rm driver.pid
"${BLOBPAGER_NBDKIT:-nbdkit}" -f -i 127.0.0.1 -p "$port" \
  -P "$tmp/driver.pid" --tls=require --tls-psk="$tmp/keys.psk" \
  "$BLOBPAGER_PLUGIN" store="$tmp/store" 2>> driver.log &
driver_pid=$!
cleanup_fn stop_process "$driver_pid"
wait_until 30 test -e driver.pid
expect_served "nbds://daemon@127.0.0.1:$port/?tls-psk-file=$tmp/keys.psk"
expect_refused "nbds://other@127.0.0.1:$port/?tls-psk-file=$tmp/keys.psk" .

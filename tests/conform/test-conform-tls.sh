#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# blobpagerd keeps to the standard over TLS, too: where it offers it, where
# it demands it, with certificates on both sides, and with keys.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
. "$srcdir/conform/functions.sh"

disk_image disk.img
make_store disk.img disk
make_ca ca
make_certificate ca tls server localhost
make_certificate ca tls client client
(umask 077 && make_key alice > keys.psk)
offered=$(free_port)
demanded=$(free_port)

# run_over WHAT URI [CHECK]: everything passes; CHECK must have run.
run_over ()
{
  conform --reference=disk.img "$2"
  expect_all_ok "$1"
  [ $# -lt 3 ] || grep -q "^ok [0-9]* - $3\$" tap ||
    fail "$1: $3 did not run"
}

# start_secure ARG...: on both ports; what clients may do is what they may
# do on a Unix socket.
start_secure ()
{
  start_blobpagerd --store="$store" --profile=off \
    --listen="tcp:localhost:$offered" --tls=on \
    --allow=list,blob,residency \
    --listen="tcp:localhost:$demanded" --tls=require \
    --allow=list,blob,residency "$@"
}

start_secure --tls-certificates="$tmp/tls"
run_over "offered, not used" "nbd://localhost:$offered/disk" \
  tls/a-failed-handshake-ends-the-session
run_over "offered" "nbds://localhost:$offered/disk" \
  tls/earlier-state-is-forgotten
run_over "demanded, not used" "nbd://localhost:$demanded/disk" \
  tls/demanded-for-other-options
run_over "demanded" "nbds://localhost:$demanded/disk" \
  tls/disc-closes-it-first
stop_blobpagerd

start_secure --tls-certificates="$tmp/tls" --tls-verify-peer
run_over "certificates on both sides" \
  "nbds://localhost:$demanded/disk?tls-certificates=$tmp/tls" \
  tls/version-1.2-is-supported
stop_blobpagerd

start_secure --tls-psk="$tmp/keys.psk"
run_over "keys" \
  "nbds://alice@localhost:$demanded/disk?tls-psk-file=$tmp/keys.psk" \
  tls/a-second-starttls-is-invalid
stop_blobpagerd

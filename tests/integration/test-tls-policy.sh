#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Plain text goes over the network only if the operator says so: who listens
# for other hosts needs credentials or --insecure, and whoever connects then
# must use TLS.  Loopback and Unix sockets are the client's choice.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
requires nbdinfo --version

text_file disk.img 100000 1
make_store disk.img disk
(umask 077 && make_key alice > keys.psk)
port=$(free_port)
everywhere=--listen=tcp:0.0.0.0:$port
here=--listen=tcp:localhost:$port

# check ARG...: blobpagerd --check.
check ()
{
  timeout 30 blobpagerd --store="$store" --control="$tmp/control" --check "$@"
}

# expect_refused TEXT ARG...: at start, and by --check.
expect_refused ()
{
  local text=$1
  shift
  expect_fail 1 check "$@"
  expect_equal "--check $*" "blobpagerd: listen: $text" "$(cat err.log)"
  expect_fail 1 timeout 30 blobpagerd --store="$store" \
    --control="$tmp/control" --pidfile="$tmp/pid" "$@"
  grep -qxF "blobpagerd: listen: $text" err.log ||
    fail "$*: $(cat err.log)"
}

others="other hosts can connect: give --tls-certificates or --tls-psk, or \
--insecure to serve them in plain text"
none="TLS needs --tls-certificates or --tls-psk"

expect_refused "tcp:0.0.0.0:$port: $others" "$everywhere"
expect_refused "tcp:[::]:$port: $others" "--listen=tcp:[::]:$port"
expect_refused "tcp:0.0.0.0:$port: $others" \
  --listen=unix:"$tmp/sock" --tls=off "$everywhere"
expect_refused "tcp:localhost:$port: $none" "$here" --tls=require
expect_refused "tcp:localhost:$port: $none" --tls=on "$here"
expect_refused "tcp:0.0.0.0:$port: $none" "$everywhere" --tls=on --insecure

# expect_mode WHAT PLAIN TLS ARG...: with these arguments a client is served
# in plain text (yes or no) and over TLS (yes or no).
expect_mode ()
{
  local what=$1 plain=$2 tls=$3
  shift 3
  check "$@" > out.log 2> err.log || fail "$what: $(cat err.log)"
  start_blobpagerd --store="$store" --profile=off "$@"
  expect_equal "$what: plain text" "$plain" \
    "$(can_read "nbd://localhost:$port/disk")"
  expect_equal "$what: TLS" "$tls" \
    "$(can_read "nbds://alice@localhost:$port/disk?tls-psk-file=keys.psk")"
  stop_blobpagerd
}

# can_read URI: yes or no.
can_read ()
{
  if nbdinfo "$1" > /dev/null 2> err.log; then echo yes; else echo no; fi
}

expect_mode "here" yes no "$here"
expect_mode "here, insecure" yes no --insecure "$here"
expect_mode "here, with keys" yes yes "$here" --tls-psk=keys.psk
expect_mode "here, required" no yes "$here" --tls-psk=keys.psk --tls=require
expect_mode "here, off" yes no "$here" --tls-psk=keys.psk --tls=off
expect_mode "everywhere, with keys" no yes "$everywhere" --tls-psk=keys.psk
expect_mode "everywhere, with keys and insecure" no yes "$everywhere" \
  --tls-psk=keys.psk --insecure
! grep -q "plain text" blobpagerd.log || fail "warned for nothing"
expect_mode "everywhere, insecure" yes no --insecure "$everywhere"
warning="blobpagerd: warning: listen: tcp:0.0.0.0:$port: clients of other \
hosts may read in plain text"
grep -qxF "$warning" err.log blobpagerd.log || fail "not warned"
rm blobpagerd.log
expect_mode "everywhere, on" yes yes "$everywhere" --tls-psk=keys.psk \
  --tls=on
grep -qxF "$warning" blobpagerd.log || fail "not warned"
rm blobpagerd.log
expect_mode "everywhere, off" yes no "$everywhere" --tls=off
grep -qxF "$warning" blobpagerd.log || fail "not warned"

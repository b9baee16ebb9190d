#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the suite says of nbd-server, the reference implementation.

. "$srcdir/harness/functions.sh"
. "$srcdir/conform/functions.sh"
requires nbd-server -V
[[ $(nbd-server -V) == *"version 3.24"* ]] ||
  skip "the table is for nbd-server 3.24"

disk_image disk.img
cat > nbd.conf << END
[generic]
  unixsock = $tmp/nbd.sock
  listenaddr = 127.0.0.1
  port = $(free_port)
  allowlist = true
[disk]
  exportname = $tmp/disk.img
  readonly = true
END
nbd-server -C "$tmp/nbd.conf" -p "$tmp/nbd.pid" 2> nbd-server.log
cleanup_fn stop_process "$tmp/nbd.pid"
uri="nbd+unix:///disk?socket=$tmp/nbd.sock"
wait_until 30 nbdinfo --size "$uri"

# It waits, sometimes, for bytes that the client does not owe.
conform --timeout=3 --reference=disk.img "$uri"
expect_not_ok "nbd-server" \
  commands/fua-is-invalid-otherwise \
  errors/a-flag-of-another-command-is-invalid \
  handshake/abort-is-acknowledged \
  handshake/abort-with-data-is-acknowledged \
  handshake/an-unknown-client-flag-drops-the-connection \
  info/a-go-that-failed-is-not-the-end \
  info/a-name-length-that-wraps-is-refused \
  info/a-name-longer-than-the-data-is-refused \
  info/a-wrong-count-of-requests-is-refused \
  info/an-overlong-name-is-refused \
  info/go-says-the-same-as-info \
  info/short-data-is-refused \
  info/trailing-data-is-refused \
  list/data-is-refused

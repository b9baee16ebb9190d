#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbd-client, the reference implementation, lists our exports: a third
# client whose negotiation is its own.

. "$srcdir/harness/functions.sh"
PATH=$PATH:/usr/sbin
requires nbd-client --version

text_file disk.img 100000 1
make_store disk.img debian
make_store disk.img zweites.Abbild:2
port=$(free_port)
start_blobpagerd --store="$store" --profile=off \
  --listen=tcp:127.0.0.1:"$port" --allow=list

list ()
{
  nbd-client -l "$@" 2> err.log | sort
}
expect_equal "over a Unix socket" "debian
zweites.Abbild:2" "$(list -u "$sock" | grep -oE '^(debian|zweites.Abbild:2)')"
expect_equal "over TCP" "debian
zweites.Abbild:2" \
  "$(list 127.0.0.1 "$port" | grep -oE '^(debian|zweites.Abbild:2)')"
list 127.0.0.1 "$port" | grep -q session && fail "the session is listed"
expect_equal "clients after all that" 0 "$(status 'j["clients"]["errors"]')"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A warm cache does not make a profile empty: what was verified already is
# put where the driver's log had come to when a client touched it.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/profile-functions.sh"

make_spots 12
start_blobpagerd --store="$store" --profile=off
client_open a debian
client_read a 3 2 1

# All of it warm.
profile start warm
client_read a 3 1 3
profile stop warm > /dev/null
expect_records warm "index@0 3@0 1@0"

# Warm and cold by turns; 5 and 7 are in the driver's log.
profile start mixed
client_read a 2 7 1 5 3
profile stop mixed > /dev/null
expect_records mixed "index@0 2@0 7@0 1@0 5@0 3@0"
grep -q '^messages *2$' show.txt || fail "the log: $(cat show.txt)"
client_close a

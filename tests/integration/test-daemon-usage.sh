#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A command line that is wrong costs one line and exit status 2; a store or
# driver that cannot be served, one line and exit status 1; --check says so
# without serving.

. "$srcdir/harness/functions.sh"

# expect_error STATUS TEXT ARG...: of blobpagerd.
expect_error ()
{
  local status=$1 text=$2
  shift 2
  expect_fail "$status" timeout 30 blobpagerd "$@"
  expect_equal "lines of error" 1 "$(grep -vc ', trying again$' err.log)"
  grep -qF -- "$text" err.log || fail "wanted '$text': $(cat err.log)"
}

text_file disk.img 100000 1
blobpager import --store=store disk.img > import.log
listen=--listen=unix:$tmp/sock
control=--control=$tmp/control

expect_error 2 "blobpagerd: --cache-size: could not parse '12Q'" \
  --store=store "$listen" --cache-size=12Q
expect_error 2 "'tmp/sock' is neither unix:PATH nor tcp:HOST:PORT" \
  --store=store --listen=tmp/sock
expect_error 2 "--listen: '99999' is no port; see blobpagerd --help" \
  --store=store --listen=tcp:localhost:99999
expect_error 2 "--listen is needed" --store=store
expect_error 2 "exactly one of --store and --driver" "$listen"
expect_error 2 "exactly one of --store and --driver" "$listen" \
  --store=store --driver=nbd://localhost
expect_error 2 "export 'disk'" "$listen" --driver=nbd://localhost/disk
expect_error 2 "unknown option '--frobnicate'" --frobnicate

expect_error 1 "no-such-store" --store=no-such-store "$listen" "$control"
expect_error 1 "disk.img" --store=disk.img "$listen" "$control"
mkdir empty
expect_error 1 "empty" --store=empty "$listen" "$control"
expect_error 1 "no-such-store" --store=no-such-store "$listen" --check
[ ! -e sock ] && [ ! -e control ] || fail "a socket was left behind"

# --check with everything right, by itself and with a driver elsewhere.
blobpagerd --store=store "$listen" "$control" --check > out.log 2> check.log
expect_equal "--check" "configuration OK" "$(cat out.log)"
! grep -q error check.log || fail "--check leaves errors behind: $(cat check.log)"
start_driver store="$tmp/store"
uri="nbd+unix:///?socket=$driver"
blobpagerd --driver="$uri" "$listen" "$control" --check > out.log
expect_equal "--check" "configuration OK" "$(cat out.log)"
[ ! -e sock ] && [ ! -e control ] || fail "--check bound a socket"
expect_error 1 "nowhere" --driver="nbd+unix:///?socket=$tmp/nowhere" \
  --driver-timeout=1 "$listen" "$control" --check

blobpagerd --help > help.log
grep -q '^blobpagerd --store=DIR' help.log || fail "--help has no synopsis"
expect_equal "--version" "blobpagerd" "$(blobpagerd --version | cut -d ' ' -f 1)"

# A driver that is not there yet is waited for, not needed.
start_blobpagerd --driver="nbd+unix:///?socket=$tmp/later"
ln -s "$driver" later
expect_equal "image" "$(sha_of disk.img)" "$(sha_of_uri "$(uri disk)")"

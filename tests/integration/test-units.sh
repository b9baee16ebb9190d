#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# systemd understands the example units, each as it is to be installed, and
# the daemon understands what they tell it.

. "$srcdir/harness/functions.sh"
requires systemd-analyze --version

mkdir units units/blobpagerd.service.d
examples=$top_srcdir/examples
cp "$examples"/*.service "$examples"/*.socket units/

# verify UNIT...: systemd looks for programs where they are installed, which
# these are not.
verify ()
{
  find units -type f -exec \
    sed -i -E 's|^ExecStart=[a-z]+ |ExecStart=/bin/true |' {} +
  (cd units && systemd-analyze verify --man=no --recursive-errors=no "$@") \
    > verify.log 2>&1 || fail "$*: $(cat verify.log)"
  [ ! -s verify.log ] || fail "$*: $(cat verify.log)"
}

# daemon_options FILE: of the last ExecStart, a line each.
daemon_options ()
{
  sed -e ':a; /\\$/ { N; s/\\\n//; ta }' "$1" |
    sed -n 's/^ExecStart=blobpagerd //p' | tail -1 | xargs -n 1
}

# expect_understood FILE OPTION...: --check with a store of ours, and OPTION.
expect_understood ()
{
  local options
  mapfile -t options < <(daemon_options "$1" |
    sed "s|^--store=.*|--store=$store|; s|,group=kvm|,group=0|")
  shift
  [ ${#options[@]} -ge 2 ] || fail "no options in $1"
  blobpagerd "${options[@]}" "$@" --control="$tmp/control" --check \
    > /dev/null 2> check.log || fail "$1: $(cat check.log)"
}

text_file disk.img 100000 1
make_store disk.img vm
expect_understood "$examples/blobpagerd.service"
expect_understood "$examples/blobpagerd-on-demand.conf" \
  --listen=unix:"$tmp/given"

verify blobpagerd.service blobpager-driver.service
cp "$examples/blobpagerd-on-demand.conf" units/blobpagerd.service.d/
verify blobpagerd.socket blobpagerd.service

# That systemd would have said something.
sed -i 's/^SocketMode=/SocketMood=/' units/blobpagerd.socket
(cd units && systemd-analyze verify --man=no blobpagerd.socket) \
  > verify.log 2>&1 || :
grep -q SocketMood verify.log || fail "nothing is ever wrong"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An NBD export imports to the same root as the file behind it; its holes
# are not read; servers without block status, with small requests, and
# exports of odd sizes work; a server that fails fails the import.

. "$srcdir/harness/functions.sh"
requires nbdkit --version

# start_server NBDKIT-ARG...: on socket $server.
start_server ()
{
  server=$tmp/server
  rm -f "$tmp/server.pid" "$server"
  nbdkit -f -U "$server" -P "$tmp/server.pid" "$@" 2>> server.log &
  server_pid=$!
  cleanup_fn stop_process "$server_pid"
  wait_until 30 test -e "$tmp/server.pid"
}

# import_root NAME URI: the root alone.
import_root ()
{
  blobpager import --store=store --name="$1" "$2" | cut -d ' ' -f 1
}

random_file part 3000001 1
truncate -s 64M disk.img
dd if=part of=disk.img bs=4K seek=1000 conv=notrunc status=none
printf tail >> disk.img
root=$(blobpager import --store=store disk.img | cut -d ' ' -f 1)

start_server --filter=log file disk.img logfile=reads.log
expect_equal "through nbdkit file" "$root" \
  "$(import_root nbd "nbd+unix:///?socket=$server")"
read_bytes=$(grep -o '[.]\{3\}\|Read id=[0-9]* offset=[^ ]* count=0x[0-9a-f]*' reads.log |
  sed -n 's/.*count=//p' | while read -r n; do echo $((n)); done | paste -sd+ | bc)
[ "$read_bytes" -lt 4000000 ] || fail "$read_bytes bytes were read of 3000001"
stop_process "$server_pid"

for filters in '--filter=noextents' '--filter=blocksize-policy' \
  '--filter=noextents --no-sr'; do
  args=(file disk.img)
  [ "$filters" = --filter=blocksize-policy ] &&
    args+=(blocksize-minimum=1 blocksize-preferred=4096
      blocksize-maximum=8192 blocksize-error-policy=error)
  # shellcheck disable=SC2086
  start_server $filters "${args[@]}"
  expect_equal "$filters" "$root" \
    "$(import_root nbd "nbd+unix:///?socket=$server")"
  stop_process "$server_pid"
done

# The name comes from the export, decoded.
start_server --exportname= eval get_size='echo 5' pread='printf abcde' \
  open='echo x' 2> /dev/null || :
expect_equal "the default name" "my:disk" \
  "$(blobpager import --store=store "nbd+unix:///my%3adisk?socket=$server" |
    sed 's/.*  //')"
expect_fail 2 blobpager import --store=store "nbd+unix:///?socket=$server"
expect_fail 2 blobpager import --store=store "nbd+unix:///a%2fb?socket=$server"
stop_process "$server_pid"

# A pattern, without a file to compare: against nbdcopy.
start_server pattern 5M
nbdcopy "nbd+unix:///?socket=$server" pattern.img
expect_equal "pattern" \
  "$(blobpager import --store=store pattern.img | cut -d ' ' -f 1)" \
  "$(import_root pattern2 "nbd+unix:///?socket=$server")"
stop_process "$server_pid"

start_server --filter=error pattern 5M error-pread-rate=100%
expect_fail 1 blobpager import --store=store --name=broken \
  "nbd+unix:///?socket=$server"
grep -q 'read: ' err.log || fail "no reason: $(cat err.log)"
[ ! -e store/images/broken.json ] || fail "a failed import left its tag"
stop_process "$server_pid"
blobpager verify --store=store

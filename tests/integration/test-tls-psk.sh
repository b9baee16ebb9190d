#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Pre-shared keys: nbdinfo, nbdcopy and qemu-img read every byte; a wrong key
# and an unknown user are turned away; a server that has certificates, too,
# serves both kinds of client.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
requires nbdcopy --version
requires qemu-img --version

random_file disk.img 20000777 1
wanted=$(sha_of disk.img)
make_store disk.img disk
umask 077
{ make_key alice; make_key bob; } > server.psk
mkdir alice bob wrong mallory
grep '^alice:' server.psk > alice/keys.psk
grep '^bob:' server.psk > bob/keys.psk
make_key alice > wrong/keys.psk
make_key mallory > mallory/keys.psk
make_ca ca
make_certificate ca tls server server
make_certificate ca tls client client

# uri_of USER DIR [PARAMETER...]: on TCP, with the key in DIR.
uri_of ()
{
  echo "nbds://$1@localhost:$port/disk?tls-psk-file=$tmp/$2/keys.psk"
}

# qemu_copy USER DIR OUT
qemu_copy ()
{
  qemu-img convert --object \
    "tls-creds-psk,id=tls0,dir=$tmp/$2,endpoint=client,username=$1" \
    --image-opts \
    "driver=nbd,host=localhost,port=$port,export=disk,tls-creds=tls0" \
    -O raw "$3"
}

# expect_served USER DIR
expect_served ()
{
  nbdinfo "$(uri_of "$1" "$2")" > info.log
  grep -q 'protocol: newstyle-fixed with TLS' info.log ||
    fail "$1: not over TLS: $(cat info.log)"
  nbdcopy --connections=4 "$(uri_of "$1" "$2")" copy.img
  expect_equal "nbdcopy, $1" "$wanted" "$(sha_of copy.img)"
  qemu_copy "$1" "$2" copy.raw
  expect_equal "qemu-img, $1" "$wanted" \
    "$(head -c 20000777 copy.raw | sha256sum | cut -d ' ' -f 1)"
}

# expect_refused USER DIR TEXT: by the server, because of TEXT.
expect_refused ()
{
  expect_fail 1 qemu_copy "$1" "$2" copy.raw
  expect_turned_away "$3" nbdinfo "$(uri_of "$1" "$2")"
}

# check_everybody: of the daemon that was started.
check_everybody ()
{
  expect_served alice alice
  expect_refused alice wrong "binder does not verify"
  expect_refused mallory mallory "psk identity not found"
  expect_served bob bob
}

port=$(free_port)
listen=(--listen=tcp:localhost:"$port" --tls=require)
start_blobpagerd --store="$store" --profile=off --tls-psk=server.psk \
  "${listen[@]}"
check_everybody
stop_blobpagerd
rm blobpagerd.log

# gnutls would rather have a cipher whose hash does not suit the key.
for verify in "" --tls-verify-peer; do
  start_blobpagerd --store="$store" --profile=off --tls-psk=server.psk \
    --tls-certificates=tls $verify "${listen[@]}"
  check_everybody
  expect_equal "with a certificate" "$wanted" \
    "$(sha_of_uri "nbds://localhost:$port/disk?tls-certificates=$tmp/tls")"
  stop_blobpagerd
  rm blobpagerd.log
done

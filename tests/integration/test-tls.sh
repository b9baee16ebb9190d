#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Certificates: nbdinfo, nbdcopy and qemu-img read every byte over TLS, on
# TCP and on a Unix socket; whoever has the wrong certificate, or none, is
# turned away, and so are we by a client that does not believe us.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
requires nbdcopy --version
requires qemu-img --version

random_file disk.img 20000777 1
make_store disk.img disk
make_ca ca
make_ca other-ca
make_certificate ca tls server server
make_certificate ca tls client client
make_certificate other-ca stranger client stranger
cp ca/ca-cert.pem stranger/
make_certificate ca late client late -days -1
cp -r tls nobody
rm nobody/client-*
cp -r tls distrust
cp other-ca/ca-cert.pem distrust/

port=$(free_port)
start_blobpagerd --store="$store" --profile=off \
  --tls-certificates=tls --tls-verify-peer \
  --listen=tcp:localhost:"$port" --tls=require

# uri_of DIR: on TCP, with the certificates in DIR.
uri_of ()
{
  echo "nbds://localhost:$port/disk?tls-certificates=$tmp/$1"
}

# uri_unix DIR
uri_unix ()
{
  echo "nbds+unix:///disk?socket=$sock&tls-certificates=$tmp/$1"
}

# qemu_copy DIR OUT
qemu_copy ()
{
  qemu-img convert \
    --object "tls-creds-x509,id=tls0,dir=$tmp/$1,endpoint=client" \
    --image-opts \
    "driver=nbd,host=localhost,port=$port,export=disk,tls-creds=tls0" \
    -O raw "$2"
}

# expect_refused DIR TEXT: by the server, because of TEXT.
expect_refused ()
{
  expect_fail 1 qemu_copy "$1" copy.raw
  expect_turned_away "$2" nbdinfo "$(uri_of "$1")"
}

# ---- Served ----

nbdinfo "$(uri_of tls)" > info.log
grep -q 'protocol: newstyle-fixed with TLS' info.log ||
  fail "not over TLS: $(cat info.log)"
nbdinfo "$(uri_unix tls)" > info.log
grep -q 'with TLS' info.log || fail "not over TLS: $(cat info.log)"
wanted=$(sha_of disk.img)
nbdcopy --connections=4 "$(uri_of tls)" copy.img
expect_equal "nbdcopy, TCP" "$wanted" "$(sha_of copy.img)"
nbdcopy --connections=4 "$(uri_unix tls)" copy.img
expect_equal "nbdcopy, Unix" "$wanted" "$(sha_of copy.img)"
qemu_copy tls copy.raw
expect_equal "qemu-img" "$wanted" \
  "$(head -c 20000777 copy.raw | sha256sum | cut -d ' ' -f 1)"

# The listeners differ: the Unix socket serves plain text, too.
expect_equal "plain text, Unix" "$wanted" "$(sha_of_uri "$(uri disk)")"

# It is a source to import from, too.
imported=$(blobpager import --store=other-store --name=disk "$(uri_of tls)")
expect_equal "imported" "$root  disk" "$imported"

# ---- Not served ----

expect_refused stranger "unable to get local issuer certificate"
expect_refused late "certificate has expired"
expect_refused nobody "peer did not return a certificate"

# It is the client that does not believe us.
expect_fail 1 nbdinfo "$(uri_of distrust)"
grep -qi 'certificate' err.log || fail "not for that: $(cat err.log)"

# Plain text, where TLS is required: the client is told.
expect_fail 1 nbdcopy "nbd://localhost:$port/disk" -
grep -q 'server requires TLS encryption first' err.log ||
  fail "not said clearly: $(cat err.log)"
expect_fail 1 qemu-img info "nbd://localhost:$port/disk"
grep -qi 'TLS is required here' err.log ||
  fail "not said clearly: $(cat err.log)"

blobpager status --control="$control" --metrics > metrics
for metric in connections failures; do
  grep -q "^blobpager_client_tls_${metric}_total [1-9]" metrics ||
    fail "not counted: $(cat metrics)"
done

# The good are served as before.
expect_equal "after all" "$wanted" "$(sha_of_uri "$(uri_of tls)")"

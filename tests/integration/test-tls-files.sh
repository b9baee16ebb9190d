#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The files of TLS: whatever is wrong with one is one line that names it;
# SIGHUP has them read again, and an attempt that fails changes nothing; a
# certificate that is revoked does not count.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
requires nbdinfo --version

text_file disk.img 100000 1
make_store disk.img disk
make_ca ca
make_ca other-ca
make_certificate ca tls server server
make_certificate ca tls client client
umask 077

# expect_error TEXT ARG...: of blobpagerd --check, in one line.
expect_error ()
{
  local text=$1
  shift
  expect_fail 1 timeout 30 blobpagerd --store="$store" --check \
    --listen=unix:"$tmp/sock" --control="$tmp/control" "$@"
  expect_equal "lines for '$text'" "blobpagerd: $text" "$(cat err.log)"
}

# copy_of_tls DIR: to break something in.
copy_of_tls ()
{
  rm -rf "$1"
  cp -r tls "$1"
}

# ---- At start ----

expect_error "nowhere/server-cert.pem: No such file or directory" \
  --tls-certificates=nowhere
copy_of_tls bad
rm bad/server-key.pem
expect_error "bad/server-key.pem: No such file or directory" \
  --tls-certificates=bad
copy_of_tls bad
rm bad/ca-cert.pem
blobpagerd --store="$store" --check --listen=unix:"$tmp/sock" \
  --control="$tmp/control" --tls-certificates=bad > out.log 2> err.log ||
  fail "ca-cert.pem is not needed then: $(cat err.log)"
expect_error "bad/ca-cert.pem: No such file or directory" \
  --tls-certificates=bad --tls-verify-peer
copy_of_tls bad
echo "no certificate" > bad/server-cert.pem
expect_error "bad/server-cert.pem: no start line" --tls-certificates=bad
copy_of_tls bad
cp bad/client-key.pem bad/server-key.pem
expect_error "bad/server-key.pem: not the key of server-cert.pem" \
  --tls-certificates=bad
copy_of_tls bad
openssl genrsa -out bad/server-key.pem 2048 2>> openssl.log
expect_error "bad/server-key.pem: not the key of server-cert.pem" \
  --tls-certificates=bad
copy_of_tls bad
openssl pkcs8 -topk8 -passout pass:secret -in tls/server-key.pem \
  -out bad/server-key.pem
expect_error "bad/server-key.pem: needs a passphrase; decrypt it" \
  --tls-certificates=bad
copy_of_tls bad
echo "no list" > bad/ca-crl.pem
expect_error "bad/ca-crl.pem: no start line" --tls-certificates=bad \
  --tls-verify-peer
expect_error "none.psk: No such file or directory" --tls-psk=none.psk
{ make_key alice; echo bob; } > bad.psk
expect_error "bad.psk: line 2: not USER:KEY" --tls-psk=bad.psk
expect_error "listen: unix:$tmp/sock: TLS needs --tls-certificates or \
--tls-psk" --tls=on

# ---- Warnings ----

make_certificate ca late server late -days -1
chmod o+r late/server-key.pem
make_key alice > open.psk
chmod 644 open.psk
blobpagerd --store="$store" --check --listen=unix:"$tmp/sock" \
  --control="$tmp/control" --tls-certificates=late --tls-psk=open.psk \
  > out.log 2> err.log
expect_equal "warnings" \
  "blobpagerd: warning: late/server-cert.pem: expired, clients will not connect
blobpagerd: warning: late/server-key.pem: everybody on this host may read it; chmod o-r
blobpagerd: warning: open.psk: everybody on this host may read it; chmod o-r" \
  "$(grep warning err.log)"

# ---- Read again ----

# attach DIR: with the certificates in DIR.
attach ()
{
  nbdinfo "nbds+unix:///disk?socket=$sock&tls-certificates=$tmp/$1"
}

reload ()
{
  kill -HUP "$blobpagerd_pid"
  wait_until 10 grep -qF "$1" blobpagerd.log
}

copy_of_tls now
rm now/client-*
copy_of_tls client
make_certificate other-ca later server server
make_certificate other-ca later client client
start_blobpagerd --store="$store" --tls-certificates=now --tls=require \
  --tls-verify-peer
expect_fail 1 attach later
attach client > info.log
cp later/* now/
cp tls/server-key.pem now/
reload "now/server-key.pem: not the key of server-cert.pem; going on with \
what was read before"
attach client > info.log
cp later/server-key.pem now/
reload "certificates and keys are read again"
attach later > info.log
expect_fail 1 attach client

# ---- Revoked ----

mkdir authority
touch authority/index.txt
cat > authority/openssl.cnf << 'END'
[ca]
default_ca = authority
[authority]
database = authority/index.txt
default_md = sha256
default_crl_days = 2
END
authority ()
{
  openssl ca -config authority/openssl.cnf -keyfile other-ca/ca-key.pem \
    -cert other-ca/ca-cert.pem "$@" 2>> openssl.log
}
authority -gencrl -out now/ca-crl.pem
: > blobpagerd.log
reload "certificates and keys are read again"
attach later > info.log
authority -revoke later/client-cert.pem
authority -gencrl -out now/ca-crl.pem
: > blobpagerd.log
reload "certificates and keys are read again"
expect_turned_away "certificate revoked" attach later

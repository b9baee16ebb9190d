# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the tests of TLS, after functions.sh: certificates and keys, as
# blobpagerd(8) tells how to make them.

# new_key ARG...: openssl req with a key of the kind that is made quickly.
new_key ()
{
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "$@" \
    2>> openssl.log
}

# make_ca DIR: a certificate authority.  All have one name, because clients
# do not even send a certificate if they are told of other names only.
make_ca ()
{
  mkdir -p "$1"
  new_key -x509 -days 2 -subj "/CN=CA" \
    -keyout "$1/ca-key.pem" -out "$1/ca-cert.pem"
}

# make_certificate CA DIR server|client SUBJECT ARG...: issued by CA, in DIR
# with a copy of ca-cert.pem unless there is one; ARGs are those of openssl
# x509.
make_certificate ()
{
  local ca=$1 dir=$2 kind=$3 subject=$4
  shift 4
  mkdir -p "$dir"
  new_key -subj "/CN=$subject" \
    -keyout "$dir/$kind-key.pem" -out "$dir/$kind.csr"
  openssl x509 -req -in "$dir/$kind.csr" -days 2 \
    -CA "$ca/ca-cert.pem" -CAkey "$ca/ca-key.pem" -set_serial "0x$RANDOM" \
    -extfile <(printf 'subjectAltName = DNS:localhost, IP:127.0.0.1\n') \
    "$@" -out "$dir/$kind-cert.pem" 2>> openssl.log
  [ -e "$dir/ca-cert.pem" ] || cp "$ca/ca-cert.pem" "$dir/"
}

# make_key USER: a line of a file of pre-shared keys.
make_key ()
{
  echo "$1:$(openssl rand -hex 32)"
}

# expect_turned_away TEXT CMD ARG...: CMD fails, and the daemon says why.  It
# does not log each failure of many, so this tries again.
expect_turned_away ()
{
  wait_until 10 is_turned_away "$@"
}

is_turned_away ()
{
  local text=$1
  shift
  expect_fail 1 "$@"
  grep -qF "TLS handshake failed: $text" blobpagerd.log
}

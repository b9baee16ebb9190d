#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The system's OpenSSL configuration says which versions of TLS will do, and
# is obeyed; only that TLS 1.2 is the least nobody can change.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
requires qemu-img --version

text_file disk.img 100000 1
make_store disk.img disk
make_ca ca
make_certificate ca tls server server

# A client that would speak any version.
export GNUTLS_SYSTEM_PRIORITY_FILE=/dev/null
port=$(free_port)

# start_with MIN: a daemon on a system whose least version is MIN.
start_with ()
{
  cat > openssl.cnf << END
openssl_conf = conf
[conf]
ssl_conf = ssl
[ssl]
system_default = default
[default]
MinProtocol = $1
CipherString = DEFAULT:@SECLEVEL=0
END
  OPENSSL_CONF=$tmp/openssl.cnf start_blobpagerd --store="$store" \
    --tls-certificates=tls --listen=tcp:localhost:"$port" --tls=require
}

# speaks VERSION: yes or no.
speaks ()
{
  if qemu-img info --object "tls-creds-x509,id=tls0,dir=$tmp/tls,\
endpoint=client,priority=NORMAL:%COMPAT:-VERS-ALL:+VERS-$1" --image-opts \
    "driver=nbd,host=localhost,port=$port,export=disk,tls-creds=tls0" \
    > info.log 2> err.log; then echo yes; else echo no; fi
}

# expect_versions MIN TLS1.1 TLS1.2 TLS1.3
expect_versions ()
{
  start_with "$1"
  expect_equal "TLS 1.1, least $1" "$2" "$(speaks TLS1.1)"
  expect_equal "TLS 1.2, least $1" "$3" "$(speaks TLS1.2)"
  expect_equal "TLS 1.3, least $1" "$4" "$(speaks TLS1.3)"
  stop_blobpagerd
}

expect_versions TLSv1.3 no no yes
expect_versions TLSv1.2 no yes yes
expect_versions TLSv1 no yes yes

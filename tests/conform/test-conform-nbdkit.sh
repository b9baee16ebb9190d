#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the suite says of nbdkit, so that neither the suite nor the table in
# blobpager-nbd-conform(1) drifts.

. "$srcdir/harness/functions.sh"
. "$srcdir/harness/tls-functions.sh"
. "$srcdir/conform/functions.sh"
[[ $("$nbdkit" --version) == "nbdkit 1.32."* ]] ||
  skip "the table is for nbdkit 1.32"

# Whether the first two make it abort, and the third meets replies that say
# NBD_ESHUTDOWN, is a race.
except=(
  --except=several/lost-clients-are-harmless
  --except=several/unread-replies-are-harmless
  --except=commands/disc-answers-what-is-in-flight
)
uri="nbd+unix:///?socket=$tmp/nbdkit.sock"
known=(
  meta/a-set-that-failed-clears-what-was-set
  meta/trailing-data-is-invalid
)

disk_image disk.img
serve_nbdkit -r file disk.img
conform "${except[@]}" --reference=disk.img "$uri"
expect_not_ok "file" "${known[@]}"

serve_nbdkit -r memory 1M
conform "${except[@]}" "$uri"
expect_not_ok "memory" "${known[@]}"

serve_nbdkit -r data '0x55 @0x100000 0xaa'
conform "${except[@]}" "$uri"
expect_not_ok "data" "${known[@]}"

serve_nbdkit -r --filter=blocksize-policy memory 4M blocksize-minimum=4096 \
  blocksize-preferred=65536 blocksize-maximum=1M \
  blocksize-error-policy=error
conform "${except[@]}" "$uri"
expect_not_ok "block sizes" "${known[@]}"
grep -q '^ok .*read/unaligned-is-invalid$' tap ||
  fail "the checks of block sizes did not run"

# ---- TLS ----

make_ca ca
make_certificate ca pki server localhost
make_certificate ca pki client client
make_key user > psk
tls_uri="nbds+unix:///?socket=$tmp/nbdkit.sock"

# Over TLS, nbdkit loses the framing after a write; what fails then depends
# on the bytes that it takes for a request.
except+=("--except=write/*" "--except=errors/a-write-*")

serve_nbdkit -r --tls=on --tls-certificates=pki memory 1M
conform "${except[@]}" "$uri"
expect_not_ok "TLS offered, not used" "${known[@]}"
conform "${except[@]}" "$tls_uri"
expect_not_ok "TLS offered" "${known[@]}"

serve_nbdkit -r --tls=require --tls-certificates=pki --tls-verify-peer memory 1M
conform "$uri"
expect_all_ok "TLS demanded, not used"
grep -q '^ok .*tls/demanded-for-other-options$' tap ||
  fail "the checks of a server that demands TLS did not run"
conform "${except[@]}" "$tls_uri&tls-certificates=$tmp/pki"
expect_not_ok "TLS demanded" "${known[@]}"
conform "$tls_uri"
expect_equal "exit status without a certificate" 1 "$conform_status"
grep -q 'may want a certificate' conform.log ||
  fail "the suite does not say that a certificate is missing"

serve_nbdkit -r --tls=require --tls-psk=psk memory 1M
conform "${except[@]}" \
  "nbds+unix://user@/?socket=$tmp/nbdkit.sock&tls-psk-file=$tmp/psk"
expect_not_ok "TLS with a pre-shared key" "${known[@]}"

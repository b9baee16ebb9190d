#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who may open what: an export that is not allowed is answered as one that
# is not there, word for word, and a listener over TCP tells nobody what
# others have.

. "$srcdir/harness/functions.sh"
requires nbdinfo --version

text_file a.img 300000 1
text_file b.img 200000 2
make_store a.img a
root_a=$root
make_store b.img b
root_b=$root

# answer URI: what the server says of an export that cannot be had, and
# what libnbd makes of the kind of its error.
answer ()
{
  LIBNBD_DEBUG=1 expect_fail 1 nbdinfo --size "$1"
  grep -oE 'message: .*|^nbdinfo: .*' err.log | grep -v 'not supported' |
    sed -E "s|named '.*': |named NAME: |"
}

expect_served ()
{
  expect_equal "$2" "$(sha_of "$1")" "$(sha_of_uri "$2")"
}

port=$(free_port)
start_blobpagerd --store="$store" \
  --listen=unix:"$tmp/one" --allow-export=a --allow-export='a@*' \
  --listen=tcp:127.0.0.1:"$port" \
  --listen=unix:"$tmp/none" --allow=none
tcp=nbd://127.0.0.1:$port
one () { echo "nbd+unix:///$1?socket=$tmp/one"; }

# The listener with globs.
expect_served a.img "$(one a)"
expect_served a.img "$(one "a@$root_a")"
expect_served b.img "$(one "a@$root_b")"
absent=$(answer "$(one no-such-image)")
[ -n "$absent" ] || fail "an image that is not there is no error"
for name in b "b@$root_b" "$root_a" "blob/$root_a" ""; do
  expect_equal "export '$name'" "$absent" "$(answer "$(one "$name")")"
done
expect_equal "list" "['a']" "$(nbdinfo --list --json "$(one '')" |
  json '[e["export-name"] for e in j["exports"]]')"

# The one without, on Unix and on TCP.
expect_served b.img "$(uri b)"
expect_served a.img "$(uri "$root_a")"
nbdinfo --size "$(uri "blob/$root_a")" > out.log
expect_equal "list" "['a', 'b']" "$(nbdinfo --list --json "$(uri '')" |
  json '[e["export-name"] for e in j["exports"]]')"
expect_served b.img "$tcp/b"
expect_served a.img "$tcp/$root_a"
expect_equal "a blob" "$(answer "$tcp/no-such-image")" \
  "$(answer "$tcp/blob/$root_a")"
for where in "$tcp" "nbd+unix:///?socket=$tmp/none"; do
  LIBNBD_DEBUG=1 expect_fail 1 nbdinfo --list "$where"
  grep -q 'message: listing is not allowed' err.log ||
    fail "list: $(cat err.log)"
done

# The empty name stands for the only image, or for none that is allowed.
stop_blobpagerd
blobpager rm --store="$store" b
start_blobpagerd --store="$store" --allow-export=b \
  --listen=unix:"$tmp/one" --allow-export='[a]'
expect_served a.img "$(one '')"
expect_equal "the empty name" "$(answer "$(uri no-such-image)")" \
  "$(answer "$(uri '')")"

# Not even its damage is told to who may not have it.
stop_blobpagerd
rm "$store"/packs/*
start_blobpagerd --store="$store" --allow-export=b
answer "$(uri '')" > told.txt
! grep -q "$root_a\|export 'a'" err.log || fail "names: $(cat err.log)"

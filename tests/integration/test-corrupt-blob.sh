#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One flipped bit of a stored blob, raw or zstd, costs exactly the reads
# that touch that blob an EIO; it is counted, logged in one line, and
# forgotten once the store has been repaired.  Whoever computes the digests.

. "$srcdir/harness/functions.sh"
read_map=$top_builddir/tests/harness/read-map

for variant in none:auto zstd:openssl; do
  compress=${variant%:*} sha256=${variant#*:}
  text_file disk.img 2000000 1
  rm -rf store
  make_store disk.img disk --compress=$compress
  flip_bit store/packs/*.pack 100000
  : > blobpagerd.log
  start_blobpagerd --store="$store" --profile=off --sha256="$sha256"
  if [ "$sha256" = openssl ]; then
    expect_equal "verify.sha256" openssl "$(status 'j["verify"]["sha256"]')"
  fi

  "$read_map" "$(uri disk)" 4096 > map.log
  expect_equal "$compress: runs" "ok EIO ok" "$(cut -d ' ' -f 3 map.log | xargs)"
  read -r start length _ < <(grep EIO map.log)
  [ "$length" -ge 4096 ] && [ "$length" -le 131072 ] ||
    fail "$compress: $length bytes are lost"
  "$read_map" "$(uri disk)" "$start" > large.log
  expect_equal "$compress: what lies before it, in one read" \
    "0 $start ok" "$(head -1 large.log)"

  expect_equal "$compress: verify.corrupt" True "$(status 'j["verify"]["corrupt"] >= 1')"
  expect_equal "$compress: driver.errors" 0 "$(status 'j["driver"]["errors"]')"
  expect_equal "$compress: log lines" 1 "$(grep -c 'digest mismatch\|corrupt' blobpagerd.log)"

  # Remembered for a second, then asked for again.
  flip_bit store/packs/*.pack 100000
  is_whole () { [ "$("$read_map" "$(uri disk)" 4096 | cut -d ' ' -f 3)" = ok ]; }
  wait_until 20 is_whole
  expect_equal "$compress: repaired" "$(sha_of disk.img)" "$(sha_of_uri "$(uri disk)")"
  stop_blobpagerd
done

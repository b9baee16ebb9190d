#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One flipped bit of a stored blob, raw or zstd, costs the reads that touch
# that blob, and nothing else; a damaged pack costs its blobs, with an
# error that says so.

. "$srcdir/harness/functions.sh"
read_map=$top_builddir/tests/harness/read-map

for compress in none zstd; do
  text_file disk.img 2000000 1
  rm -rf store
  make_store disk.img disk --compress=$compress
  flip_bit store/packs/*.pack 100000
  driver_options=()
  start_driver store="$store"
  uri="nbd+unix:///disk?socket=$driver"

  "$read_map" "$uri" 4096 > map.log
  expect_equal "$compress: runs" "ok EIO ok" "$(cut -d ' ' -f 3 map.log | xargs)"
  read -r start length _ < <(grep EIO map.log)
  [ "$length" -ge 4096 ] && [ "$length" -le 131072 ] ||
    fail "$compress: $length bytes are lost"
  grep -q "segment at offset $start: .*: digest mismatch" driver.log ||
    fail "$compress: the log does not say what is corrupt"

  # Larger reads lose what touches the segment; the rest is right.
  "$read_map" "$uri" "$start" > large.log
  expect_equal "$compress: first run in large reads" "0 $start ok" \
    "$(head -1 large.log)"
  nbdcopy "$uri" - > copy.img 2> err.log && fail "the copy succeeded"
  stop_process "$driver_pid"

  # Repaired, it is the same disk again.
  flip_bit store/packs/*.pack 100000
  start_driver store="$store"
  expect_equal "$compress: repaired" "$(sha_of disk.img)" "$(sha_of_uri "$uri")"
  stop_process "$driver_pid"
done

# Packs of a wrong magic, cut short, or empty: their images cannot be
# opened, others can.
text_file other.img 300000 900
pack=$(ls store/packs)
cp "store/packs/$pack" good.pack
make_store other.img other
for damage in magic cut empty; do
  cp good.pack bad.pack
  case $damage in
    magic) flip_bit bad.pack 0 ;;
    cut) truncate -s -1000 bad.pack ;;
    empty) : > bad.pack ;;
  esac
  cp bad.pack "store/packs/$pack"
  start_driver store="$store"
  expect_fail 1 nbdinfo --size "nbd+unix:///disk?socket=$driver"
  expect_equal "$damage: the other image" "$(sha_of other.img)" \
    "$(sha_of_uri "nbd+unix:///other?socket=$driver")"
  stop_process "$driver_pid"
done

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What nbdinfo and qemu-img learn of holes is what the image has; asking
# fetches no data, is no read and makes no profile; residency follows what
# clients read, and is not told on TCP unless it is allowed.

. "$srcdir/harness/functions.sh"
requires nbdinfo --version
requires qemu-img --version

# Text, noise and holes of awkward places, and a tail of 77 bytes.
truncate -s 50000077 disk.img
for i in 0 1 2 3 4; do
  random_file part $((1000000 + i * 300000)) $i
  dd if=part of=disk.img bs=4096 seek=$((i * 2000)) conv=notrunc status=none
done
printf x | dd of=disk.img bs=1 seek=50000076 conv=notrunc status=none
make_store disk.img disk
port=$(free_port)
start_blobpagerd --store="$store" --profile=off \
  --listen=tcp:127.0.0.1:"$port" \
  --listen=unix:"$tmp/less" --allow=list

# true_map: OFFSET LENGTH TYPE of each run of zero blocks and of others.
true_map ()
{
  python3 - << 'END'
import itertools, os
size = os.path.getsize("disk.img")
with open("disk.img", "rb") as f:
    kinds = [3 if f.read(4096).strip(b"\0") == b"" else 0
             for _ in range(0, size, 4096)]
at = 0
for kind, run in itertools.groupby(kinds):
    end = min(size, at + 4096 * len(list(run)))
    print(at, end - at, kind)
    at = end
END
}

# map_of EXPORT CONTEXT: as nbdinfo tells it.
map_of ()
{
  nbdinfo --map="$2" --json "$(uri "$1")" |
    json "'\n'.join ('%d %d %d' % (e['offset'], e['length'], e['type'])
          for e in j)"
}

fetched ()
{
  status 'j["driver"]["reads"]'
}

true_map > wanted
nbdinfo --size "$(uri disk)" > /dev/null # Fetches what says its size.
before=$(fetched)
map_of disk base:allocation > map
diff wanted map || fail "nbdinfo has another map"
[ "$(grep -c ' 3$' wanted)" -ge 5 ] || fail "the test has too few holes"
[ "$(grep -c ' 0$' wanted)" -ge 5 ] || fail "the test has too few runs"
# qemu-img rounds the size up, and asks for one extent at a time.
qemu-img map --output=json -f raw "$(uri disk)" |
  json "'\n'.join ('%d %d %d' % (e['start'],
          min (e['length'], 50000077 - e['start']), 3 * e['zero'])
          for e in j if e['start'] < 50000077)" > map
diff wanted map || fail "qemu-img has another map"
holes=$(awk '$3 == 3 { sum += $2 } END { print sum }' wanted)
expect_equal "totals" "$holes" \
  "$(nbdinfo --map --totals --json "$(uri disk)" |
     json "[e['size'] for e in j if e['type'] == 3][0]")"

# None of that was a read, or fetched anything; the index was there.
expect_equal "windows fetched" "$before" "$(fetched)"
expect_equal "reads" "0 0 0" \
  "$(status "' '.join (str (sum (e[k] for e in j['exports']))
     for k in ('reads', 'bytes_read', 'stalls'))")"

# A blob has no holes.
expect_equal "map of a blob" "0 $(nbdinfo --size "$(uri "blob/$root")") 0" \
  "$(map_of "blob/$root" base:allocation)"

# Nothing is in memory but holes, until it is read.
awk '{ print $1, $2, $3 == 3 ? 2 : 0 }' wanted > absent
map_of disk blobpager:residency > map
diff absent map || fail "something is in memory that nobody read"
/usr/bin/python3 -c "
import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
h.pread (1, 8192000)" "$(uri disk)"
grep -q '^8192000 [0-9]* 0$' absent || fail "the test reads a hole"
map_of disk blobpager:residency > map
# The first window is verified by now; the rest may be on its way.
expect_equal "what was read" 2 \
  "$(awk '$1 <= 8192000 && 8192000 < $1 + $2 { print $3 }' map)"
nbdcopy "$(uri disk)" null:
expect_equal "residency of all" "0 50000077 2" \
  "$(map_of disk blobpager:residency)"

# contexts URI: that an export has.
contexts ()
{
  nbdinfo --json --no-content "$1" |
    json "' '.join (j['exports'][0]['contexts'])"
}
# On TCP residency would tell one tenant what another reads.
expect_equal "contexts" "base:allocation blobpager:residency" \
  "$(contexts "$(uri disk)")"
expect_equal "contexts on TCP" "base:allocation" \
  "$(contexts "nbd://127.0.0.1:$port/disk")"
expect_equal "contexts where it is not allowed" "base:allocation" \
  "$(contexts "nbd+unix:///disk?socket=$tmp/less")"

# A recording sees no client open in a map.
blobpager profile start --control="$control" maps
nbdinfo --map "$(uri disk)" > /dev/null
nbdinfo --map=blobpager:residency "$(uri disk)" > /dev/null
expect_equal "records" 0 \
  "$(blobpager profile stop --control="$control" maps | awk '{ print $3 }')"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench-boot.sh IMAGEDIR [TRACE]: a boot's reads over a long link, one
# after another: plain nbdkit, nbdkit with its cache filter, blobpager
# without a profile, and with one; interleaved, medians of $ROUNDS (3).
# Every byte is compared.  Run it under ./run.

set -euo pipefail
[ $# -ge 1 ] || { echo "usage: bench-boot.sh IMAGEDIR [TRACE]" >&2; exit 2; }
dir=$1 trace=${2:-}
rounds=${ROUNDS:-3} rtts=${RTTS:-20}
tmp=$(mktemp -d)
pids=()

clean_up ()
{
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || :; done
  wait
  rm -rf "$tmp"
}
trap clean_up EXIT

# ready FILE: made by a program just started in the background.
ready ()
{
  until [ -e "$1" ]; do
    kill -0 $! || { echo "bench-boot.sh: $1 does not appear" >&2; exit 1; }
    sleep 0.02
  done
}

# begin READY-FILE CMD ARG...: start CMD, wait for the file; sets $last.
begin ()
{
  local file=$1
  shift
  rm -f "$file"
  "$@" 2>> "$tmp/log" &
  last=$!
  pids+=("$last")
  ready "$file"
}

end () { kill "$1"; wait "$1" 2> /dev/null || :; }

if [ -z "$trace" ]; then
  trace=$tmp/trace
  "$(dirname "$0")/record-trace.sh" "$dir" "$trace"
fi

blobpager import --store="$tmp/store" --name=boot "$dir/disk.img" > /dev/null
begin "$tmp/plain.pid" nbdkit -f -r -U "$tmp/plain" -P "$tmp/plain.pid" \
  file "$dir/disk.img"
begin "$tmp/driver.pid" "$BLOBPAGER_NBDKIT" -f -U "$tmp/driver" \
  -P "$tmp/driver.pid" "$BLOBPAGER_PLUGIN" store="$tmp/store"

# seconds URI: in I/O.
seconds ()
{
  boottrace "$trace" "$1" "$dir/disk.img" | tee -a "$tmp/lines" | cut -d ' ' -f 1
}

# with_daemon PROFILE-ARG...: the trace through a fresh blobpagerd.
with_daemon ()
{
  local daemon
  begin "$tmp/daemon.pid" blobpagerd --listen=unix:"$tmp/sock" \
    --driver="nbd+unix:///session?socket=$tmp/far" \
    --control="$tmp/control" --pidfile="$tmp/daemon.pid" "$@"
  daemon=$last
  seconds "nbd+unix:///boot?socket=$tmp/sock"
  while recording; do sleep 0.05; done
  end "$daemon"
}

# The daemon is still recording, or writing what it recorded.
recording ()
{
  blobpager status --json --control="$tmp/control" |
    grep -q '"recordings":\[{'
}

with_cache_filter ()
{
  local cache
  begin "$tmp/cache.pid" nbdkit -f -r -U "$tmp/cache" -P "$tmp/cache.pid" \
    --filter=cache nbd socket="$tmp/far-plain" cache-on-read=true \
    cache-min-block-size=128K
  cache=$last
  seconds "nbd+unix:///?socket=$tmp/cache"
  end "$cache"
}

median () { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

printf '%-8s %14s %14s %14s %14s\n' "RTT" "nbdkit file" "cache filter" \
  "no profile" "profile"
for rtt in $rtts; do
  begin "$tmp/far-plain" lagsim "$tmp/far-plain" "$tmp/plain" "$rtt"
  lag_plain=$last
  begin "$tmp/far" lagsim "$tmp/far" "$tmp/driver" "$rtt"
  lag=$last
  # The profile: auto mode records the first boot.
  with_daemon > /dev/null
  rm -f "$tmp"/seconds.*
  for ((i = 0; i < rounds; i++)); do
    seconds "nbd+unix:///?socket=$tmp/far-plain" >> "$tmp/seconds.1"
    with_cache_filter >> "$tmp/seconds.2"
    with_daemon --profile=off >> "$tmp/seconds.3"
    with_daemon >> "$tmp/seconds.4"
  done
  printf '%-8s %12s s %12s s %12s s %12s s\n' "$rtt ms" \
    "$(median "$tmp/seconds.1")" "$(median "$tmp/seconds.2")" \
    "$(median "$tmp/seconds.3")" "$(median "$tmp/seconds.4")"
  end "$lag"
  end "$lag_plain"
done

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh NAME...: run these benches, one after another; "all" is every
# one, "help" prints what there is.  Run it under ./run, or by make bench:
#
#   make bench                        all
#   make bench BENCH="front boot"     these
#   make bench BENCH=front BENCH_FLAGS="--json --rounds=9"
#
# $BENCH_FLAGS go to every bench (bench-NAME.py --help).  $BENCH_IMAGE is a
# directory of examples/make-image.sh, made if it is not there.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
read -r -a flags <<< "${BENCH_FLAGS:-}"

names=(front boot)
declare -A what=(
  [front]="hot reads: blobpagerd, the least server, nbdkit, qemu-nbd; 5 min"
  [boot]="a boot's reads, one after another, over a long link; 5 min"
)

help ()
{
  local name
  sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
  for name in "${names[@]}"; do
    printf '%-8s %s\n' "$name" "${what[$name]}"
  done
}

run_boot ()
{
  [ -e "$BENCH_IMAGE/disk.img" ] ||
    bash "$here/../../examples/make-image.sh" "$BENCH_IMAGE"
  bash "$here/bench-boot.sh" "$BENCH_IMAGE"
}

[ $# -gt 0 ] && [ "$1" != help ] || { help; exit; }
[ "$1" != all ] || set -- "${names[@]}"
for name; do
  [ -n "${what[$name]:-}" ] ||
    { echo "bench.sh: no bench '$name' (try help)" >&2; exit 2; }
done
for name; do
  case $name in
  boot) run_boot ;;
  *) python3 "$here/bench-$name.py" "${flags[@]}" ;;
  esac
done

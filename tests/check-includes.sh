#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who may include whom:
#
#   tests ─▶ daemon, nbdkit-plugin ─▶ lib ─▶ lib/base
#
# and in the daemon: control ─▶ front, profile ─▶ pager, each of these a
# folder.  Every include names its file from the top of the tree; headers
# never include each other in a circle, nor do folders.  lib starts no
# threads, opens no sockets and prints nothing.

set -u -o pipefail
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1

# All includes of ours, as "FROM TO".
edges=$(grep -rnE --include='*.[ch]' '^ *# *include *"' \
          lib nbdkit-plugin daemon tests |
        sed -E 's|^([^:]+):[0-9]+: *# *include *"([^"]+)".*|\1 \2|')
[ "$(wc -l <<< "$edges")" -gt 50 ] || { echo "no includes found"; exit 1; }

# may_not FROM-PATTERN TO-PATTERN: extended regular expressions.
may_not ()
{
  grep -E "^$1[^ ]* $2" <<< "$edges" |
    sed 's/ / includes /; s/$/, which its layer may not/'
}

check_layers ()
{
  may_not 'lib/base/' '(lib/[^/]+$|daemon/|nbdkit-plugin/|tests/)'
  may_not 'lib/' '(daemon/|nbdkit-plugin/|tests/)'
  may_not 'daemon/' '(nbdkit-plugin/|tests/)'
  may_not 'nbdkit-plugin/' '(daemon/|tests/)'
  may_not 'daemon/pager/' 'daemon/(front|profile|control|cli)/'
  may_not 'daemon/profile/' 'daemon/(front|control|cli)/'
  may_not 'daemon/front/' 'daemon/(profile|control|cli)/'
  may_not 'daemon/control/' 'daemon/cli/'
  # The conformance suite decodes the protocol by itself.
  may_not 'tests/conform/' \
    '(lib/[^/]+$|daemon/|nbdkit-plugin/|harness/|tests/)'
}

# A name without a folder would depend on where the compiler looks.  The
# tests name their harness from tests/.
check_paths ()
{
  local from to
  while read -r from to; do
    case $from in
      tests/*) [ -e "$to" ] || [ -e "tests/$to" ] ;;
      *) [ -e "$to" ] ;;
    esac && [[ $to == */* ]] ||
      echo "$from includes \"$to\", which is not a path from the top"
  done <<< "$edges"
}

# tsort says which files or folders form a circle.
check_circles ()
{
  grep -E '^[^ ]+\.h ' <<< "$edges" | tsort 2>&1 > /dev/null |
    sed 's/^/circle of headers: /'
  sed -E 's|/[^/ ]+ | |; s|/[^/ ]+$||' <<< "$edges" |
    awk '$1 != $2 && $1 != "daemon" && $2 != "daemon"' | sort -u |
    tsort 2>&1 > /dev/null | sed 's/^/circle of folders: /'
}

# What lib leaves to its callers.
check_lib ()
{
  grep -rnE --include='*.[ch]' \
    '\b(pthread_create|thrd_create|socket|socketpair|accept4?) \(' lib |
    sed 's/$/ (lib starts no threads and opens no sockets)/'
  grep -rnE --include='*.[ch]' \
    '\b(v?printf|puts|putchar|perror|v?dprintf) \(|\b(stdout|stderr)\b' lib |
    sed 's/$/ (lib prints nothing)/'
}

found=$(check_layers; check_paths; check_circles; check_lib)
[ -z "$found" ] || { echo "$found"; exit 1; }

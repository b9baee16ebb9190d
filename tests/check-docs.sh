#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The manual pages name what the programs have, and nothing else: long
# options, subcommands, the plugin's parameters, metrics, commands of the
# control socket.  Each page is well-formed POD.

set -u -o pipefail
top=${top_srcdir:-$(dirname "$0")/..}
man=$top/man
export LC_ALL=C.UTF-8

# same WHAT WANTED GOT: two lists, a word a line, whatever their order.
same ()
{
  local wanted got
  wanted=$(sort -u <<< "$2") got=$(sort -u <<< "$3")
  [ -n "$wanted" ] || { echo "$1: the program lists none"; return; }
  comm -23 <(echo "$wanted") <(echo "$got") |
    sed "s|^|$1: not in the manual: |"
  comm -13 <(echo "$wanted") <(echo "$got") |
    sed "s|^|$1: only in the manual: |"
}

# items PAGE PATTERN: what PATTERN matches in its =item lines.
items ()
{
  grep '^=item' "$man/$1.pod" | grep -oE -- "$2"
}

check_pod ()
{
  local page
  for page in "$man"/*.pod; do
    podchecker "$page" > /dev/null 2>&1 || podchecker "$page" 2>&1
  done
  for page in blobpager blobpagerd nbdkit-blobpager-plugin blobpager-store \
    blobpager-profile blobpager-session blobpager-nbd-conform; do
    [ -e "$man/$page.pod" ] || echo "no page $page"
    grep -qE "^	$page \\\\\$" "$man/Makefile.am" ||
      echo "man/Makefile.am: $page is not installed"
  done
}

check_blobpagerd ()
{
  same "blobpagerd" "$(blobpagerd --long-options)" \
    "$(items blobpagerd '--[a-z][a-z0-9-]*')"
  same "synopsis of blobpagerd" "$(blobpagerd --long-options)" \
    "$(grep -oE -- '--[a-z][a-z0-9-]*' "$man/synopsis-blobpagerd.txt")"
  same "metrics" \
    "$(sed -nE 's/^ *X \(([a-z_]+), *(counter|gauge),.*/\1 \2/p' \
         "$top/daemon/metrics.h" |
       sed 's/^/blobpager_/; s/ counter/_total/; s/ gauge//')" \
    "$(items blobpagerd 'blobpager_[a-z_]+')"
  same "control commands" \
    "$(sed -nE 's/^  \{ "([a-z-]+)", *(true|false), *run_.*/\1/p' \
         "$top/daemon/control/commands.c")" \
    "$(sed -n '/^=head1 CONTROL/,/^=head1 METRICS/p' "$man/blobpagerd.pod" |
       sed -nE 's/^=item C<(.*)>$/\1/p')"
}

# The options of a subcommand and the subcommand itself.
check_blobpager ()
{
  local command
  same "blobpager" \
    "$(blobpager --long-options | grep -oE -- '--[a-z][a-z0-9-]*')" \
    "$(items blobpager '--[a-z][a-z0-9-]*' | grep -vxE -- '--(help|version)')"
  same "synopsis of blobpager" \
    "$(blobpager --long-options | grep -oE -- '--[a-z][a-z0-9-]*')" \
    "$(grep -oE -- '--[a-z][a-z0-9-]*' "$man/synopsis-blobpager.txt" |
       grep -vxE -- '--(help|version)')"
  for command in $(blobpager --long-options | cut -d ' ' -f 1 | sort -u); do
    grep -qE "^blobpager $command " "$man/synopsis-blobpager.txt" ||
      echo "synopsis of blobpager: lacks $command"
    grep -qE "^=(item|head[23]) .*\\b$command\\b" "$man/blobpager.pod" ||
      echo "blobpager: not in the manual: $command"
  done
}

# The options, and the groups that the names of checks begin with.
check_conform ()
{
  local long
  long=$(blobpager-nbd-conform --long-options)
  same "blobpager-nbd-conform" "$long" \
    "$(items blobpager-nbd-conform '--[a-z][a-z-]*')"
  same "synopsis of blobpager-nbd-conform" "$long" \
    "$(grep -oE -- '--[a-z][a-z-]*' "$man/synopsis-blobpager-nbd-conform.txt")"
  same "groups of checks" \
    "$(blobpager-nbd-conform --list | sed -nE 's|^([a-z-]+)/.*|\1|p')" \
    "$(sed -n '/^=head1 CHECKS/,/^=head1 TLS/p' \
         "$man/blobpager-nbd-conform.pod" | sed -n 's/^=item //p')"
}

check_plugin ()
{
  same "plugin" \
    "$("${BLOBPAGER_NBDKIT:-nbdkit}" "$BLOBPAGER_PLUGIN" --help |
       sed -nE 's/^ *([a-z]+)=[^ ].*/\1/p')" \
    "$(items nbdkit-blobpager-plugin '^=item B<[a-z]+=' |
       sed 's/.*<//; s/=//')"
}

found=$(check_pod; check_blobpagerd; check_blobpager; check_plugin;
  check_conform)
[ -z "$found" ] || { echo "$found"; exit 1; }

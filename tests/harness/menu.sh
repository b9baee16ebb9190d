# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# For scripts that run things by name.  The script sets names=(NAME...), in
# the order of "all", and what[NAME] to a line about each; menu_choose sets
# chosen=(NAME...).

# menu_choose ARG...: names, or "all"; "help", or nothing, prints the
# script's opening comment and the names, and exits.
menu_choose ()
{
  local name
  if [ $# = 0 ] || [ "$1" = help ]; then
    sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
    for name in "${names[@]}"; do
      printf '%-8s %s\n' "$name" "${what[$name]}"
    done
    exit 0
  fi
  [ "$1" != all ] || set -- "${names[@]}"
  for name; do
    [ -n "${what[$name]:-}" ] ||
      { echo "${0##*/}: no '$name' (try help)" >&2; exit 2; }
  done
  chosen=("$@")
}

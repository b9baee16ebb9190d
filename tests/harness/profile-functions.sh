# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the tests of profiles, after functions.sh: images whose every
# blob is known by name, clients that stay connected, and profiles as one
# line of text.
#
# A spot is a blob of 8192 equal bytes, alone in its MiB of the image, so
# that no read-around brings its neighbours: spot N stands at N MiB, and is
# called N.  (Who reads N and then N + 1 starts the read-ahead, as only a
# hole lies between them.)  The index of the image is called "index".  A profile then
# reads "index@0 1@0 2@0".

harness=$top_builddir/tests/harness

requires command -v python3

# make_spots N: an image "debian" with spots 1 … N (at most 250) in $store.
make_spots ()
{
  local i
  truncate -s $((($1 + 1) << 20)) spots.img
  for ((i = 1; i <= $1; i++)); do
    head -c 8192 /dev/zero | tr '\0' "$(printf '\\%03o' "$i")" > "spot$i"
    dd if="spot$i" of=spots.img bs=4096 seek=$((i << 8)) conv=notrunc \
      status=none
  done
  make_store spots.img debian
  {
    echo "s/$root/index/"
    for ((i = 1; i <= $1; i++)); do
      echo "s/$(spot_root "$i")/$i/"
    done
    echo "s/$missing/missing/"
  } > names.sed
}

# A root that no store has.
missing=$(printf 'de%.0s' {1..32})

# spot_root N
spot_root ()
{
  [ -e "spot$1.root" ] ||
    blobpager merkle "spot$1" | cut -d ' ' -f 1 > "spot$1.root"
  cat "spot$1.root"
}

# put_profile NAME RECORD...: into $store; RECORD is N@OFFSET, index@OFFSET
# or missing@OFFSET.
put_profile ()
{
  local name=$1 record records=()
  shift
  for record; do
    case $record in
    missing@*) records+=("$missing@${record#*@}") ;;
    index@*) records+=("$root@${record#*@}") ;;
    *) records+=("$(spot_root "${record%@*}")@${record#*@}") ;;
    esac
  done
  "$harness/put-profile" "$store" "$name" "${records[@]}"
}

# profile_records NAME: as one line; "none" if there is no such profile.
profile_records ()
{
  blobpager profile show --store="$store" "$1" > show.txt 2> show.err || {
    grep -q "$1" show.err || fail "show: $(cat show.err)"
    echo none
    return
  }
  sed '1,/^$/d' show.txt | awk '{ print $1 "@" $2 }' | sed -f names.sed |
    paste -s -d ' '
}

expect_records ()
{
  expect_equal "profile $1" "$2" "$(profile_records "$1")"
}

# profile ACTION …: of the running daemon.
profile ()
{
  local action=$1
  shift
  blobpager profile "$action" --control="$control" "$@"
}

# client_open ID EXPORT: a client that stays.
client_open ()
{
  mkfifo "in.$1" "out.$1"
  "$harness/nbd-reader" "$(uri "$2")" < "in.$1" > "out.$1" \
    2>> "client.$1.log" &
  eval "client_pid_$1=$!"
  eval "exec {client_in_$1}> in.$1 {client_out_$1}< out.$1"
  rm "in.$1" "out.$1"
  expect_equal "client $1" ready "$(client_answer "$1")"
}

client_answer ()
{
  local fd=client_out_$1 line
  read -r -t 60 line <&"${!fd}" || line="no answer"
  echo "$line"
}

# client_read ID N…: each spot, whole, and compare.
client_read ()
{
  local id=$1 fd=client_in_$1 n
  shift
  for n; do
    echo "$((n << 20)) 8192" >&"${!fd}"
    expect_equal "spot $n" "$(sha_of "spot$n")" "$(client_answer "$id")"
  done
}

# client_close ID: returns when it has gone.
client_close ()
{
  local pid=client_pid_$1 fd=client_in_$1
  echo end >&"${!fd}" # Clients opened since have this descriptor, too.
  eval "exec {client_in_$1}>&- {client_out_$1}<&-"
  wait "${!pid}" || fail "client $1 failed"
}

# replay MEMBER: of the first replay in status; "none" without one.
replay ()
{
  status "j['replay'][0]['$1'] if j['replay'] else 'none'"
}

replay_is ()
{
  [ "$(replay state)" = "$1" ]
}

# wait_for_replay STATE: until the first replay of status has come to it.
wait_for_replay ()
{
  wait_until 30 replay_is "$1"
}

recordings ()
{
  status "' '.join(r['name'] for r in j['recordings'])"
}

recordings_are ()
{
  [ "$(recordings)" = "$1" ]
}

nothing_is_recorded ()
{
  [ -z "$(recordings)" ]
}

pinned_bytes ()
{
  status "j['cache']['pinned_bytes']"
}

# log_has TEXT: the daemon's log.
log_has ()
{
  grep -q -e "$1" "$tmp/blobpagerd.log"
}

# count_lines TEXT FILE: lines that have it.
count_lines ()
{
  grep -c -e "$1" "$2" || :
}

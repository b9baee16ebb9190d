#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The end of a daemon that reads are in flight of.  It waits --drain seconds
# for them, or until it is told again; who waits for nothing is not waited
# for.  Then it closes without an answer, so that a qemu with
# reconnect-delay asks the next daemon: an answer, even ESHUTDOWN, is a
# failed read in the guest, which is shown here with another server.

. "$srcdir/harness/functions.sh"
requires qemu-io --version
requires /usr/bin/python3 -c 'import nbd'

# Far apart, so that reading one does not fetch the other.
truncate -s 40M disk.img
for at in 0 20 30; do
  random_file part 1000000 $at
  dd if=part of=disk.img bs=1M seek=$at conv=notrunc status=none
done
make_store disk.img vm

# A driver that goes on.  nbdkit may abort when a client has vanished that
# it has several replies for, so each daemon gets a new one.
new_driver ()
{
  stop_driver
  start_driver store="$store"
  cleanup_fn stop_driver
}
stop_driver ()
{
  [ -n "${driver_pid:-}" ] || return 0
  kill -CONT "$driver_pid" 2> /dev/null || :
  stop_process "$driver_pid"
}

start_daemon ()
{
  new_driver
  start_blobpagerd --driver="nbd+unix:///?socket=$driver" --profile=off "$@"
}

nr_stalls ()
{
  status 'sum(e["stalls"] for e in j["exports"])'
}

# A read of the export has begun to wait since there were $1 stalls.
a_read_waits ()
{
  [ "$(nr_stalls)" -gt "$1" ]
}

# hold_reads: what is not in the cache does not come any more.
hold_reads ()
{
  kill -STOP "$driver_pid"
  stalls=$(nr_stalls)
}

# qemu: one client through all that follows.  It writes what it reads to
# its output, and is told by lines written to descriptor 5.
mkfifo commands
qemu-io -r --image-opts \
  "driver=raw,file.driver=nbd,file.server.type=unix,file.server.path=$tmp/sock,file.export=vm@$root,file.reconnect-delay=60,file.open-timeout=60" \
  < commands > qemu-io.log 2>&1 &
qemu_pid=$!
cleanup_fn stop_process $qemu_pid
exec 5> commands

# expect_read OFFSET: the bytes of the last read by qemu are the image's.
expect_read ()
{
  sed -n 's/^.*[0-9a-f]\{8\}:  \(\([0-9a-f]\{2\} \)*\).*/\1/p' qemu-io.log |
    tail -4 | tr -d ' \n' > got
  dd if=disk.img skip="$1" count=64 iflag=skip_bytes,count_bytes \
    status=none | od -An -v -tx1 | tr -d ' \n' > wanted
  cmp wanted got || fail "read at $1: $(cat qemu-io.log)"
}

nr_reads_done ()
{
  [ "$(grep -c '^read 64/64 bytes' qemu-io.log)" = "$1" ]
}

# It is not answered by the first daemon, but by the second.
start_daemon --drain=0
echo 'read -v 4096 64' >&5
wait_until 30 nr_reads_done 1
expect_read 4096
hold_reads
echo 'read -v 20975616 64' >&5
wait_until 30 a_read_waits "$stalls"
stop_blobpagerd || fail "exit status $?"
nr_reads_done 1 || fail "answered: $(cat qemu-io.log)"
start_daemon --drain=600
wait_until 60 nr_reads_done 2
expect_read 20975616

# What comes within the time is answered, whoever else is connected.
cat > idle.py <<'END'
import sys, nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
print("connected", flush=True)
while h.aio_is_ready():
    h.poll(-1)
END
/usr/bin/python3 idle.py "$(uri vm)" > idle.log 2>&1 &
idle_pid=$!
cleanup_fn stop_process $idle_pid
wait_until 30 grep -q connected idle.log
hold_reads
echo 'read -v 31461376 64' >&5
wait_until 30 a_read_waits "$stalls"
kill -TERM "$blobpagerd_pid"
wait_until 30 process_is_gone $idle_pid
nr_reads_done 2 && ! process_is_gone "$blobpagerd_pid" ||
  fail "it did not wait for the read"
kill -CONT "$driver_pid"
wait "$blobpagerd_pid" || fail "exit status $?"
wait_until 30 nr_reads_done 3
expect_read 31461376
echo quit >&5
wait $qemu_pid || fail "qemu-io failed: $(cat qemu-io.log)"

# Told twice it does not wait.
start_daemon --drain=600
/usr/bin/python3 -c 'import sys, nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
print("connected", flush=True)
sys.stdin.readline()
h.pread(512, 20 << 20)' "$(uri vm)" < commands > reader.log 2>&1 &
reader_pid=$!
cleanup_fn stop_process $reader_pid
exec 5> commands
wait_until 30 grep -q connected reader.log
hold_reads
echo read >&5
wait_until 30 a_read_waits 0
kill -TERM "$blobpagerd_pid"
stopping_again ()
{
  [ "$(grep -c 'SIGTERM: stopping' blobpagerd.log)" = 3 ]
}
wait_until 30 stopping_again
kill -INT "$blobpagerd_pid"
wait "$blobpagerd_pid" || fail "exit status $?"
! wait $reader_pid || fail "the read succeeded"
! grep -q 'Input/output error' reader.log || fail "the read was answered"

# Why there is no answer: qemu passes one on, and does not connect again.
requires nbdkit eval --version
nbdkit -f -U "$tmp/other" -P other.pid eval get_size='echo 1M' \
  pread='echo ESHUTDOWN >&2; exit 1' 2> nbdkit.log &
cleanup_fn stop_process $!
wait_until 30 test -e other.pid
qemu-io -r --image-opts \
  "driver=raw,file.driver=nbd,file.server.type=unix,file.server.path=$tmp/other,file.reconnect-delay=60" \
  -c 'read 0 512' > answered.log 2>&1 || :
grep -q '^read failed: ' answered.log ||
  fail "an answer of ESHUTDOWN: $(cat answered.log)"

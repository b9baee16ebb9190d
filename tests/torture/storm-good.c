/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The clients that everything is for: batches of reads of any offset and
 * length, of which each byte is compared with the image.  Half of the
 * connections take structured replies, whose chunks come in any order.
 */
#include <config.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/clock.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/nbd-client.h"
#include "torture/storm.h"

enum {
  MAX_BATCHES = 20,   /* Of a connection. */
  MAX_DEPTH = 16,     /* Reads of a batch. */
  MAX_LOG_LEN = 18,   /* Most reads are shorter than 1 << this; */
  LONG_READ = 2 << 20 /* a few have up to so many bytes. */
};

struct read {
  uint64_t offset;
  uint32_t len;
  uint32_t received; /* Bytes so far. */
  uint64_t seams;    /* The starts of all chunks less their ends, each
                        scrambled: if they cover the read, each byte once,
                        all but two cancel. */
  bool is_done;
};

/* A connection; of its thread alone. */
struct session {
  struct storm *storm;
  uint64_t *chance;
  int fd;
  bool is_structured;
  struct read reads[MAX_DEPTH]; /* The index is the cookie. */
  size_t nr_reads;              /* Of this batch. */
};

static struct read
choose_read (const struct storm *storm, uint64_t *chance)
{
  const uint64_t limit =
    roll (chance, 64) == 0
      ? LONG_READ
      : UINT64_C (1) << roll (chance, MAX_LOG_LEN + 1);
  const uint64_t reach =
    roll (chance, 4) == 0 ? storm->size : storm->hot_bytes;
  const uint64_t offset = roll (chance, reach);
  const uint64_t len = 1 + roll (chance, limit);

  return (struct read){
    .offset = offset,
    .len = (uint32_t) MIN (len, storm->size - offset),
  };
}

static void
ask (struct session *session)
{
  size_t i;

  session->nr_reads = 1 + roll (session->chance, MAX_DEPTH);
  for (i = 0; i < session->nr_reads; i++) {
    struct read *read = &session->reads[i];

    *read = choose_read (session->storm, session->chance);
    client_send_request (session->fd, 0, NBD_CMD_READ, i, read->offset,
                         read->len);
  }
}

static struct read *
find_read (struct session *session, uint64_t cookie)
{
  CHECK (cookie < session->nr_reads);
  CHECK (!session->reads[cookie].is_done);
  return &session->reads[cookie];
}

static uint64_t
scrambled (uint64_t offset)
{
  return splitmix64 (&offset);
}

/* LEN bytes of READ at OFFSET come: from the socket, or as a hole. */
static void
compare (struct session *session, struct read *read, uint64_t offset,
         uint32_t len, bool is_hole)
{
  static const uint8_t zeros[16 << 10];
  uint8_t buf[sizeof zeros];

  CHECK (offset >= read->offset);
  CHECK (range_is_within (read->len, offset - read->offset, len));
  read->received += len;
  read->seams += scrambled (offset) - scrambled (offset + len);
  while (len > 0) {
    const uint32_t n = MIN (len, (uint32_t) sizeof buf);

    if (!is_hole)
      client_recv (session->fd, buf, n);
    if (memcmp (is_hole ? zeros : buf, session->storm->image + offset, n) !=
        0) {
      fprintf (stderr, "a wrong byte between %ju and %ju\n",
               (uintmax_t) offset, (uintmax_t) (offset + n));
      exit (EXIT_FAILURE);
    }
    offset += n;
    len -= n;
  }
}

/* Returns true if it was the last of its read. */
static bool
take_chunk (struct session *session)
{
  const struct client_chunk chunk = client_recv_chunk (session->fd);
  struct read *read = find_read (session, chunk.cookie);
  uint8_t place[12];
  const uint32_t place_len =
    chunk.type == NBD_REPLY_TYPE_OFFSET_HOLE ? 12 : 8;

  if (chunk.type != NBD_REPLY_TYPE_NONE) {
    CHECK (chunk.type == NBD_REPLY_TYPE_OFFSET_DATA ||
           chunk.type == NBD_REPLY_TYPE_OFFSET_HOLE);
    CHECK (chunk.len >= place_len);
    client_recv (session->fd, place, place_len);
    if (chunk.type == NBD_REPLY_TYPE_OFFSET_HOLE)
      compare (session, read, get_be64 (place), get_be32 (place + 8), true);
    else
      compare (session, read, get_be64 (place), chunk.len - place_len,
               false);
  }
  read->is_done = chunk.flags & NBD_REPLY_FLAG_DONE;
  if (read->is_done) {
    CHECK (read->received == read->len);
    CHECK (read->seams == scrambled (read->offset) -
                            scrambled (read->offset + read->len));
  }
  return read->is_done;
}

static void
take_simple (struct session *session)
{
  uint64_t cookie;
  struct read *read;

  CHECK_EQ (client_recv_reply (session->fd, &cookie), NBD_SUCCESS);
  read = find_read (session, cookie);
  compare (session, read, read->offset, read->len, false);
  read->is_done = true;
}

static void
take_answers (struct session *session)
{
  size_t left = session->nr_reads;

  while (left > 0) {
    if (!session->is_structured)
      take_simple (session);
    else if (!take_chunk (session))
      continue;
    left--;
  }
}

static void
count (struct session *session, uint64_t took_ns)
{
  struct storm *storm = session->storm;
  uint64_t longest = atomic_load (&storm->longest_ns), bytes = 0;
  size_t i;

  for (i = 0; i < session->nr_reads; i++)
    bytes += session->reads[i].len;
  atomic_fetch_add (&storm->nr_reads, session->nr_reads);
  atomic_fetch_add (&storm->bytes, bytes);
  while (took_ns > longest && !atomic_compare_exchange_weak (
                                &storm->longest_ns, &longest, took_ns)) {
  }
}

/* Politely, with the stream's end, or just so. */
static void
leave (struct session *session)
{
  switch (roll (session->chance, 3)) {
  case 0:
    client_send_request (session->fd, 0, NBD_CMD_DISC, 0, 0, 0);
    client_expect_closed (session->fd);
    break;
  case 1:
    shutdown (session->fd, SHUT_WR);
    client_expect_closed (session->fd);
    break;
  default: close (session->fd);
  }
}

void
storm_good_client (struct storm *storm, uint64_t *chance)
{
  struct session session = {
    .storm = storm,
    .chance = chance,
    .is_structured = roll (chance, 2),
  };
  uint64_t batches = 1 + roll (chance, MAX_BATCHES);

  session.fd = client_connect_to (storm->path, STORM_TIMEOUT_S);
  client_negotiate (session.fd, storm->export, session.is_structured);
  for (; batches > 0 && !atomic_load (&storm->is_over); batches--) {
    const uint64_t start = now_ns ();

    ask (&session);
    take_answers (&session);
    count (&session, now_ns () - start);
  }
  leave (&session);
}

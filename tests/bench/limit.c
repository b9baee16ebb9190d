/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* limit: the least that an NBD server can do, to compare others with.
 *
 *   limit SOCKET FILE PIDFILE
 *
 * Serves FILE from a map, to any export's name, and verifies nothing.  A
 * thread a connection:
 *
 *   recv ─▶ as many requests as have come ─▶ headers ┐
 *                                      the map ──────┴▶ one sendmsg
 *
 * Replies are structured if the client asks for it, simple otherwise.  No
 * option that would let a client leave bytes out is known (no contexts),
 * nothing is shared between connections, and nobody is protected from a
 * client that does not read.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/front/nbd-protocol.h"
#include "daemon/pidfile.h"
#include "daemon/unix-socket.h"
#include "lib/base/bytes.h"
#include "lib/base/cleanup.h"
#include "lib/base/range.h"

enum {
  BATCH = 64,                /* Requests answered with one sendmsg. */
  MAX_OPTION_BYTES = 65536,  /* Of data; more ends the connection. */
  PREFERRED_BLOCK = 4096,    /* Bytes. */
  EXPORT_INFO_SIZE = 12,     /* Bytes of NBD_INFO_EXPORT, */
  BLOCK_SIZE_INFO_SIZE = 14, /* and of NBD_INFO_BLOCK_SIZE. */
  ERROR_SIZE = 6,            /* Bytes of an error chunk's payload. */
};

/* The file; const once connections are accepted. */
static const uint8_t *map;
static uint64_t map_size; /* Bytes. */

/* A connection, of its thread alone. */
struct client {
  int fd;
  bool is_structured;
  uint8_t option[MAX_OPTION_BYTES];

  uint8_t requests[BATCH * NBD_REQUEST_SIZE];
  size_t have; /* Bytes of requests. */
  uint8_t headers[BATCH][NBD_DATA_HEADER_SIZE];
  struct iovec iov[2 * BATCH];
  size_t nr_iov;
};

static void __attribute__ ((noreturn, format (printf, 1, 2)))
die (const char *fmt, ...)
{
  va_list args;

  fputs ("limit: ", stderr);
  va_start (args, fmt);
  vfprintf (stderr, fmt, args);
  va_end (args);
  fputc ('\n', stderr);
  exit (EXIT_FAILURE);
}

static bool
recv_all (int fd, void *buf, size_t len)
{
  return len == 0 || recv (fd, buf, len, MSG_WAITALL) == (ssize_t) len;
}

static bool
send_all (int fd, const void *buf, size_t len)
{
  return len == 0 || send (fd, buf, len, MSG_NOSIGNAL) == (ssize_t) len;
}

/* ---- Handshake ---- */

static bool
send_greeting (int fd)
{
  uint8_t greeting[NBD_GREETING_SIZE];
  uint8_t flags[NBD_CLIENT_FLAGS_SIZE];

  put_be64 (greeting, NBD_MAGIC);
  put_be64 (greeting + 8, NBD_OPTION_MAGIC);
  put_be16 (greeting + 16, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  return send_all (fd, greeting, sizeof greeting) &&
         recv_all (fd, flags, sizeof flags);
}

static bool
send_option_reply (int fd, uint32_t option, uint32_t type,
                   const uint8_t *data, uint32_t len)
{
  uint8_t header[NBD_OPTION_REPLY_SIZE];

  put_be64 (header, NBD_REPLY_MAGIC);
  put_be32 (header + 8, option);
  put_be32 (header + 12, type);
  put_be32 (header + 16, len);
  return send_all (fd, header, sizeof header) && send_all (fd, data, len);
}

/* What a client hears of the one export. */
static bool
send_info (int fd, uint32_t option)
{
  uint8_t export[EXPORT_INFO_SIZE];
  uint8_t blocks[BLOCK_SIZE_INFO_SIZE];

  put_be16 (export, NBD_INFO_EXPORT);
  put_be64 (export + 2, map_size);
  put_be16 (export + 10, NBD_FLAG_HAS_FLAGS | NBD_FLAG_READ_ONLY |
                           NBD_FLAG_CAN_MULTI_CONN);
  put_be16 (blocks, NBD_INFO_BLOCK_SIZE);
  put_be32 (blocks + 2, 1);
  put_be32 (blocks + 6, PREFERRED_BLOCK);
  put_be32 (blocks + 10, NBD_MAX_READ);
  return send_option_reply (fd, option, NBD_REP_INFO, export,
                            sizeof export) &&
         send_option_reply (fd, option, NBD_REP_INFO, blocks,
                            sizeof blocks) &&
         send_option_reply (fd, option, NBD_REP_ACK, NULL, 0);
}

/* Until GO.  Returns false if the client went. */
static bool
negotiate (struct client *client)
{
  uint8_t header[NBD_OPTION_HEADER_SIZE];
  uint32_t option, len;

  if (!send_greeting (client->fd))
    return false;
  for (;;) {
    if (!recv_all (client->fd, header, sizeof header))
      return false;
    option = get_be32 (header + 8);
    len = get_be32 (header + 12);
    if (len > sizeof client->option ||
        !recv_all (client->fd, client->option, len))
      return false;
    switch (option) {
    case NBD_OPT_GO: return send_info (client->fd, option);
    case NBD_OPT_INFO:
      if (!send_info (client->fd, option))
        return false;
      break;
    case NBD_OPT_STRUCTURED_REPLY:
      client->is_structured = true;
      if (!send_option_reply (client->fd, option, NBD_REP_ACK, NULL, 0))
        return false;
      break;
    case NBD_OPT_ABORT: return false;
    default:
      if (!send_option_reply (client->fd, option, NBD_REP_ERR_UNSUP, NULL,
                              0))
        return false;
    }
  }
}

/* ---- Transmission ---- */

static void
add (struct client *client, const void *data, size_t len)
{
  client->iov[client->nr_iov++] =
    (struct iovec){ .iov_base = (void *) data, .iov_len = len };
}

/* Structured, which only answers to reads are.  Returns the bytes of the
 * header: for a success, of all before the data.
 */
static size_t
put_chunk (uint8_t *header, const uint8_t *cookie, uint64_t offset,
           uint32_t len, bool is_refused)
{
  put_be32 (header, NBD_STRUCTURED_REPLY_MAGIC);
  put_be16 (header + 4, NBD_REPLY_FLAG_DONE);
  memcpy (header + 8, cookie, NBD_COOKIE_SIZE);
  if (is_refused) {
    put_be16 (header + 6, NBD_REPLY_TYPE_ERROR);
    put_be32 (header + 16, ERROR_SIZE);
    put_be32 (header + NBD_CHUNK_HEADER_SIZE, NBD_EINVAL);
    put_be16 (header + NBD_CHUNK_HEADER_SIZE + 4, 0); /* No message. */
    return NBD_CHUNK_HEADER_SIZE + ERROR_SIZE;
  }
  put_be16 (header + 6, NBD_REPLY_TYPE_OFFSET_DATA);
  put_be32 (header + 16, len + 8);
  put_be64 (header + NBD_CHUNK_HEADER_SIZE, offset);
  return NBD_DATA_HEADER_SIZE;
}

static size_t
put_simple (uint8_t *header, const uint8_t *cookie, bool is_refused)
{
  put_be32 (header, NBD_SIMPLE_REPLY_MAGIC);
  put_be32 (header + 4, is_refused ? NBD_EINVAL : 0);
  memcpy (header + 8, cookie, NBD_COOKIE_SIZE);
  return NBD_SIMPLE_REPLY_SIZE;
}

/* Gather the answer to the request at P, the I-th of the batch. */
static void
answer (struct client *client, const uint8_t *p, size_t i)
{
  const bool is_read = get_be16 (p + 6) == NBD_CMD_READ;
  const uint64_t offset = get_be64 (p + 16);
  const uint32_t len = get_be32 (p + 24);
  const bool is_refused =
    !is_read || !range_is_within (map_size, offset, len);
  uint8_t *header = client->headers[i];

  add (client, header,
       client->is_structured && is_read
         ? put_chunk (header, p + 8, offset, len, is_refused)
         : put_simple (header, p + 8, is_refused));
  if (!is_refused)
    add (client, map + offset, len);
}

/* Send all that is gathered.  Returns false if the client went. */
static bool
send_answers (struct client *client)
{
  struct msghdr msg = { .msg_iov = client->iov,
                        .msg_iovlen = client->nr_iov };

  client->nr_iov = 0;
  while (msg.msg_iovlen > 0) {
    ssize_t n = sendmsg (client->fd, &msg, MSG_NOSIGNAL);

    if (n == -1)
      return false;
    while (msg.msg_iovlen > 0 && (size_t) n >= msg.msg_iov->iov_len) {
      n -= (ssize_t) msg.msg_iov->iov_len;
      msg.msg_iov++;
      msg.msg_iovlen--;
    }
    if (msg.msg_iovlen > 0) {
      msg.msg_iov->iov_base = (uint8_t *) msg.msg_iov->iov_base + n;
      msg.msg_iov->iov_len -= (size_t) n;
    }
  }
  return true;
}

/* Receive what has come and answer it.  Returns false at the end. */
static bool
serve_batch (struct client *client)
{
  const ssize_t n = recv (client->fd, client->requests + client->have,
                          sizeof client->requests - client->have, 0);
  size_t pos = 0, i;

  if (n <= 0)
    return false;
  client->have += (size_t) n;
  for (i = 0; client->have - pos >= NBD_REQUEST_SIZE; i++) {
    const uint8_t *p = client->requests + pos;

    if (get_be32 (p) != NBD_REQUEST_MAGIC ||
        get_be16 (p + 6) == NBD_CMD_DISC)
      return false;
    answer (client, p, i);
    pos += NBD_REQUEST_SIZE;
  }
  client->have -= pos;
  memmove (client->requests, client->requests + pos, client->have);
  return send_answers (client);
}

/* A connection's thread.  Takes ownership of OPAQUE. */
static void *
serve (void *opaque)
{
  struct client *client = opaque;

  if (negotiate (client))
    while (serve_batch (client)) {
    }
  close (client->fd);
  free (client);
  return NULL;
}

static void
start (int fd)
{
  struct client *client = calloc (1, sizeof *client);
  pthread_t thread;

  if (client == NULL)
    die ("out of memory");
  client->fd = fd;
  if (pthread_create (&thread, NULL, serve, client) != 0 ||
      pthread_detach (thread) != 0)
    die ("no thread for a connection");
}

static void
map_file (const char *path)
{
  CLEANUP_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  void *p;

  if (fd == -1 || fstat (fd, &st) == -1)
    die ("%s: %s", path, strerror (errno));
  map_size = (uint64_t) st.st_size;
  p = mmap (NULL, map_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (p == MAP_FAILED)
    die ("%s: mmap: %s", path, strerror (errno));
  map = p;
}

int
main (int argc, char *argv[])
{
  struct unix_socket listener;
  struct bp_error err;
  int fd;

  if (argc != 4) {
    fprintf (stderr, "usage: limit SOCKET FILE PIDFILE\n");
    return 2;
  }
  map_file (argv[2]);
  if (unix_socket_listen (&listener, argv[1], 0600, (gid_t) -1, &err) < 0 ||
      pidfile_write (argv[3], &err) < 0)
    die ("%s", err.msg);
  if (fcntl (listener.fd, F_SETFL, 0) == -1) /* Wait in accept. */
    die ("fcntl: %s", strerror (errno));
  while ((fd = accept4 (listener.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
    start (fd);
  die ("accept: %s", strerror (errno));
}

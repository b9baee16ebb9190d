/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The broken server's transmission: one request after the other. */
#include <config.h>

#include <string.h>
#include <unistd.h>

#include "conform/broken.h"
#include "conform/protocol.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

enum {
  MAX_READ = 1 << 25, /* Bytes. */
  LONG_READ = 1 << 18,
  FEW_REQUESTS = 100,
  FEW_BYTES = 4 << 20,
  FEW_ERRORS = 20,
  LARGE_WRITE = 1 << 20,
  STRANGE_ERROR = 30, /* EROFS: no value of the protocol. */
};

/* ---- The export ---- */

bool
is_hole (const struct client *client, uint64_t offset)
{
  return client->was_written || offset / REGION % 2 == 1;
}

/* Every region of data is the same, but that each 4 GiB have their own
 * bytes; none is zero.
 */
static const uint8_t *
region_bytes (uint32_t high)
{
  static uint8_t bytes[REGION];
  static uint32_t made_for = UINT32_MAX;

  if (made_for != high)
    for (unsigned i = 0; i < REGION; i++)
      bytes[i] = (uint8_t) (1 | (i * 7 + (i >> 8) * 3 + high * 26));
  made_for = high;
  return bytes;
}

void
fill_bytes (const struct client *client, uint64_t offset, uint8_t *data,
            size_t len)
{
  size_t done = 0;

  while (done < len) {
    const uint64_t at = has_bug (BUG_OFFSET_32_BIT)
                          ? (uint32_t) (offset + done)
                          : offset + done;
    const size_t within = at % REGION;
    const size_t n = MIN (len - done, REGION - within);

    if (is_hole (client, at))
      memset (data + done, 0, n);
    else
      memcpy (data + done, region_bytes ((uint32_t) (at >> 32)) + within, n);
    done += n;
  }
  if (has_bug (BUG_WRONG_BYTE) && offset <= 5000 && offset + len > 5000)
    data[5000 - offset] ^= 4;
  if (has_bug (BUG_BYTES_VARY) && len > 0)
    data[0] = (uint8_t) client->last_cookie;
  if (has_bug (BUG_STRUCTURED_OTHER_BYTES) && client->is_structured &&
      len > 0)
    data[len - 1] ^= 1;
}

bool
is_inside (const struct client *client, const struct request *request)
{
  const uint64_t end = request->offset + request->len;

  if (has_bug (BUG_END_WRAPS))
    return end <= client->size;
  if (has_bug (BUG_OFFSET_SIGNED) && (int64_t) request->offset < 0 &&
      end > request->offset)
    return true;
  return range_is_within (client->size, request->offset, request->len);
}

/* ---- Replies ---- */

static uint64_t
cookie_of (struct client *client, const struct request *request,
           uint32_t error)
{
  uint8_t next[REQUEST_SIZE];

  if (has_bug (BUG_COOKIE_OF_HALF))
    return request->cookie & UINT32_MAX;
  if (error != ERROR_NONE && has_bug (BUG_ERROR_WITHOUT_COOKIE))
    return 0;
  if (has_bug (BUG_COOKIE_OF_THE_NEXT) && request->type == CMD_READ &&
      client_peek (client, next, sizeof next) == sizeof next &&
      get_be16 (next + 6) == CMD_READ)
    return get_be64 (next + 8);
  return request->cookie;
}

void
send_simple (struct client *client, const struct request *request,
             uint32_t error, const uint8_t *data)
{
  static const uint8_t zeroes[REGION];
  uint8_t header[SIMPLE_REPLY_SIZE];

  put_be32 (header, SIMPLE_REPLY_MAGIC);
  put_be32 (header + 4, error);
  put_be64 (header + 8, cookie_of (client, request, error));
  client_send (client, header, sizeof header);
  if (data)
    client_send (client, data, request->len);
  else if (error != ERROR_NONE && request->type == CMD_READ &&
           ((has_bug (BUG_REFUSED_READ_PAYLOAD) && request->flags == 0) ||
            (has_bug (BUG_REFUSED_FLAG_PAYLOAD) && request->flags != 0)))
    client_send (client, zeroes, MIN (request->len, sizeof zeroes));
}

/* Answer a request that has no data to be sent. */
void
send_result (struct client *client, const struct request *request,
             uint32_t error)
{
  client->nr_errors += error != ERROR_NONE;
  if (error == ERROR_INVAL && has_bug (BUG_ERROR_NOT_DEFINED) &&
      request->offset == UINT64_MAX)
    error = STRANGE_ERROR;
  if (error == ERROR_INVAL && has_bug (BUG_ERROR_NOT_SUPPORTED) &&
      request->type == CMD_CACHE)
    error = ERROR_NOTSUP;
  if (client->is_structured && error != ERROR_NONE &&
      !(has_bug (BUG_REFUSED_READ_SIMPLE) && request->type == CMD_READ))
    send_structured_error (client, request, error);
  else
    send_simple (client, request, error, NULL);
}

/* ---- READ ---- */

static uint16_t
known_flags (const struct client *client, const struct request *request)
{
  uint16_t known = has_bug (BUG_FUA_REFUSED) ? 0 : CMD_FLAG_FUA;

  if (has_bug (BUG_FLUSH_CLOSES))
    known = 0;
  if (request->type == CMD_READ &&
      (client->is_structured || has_bug (BUG_DF_TAKEN)))
    known |= CMD_FLAG_DF;
  if (request->type == CMD_BLOCK_STATUS)
    known |= CMD_FLAG_REQ_ONE;
  if (request->type == CMD_WRITE_ZEROES)
    known |= CMD_FLAG_NO_HOLE | CMD_FLAG_FAST_ZERO;
  if (has_bug (BUG_OTHER_FLAG_TAKEN))
    known |= CMD_FLAG_REQ_ONE;
  if (has_bug (BUG_UNKNOWN_FLAG_TAKEN) && request->type == CMD_READ)
    known |= CMD_FLAG_UNKNOWN | 1 << 5;
  if (has_bug (BUG_STATUS_FLAG_TAKEN) && request->type == CMD_BLOCK_STATUS)
    known |= CMD_FLAG_UNKNOWN;
  if (has_bug (BUG_CACHE_FLAG_TAKEN) && request->type == CMD_CACHE)
    known |= CMD_FLAG_UNKNOWN;
  return known;
}

static bool
is_across_end (const struct client *client, const struct request *request)
{
  return request->offset < client->size && !is_inside (client, request);
}

/* The error of a READ before it is tried. */
static uint32_t
judge_read (struct client *client, const struct request *request)
{
  const uint32_t len = request->len;

  if (has_bug (BUG_ERRORS_RUN_OUT) && client->nr_errors > FEW_ERRORS)
    return ERROR_NONE;
  if (len == UINT32_MAX && has_bug (BUG_LONGEST_READ_CLOSES))
    client_leave ();
  if (len == 0 && has_bug (BUG_EMPTY_READ_CLOSES))
    client_leave ();
  if (has_bug (BUG_MAXIMUM_NOT_KEPT) || has_bug (BUG_MINIMUM_NOT_KEPT))
    return is_inside (client, request) ? ERROR_NONE : ERROR_INVAL;
  if (is_across_end (client, request) && has_bug (BUG_READ_ACROSS_END) &&
      len <= MAX_READ)
    return ERROR_NONE;
  if (!is_inside (client, request) || len > MAX_READ)
    return request->offset == client->size && has_bug (BUG_READ_AT_END_IO)
             ? ERROR_IO
             : ERROR_INVAL;
  if (has_bug (BUG_ODD_READS_REFUSED) && (request->offset | len) % 512 != 0)
    return ERROR_INVAL;
  if (has_bug (BUG_LONG_READS_REFUSED) && len > LONG_READ)
    return ERROR_INVAL;
  if (has_bug (BUG_LAST_BYTE_FAILS) &&
      request->offset + len == client->size && len > 0)
    return ERROR_IO;
  return ERROR_NONE;
}

static void
handle_read (struct client *client, const struct request *request)
{
  static uint8_t data[MAX_READ];
  const uint32_t error = judge_read (client, request);

  client->nr_bytes += request->len;
  if (has_bug (BUG_FEW_BYTES) && client->nr_bytes > FEW_BYTES)
    client_leave ();
  if (error != ERROR_NONE) {
    send_result (client, request, error);
    return;
  }
  if (has_bug (BUG_STRUCTURED_ALWAYS) ||
      (client->is_structured && !has_bug (BUG_READ_SIMPLE))) {
    send_structured_read (client, request);
    return;
  }
  fill_bytes (client, request->offset, data, request->len);
  send_simple (client, request, ERROR_NONE, data);
}

/* ---- WRITE and the others ---- */

static void
handle_write (struct client *client, const struct request *request)
{
  uint32_t error = ERROR_PERM;

  if (request->len > LARGE_WRITE - 1 && has_bug (BUG_LARGE_WRITE_CLOSES))
    client_leave ();
  if (request->len == 0 && has_bug (BUG_EMPTY_WRITE_CLOSES))
    client_leave ();
  if (!has_bug (BUG_WRITE_NOT_SKIPPED) &&
      !(has_bug (BUG_WRITE_FLAG_NOT_SKIPPED) && request->flags != 0))
    client_skip (client, request->len);
  if (has_bug (BUG_WRITE_SUCCEEDS))
    error = ERROR_NONE;
  if (has_bug (BUG_WRITE_IO_ERROR))
    error = ERROR_IO;
  if (!is_inside (client, request) && has_bug (BUG_WRITE_BEYOND_SUCCEEDS))
    error = ERROR_NONE;
  client->was_written |= has_bug (BUG_WRITE_CHANGES);
  send_result (client, request, error);
}

static void
handle_trim (struct client *client, const struct request *request)
{
  uint32_t error = ERROR_PERM;

  if (request->len == 0 && has_bug (BUG_EMPTY_TRIM_CLOSES))
    client_leave ();
  if (has_bug (request->type == CMD_TRIM ? BUG_TRIM_SUCCEEDS
                                         : BUG_ZEROES_SUCCEED))
    error = ERROR_NONE;
  send_result (client, request, error);
}

static void
handle_flush (struct client *client, const struct request *request)
{
  if (has_bug (BUG_FLUSH_CLOSES))
    client_leave ();
  send_result (client, request,
               has_bug (BUG_FLUSH_FAILS) ? ERROR_INVAL : ERROR_NONE);
}

static void
handle_cache (struct client *client, const struct request *request)
{
  const bool is_ok =
    is_inside (client, request) || has_bug (BUG_CACHE_BEYOND_TAKEN);

  send_result (client, request, is_ok ? ERROR_NONE : ERROR_INVAL);
  if (has_bug (BUG_CACHE_PAYLOAD))
    client_send (client, "data", 4);
}

static void
handle_disc (struct client *client, const struct request *request)
{
  if (has_bug (BUG_DISC_REPLIES))
    send_simple (client, request, ERROR_NONE, NULL);
  if (has_bug (BUG_DISC_IGNORED) && client->is_structured)
    return;
  end_tls (client);
  client_leave ();
}

static void
handle_unknown (struct client *client, const struct request *request)
{
  if (has_bug (BUG_UNKNOWN_COMMAND_CLOSES))
    client_leave ();
  if (has_bug (BUG_UNKNOWN_COMMAND_PAYLOAD))
    client_skip (client, request->len);
  send_result (client, request, ERROR_INVAL);
}

/* ---- Requests ---- */

static void
dispatch (struct client *client, const struct request *request)
{
  const uint16_t type = request->type;

  if (request->flags & ~known_flags (client, request) &&
      type != CMD_WRITE && type <= CMD_BLOCK_STATUS) {
    send_result (client, request, ERROR_INVAL);
    return;
  }
  switch (type) {
  case CMD_READ: handle_read (client, request); break;
  case CMD_WRITE: handle_write (client, request); break;
  case CMD_DISC: handle_disc (client, request); break;
  case CMD_FLUSH: handle_flush (client, request); break;
  case CMD_TRIM:
  case CMD_WRITE_ZEROES: handle_trim (client, request); break;
  case CMD_CACHE: handle_cache (client, request); break;
  case CMD_BLOCK_STATUS: handle_block_status (client, request); break;
  default: handle_unknown (client, request); break;
  }
}

/* Bugs that look at what waits behind a request.  Returns true if it is
 * not answered.
 */
static bool
look_ahead (struct client *client, const struct request *request)
{
  static uint8_t waiting[64 << 10];
  const ssize_t n = client_peek (client, waiting, sizeof waiting);
  ssize_t i;

  if (n <= 0)
    return false;
  if (has_bug (BUG_FEW_IN_FLIGHT) && request->type == CMD_READ &&
      n > FEW_REQUESTS * REQUEST_SIZE)
    client_leave ();
  for (i = 0; i + REQUEST_SIZE <= n; i += REQUEST_SIZE) {
    if (has_bug (BUG_DISC_DROPS) && get_be16 (waiting + i + 6) == CMD_DISC)
      client_leave ();
    if (has_bug (BUG_EQUAL_COOKIES_ONCE) &&
        get_be32 (waiting + i) == REQUEST_MAGIC &&
        get_be64 (waiting + i + 8) == request->cookie)
      return true;
  }
  return false;
}

static void
recv_request (struct client *client, struct request *ret_request)
{
  uint8_t wire[REQUEST_SIZE];

  client_recv (client, wire, sizeof wire);
  if (get_be32 (wire) != REQUEST_MAGIC && !has_bug (BUG_ANY_REQUEST_MAGIC))
    client_leave ();
  *ret_request = (struct request){
    .flags = get_be16 (wire + 4),
    .type = get_be16 (wire + 6),
    .cookie = get_be64 (wire + 8),
    .offset = get_be64 (wire + 16),
    .len = get_be32 (wire + 24),
  };
}

void
serve_requests (struct client *client)
{
  const bool is_serial = has_bug (BUG_SLOW_READER_BLOCKS);

  client->is_transmitting = true;
  if (has_bug (BUG_OVER_TLS_ANSWERS_PLAIN))
    client->ssl = NULL;
  while (1) {
    struct request request;

    recv_request (client, &request);
    if (has_bug (BUG_COOKIE_ONCE) && request.cookie == client->last_cookie)
      client_leave ();
    client->last_cookie = request.cookie;
    if (look_ahead (client, &request))
      continue;
    if (is_serial)
      lockf (client->lock_fd, F_LOCK, 0);
    dispatch (client, &request);
    if (is_serial)
      lockf (client->lock_fd, F_ULOCK, 0);
  }
}

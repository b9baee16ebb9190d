/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* NBD by hand. */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "harness/check.h"
#include "harness/nbd-client.h"

int
client_connect_to (const char *path, int timeout_s)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  const struct timeval timeout = { .tv_sec = timeout_s };
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  CHECK (fd >= 0);
  CHECK (strlen (path) < sizeof addr.sun_path);
  strcpy (addr.sun_path, path);
  CHECK_EQ (connect (fd, (const struct sockaddr *) &addr, sizeof addr), 0);
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  return fd;
}

void
client_send (int fd, const void *data, size_t len)
{
  const uint8_t *p = data;
  ssize_t n;

  while (len > 0) {
    n = send (fd, p, len, MSG_NOSIGNAL);
    CHECK (n > 0);
    p += n;
    len -= (size_t) n;
  }
}

void
client_recv (int fd, void *data, size_t len)
{
  uint8_t *p = data;
  ssize_t n;

  while (len > 0) {
    n = recv (fd, p, len, 0);
    CHECK (n > 0);
    p += n;
    len -= (size_t) n;
  }
}

void
client_expect_closed (int fd)
{
  uint8_t byte;
  const ssize_t n = recv (fd, &byte, 1, 0);

  CHECK (n == 0 || (n == -1 && errno == ECONNRESET));
  close (fd);
}

void
client_greet (int fd, uint32_t flags)
{
  uint8_t greeting[NBD_GREETING_SIZE], reply[NBD_CLIENT_FLAGS_SIZE];

  client_recv (fd, greeting, sizeof greeting);
  CHECK (get_be64 (greeting) == NBD_MAGIC);
  CHECK (get_be64 (greeting + 8) == NBD_OPTION_MAGIC);
  CHECK_EQ (get_be16 (greeting + 16),
            NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  put_be32 (reply, flags);
  client_send (fd, reply, sizeof reply);
}

void
client_send_option (int fd, uint32_t option, const void *data, size_t len)
{
  uint8_t header[NBD_OPTION_HEADER_SIZE];

  put_be64 (header, NBD_OPTION_MAGIC);
  put_be32 (header + 8, option);
  put_be32 (header + 12, (uint32_t) len);
  client_send (fd, header, sizeof header);
  if (data)
    client_send (fd, data, len);
}

void
client_send_info (int fd, uint32_t option, const char *name)
{
  uint8_t data[4 + 512 + 2 + 6];
  const size_t len = strlen (name);

  CHECK (len <= 512);
  put_be32 (data, (uint32_t) len);
  memcpy (data + 4, name, len);
  put_be16 (data + 4 + len, 3);
  put_be16 (data + 4 + len + 2, NBD_INFO_NAME);
  put_be16 (data + 4 + len + 4, NBD_INFO_DESCRIPTION);
  put_be16 (data + 4 + len + 6, NBD_INFO_BLOCK_SIZE);
  client_send_option (fd, option, data, 4 + len + 8);
}

uint32_t
client_recv_option (int fd, uint32_t option, uint8_t *data, size_t *ret_len)
{
  uint8_t header[NBD_OPTION_REPLY_SIZE];

  client_recv (fd, header, sizeof header);
  CHECK (get_be64 (header) == NBD_REPLY_MAGIC);
  CHECK_EQ (get_be32 (header + 8), option);
  *ret_len = get_be32 (header + 16);
  CHECK (*ret_len <= NBD_MAX_STRING);
  client_recv (fd, data, *ret_len);
  return get_be32 (header + 12);
}

uint32_t
client_end_option (int fd, uint32_t option)
{
  uint8_t data[NBD_MAX_STRING];
  uint32_t type;
  size_t len;

  do
    type = client_recv_option (fd, option, data, &len);
  while (type == NBD_REP_INFO || type == NBD_REP_SERVER);
  return type;
}

void
client_send_queries (int fd, uint32_t option, const char *name,
                     const char *const *queries)
{
  uint8_t data[1024], *p = data + 4;
  const size_t name_len = strlen (name);
  uint32_t count = 0;
  size_t len;

  CHECK (name_len <= 512);
  put_be32 (data, (uint32_t) name_len);
  memcpy (p, name, name_len);
  p += name_len + 4;
  for (; queries[count]; count++) {
    len = strlen (queries[count]);
    CHECK (p + 4 + len <= data + sizeof data);
    put_be32 (p, (uint32_t) len);
    memcpy (p + 4, queries[count], len);
    p += 4 + len;
  }
  put_be32 (data + 4 + name_len, count);
  client_send_option (fd, option, data, (size_t) (p - data));
}

struct client_contexts
client_recv_contexts (int fd, uint32_t option)
{
  struct client_contexts contexts = { .count = 0 };
  uint8_t data[NBD_MAX_STRING];
  size_t len;

  while ((contexts.type = client_recv_option (fd, option, data, &len)) ==
         NBD_REP_META_CONTEXT) {
    CHECK (contexts.count < sizeof contexts.list / sizeof contexts.list[0]);
    CHECK (len > 4 && len - 4 < sizeof contexts.list[0].name);
    contexts.list[contexts.count].id = get_be32 (data);
    memcpy (contexts.list[contexts.count].name, data + 4, len - 4);
    contexts.count++;
  }
  CHECK (contexts.type != NBD_REP_ACK || len == 0);
  return contexts;
}

void
client_greet_structured (int fd)
{
  client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  client_send_option (fd, NBD_OPT_STRUCTURED_REPLY, NULL, 0);
  CHECK_EQ (client_end_option (fd, NBD_OPT_STRUCTURED_REPLY), NBD_REP_ACK);
}

void
client_negotiate (int fd, const char *name, bool is_structured)
{
  if (is_structured)
    client_greet_structured (fd);
  else
    client_greet (fd, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
  client_send_info (fd, NBD_OPT_GO, name);
  CHECK_EQ (client_end_option (fd, NBD_OPT_GO), NBD_REP_ACK);
}

void
client_send_request (int fd, uint16_t flags, uint16_t type, uint64_t cookie,
                     uint64_t offset, uint32_t len)
{
  uint8_t request[NBD_REQUEST_SIZE];

  put_be32 (request, NBD_REQUEST_MAGIC);
  put_be16 (request + 4, flags);
  put_be16 (request + 6, type);
  put_be64 (request + 8, cookie);
  put_be64 (request + 16, offset);
  put_be32 (request + 24, len);
  client_send (fd, request, sizeof request);
}

uint32_t
client_recv_reply (int fd, uint64_t *ret_cookie)
{
  uint8_t reply[NBD_SIMPLE_REPLY_SIZE];

  client_recv (fd, reply, sizeof reply);
  CHECK (get_be32 (reply) == NBD_SIMPLE_REPLY_MAGIC);
  *ret_cookie = get_be64 (reply + 8);
  return get_be32 (reply + 4);
}

struct client_chunk
client_recv_chunk (int fd)
{
  uint8_t header[NBD_CHUNK_HEADER_SIZE];

  client_recv (fd, header, sizeof header);
  CHECK (get_be32 (header) == NBD_STRUCTURED_REPLY_MAGIC);
  return (struct client_chunk){
    .flags = get_be16 (header + 4),
    .type = get_be16 (header + 6),
    .cookie = get_be64 (header + 8),
    .len = get_be32 (header + 16),
  };
}

uint32_t
client_recv_error (int fd, const struct client_chunk *chunk,
                   uint64_t *ret_offset)
{
  const bool has_offset = chunk->type == NBD_REPLY_TYPE_ERROR_OFFSET;
  uint8_t payload[256];
  uint16_t message_len;

  CHECK (has_offset || chunk->type == NBD_REPLY_TYPE_ERROR);
  CHECK (chunk->len >= 6 && chunk->len <= sizeof payload);
  client_recv (fd, payload, chunk->len);
  message_len = get_be16 (payload + 4);
  CHECK_EQ (chunk->len, 6u + message_len + (has_offset ? 8 : 0));
  CHECK (message_len > 0);
  CHECK (get_be32 (payload) != 0);
  *ret_offset = has_offset ? get_be64 (payload + 6 + message_len)
                           : UINT64_MAX;
  return get_be32 (payload);
}

uint32_t
client_request (int fd, uint16_t flags, uint16_t type, uint64_t offset,
                uint32_t len)
{
  static uint64_t last_cookie = 1000;
  const uint64_t cookie =
    __atomic_add_fetch (&last_cookie, 1, __ATOMIC_RELAXED);
  uint64_t got;
  uint32_t error;

  client_send_request (fd, flags, type, cookie, offset, len);
  error = client_recv_reply (fd, &got);
  CHECK_EQ (got, cookie);
  return error;
}

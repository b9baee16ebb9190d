/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Clients that break the protocol, each in one way: they say what they
 * have to say, and go, or wait for the server to hang up.  What they are
 * told does not matter here, as long as the others notice nothing.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/bytes.h"
#include "lib/base/range.h"
#include "harness/check.h"
#include "harness/nbd-client.h"
#include "torture/storm.h"

enum {
  MAX_SPEECH = 64 << 10,
  NBD_OPT_HIGHEST = 12, /* Options above are unknown to everybody. */
};

/* What is to be said. */
struct speech {
  uint8_t bytes[MAX_SPEECH];
  size_t len;
  size_t pause; /* Where an option's reply is waited for; 0: nowhere. */
};

static void
add (struct speech *speech, const void *data, size_t len)
{
  CHECK (len <= sizeof speech->bytes - speech->len);
  memcpy (speech->bytes + speech->len, data, len);
  speech->len += len;
}

static void
add_noise (struct speech *speech, uint64_t *chance, size_t len)
{
  CHECK (len <= sizeof speech->bytes - speech->len);
  for (; len > 0; len--)
    speech->bytes[speech->len++] = (uint8_t) roll (chance, 256);
}

static void
add_flags (struct speech *speech, uint32_t flags)
{
  uint8_t bytes[NBD_CLIENT_FLAGS_SIZE];

  put_be32 (bytes, flags);
  add (speech, bytes, sizeof bytes);
}

/* The header of an option of LEN bytes. */
static void
add_option (struct speech *speech, uint64_t magic, uint32_t option,
            uint32_t len)
{
  uint8_t header[NBD_OPTION_HEADER_SIZE];

  put_be64 (header, magic);
  put_be32 (header + 8, option);
  put_be32 (header + 12, len);
  add (speech, header, sizeof header);
}

static void
add_go (struct speech *speech, const char *export)
{
  const uint32_t len = (uint32_t) strlen (export);
  uint8_t bytes[4];

  add_option (speech, NBD_OPTION_MAGIC, NBD_OPT_GO, 4 + len + 2);
  put_be32 (bytes, len);
  add (speech, bytes, 4);
  add (speech, export, len);
  add (speech, "\0\0", 2);
}

static void
add_request (struct speech *speech, uint32_t magic, uint16_t flags,
             uint16_t type, uint64_t offset, uint32_t len)
{
  uint8_t request[NBD_REQUEST_SIZE] = { 0 };

  put_be32 (request, magic);
  put_be16 (request + 4, flags);
  put_be16 (request + 6, type);
  put_be64 (request + 16, offset);
  put_be32 (request + 24, len);
  add (speech, request, sizeof request);
}

/* ---- Ways to break it ---- */

/* Of any size. */
static uint64_t
wild (uint64_t *chance)
{
  return roll (chance, UINT64_MAX) >> roll (chance, 64);
}

static void
noise (struct speech *speech, const struct storm *storm,
       uint64_t *chance)
{
  (void) storm;
  add_noise (speech, chance, 1 + roll (chance, 4096));
}

static void
unknown_flags (struct speech *speech, const struct storm *storm,
               uint64_t *chance)
{
  add_flags (speech, (uint32_t) roll (chance, UINT32_MAX));
  add_go (speech, storm->export);
}

static void
wrong_option_magic (struct speech *speech, const struct storm *storm,
                    uint64_t *chance)
{
  (void) storm;
  add_flags (speech, 3);
  add_option (speech, NBD_OPTION_MAGIC ^ UINT64_C (1) << roll (chance, 64),
              NBD_OPT_GO, 0);
}

static void
huge_option (struct speech *speech, const struct storm *storm,
             uint64_t *chance)
{
  (void) storm;
  add_flags (speech, 3);
  add_option (speech, NBD_OPTION_MAGIC,
              (uint32_t) roll (chance, NBD_OPT_HIGHEST),
              UINT32_MAX >> roll (chance, 12));
  add_noise (speech, chance, roll (chance, 32 << 10));
}

/* Any option, with data that means nothing; attached between them. */
static void
senseless_options (struct speech *speech, const struct storm *storm,
                   uint64_t *chance)
{
  uint64_t count = 1 + roll (chance, 20);

  add_flags (speech, 3);
  for (; count > 0; count--) {
    const uint32_t len = (uint32_t) roll (chance, 64);

    add_option (speech, NBD_OPTION_MAGIC,
                (uint32_t) roll (chance, NBD_OPT_HIGHEST), len);
    add_noise (speech, chance, len);
  }
  add_go (speech, storm->export);
  add_option (speech, NBD_OPTION_MAGIC, NBD_OPT_GO, 0);
}

/* A ClientHello that goes wrong, with or without STARTTLS. */
static void
broken_tls (struct speech *speech, const struct storm *storm,
            uint64_t *chance)
{
  static const uint8_t hello[] = "\26\3\1\2\0\1\0\1\374\3\3";

  (void) storm;
  if (roll (chance, 2)) {
    add_flags (speech, 3);
    add_option (speech, NBD_OPTION_MAGIC, NBD_OPT_STARTTLS, 0);
    speech->pause = roll (chance, 4) == 0 ? 0 : speech->len;
  }
  add (speech, hello, sizeof hello - 1);
  add_noise (speech, chance, roll (chance, 600));
}

/* Framed as they should be, but for the last. */
static void
senseless_requests (struct speech *speech, const struct storm *storm,
                    uint64_t *chance)
{
  uint64_t count = 1 + roll (chance, 50);

  add_flags (speech, 3);
  add_go (speech, storm->export);
  for (; count > 0; count--)
    add_request (speech, NBD_REQUEST_MAGIC,
                 roll (chance, 2) ? 0 : (uint16_t) roll (chance, 65536),
                 (uint16_t) roll (chance, 10), wild (chance),
                 (uint32_t) wild (chance));
  add_request (speech, (uint32_t) roll (chance, UINT32_MAX), 0, NBD_CMD_READ,
               0, 1);
}

static void
half_a_request (struct speech *speech, const struct storm *storm,
                uint64_t *chance)
{
  add_flags (speech, 3);
  add_go (speech, storm->export);
  add_request (speech, NBD_REQUEST_MAGIC, 0, NBD_CMD_READ, 0, 65536);
  add_request (speech, NBD_REQUEST_MAGIC, 0, NBD_CMD_WRITE, 0, 65536);
  add_noise (speech, chance, roll (chance, 1000));
  speech->len -= roll (chance, NBD_REQUEST_SIZE);
}

/* What a proper client says, with some bits flipped. */
static void
flipped_bits (struct speech *speech, const struct storm *storm,
              uint64_t *chance)
{
  uint64_t count = 1 + roll (chance, 8);
  uint64_t i;

  add_flags (speech, 3);
  add_option (speech, NBD_OPTION_MAGIC, NBD_OPT_STRUCTURED_REPLY, 0);
  add_option (speech, NBD_OPTION_MAGIC, NBD_OPT_LIST, 0);
  add_go (speech, storm->export);
  for (i = 0; i < 20; i++)
    add_request (speech, NBD_REQUEST_MAGIC, 0, NBD_CMD_READ,
                 roll (chance, storm->size - 4096), 4096);
  for (; count > 0; count--)
    speech->bytes[roll (chance, speech->len)] ^=
      (uint8_t) (1u << roll (chance, 8));
}

typedef void (*prepare_fn) (struct speech *speech, const struct storm *storm,
                            uint64_t *chance);

static const prepare_fn ways[] = {
  noise,
  unknown_flags,
  wrong_option_magic,
  huge_option,
  broken_tls,
  senseless_options,
  half_a_request,
  flipped_bits,
  senseless_requests,
};

/* All of LEN bytes, or what the server takes before it hangs up. */
static void
say (int fd, const uint8_t *bytes, size_t len)
{
  while (len > 0) {
    const ssize_t n = send (fd, bytes, len, MSG_NOSIGNAL);

    if (n == -1)
      return;
    bytes += n;
    len -= (size_t) n;
  }
}

static void
give_speech (int fd, const struct speech *speech)
{
  uint8_t answer[NBD_GREETING_SIZE + NBD_OPTION_REPLY_SIZE];

  say (fd, speech->bytes, speech->pause);
  if (speech->pause > 0)
    client_recv (fd, answer, sizeof answer);
  say (fd, speech->bytes + speech->pause, speech->len - speech->pause);
}

/* There is no more to come: the server must hang up. */
static void
wait_for_the_end (int fd)
{
  uint8_t buf[16 << 10];
  ssize_t n;

  shutdown (fd, SHUT_WR);
  do
    n = recv (fd, buf, sizeof buf, 0);
  while (n > 0);
  CHECK (n == 0 || errno == ECONNRESET);
}

void
storm_malformed_client (struct storm *storm, uint64_t *chance)
{
  struct speech speech = { .len = 0 };
  const int fd = client_connect_to (storm->path, STORM_TIMEOUT_S);

  ways[roll (chance, ARRAY_LEN (ways))](&speech, storm, chance);
  give_speech (fd, &speech);
  /* Few just go, or the server would have more of them than it may have
   * clients before it notices.
   */
  if (roll (chance, 8) != 0)
    wait_for_the_end (fd);
  close (fd);
}

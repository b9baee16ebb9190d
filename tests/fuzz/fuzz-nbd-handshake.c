/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The negotiation, from the client's first byte on: whatever it sends, the
 * server's answers are well-formed, each within its limits.  It decodes if
 * the client gets as far as transmission.
 */
#include <config.h>

#include <string.h>

#include "daemon/front/meta-context.h"
#include "daemon/front/nbd-protocol.h"
#include "fuzz/fuzz.h"
#include "fuzz/nbd-server.h"
#include "harness/fake-pager.h"
#include "lib/base/bytes.h"
#include "lib/base/range.h"

const char fuzz_target[] = "nbd-handshake";
bool fuzz_decoded;

/* What of the server's bytes comes next. */
enum phase {
  GREETING,
  REPLIES,
  SERVING, /* Not looked at any more. */
};

struct listener_state {
  enum phase phase;
  uint8_t buf[NBD_OPTION_REPLY_SIZE + NBD_MAX_STRING];
  size_t len;
};

static size_t
check_greeting (struct listener_state *state)
{
  if (state->len < NBD_GREETING_SIZE)
    return 0;
  MUST (get_be64 (state->buf) == NBD_MAGIC);
  state->phase = REPLIES;
  return NBD_GREETING_SIZE;
}

/* One of ours; its identifier stands for it once it is set. */
static void
check_context (uint32_t option, const uint8_t *data, size_t len)
{
  enum map_kind kind = 0;
  const char *name = context_name (0);

  MUST (option == NBD_OPT_LIST_META_CONTEXT ||
        option == NBD_OPT_SET_META_CONTEXT);
  MUST (len > 4);
  while (len - 4 != strlen (name) || memcmp (data + 4, name, len - 4) != 0) {
    MUST (++kind < NR_MAP_KINDS);
    name = context_name (kind);
  }
  if (option == NBD_OPT_SET_META_CONTEXT)
    MUST (get_be32 (data) == context_id (kind));
}

/* What comes with a reply. */
static void
check_data (uint32_t option, uint32_t type, const uint8_t *data, size_t len)
{
  if (type == NBD_REP_SERVER) {
    MUST (option == NBD_OPT_LIST);
    MUST (len >= 4 && get_be32 (data) <= len - 4);
  }
  else if (type == NBD_REP_INFO) {
    MUST (option == NBD_OPT_INFO || option == NBD_OPT_GO);
    MUST (len >= 2 && get_be16 (data) <= NBD_INFO_BLOCK_SIZE);
  }
  else if (type == NBD_REP_META_CONTEXT)
    check_context (option, data, len);
  else if (type == NBD_REP_ACK)
    MUST (len == 0);
  else
    MUST (type & NBD_REP_ERR (0));
}

/* A whole reply; of EXPORT_NAME, the size comes without a header. */
static size_t
check_reply (struct listener_state *state)
{
  const uint8_t *p = state->buf;
  uint32_t option, type, len;

  if (state->len >= 8 && get_be64 (p) != NBD_REPLY_MAGIC) {
    MUST (get_be64 (p) == FAKE_SIZE);
    state->phase = SERVING;
    return state->len;
  }
  if (state->len < NBD_OPTION_REPLY_SIZE)
    return 0;
  option = get_be32 (p + 8);
  type = get_be32 (p + 12);
  len = get_be32 (p + 16);
  MUST (len <= NBD_MAX_STRING);
  if (state->len < NBD_OPTION_REPLY_SIZE + len)
    return 0;
  check_data (option, type, p + NBD_OPTION_REPLY_SIZE, len);
  if (option == NBD_OPT_GO && type == NBD_REP_ACK)
    state->phase = SERVING;
  return NBD_OPTION_REPLY_SIZE + len;
}

static void
check_output (void *opaque, const uint8_t *data, size_t len)
{
  struct listener_state *state = opaque;
  size_t n, used;

  while (len > 0 && state->phase != SERVING) {
    n = MIN (len, sizeof state->buf - state->len);
    memcpy (state->buf + state->len, data, n);
    state->len += n;
    data += n;
    len -= n;
    do {
      used = state->phase == GREETING ? check_greeting (state)
                                      : check_reply (state);
      state->len -= used;
      memmove (state->buf, state->buf + used, state->len);
    } while (used > 0 && state->phase != SERVING);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  struct listener_state state = { .phase = GREETING };

  nbd_server_converse (data, size, check_output, &state);
  MUST (state.phase != GREETING || size == 0);
  fuzz_decoded |= state.phase == SERVING;
  return 0;
}

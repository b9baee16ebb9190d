/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The names of the protocol's numbers, for people. */
#include <config.h>

#include <stddef.h>
#include <stdio.h>

#include "lib/base/range.h"
#include "conform/protocol.h"

struct name {
  uint32_t value;
  const char *name;
};

#define NAME(prefix, value)                     \
  {                                             \
    prefix##_##value, "NBD_" #prefix "_" #value \
  }

static const struct name options[] = {
  NAME (OPT, EXPORT_NAME),
  NAME (OPT, ABORT),
  NAME (OPT, LIST),
  NAME (OPT, STARTTLS),
  NAME (OPT, INFO),
  NAME (OPT, GO),
  NAME (OPT, STRUCTURED_REPLY),
  NAME (OPT, LIST_META_CONTEXT),
  NAME (OPT, SET_META_CONTEXT),
};

static const struct name replies[] = {
  NAME (REP, ACK),
  NAME (REP, SERVER),
  NAME (REP, INFO),
  NAME (REP, META_CONTEXT),
  NAME (REP, ERR_UNSUP),
  NAME (REP, ERR_POLICY),
  NAME (REP, ERR_INVALID),
  NAME (REP, ERR_PLATFORM),
  NAME (REP, ERR_TLS_REQD),
  NAME (REP, ERR_UNKNOWN),
  NAME (REP, ERR_SHUTDOWN),
  NAME (REP, ERR_BLOCK_SIZE_REQD),
  NAME (REP, ERR_TOO_BIG),
};

static const struct name commands[] = {
  NAME (CMD, READ),
  NAME (CMD, WRITE),
  NAME (CMD, DISC),
  NAME (CMD, FLUSH),
  NAME (CMD, TRIM),
  NAME (CMD, CACHE),
  NAME (CMD, WRITE_ZEROES),
  NAME (CMD, BLOCK_STATUS),
  NAME (CMD, RESIZE),
};

static const struct name chunks[] = {
  { CHUNK_NONE, "NBD_REPLY_TYPE_NONE" },
  { CHUNK_OFFSET_DATA, "NBD_REPLY_TYPE_OFFSET_DATA" },
  { CHUNK_OFFSET_HOLE, "NBD_REPLY_TYPE_OFFSET_HOLE" },
  { CHUNK_BLOCK_STATUS, "NBD_REPLY_TYPE_BLOCK_STATUS" },
  { CHUNK_ERROR, "NBD_REPLY_TYPE_ERROR" },
  { CHUNK_ERROR_OFFSET, "NBD_REPLY_TYPE_ERROR_OFFSET" },
};

static const struct name errors[] = {
  { ERROR_NONE, "success" },
  { ERROR_PERM, "NBD_EPERM" },
  { ERROR_IO, "NBD_EIO" },
  { ERROR_NOMEM, "NBD_ENOMEM" },
  { ERROR_INVAL, "NBD_EINVAL" },
  { ERROR_NOSPC, "NBD_ENOSPC" },
  { ERROR_OVERFLOW, "NBD_EOVERFLOW" },
  { ERROR_NOTSUP, "NBD_ENOTSUP" },
  { ERROR_SHUTDOWN, "NBD_ESHUTDOWN" },
};

static const char *
find_name (const struct name *names, size_t count, uint32_t value,
           const char *kind)
{
  static char unnamed[8][40];
  static unsigned next;
  char *buf;

  for (size_t i = 0; i < count; i++)
    if (names[i].value == value)
      return names[i].name;
  buf = unnamed[next++ % ARRAY_LEN (unnamed)];
  snprintf (buf, sizeof unnamed[0], "%s 0x%x", kind, value);
  return buf;
}

const char *
option_name (uint32_t option)
{
  return find_name (options, ARRAY_LEN (options), option, "option");
}

const char *
reply_name (uint32_t type)
{
  return find_name (replies, ARRAY_LEN (replies), type, "reply type");
}

const char *
command_name (uint16_t type)
{
  return find_name (commands, ARRAY_LEN (commands), type, "command");
}

const char *
chunk_name (uint16_t type)
{
  return find_name (chunks, ARRAY_LEN (chunks), type, "chunk type");
}

const char *
error_name (uint32_t error)
{
  return find_name (errors, ARRAY_LEN (errors), error, "error");
}

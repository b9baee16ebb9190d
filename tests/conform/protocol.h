/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The numbers of the NBD protocol, as its proto.md gives them, and their
 * names.  Nothing here is shared with the server under test: a slip of the
 * pen in one of the two shows.  Everything on the wire is big-endian.
 *
 * ---- Negotiation ----
 * S: u64 NBDMAGIC, u64 IHAVEOPT, u16 handshake flags
 * C: u32 client flags
 * C: u64 IHAVEOPT, u32 option, u32 length, data
 * S: u64 reply magic, u32 option, u32 type, u32 length, data
 *
 * ---- Transmission ----
 * C: u32 magic, u16 flags, u16 type, u64 cookie, u64 offset, u32 length
 * S: u32 magic, u32 error, u64 cookie, data                   simple
 * S: u32 magic, u16 flags, u16 type, u64 cookie, u32 length, data
 *                                                     structured chunk
 */
#ifndef BP_CONFORM_PROTOCOL_H
#define BP_CONFORM_PROTOCOL_H

#include <stdint.h>

#define GREETING_MAGIC UINT64_C (0x4e42444d41474943)
#define OPTION_MAGIC UINT64_C (0x49484156454f5054)
#define OPTION_REPLY_MAGIC UINT64_C (0x0003e889045565a9)
#define REQUEST_MAGIC UINT32_C (0x25609513)
#define SIMPLE_REPLY_MAGIC UINT32_C (0x67446698)
#define CHUNK_MAGIC UINT32_C (0x668e33ef)

/* Bytes. */
enum {
  GREETING_SIZE = 18,
  OPTION_HEADER_SIZE = 16,
  OPTION_REPLY_SIZE = 20,
  EXPORT_NAME_REPLY_SIZE = 10,
  EXPORT_NAME_ZEROES = 124,
  REQUEST_SIZE = 28,
  SIMPLE_REPLY_SIZE = 16,
  CHUNK_HEADER_SIZE = 20,
  MAX_STRING = 4096,
  MAX_USUAL_STRING = 256, /* SHOULD be no longer. */
};

/* Handshake and client flags. */
enum {
  FLAG_FIXED_NEWSTYLE = 1 << 0,
  FLAG_NO_ZEROES = 1 << 1,
};

enum {
  OPT_EXPORT_NAME = 1,
  OPT_ABORT = 2,
  OPT_LIST = 3,
  OPT_PEEK_EXPORT = 4, /* Withdrawn. */
  OPT_STARTTLS = 5,
  OPT_INFO = 6,
  OPT_GO = 7,
  OPT_STRUCTURED_REPLY = 8,
  OPT_LIST_META_CONTEXT = 9,
  OPT_SET_META_CONTEXT = 10,
};

#define REP_ACK UINT32_C (1)
#define REP_SERVER UINT32_C (2)
#define REP_INFO UINT32_C (3)
#define REP_META_CONTEXT UINT32_C (4)
#define REP_ERROR_BIT (UINT32_C (1) << 31)
#define REP_ERR_UNSUP (REP_ERROR_BIT | 1)
#define REP_ERR_POLICY (REP_ERROR_BIT | 2)
#define REP_ERR_INVALID (REP_ERROR_BIT | 3)
#define REP_ERR_PLATFORM (REP_ERROR_BIT | 4)
#define REP_ERR_TLS_REQD (REP_ERROR_BIT | 5)
#define REP_ERR_UNKNOWN (REP_ERROR_BIT | 6)
#define REP_ERR_SHUTDOWN (REP_ERROR_BIT | 7)
#define REP_ERR_BLOCK_SIZE_REQD (REP_ERROR_BIT | 8)
#define REP_ERR_TOO_BIG (REP_ERROR_BIT | 9)

enum {
  INFO_EXPORT = 0,
  INFO_NAME = 1,
  INFO_DESCRIPTION = 2,
  INFO_BLOCK_SIZE = 3,
};

/* Transmission flags. */
enum {
  EXPORT_HAS_FLAGS = 1 << 0,
  EXPORT_READ_ONLY = 1 << 1,
  EXPORT_SEND_FLUSH = 1 << 2,
  EXPORT_SEND_FUA = 1 << 3,
  EXPORT_ROTATIONAL = 1 << 4,
  EXPORT_SEND_TRIM = 1 << 5,
  EXPORT_SEND_WRITE_ZEROES = 1 << 6,
  EXPORT_SEND_DF = 1 << 7,
  EXPORT_CAN_MULTI_CONN = 1 << 8,
  EXPORT_SEND_RESIZE = 1 << 9,
  EXPORT_SEND_CACHE = 1 << 10,
  EXPORT_SEND_FAST_ZERO = 1 << 11,
};

enum {
  CMD_READ = 0,
  CMD_WRITE = 1,
  CMD_DISC = 2,
  CMD_FLUSH = 3,
  CMD_TRIM = 4,
  CMD_CACHE = 5,
  CMD_WRITE_ZEROES = 6,
  CMD_BLOCK_STATUS = 7,
  CMD_RESIZE = 8, /* Experimental. */
};

enum {
  CMD_FLAG_FUA = 1 << 0,
  CMD_FLAG_NO_HOLE = 1 << 1,
  CMD_FLAG_DF = 1 << 2,
  CMD_FLAG_REQ_ONE = 1 << 3,
  CMD_FLAG_FAST_ZERO = 1 << 4,
  CMD_FLAG_UNKNOWN = 1 << 15, /* That no text defines. */
};

enum {
  CHUNK_FLAG_DONE = 1 << 0,
};

enum {
  CHUNK_NONE = 0,
  CHUNK_OFFSET_DATA = 1,
  CHUNK_OFFSET_HOLE = 2,
  CHUNK_BLOCK_STATUS = 5,
  CHUNK_ERROR_BIT = 1 << 15,
  CHUNK_ERROR = CHUNK_ERROR_BIT | 1,
  CHUNK_ERROR_OFFSET = CHUNK_ERROR_BIT | 2,
};

/* Of base:allocation. */
enum {
  STATE_HOLE = 1 << 0,
  STATE_ZERO = 1 << 1,
};

enum {
  ERROR_NONE = 0,
  ERROR_PERM = 1,
  ERROR_IO = 5,
  ERROR_NOMEM = 12,
  ERROR_INVAL = 22,
  ERROR_NOSPC = 28,
  ERROR_OVERFLOW = 75,
  ERROR_NOTSUP = 95,
  ERROR_SHUTDOWN = 108,
};

/* "NBD_OPT_GO", or "option 4711".  Good until the eighth call after. */
const char *option_name (uint32_t option);
const char *reply_name (uint32_t type);
const char *command_name (uint16_t type);
const char *chunk_name (uint16_t type);
const char *error_name (uint32_t error);

#endif /* BP_CONFORM_PROTOCOL_H */

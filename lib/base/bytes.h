/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Little-endian integers in byte buffers of any alignment.  Every
 * format of the project is little-endian; the NBD protocol alone is
 * big-endian.
 */
#ifndef BP_BYTES_H
#define BP_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t
get_le32 (const uint8_t *p)
{
  uint32_t v;

  memcpy (&v, p, sizeof v);
  return le32toh (v);
}

static inline uint64_t
get_le64 (const uint8_t *p)
{
  uint64_t v;

  memcpy (&v, p, sizeof v);
  return le64toh (v);
}

static inline void
put_le32 (uint8_t *p, uint32_t v)
{
  v = htole32 (v);
  memcpy (p, &v, sizeof v);
}

static inline void
put_le64 (uint8_t *p, uint64_t v)
{
  v = htole64 (v);
  memcpy (p, &v, sizeof v);
}

static inline uint16_t
get_be16 (const uint8_t *p)
{
  uint16_t v;

  memcpy (&v, p, sizeof v);
  return be16toh (v);
}

static inline uint32_t
get_be32 (const uint8_t *p)
{
  uint32_t v;

  memcpy (&v, p, sizeof v);
  return be32toh (v);
}

static inline uint64_t
get_be64 (const uint8_t *p)
{
  uint64_t v;

  memcpy (&v, p, sizeof v);
  return be64toh (v);
}

static inline void
put_be16 (uint8_t *p, uint16_t v)
{
  v = htobe16 (v);
  memcpy (p, &v, sizeof v);
}

static inline void
put_be32 (uint8_t *p, uint32_t v)
{
  v = htobe32 (v);
  memcpy (p, &v, sizeof v);
}

static inline void
put_be64 (uint8_t *p, uint64_t v)
{
  v = htobe64 (v);
  memcpy (p, &v, sizeof v);
}

/* True if all LEN bytes at P are zero. */
static inline int
bytes_are_zero (const void *p, size_t len)
{
  const uint8_t *b = p;

  if (len == 0)
    return 1;
  return b[0] == 0 && memcmp (b, b + 1, len - 1) == 0;
}

#endif /* BP_BYTES_H */

/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Names, and the tag: the small JSON file that names an image
 * (blobpager-store(5)).
 *
 * Threads: pure functions.
 */
#ifndef BP_TAG_H
#define BP_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/merkle.h"

enum {
  BP_NAME_SIZE = 130,         /* Longest name of a tag or profile, with its
                         leading dot and NUL. */
  BP_TAG_MAX_SIZE = 64 << 10, /* Bytes of the JSON. */
};

/* [A-Za-z0-9][A-Za-z0-9._:-]{0,127}, not "session", not 64 hex digits. */
bool bp_is_tag_name (const char *name);

/* \.?[A-Za-z0-9][A-Za-z0-9._:-]{0,127} */
bool bp_is_profile_name (const char *name);

/* A tag.  Every string is owned by the struct, in place. */
struct bp_tag {
  char name[BP_NAME_SIZE];
  struct bp_root root; /* The image index. */
  uint64_t size;       /* Bytes of the disk. */
  char created[32];    /* RFC 3339, UTC. */
  char source[1024];   /* What was imported, for people; may be cut. */
  uint64_t segments;   /* Entries of the index. */
  uint64_t bytes;      /* Bytes that the index places. */
  uint64_t bytes_new;  /* Of these, bytes no earlier import had. */
  uint64_t stored_new; /* Bytes that the import added to the store. */
};

/* TAG as one line of JSON (with the name).  The caller frees *ret_text.
 * Returns 0 or -ENOMEM.
 */
int bp_tag_encode (const struct bp_tag *tag, char **ret_text,
                   struct bp_error *err);

/* Decode LEN bytes.  NAME (may be NULL) is the name it was found under
 * and must be the one it says.  Returns 0 or -EPROTO.
 */
int bp_tag_decode (const char *text, size_t len, const char *name,
                   struct bp_tag *ret_tag, struct bp_error *err);

#endif /* BP_TAG_H */

/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The rules of structured replies, one function each, over a reply that is
 * complete.  A rule that is broken fails the check, and says where.
 */
#ifndef BP_CONFORM_CHUNKS_H
#define BP_CONFORM_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

struct chunk;
struct pending;

bool chunk_is_error (const struct chunk *chunk);
bool chunk_is_content (const struct chunk *chunk);

/* Of an error chunk; fails if it is too short to have one. */
uint32_t chunk_error (const struct chunk *chunk);

/* The part of the export that a content chunk describes; fails if it is
 * too short to say.  DATA is NULL for a hole.
 */
struct content {
  uint64_t offset;
  uint64_t len;
  const uint8_t *data;
};
struct content chunk_content (const struct chunk *chunk);

/* A READ's bytes, put together; fails unless they are all there. */
const uint8_t *chunks_assemble (const struct pending *pending);

void rule_no_simple_reply (const struct pending *pending);
void rule_cover_request (const struct pending *pending);
void rule_no_overlap (const struct pending *pending);
void rule_within_request (const struct pending *pending);
void rule_content_not_empty (const struct pending *pending);
void rule_known_flags (const struct pending *pending);
void rule_known_types (const struct pending *pending);
void rule_none_is_final_and_empty (const struct pending *pending);
void rule_hole_length (const struct pending *pending);
void rule_whole_sectors (const struct pending *pending);
void rule_one_content_chunk (const struct pending *pending);

/* Of replies that are errors. */
void rule_error_not_zero (const struct pending *pending);
void rule_error_message (const struct pending *pending);
void rule_error_offset (const struct pending *pending);

#endif /* BP_CONFORM_CHUNKS_H */

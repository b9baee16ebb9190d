/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* A tag as JSON, for the output of commands. */
#ifndef BP_TAG_JSON_H
#define BP_TAG_JSON_H

#include <json-c/json.h>

#include "lib/tag.h"

/* The members of the tag's file; the caller owns the object. */
struct json_object *tag_to_json (const struct bp_tag *tag);

#endif /* BP_TAG_JSON_H */

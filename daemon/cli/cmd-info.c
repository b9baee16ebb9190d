/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* blobpager info TAG|ROOT: what is known of an image or a blob.
 *
 * For an image also the URI that a VM's configuration should have: by
 * TAG@ROOT, so that a reconnect never finds the bytes of another import.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/tag-json.h"
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/base/size.h"

#define DEFAULT_SOCKET "/run/blobpager/nbd.sock"

static const char *store_path;
static const char *socket_path = DEFAULT_SOCKET;
static bool json;

/* PATH as it stands in the query of a URI: all but plain characters as
 * %XX.  The caller frees it.
 */
static char *
escape_query (const char *path)
{
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789-._~/";
  char *out = malloc (3 * strlen (path) + 1), *p = out;

  if (out == NULL)
    abort ();
  for (; *path; path++)
    p += strchr (plain, *path) ? sprintf (p, "%c", *path)
                               : sprintf (p, "%%%02X", (uint8_t) *path);
  *p = '\0';
  return out;
}

/* The caller frees it.  TAG NULL: an image without a name. */
static char *
make_uri (const char *tag, const struct bp_root *root)
{
  CLEANUP_FREE char *path = escape_query (socket_path);
  char hex[BP_ROOT_HEX_SIZE], *uri;

  if (asprintf (&uri, "nbd+unix:///%s%s%s?socket=%s", tag ? tag : "",
                tag ? "@" : "", bp_root_format (root, hex), path) < 0)
    abort ();
  return uri;
}

static void
print_bytes (const char *what, uint64_t bytes)
{
  char text[32];

  printf ("%-10s%s (%" PRIu64 " bytes)\n", what,
          bp_size_format (bytes, text, sizeof text), bytes);
}

/* ---- An image ---- */

static void
print_tag (const struct bp_tag *tag, const char *uri)
{
  char hex[BP_ROOT_HEX_SIZE];

  printf ("image:    %s\n", tag->name);
  printf ("root:     %s\n", bp_root_format (&tag->root, hex));
  print_bytes ("size:", tag->size);
  printf ("imported: %s\n", tag->created);
  printf ("from:     %s\n", tag->source);
  printf ("segments: %" PRIu64 "\n", tag->segments);
  print_bytes ("data:", tag->bytes);
  print_bytes ("new:", tag->bytes_new);
  print_bytes ("stored:", tag->stored_new);
  printf ("uri:      %s\n", uri);
}

static void
print_tag_json (const struct bp_tag *tag, const char *uri)
{
  CLEANUP_JSON struct json_object *obj = tag_to_json (tag);

  bp_json_add_string (obj, "uri", uri);
  cli_print_json (obj);
}

static int
info_of_tag (struct bp_store *store, const char *name)
{
  CLEANUP_FREE char *uri = NULL;
  struct bp_index index;
  struct bp_error err;
  struct bp_tag tag;
  int r = bp_store_get_tag (store, name, &tag, &err);

  if (r == 0)
    r = bp_store_read_index (store, &tag.root, &index, &err);
  if (r == 0 && index.image_size != tag.size)
    r = bp_error_set (&err, -EPROTO, "tag '%s': size: not that of its index",
                      name);
  if (r < 0)
    return cli_fail (&err);
  uri = make_uri (tag.name, &tag.root);
  if (json)
    print_tag_json (&tag, uri);
  else
    print_tag (&tag, uri);
  return CLI_DONE;
}

/* ---- A root ---- */

/* The names of the images that are ROOT, as a JSON array. */
static struct json_object *
tags_of (struct bp_store *store, const struct bp_root *root)
{
  struct json_object *array = json_object_new_array ();
  CLEANUP_FREE struct bp_tag *tags = NULL;
  size_t count;

  if (bp_store_list_tags (store, &tags, &count, NULL, NULL) < 0)
    return array;
  for (size_t i = 0; i < count; i++)
    if (bp_root_equal (&tags[i].root, root))
      json_object_array_add (array, json_object_new_string (tags[i].name));
  return array;
}

/* What the blob is, as JSON; text is printed from it. */
static struct json_object *
describe (struct bp_store *store, const struct bp_blob_info *info)
{
  struct json_object *obj = json_object_new_object ();
  char hex[BP_ROOT_HEX_SIZE];
  struct bp_index index;

  bp_json_add_string (obj, "root", bp_root_format (&info->root, hex));
  bp_json_add_u64 (obj, "blob_size", info->size);
  bp_json_add_u64 (obj, "stored_size", info->stored_size);
  bp_json_add_string (obj, "codec",
                      info->codec == BP_CODEC_ZSTD ? "zstd" : "raw");
  bp_json_add_u64 (obj, "object_id", info->object_id);
  if (bp_store_read_index (store, &info->root, &index, NULL) == 0) {
    CLEANUP_FREE char *uri = make_uri (NULL, &info->root);

    bp_json_add_u64 (obj, "size", index.image_size);
    bp_json_add_u64 (obj, "segments", index.nr_entries);
    json_object_object_add (obj, "images", tags_of (store, &info->root));
    bp_json_add_string (obj, "uri", uri);
  }
  return obj;
}

static void
print_description (struct json_object *obj)
{
  struct json_object *images;
  uint64_t n;

  printf ("root:     %s\n", bp_json_get_string (obj, "root"));
  if (bp_json_get_u64 (obj, "blob_size", &n))
    print_bytes ("blob:", n);
  if (bp_json_get_u64 (obj, "stored_size", &n))
    print_bytes ("stored:", n);
  printf ("codec:    %s\n", bp_json_get_string (obj, "codec"));
  if (!json_object_object_get_ex (obj, "images", &images))
    return;
  for (size_t i = 0; i < json_object_array_length (images); i++)
    printf ("image:    %s\n", json_object_get_string (
                                json_object_array_get_idx (images, i)));
  if (bp_json_get_u64 (obj, "size", &n))
    print_bytes ("size:", n);
  if (bp_json_get_u64 (obj, "segments", &n))
    printf ("segments: %" PRIu64 "\n", n);
  printf ("uri:      %s\n", bp_json_get_string (obj, "uri"));
}

static int
info_of_root (struct bp_store *store, const struct bp_root *root)
{
  CLEANUP_JSON struct json_object *obj = NULL;
  struct bp_blob *blob;
  struct bp_error err;

  if (bp_store_open_blob (store, root, &blob, &err) < 0)
    return cli_fail (&err);
  obj = describe (store, bp_blob_get_info (blob));
  bp_blob_close (blob);
  if (json)
    cli_print_json (obj);
  else
    print_description (obj);
  return CLI_DONE;
}

static int
run (int argc, char **argv)
{
  CLEANUP_STORE struct bp_store *store = NULL;
  struct bp_root root;
  bool is_root;

  cli_want_operands ("info", argc, 1, 1);
  is_root = bp_root_parse (argv[0], &root) == 0;
  if (!is_root && !bp_is_tag_name (argv[0]))
    cli_usage ("info", "'%.130s': neither a tag's name nor a root", argv[0]);
  store = cli_open_store ("info", store_path, BP_STORE_READ);
  if (store == NULL)
    return CLI_FAILED;
  return is_root ? info_of_root (store, &root)
                 : info_of_tag (store, argv[0]);
}

static const struct cli_option options[] = {
  CLI_OPTION_STORE (&store_path),
  { .name = "socket",
    .value = "PATH",
    .help = "where blobpagerd listens, for the URI (" DEFAULT_SOCKET ")",
    .string = &socket_path },
  CLI_OPTION_JSON (&json),
  { 0 },
};

const struct command cmd_info = {
  .name = "info",
  .synopsis = "--store=DIR [--socket=PATH] [--json] TAG|ROOT",
  .summary = "tell about an image or a blob, and the URI for a VM",
  .options = options,
  .run = run,
};

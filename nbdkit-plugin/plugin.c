/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* nbdkit-blobpager-plugin: the callbacks, in the order of a life; the
 * table that names them stands last.
 *
 *   export         handle                      bytes
 *   session        lane with nothing yet       unverified, by key
 *   session/ID     lane of session ID          unverified, by key
 *   TAG, ROOT      direct export of an image   verified here
 *   blob/ROOT      direct export of a blob     verified here
 *
 * Threads: parallel; everything behind the handles says its own rules.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "lib/base/cleanup.h"
#include "lib/session-proto.h"
#include "lib/store.h"
#include "nbdkit-plugin/direct-export.h"
#include "nbdkit-plugin/lane.h"
#include "nbdkit-plugin/report.h"
#include "nbdkit-plugin/session.h"
#include "nbdkit-plugin/window-cache.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

/* Constant once nbdkit serves. */
static char *store_path; /* store=, absolute. */
static struct session_config config = { .profiles_writable = true };
static struct window_cache *cache;

/* One of the two is NULL. */
struct handle {
  struct lane *lane;
  struct direct_export *direct;
};

/* ---- Configuration ---- */

static void
bpplug_unload (void)
{
  window_cache_free (cache);
  if (config.store)
    bp_store_close (config.store);
  free (store_path);
}

static void
bpplug_dump_plugin (void)
{
  printf ("blobpager_session_version=%d\n", BP_SESSION_VERSION);
  printf ("blobpager_session_max_unanswered=%d\n", BP_MAX_UNANSWERED);
  printf ("blobpager_session_max_batch=%d\n", BP_MAX_BATCH);
  printf ("blobpager_sessions=%d\n", SESSION_MAX);
}

static int
set_profiles (const char *value)
{
  if (strcmp (value, "rw") != 0 && strcmp (value, "ro") != 0) {
    nbdkit_error ("profiles=%s: must be rw or ro", value);
    return -1;
  }
  config.profiles_writable = strcmp (value, "rw") == 0;
  return 0;
}

static int
bpplug_config (const char *key, const char *value)
{
  if (strcmp (key, "store") == 0) {
    free (store_path);
    store_path = nbdkit_realpath (value);
    return store_path ? 0 : -1;
  }
  if (strcmp (key, "profiles") == 0)
    return set_profiles (value);
  nbdkit_error ("unknown parameter '%s'", key);
  return -1;
}

static int
bpplug_config_complete (void)
{
  if (store_path)
    return 0;
  nbdkit_error ("store=DIR is needed: the directory that "
                "blobpager import fills");
  return -1;
}

#define bpplug_config_help                                             \
  "store=DIR         (required) The directory that holds the blobs.\n" \
  "profiles=rw|ro    Whether profiles may be written (default rw)."

static int
bpplug_get_ready (void)
{
  struct bp_error err;

  if (bp_store_open (&config.store, store_path,
                     config.profiles_writable ? BP_STORE_WRITE
                                              : BP_STORE_READ,
                     &err) < 0)
    return report_error (&err);
  if (window_cache_new (&cache) < 0) {
    nbdkit_error ("malloc: %m");
    return -1;
  }
  return 0;
}

/* ---- Exports ---- */

enum {
  DESCRIPTION_SIZE = 16 + BP_ROOT_HEX_SIZE
};

static void
describe_root (const char *kind, const struct bp_root *root,
               char out[DESCRIPTION_SIZE])
{
  char hex[BP_ROOT_HEX_SIZE];

  snprintf (out, DESCRIPTION_SIZE, "%s %s", kind,
            bp_root_format (root, hex));
}

static int
bpplug_list_exports (int readonly, int is_tls,
                     struct nbdkit_exports *exports)
{
  CLEANUP_FREE struct bp_tag *tags = NULL;
  struct bp_error err;
  size_t count;

  (void) readonly;
  (void) is_tls;
  if (bp_store_list_tags (config.store, &tags, &count, NULL, &err) < 0)
    return report_error (&err);
  for (size_t i = 0; i < count; i++) {
    char text[DESCRIPTION_SIZE];

    describe_root ("image", &tags[i].root, text);
    if (nbdkit_add_export (exports, tags[i].name, text) == -1)
      return -1;
  }
  return 0;
}

/* The only image; a store with none or several has no default. */
static const char *
bpplug_default_export (int readonly, int is_tls)
{
  struct bp_tag tag;

  (void) readonly;
  (void) is_tls;
  if (direct_find_only_tag (config.store, &tag, NULL) < 0)
    return NULL;
  return nbdkit_strdup_intern (tag.name);
}

/* `session`, or `session/ID` with the id in *RET_ID. */
static bool
is_session_name (const char *name, const char **ret_id)
{
  static const char word[] = "session";

  if (strncmp (name, word, sizeof word - 1) != 0)
    return false;
  name += sizeof word - 1;
  *ret_id = *name == '/' ? name + 1 : NULL;
  return *name == '\0' || *name == '/';
}

static int
open_lane (struct handle *handle, int readonly, const char *id,
           struct bp_error *err)
{
  if (readonly)
    return bp_error_set (err, -EPERM,
                         "export 'session': must be writable, but nbdkit -r "
                         "or a filter makes it read-only");
  return lane_new (&handle->lane, &config, id, err);
}

static void *
bpplug_open (int readonly)
{
  CLEANUP_FREE struct handle *handle = calloc (1, sizeof *handle);
  const char *name = nbdkit_export_name (), *id;
  struct bp_error err;
  int r;

  if (handle == NULL || name == NULL) {
    nbdkit_error ("open: %m");
    return NULL;
  }
  if (is_session_name (name, &id))
    r = open_lane (handle, readonly, id, &err);
  else
    r = direct_export_open (&handle->direct, config.store, cache, name,
                            &err);
  if (r < 0) {
    report_error (&err);
    return NULL;
  }
  return steal_ptr (&handle);
}

static void
bpplug_close (void *opaque)
{
  struct handle *handle = opaque;

  lane_free (handle->lane);
  direct_export_close (handle->direct);
  free (handle);
}

static const char *
bpplug_export_description (void *opaque)
{
  const struct handle *handle = opaque;
  char text[DESCRIPTION_SIZE];

  if (handle->lane)
    return "blobpager session, for blobpagerd";
  describe_root (direct_export_is_image (handle->direct) ? "image" : "blob",
                 direct_export_root (handle->direct), text);
  return nbdkit_strdup_intern (text);
}

static int64_t
bpplug_get_size (void *opaque)
{
  const struct handle *handle = opaque;

  return handle->lane ? BP_SESSION_SIZE
                      : (int64_t) direct_export_size (handle->direct);
}

static int
bpplug_block_size (void *opaque, uint32_t *minimum, uint32_t *preferred,
                   uint32_t *maximum)
{
  (void) opaque;
  *minimum = 1;
  *preferred = 4096;
  *maximum = BP_AREA_SIZE;
  return 0;
}

static int
bpplug_can_write (void *opaque)
{
  const struct handle *handle = opaque;

  return handle->lane != NULL;
}

static int
bpplug_can_flush (void *opaque)
{
  (void) opaque;
  return 0;
}

static int
bpplug_can_trim (void *opaque)
{
  (void) opaque;
  return 0;
}

/* False would make nbdkit write zeros into a session; so it is told to
 * ask, and bpplug_zero refuses.
 */
static int
bpplug_can_zero (void *opaque)
{
  (void) opaque;
  return 1;
}

/* The connections of a session are not interchangeable. */
static int
bpplug_can_multi_conn (void *opaque)
{
  const struct handle *handle = opaque;

  return handle->direct != NULL;
}

static int
bpplug_can_extents (void *opaque)
{
  const struct handle *handle = opaque;

  return handle->direct && direct_export_is_image (handle->direct);
}

static int
bpplug_can_cache (void *opaque)
{
  const struct handle *handle = opaque;

  if (handle->lane)
    return NBDKIT_CACHE_NONE;
  return direct_export_is_image (handle->direct) ? NBDKIT_CACHE_NATIVE
                                                 : NBDKIT_CACHE_EMULATE;
}

/* ---- Requests ---- */

static int
bpplug_pread (void *opaque, void *buf, uint32_t count, uint64_t offset,
              uint32_t flags)
{
  struct handle *handle = opaque;
  struct bp_error err;
  int r;

  (void) flags;
  r = handle->lane
        ? lane_pread (handle->lane, buf, count, offset, &err)
        : direct_export_read (handle->direct, buf, count, offset, &err);
  return r < 0 ? report_error (&err) : 0;
}

/* nbdkit refuses writes of direct exports itself, with EPERM. */
static int
bpplug_pwrite (void *opaque, const void *buf, uint32_t count,
               uint64_t offset, uint32_t flags)
{
  struct handle *handle = opaque;
  struct bp_error err;

  (void) flags;
  if (lane_pwrite (handle->lane, buf, count, offset, &err) < 0)
    return report_error (&err);
  return 0;
}

static int
bpplug_zero (void *opaque, uint32_t count, uint64_t offset, uint32_t flags)
{
  struct bp_error err;

  (void) opaque;
  (void) flags;
  bp_error_set (&err, -EINVAL,
                "session: zeroing %u bytes at %" PRIu64 " is no request",
                count, offset);
  return report_error (&err);
}

static int
add_extent (void *opaque, uint64_t offset, uint64_t len, bool is_hole)
{
  return nbdkit_add_extent (
    opaque, offset, len,
    is_hole ? NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO : 0);
}

static int
bpplug_extents (void *opaque, uint32_t count, uint64_t offset,
                uint32_t flags, struct nbdkit_extents *extents)
{
  struct handle *handle = opaque;
  struct bp_error err;

  if (direct_export_extents (handle->direct, count, offset,
                             (flags & NBDKIT_FLAG_REQ_ONE) != 0, add_extent,
                             extents, &err) < 0)
    return report_error (&err);
  return 0;
}

static int
bpplug_cache (void *opaque, uint32_t count, uint64_t offset, uint32_t flags)
{
  struct handle *handle = opaque;
  struct bp_error err;

  (void) flags;
  if (direct_export_will_need (handle->direct, count, offset, &err) < 0)
    return report_error (&err);
  return 0;
}

static struct nbdkit_plugin plugin = {
  .name = "blobpager",
  .longname = "blobpager block driver",
  .version = PACKAGE_VERSION,
  .description = "Serve images and blobs of a blobpager store, and be the "
                 "block driver of blobpagerd(8).",
  .unload = bpplug_unload,
  .dump_plugin = bpplug_dump_plugin,
  .config = bpplug_config,
  .config_complete = bpplug_config_complete,
  .config_help = bpplug_config_help,
  .get_ready = bpplug_get_ready,
  .list_exports = bpplug_list_exports,
  .default_export = bpplug_default_export,
  .open = bpplug_open,
  .close = bpplug_close,
  .export_description = bpplug_export_description,
  .get_size = bpplug_get_size,
  .block_size = bpplug_block_size,
  .can_write = bpplug_can_write,
  .can_flush = bpplug_can_flush,
  .can_trim = bpplug_can_trim,
  .can_zero = bpplug_can_zero,
  .can_multi_conn = bpplug_can_multi_conn,
  .can_extents = bpplug_can_extents,
  .can_cache = bpplug_can_cache,
  .pread = bpplug_pread,
  .pwrite = bpplug_pwrite,
  .zero = bpplug_zero,
  .extents = bpplug_extents,
  .cache = bpplug_cache,
};

/* nbdkit's macro defines it without having declared it. */
struct nbdkit_plugin *plugin_init (void);

NBDKIT_REGISTER_PLUGIN (plugin)

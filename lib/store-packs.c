/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The packs of a store, and finding a root among them.
 *
 * The known packs are an immutable list that is replaced when packs/ is
 * read again; a lookup takes a reference and needs no lock after that:
 *
 *   store->list ──▶ pack_list ──▶ store_pack ──▶ bp_pack (descriptor)
 *                       ▲             ▲
 *                    lookup      blob (acquired)
 *
 * A lookup asks the pack that had the last root first, since the blobs of
 * an image lie together, and then the others.  A pack that was asked in
 * vain often enough gets a filter, made from one reading of its table: an
 * import into a store of many packs asks all of them for each new blob.
 *
 * A damaged pack is skipped and does not hide the others; only a root
 * that is found nowhere is answered with the damage, since the damaged
 * pack may have held it.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/io.h"
#include "lib/store-internal.h"

enum {
  MAX_OPEN_PACKS = 128, /* More only while blobs hold them. */
  VAIN_BEFORE_FILTER = 64,
};
#define RESCAN_NS NS_PER_SEC
#define RETRY_DAMAGED_NS NS_PER_SEC

/* ---- One pack ---- */

int
store_pack_new (struct store_pack **ret_pack, struct bp_store *store,
                int dirfd, const char *name)
{
  struct store_pack *pack = calloc (1, sizeof *pack);

  if (pack == NULL)
    return -ENOMEM;
  pack->refs = 1;
  pack->store = store;
  pack->dirfd = dirfd;
  pthread_mutex_init (&pack->lock, NULL);
  snprintf (pack->name, sizeof pack->name, "%s", name);
  *ret_pack = pack;
  return 0;
}

/* Called with pack->lock held, or by the last owner. */
static void
close_pack (struct store_pack *pack)
{
  if (pack->pack == NULL)
    return;
  bp_pack_close (pack->pack);
  pack->pack = NULL;
  atomic_fetch_sub (&pack->store->nr_open_packs, 1);
}

void
store_pack_unref (struct store_pack *pack)
{
  if (pack == NULL || atomic_fetch_sub (&pack->refs, 1) != 1)
    return;
  assert (pack->users == 0);
  close_pack (pack);
  bp_root_filter_free (pack->filter);
  pthread_mutex_destroy (&pack->lock);
  free (pack);
}

/* Called with pack->lock held. */
static int
open_pack (struct store_pack *pack, struct bp_error *err)
{
  struct bp_error why;
  int r;

  if (pack->damage.code != 0 &&
      now_ns () - pack->damaged_ns < RETRY_DAMAGED_NS)
    return bp_error_set (err, pack->damage.code, "%s", pack->damage.msg);
  r = bp_pack_open (&pack->pack, pack->dirfd, pack->name,
                    pack->store->pieces, &why);
  if (r < 0) {
    pack->damage = why;
    pack->damaged_ns = now_ns ();
    return bp_error_set (err, r, "%s", why.msg);
  }
  pack->damage.code = 0;
  atomic_fetch_add (&pack->store->nr_open_packs, 1);
  return 0;
}

/* Close packs that nobody uses while too many are open. */
static void
trim_open_packs (struct bp_store *store)
{
  struct pack_list *list = store_packs_get (store);

  for (size_t i = 0; i < list->count; i++) {
    if (atomic_load (&store->nr_open_packs) <= MAX_OPEN_PACKS)
      break;
    store_pack_close_idle (list->packs[i]);
  }
  pack_list_unref (list);
}

void
store_pack_close_idle (struct store_pack *pack)
{
  if (pthread_mutex_trylock (&pack->lock) != 0)
    return; /* Somebody is about to use it. */
  if (pack->users == 0)
    close_pack (pack);
  pthread_mutex_unlock (&pack->lock);
}

static int
acquire_locked (struct store_pack *pack, struct bp_error *err)
{
  LOCKED (&pack->lock);
  const int r = pack->pack ? 0 : open_pack (pack, err);

  if (r == 0)
    pack->users++;
  return r;
}

int
store_pack_acquire (struct store_pack *pack, struct bp_pack **ret_pack,
                    struct bp_error *err)
{
  const int r = acquire_locked (pack, err);

  if (r < 0)
    return r;
  if (atomic_load (&pack->store->nr_open_packs) > MAX_OPEN_PACKS)
    trim_open_packs (pack->store);
  *ret_pack = pack->pack; /* Stays while we are a user. */
  return 0;
}

void
store_pack_release (struct store_pack *pack)
{
  LOCKED (&pack->lock);

  assert (pack->users > 0);
  pack->users--;
}

static int
add_to_filter (void *opaque, const struct bp_pack_entry *entry, int code)
{
  (void) code;
  bp_root_filter_add (opaque, &entry->root);
  return 0;
}

/* Called with pack->lock held and the pack open.  Without memory, or with
 * a damaged table, there is no filter, and lookups say what is wrong.
 */
static void
make_filter (struct store_pack *pack)
{
  struct bp_root_filter *filter = NULL;

  if (bp_root_filter_new (&filter, bp_pack_count (pack->pack)) < 0)
    return;
  if (bp_pack_walk (pack->pack, add_to_filter, filter, NULL) < 0)
    bp_root_filter_free (filter);
  else
    pack->filter = filter;
}

static void
count_vain_lookup (struct store_pack *pack)
{
  LOCKED (&pack->lock);

  if (++pack->nr_vain == VAIN_BEFORE_FILTER)
    make_filter (pack);
}

static bool
may_have (struct store_pack *pack, const struct bp_root *root)
{
  LOCKED (&pack->lock);

  return pack->filter == NULL || bp_root_filter_may_have (pack->filter, root);
}

int
store_pack_find (struct store_pack *pack, const struct bp_root *root,
                 struct bp_pack_entry *ret_entry, struct bp_error *err)
{
  struct bp_pack *open;
  int r;

  if (!may_have (pack, root))
    return -ENOENT;
  r = store_pack_acquire (pack, &open, err);
  if (r < 0)
    return r;
  r = bp_pack_find (open, root, ret_entry, err);
  if (r == 0)
    return 0;
  if (r == -ENOENT)
    count_vain_lookup (pack);
  store_pack_release (pack);
  return r;
}

/* ---- Lists ---- */

static struct pack_list *
new_list (size_t max)
{
  struct pack_list *list =
    calloc (1, sizeof *list + max * sizeof list->packs[0]);

  if (list)
    list->refs = 1;
  return list;
}

void
pack_list_unref (struct pack_list *list)
{
  if (list == NULL || atomic_fetch_sub (&list->refs, 1) != 1)
    return;
  for (size_t i = 0; i < list->count; i++)
    store_pack_unref (list->packs[i]);
  free (list);
}

struct pack_list *
store_packs_get (struct bp_store *store)
{
  LOCKED (&store->lock);

  atomic_fetch_add (&store->list->refs, 1);
  return store->list;
}

/* The names of packs/ become a list. */
struct scan {
  struct bp_store *store;
  const struct pack_list *old;
  size_t old_at; /* Packs of old before this one are taken or gone. */
  struct pack_list *list;
  size_t max;
};

/* The pack NAME: the one that is known, or a new one. */
static int
pack_for_name (struct scan *scan, const char *name,
               struct store_pack **ret_pack)
{
  while (scan->old_at < scan->old->count) {
    struct store_pack *known = scan->old->packs[scan->old_at];
    const int order = strcmp (known->name, name);

    if (order > 0)
      break;
    scan->old_at++;
    if (order == 0) {
      atomic_fetch_add (&known->refs, 1);
      *ret_pack = known;
      return 0;
    }
  }
  return store_pack_new (ret_pack, scan->store, scan->store->packs_fd, name);
}

static int
scan_name (void *opaque, const char *name)
{
  struct scan *scan = opaque;
  char stem[STORE_FILE_NAME_SIZE];
  int r;

  if (!store_split_name (name, ".pack", stem))
    return 0;
  if (scan->list->count == scan->max) {
    struct pack_list *list =
      realloc (scan->list, sizeof *list +
                             2 * scan->max * sizeof list->packs[0]);

    if (list == NULL)
      return -ENOMEM;
    scan->list = list;
    scan->max *= 2;
  }
  r = pack_for_name (scan, name, &scan->list->packs[scan->list->count]);
  if (r == 0)
    scan->list->count++;
  return r;
}

/* When packs/ last changed; a moment that never was if it cannot be told.
 */
static struct timespec
packs_mtime (const struct bp_store *store)
{
  struct stat st;

  if (fstat (store->packs_fd, &st) == -1)
    return (struct timespec){ 0 };
  return st.st_mtim;
}

/* Called with store->lock held. */
static bool
is_rescan_due (const struct bp_store *store)
{
  const struct timespec mtime = packs_mtime (store);

  return mtime.tv_sec != store->packs_mtime.tv_sec ||
         mtime.tv_nsec != store->packs_mtime.tv_nsec ||
         now_ns () - store->scanned_ns >= RESCAN_NS;
}

/* Called with store->lock held. */
static int
rescan_locked (struct bp_store *store, struct bp_error *err)
{
  struct scan scan = { .store = store, .old = store->list, .max = 16 };
  const struct timespec mtime = packs_mtime (store);
  int r;

  scan.list = new_list (scan.max);
  if (scan.list == NULL)
    return bp_error_set (err, -ENOMEM, "store '%s': %m", store->path);
  r = store_each_name (store, "packs", scan_name, &scan, err);
  if (r < 0) {
    pack_list_unref (scan.list);
    return r == -ENOMEM ? bp_error_set (err, r, "store '%s': %m",
                                        store->path)
                        : r;
  }
  pack_list_unref (store->list);
  store->list = scan.list;
  store->scanned_ns = now_ns ();
  store->packs_mtime = mtime;
  return 0;
}

int
store_packs_rescan (struct bp_store *store, struct bp_error *err)
{
  LOCKED (&store->lock);

  return rescan_locked (store, err);
}

/* Read packs/ again if that is due.  Returns true if there is another
 * list than LIST now.
 */
static bool
rescan_if_due (struct bp_store *store, const struct pack_list *list)
{
  LOCKED (&store->lock);

  if (store->list == list && is_rescan_due (store))
    rescan_locked (store, NULL);
  return store->list != list;
}

int
store_packs_init (struct bp_store *store, struct bp_error *err)
{
  store->packs_fd = bp_openat_beneath (store->dirfd, "packs",
                                       O_RDONLY | O_DIRECTORY, 0);
  if (store->packs_fd < 0)
    return bp_error_set (err, store->packs_fd, "store '%s': open 'packs': %m",
                         store->path);
  store->list = new_list (0);
  if (store->list == NULL)
    return bp_error_set (err, -ENOMEM, "store '%s': %m", store->path);
  return store_packs_rescan (store, err);
}

void
store_packs_done (struct bp_store *store)
{
  pack_list_unref (store->list);
  cleanup_close (&store->packs_fd);
}

/* ---- Finding ---- */

/* Ask pack number I of LIST.  Returns true if it has ROOT; otherwise
 * damage is noted in *CODE (with ERR) unless there is some already.
 */
static bool
ask_pack (struct pack_list *list, size_t i, const struct bp_root *root,
          struct bp_pack_entry *ret_entry, int *code, struct bp_error *err)
{
  struct bp_error why = { 0 };
  const int r = store_pack_find (list->packs[i], root, ret_entry, &why);

  if (r < 0 && r != -ENOENT && *code == -ENOENT)
    *code = bp_error_set (err, r, "%s", why.msg);
  return r == 0;
}

/* The number of the pack of LIST that has ROOT, acquired. */
static int
find_in_list (struct pack_list *list, const struct bp_root *root,
              size_t *ret_i, struct bp_pack_entry *ret_entry,
              struct bp_error *err)
{
  const size_t first =
    atomic_load_explicit (&list->last_hit, memory_order_relaxed);
  int code = -ENOENT;

  for (size_t n = 0; n < list->count; n++) {
    /* The first, then the others from the start. */
    const size_t i = n == 0 ? first : n <= first ? n - 1
                                                 : n;

    if (ask_pack (list, i, root, ret_entry, &code, err)) {
      atomic_store_explicit (&list->last_hit, i, memory_order_relaxed);
      *ret_i = i;
      return 0;
    }
  }
  return code;
}

int
store_packs_find (struct bp_store *store, const struct bp_root *root,
                  bool rescan, struct store_pack **ret_pack,
                  struct bp_pack_entry *ret_entry, struct bp_error *err)
{
  for (;;) {
    struct pack_list *list = store_packs_get (store);
    size_t i = 0;
    const int r = find_in_list (list, root, &i, ret_entry, err);
    bool again = false;

    if (r == 0) {
      atomic_fetch_add (&list->packs[i]->refs, 1);
      *ret_pack = list->packs[i];
    }
    else
      again = rescan && rescan_if_due (store, list);
    pack_list_unref (list);
    if (!again) {
      char hex[BP_ROOT_HEX_SIZE];

      if (r == -ENOENT)
        return bp_error_set (err, r, "blob '%s': not in the store",
                             bp_root_format (root, hex));
      return r;
    }
  }
}

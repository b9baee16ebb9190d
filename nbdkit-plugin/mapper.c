/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The key table: pages of 1024 slots, made when one of theirs is taken
 * and freed with the last, so that memory follows the keys that are open
 * and not the highest that ever was.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/range.h"
#include "nbdkit-plugin/mapper.h"

enum {
  PAGE_SLOTS = 1024,
  NR_PAGES = BP_NR_SLOTS / PAGE_SLOTS,
};

enum slot_state {
  SLOT_FREE,
  SLOT_OPENING,
  SLOT_OPEN,
  SLOT_FAILED,
};

struct slot {
  uint64_t key;
  enum slot_state state;
  struct mapped_blob *mapped; /* SLOT_OPEN: the table's reference. */
};

struct page {
  unsigned nr_taken; /* Slots that are not free. */
  struct slot slots[PAGE_SLOTS];
};

struct mapper {
  struct bp_store *store; /* Borrowed. */
  pthread_mutex_t lock;   /* Protects everything below. */
  size_t nr_keys;
  struct bp_error told; /* The last damage that a caller was told of. */
  struct page *pages[NR_PAGES];
};

int
mapper_new (struct mapper **ret_mapper, struct bp_store *store)
{
  struct mapper *mapper = calloc (1, sizeof *mapper);

  if (mapper == NULL)
    return -ENOMEM;
  mapper->store = store;
  pthread_mutex_init (&mapper->lock, NULL);
  *ret_mapper = mapper;
  return 0;
}

void
mapper_free (struct mapper *mapper)
{
  if (mapper == NULL)
    return;
  for (size_t i = 0; i < NR_PAGES; i++) {
    struct page *page = mapper->pages[i];

    for (size_t j = 0; page && j < PAGE_SLOTS; j++)
      mapped_blob_unref (page->slots[j].mapped);
    free (page);
  }
  pthread_mutex_destroy (&mapper->lock);
  free (mapper);
}

/* The slot, or NULL if its page does not exist: it is free.  Called with
 * the lock held.
 */
static struct slot *
find_slot (struct mapper *mapper, uint32_t slot)
{
  struct page *page = mapper->pages[slot / PAGE_SLOTS];

  return page ? &page->slots[slot % PAGE_SLOTS] : NULL;
}

/* Take the free slot of KEY for it.  Returns 0, -EINVAL, -EEXIST or
 * -ENOMEM.
 */
static int
reserve_slot (struct mapper *mapper, uint64_t key)
{
  LOCKED (&mapper->lock);
  const uint32_t number = bp_key_slot (key);
  struct page **page = &mapper->pages[number / PAGE_SLOTS];
  struct slot *slot;

  if (number == 0)
    return -EINVAL;
  if (*page == NULL)
    *page = calloc (1, sizeof **page);
  if (*page == NULL)
    return -ENOMEM;
  slot = &(*page)->slots[number % PAGE_SLOTS];
  if (slot->state != SLOT_FREE)
    return -EEXIST;
  *slot = (struct slot){ .key = key, .state = SLOT_OPENING };
  (*page)->nr_taken++;
  mapper->nr_keys++;
  return 0;
}

/* The slot of KEY has been opened as MAPPED (taking ownership), or has
 * failed if it is NULL.  If another connection closed the key meanwhile,
 * nothing is left to settle.
 */
static void
settle_slot (struct mapper *mapper, uint64_t key,
             struct mapped_blob *mapped)
{
  CLEANUP_MAPPED_BLOB struct mapped_blob *unwanted = mapped;
  LOCKED (&mapper->lock);
  struct slot *slot = find_slot (mapper, bp_key_slot (key));

  if (slot == NULL || slot->state != SLOT_OPENING || slot->key != key)
    return;
  slot->state = mapped ? SLOT_OPEN : SLOT_FAILED;
  slot->mapped = steal_ptr (&unwanted);
}

void
mapper_close_key (struct mapper *mapper, uint64_t key)
{
  CLEANUP_MAPPED_BLOB struct mapped_blob *closed = NULL;
  LOCKED (&mapper->lock);
  struct page **page = &mapper->pages[bp_key_slot (key) / PAGE_SLOTS];
  struct slot *slot = find_slot (mapper, bp_key_slot (key));

  if (slot == NULL || slot->state == SLOT_FREE || slot->key != key)
    return;
  closed = slot->mapped;
  *slot = (struct slot){ .state = SLOT_FREE };
  mapper->nr_keys--;
  if (--(*page)->nr_taken == 0) {
    free (*page);
    *page = NULL;
  }
}

static int
open_mapped (struct mapper *mapper, const struct bp_open_item *item,
             struct mapped_blob **ret_mapped, struct bp_error *err)
{
  struct bp_blob *blob;
  int r = bp_store_open_blob (mapper->store, &item->root, &blob, err);

  if (r < 0)
    return r;
  r = mapped_blob_new (ret_mapped, item->key, blob);
  if (r < 0) {
    bp_blob_close (blob);
    return bp_error_set (err, r, "key %" PRIu64 ": %m", item->key);
  }
  return 0;
}

/* A blob could not be opened, and not for want of it.  *DAMAGE says why,
 * unless that was told last.
 */
static void
note_damage (struct mapper *mapper, const struct bp_error *why,
             struct bp_error *damage)
{
  LOCKED (&mapper->lock);

  if (strcmp (mapper->told.msg, why->msg) == 0)
    return;
  mapper->told = *damage = *why;
}

/* Open one key.  *RET_MAPPED is the caller's reference, if it worked. */
static int
open_key (struct mapper *mapper, const struct bp_open_item *item,
          struct mapped_blob **ret_mapped, struct bp_error *damage)
{
  struct mapped_blob *mapped = NULL;
  struct bp_error why;
  int r = reserve_slot (mapper, item->key);

  if (r < 0)
    return r;
  r = open_mapped (mapper, item, &mapped, &why);
  if (r == 0)
    *ret_mapped = mapped_blob_ref (mapped);
  else if (r != -ENOENT)
    note_damage (mapper, &why, damage);
  settle_slot (mapper, item->key, mapped);
  return r;
}

static void
describe (int status, const struct mapped_blob *mapped,
          struct bp_open_result *ret_result)
{
  *ret_result = (struct bp_open_result){ .status = status };
  if (status == 0) {
    const struct bp_blob_info *info =
      bp_blob_get_info (mapped_blob_get (mapped));

    ret_result->codec = info->codec;
    ret_result->size = info->size;
    ret_result->stored_size = info->stored_size;
  }
}

void
mapper_open_batch (struct mapper *mapper, const struct bp_request *request,
                   struct bp_open_result *results, struct bp_error *ret_damage)
{
  struct mapped_blob *opened[BP_MAX_BATCH];
  struct bp_blob *needed[BP_MAX_BATCH];
  size_t nr_opened = 0, nr_needed = 0;

  assert (request->count <= BP_MAX_BATCH);
  ret_damage->code = 0;
  for (uint32_t i = 0; i < request->count; i++) {
    struct mapped_blob *mapped = NULL;
    struct bp_open_item item;
    int r;

    bp_request_open_item (request, i, &item);
    r = open_key (mapper, &item, &mapped, ret_damage);
    describe (r, mapped, &results[i]);
    if (r < 0)
      continue;
    opened[nr_opened++] = mapped;
    if (item.flags & BP_OPEN_WILL_READ)
      needed[nr_needed++] = mapped_blob_get (mapped);
  }
  bp_blobs_will_need (needed, nr_needed);
  while (nr_opened > 0)
    mapped_blob_unref (opened[--nr_opened]);
}

int
mapper_get_slot (struct mapper *mapper, uint32_t slot,
                 struct mapped_blob **ret_mapped, struct bp_error *err)
{
  LOCKED (&mapper->lock);
  const struct slot *found = find_slot (mapper, slot);

  if (slot == 0)
    return bp_error_set (err, -EINVAL, "slot 0: is never used");
  if (found == NULL || found->state == SLOT_FREE)
    return -EAGAIN;
  if (found->state == SLOT_OPENING)
    return -EBUSY;
  if (found->state == SLOT_FAILED)
    return bp_error_set (err, -EINVAL, "key %" PRIu64 ": its OPEN failed",
                         found->key);
  *ret_mapped = mapped_blob_ref (found->mapped);
  return 0;
}

int
mapper_get_key (struct mapper *mapper, uint64_t key,
                struct mapped_blob **ret_mapped, struct bp_error *err)
{
  LOCKED (&mapper->lock);
  const struct slot *slot = find_slot (mapper, bp_key_slot (key));

  if (slot == NULL || slot->state != SLOT_OPEN || slot->key != key)
    return bp_error_set (err, -EINVAL, "key %" PRIu64 ": is not open", key);
  *ret_mapped = mapped_blob_ref (slot->mapped);
  return 0;
}

size_t
mapper_nr_keys (struct mapper *mapper)
{
  LOCKED (&mapper->lock);

  return mapper->nr_keys;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The key table and the claims of users. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pager/keys.h"
#include "daemon/pager/root-hash.h"
#include "lib/base/cleanup.h"
#include "lib/session-proto.h"

enum {
  NR_BUCKETS = 1 << 16,
  SLOT_WORDS = BP_NR_SLOTS / 64,
};

/* That USER needs KEY. */
struct claim {
  struct key *key;
  struct fetch_user *user;
  LIST_ENTRY (claim) of_key;
  LIST_ENTRY (claim) of_user;
};

int
keys_init (struct keys *keys)
{
  memset (keys, 0, sizeof *keys);
  TAILQ_INIT (&keys->by_age);
  TAILQ_INIT (&keys->closing);
  keys->next = 1;
  keys->limit = KEYS_MAX;
  keys->buckets = calloc (NR_BUCKETS, sizeof *keys->buckets);
  keys->slots = calloc (SLOT_WORDS, sizeof *keys->slots);
  keys->seed = root_hash_seed ();
  return keys->buckets && keys->slots ? 0 : -ENOMEM;
}

void
keys_done (struct keys *keys)
{
  if (keys->buckets)
    keys_forget (keys);
  free (keys->buckets);
  free (keys->slots);
}

/* ---- By root ---- */

static struct key **
bucket_of (struct keys *keys, const struct bp_root *root)
{
  return &keys->buckets[root_hash (keys->seed, root) % NR_BUCKETS];
}

struct key *
keys_find (struct keys *keys, const struct bp_root *root)
{
  struct key *key = *bucket_of (keys, root);

  while (key && !bp_root_equal (&key->root, root))
    key = key->hash_next;
  return key;
}

static void
remove_from_bucket (struct keys *keys, struct key *key)
{
  struct key **p = bucket_of (keys, &key->root);

  while (*p != key)
    p = &(*p)->hash_next;
  *p = key->hash_next;
}

void
keys_touch (struct keys *keys, struct key *key)
{
  if (key->state == KEY_DEAD)
    return;
  TAILQ_REMOVE (&keys->by_age, key, age);
  TAILQ_INSERT_TAIL (&keys->by_age, key, age);
}

/* ---- Slots ---- */

static bool
slot_is_taken (const struct keys *keys, uint32_t slot)
{
  return slot == 0 || (keys->slots[slot / 64] >> slot % 64 & 1);
}

static void
take_slot (struct keys *keys, uint32_t slot)
{
  assert (!slot_is_taken (keys, slot));
  keys->slots[slot / 64] |= UINT64_C (1) << slot % 64;
  keys->nr_taken++;
}

static void
release_slot (struct keys *keys, uint32_t slot)
{
  assert (slot_is_taken (keys, slot));
  keys->slots[slot / 64] &= ~(UINT64_C (1) << slot % 64);
  keys->nr_taken--;
}

/* So early that their CLOSE is answered before the limit is reached. */
bool
keys_make_room (struct keys *keys)
{
  const size_t wanted = keys->limit - keys->limit / 16;
  struct key *key = TAILQ_FIRST (&keys->by_age), *next;

  while (key && keys->nr_live >= wanted) {
    next = TAILQ_NEXT (key, age);
    if (key->nr_refs == 0)
      keys_kill (keys, key);
    key = next;
  }
  return keys->nr_taken < keys->limit;
}

struct key *
keys_allocate (struct keys *keys, const struct bp_root *root,
               struct lane *lane)
{
  struct key *key, **bucket;

  assert (keys->nr_taken < keys->limit);
  key = calloc (1, sizeof *key);
  if (key == NULL)
    return NULL;
  while (slot_is_taken (keys, bp_key_slot (keys->next)))
    keys->next++;
  key->number = keys->next++;
  take_slot (keys, bp_key_slot (key->number));

  key->root = *root;
  key->state = KEY_OPENING;
  key->opener = lane;
  TAILQ_INIT (&key->parked);
  TAILQ_INIT (&key->waiting);
  TAILQ_INIT (&key->riders);
  LIST_INIT (&key->claims);
  TAILQ_INSERT_TAIL (&keys->by_age, key, age);
  keys->nr_live++;
  bucket = bucket_of (keys, root);
  key->hash_next = *bucket;
  *bucket = key;
  return key;
}

/* ---- Closing ---- */

static void
forget_claims (struct key *key)
{
  struct claim *claim;

  while ((claim = LIST_FIRST (&key->claims)) != NULL) {
    LIST_REMOVE (claim, of_key);
    LIST_REMOVE (claim, of_user);
    free (claim);
  }
}

static void
free_key (struct key *key)
{
  assert (key->nr_refs == 0);
  forget_claims (key);
  free (key);
}

static void
close_if_unused (struct keys *keys, struct key *key)
{
  if (key->state != KEY_DEAD || key->nr_refs > 0)
    return;
  TAILQ_INSERT_TAIL (&keys->closing, key, closing);
}

void
keys_kill (struct keys *keys, struct key *key)
{
  if (key->state == KEY_DEAD)
    return;
  key->state = KEY_DEAD;
  key->opener = NULL;
  TAILQ_REMOVE (&keys->by_age, key, age);
  keys->nr_live--;
  remove_from_bucket (keys, key);
  forget_claims (key);
  close_if_unused (keys, key);
}

/* Nobody needs KEY: it dies now, or with its last reference. */
static void
keys_drop (struct keys *keys, struct key *key)
{
  if (key->nr_refs > 0)
    key->close_wanted = true;
  else
    keys_kill (keys, key);
}

void
key_ref (struct key *key)
{
  key->nr_refs++;
}

void
key_unref (struct keys *keys, struct key *key)
{
  assert (key->nr_refs > 0);
  if (--key->nr_refs > 0)
    return;
  if (key->state == KEY_DEAD)
    close_if_unused (keys, key);
  else if (key->close_wanted)
    keys_kill (keys, key);
}

size_t
keys_take_closing (struct keys *keys, uint64_t *numbers, size_t max)
{
  struct key *key;
  size_t count = 0;

  while (count < max && (key = TAILQ_FIRST (&keys->closing)) != NULL) {
    numbers[count++] = key->number;
    TAILQ_REMOVE (&keys->closing, key, closing);
    free_key (key);
  }
  return count;
}

void
keys_closed (struct keys *keys, const uint64_t *numbers, size_t count)
{
  for (size_t i = 0; i < count; i++)
    release_slot (keys, bp_key_slot (numbers[i]));
}

void
keys_forget (struct keys *keys)
{
  struct key *key;

  while ((key = TAILQ_FIRST (&keys->by_age)) != NULL) {
    assert (key->nr_refs == 0);
    keys_kill (keys, key);
  }
  while ((key = TAILQ_FIRST (&keys->closing)) != NULL) {
    TAILQ_REMOVE (&keys->closing, key, closing);
    free_key (key);
  }
  keys->nr_taken = 0;
  memset (keys->slots, 0, SLOT_WORDS * sizeof *keys->slots);
}

/* ---- Users ---- */

void
key_claim (struct key *key, struct fetch_user *user)
{
  struct claim *claim;

  if (user == NULL || user->is_freed || key->state == KEY_DEAD)
    return;
  key->close_wanted = false;
  LIST_FOREACH (claim, &key->claims, of_key)
  if (claim->user == user)
    return;
  claim = malloc (sizeof *claim);
  if (claim == NULL)
    return;
  claim->key = key;
  claim->user = user;
  LIST_INSERT_HEAD (&key->claims, claim, of_key);
  LIST_INSERT_HEAD (&user->claims, claim, of_user);
}

struct fetch_user *
user_ref (struct fetch_user *user)
{
  if (user)
    user->nr_refs++;
  return user;
}

void
user_unref (struct fetch_user *user)
{
  if (user && --user->nr_refs == 0) {
    assert (LIST_EMPTY (&user->claims));
    free (user);
  }
}

void
user_release (struct keys *keys, struct fetch_user *user)
{
  struct claim *claim;
  struct key *key;

  user->is_freed = true;
  while ((claim = LIST_FIRST (&user->claims)) != NULL) {
    key = claim->key;
    LIST_REMOVE (claim, of_key);
    LIST_REMOVE (claim, of_user);
    free (claim);
    if (LIST_EMPTY (&key->claims))
      keys_drop (keys, key);
  }
}

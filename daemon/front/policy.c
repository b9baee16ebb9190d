/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* Policies: pure functions of names and settings. */
#include <config.h>

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "daemon/front/policy.h"
#include "lib/merkle.h"

struct client_policy
client_policy_resolve (const struct client_settings *own,
                       const struct client_settings *defaults,
                       enum listener_reach reach)
{
  const struct client_settings *globs =
    own->nr_export_globs > 0 ? own : defaults;
  const struct client_settings *allow = own->has_allow ? own : defaults;
  const bool by_default = !allow->has_allow && reach == REACH_UNIX;

  return (struct client_policy){
    .tls = own->tls != TLS_UNSAID ? own->tls : defaults->tls,
    .export_globs = (const char *const *) globs->export_globs,
    .nr_export_globs = globs->nr_export_globs,
    .may_list = allow->may_list || by_default,
    .may_open_blobs = allow->may_open_blobs || by_default,
    .may_see_residency = allow->may_see_residency || by_default,
  };
}

enum tls_mode
tls_mode_default (enum listener_reach reach, bool has_credentials,
                  bool is_insecure)
{
  if (reach == REACH_NETWORK && (has_credentials || !is_insecure))
    return TLS_REQUIRE;
  return has_credentials ? TLS_ON : TLS_OFF;
}

/* Does NAME match GLOB, whose wildcards match neither '/' nor '@'? */
static bool
matches (const char *glob, const char *name)
{
  char behind_at[1 + BP_ROOT_HEX_SIZE];
  struct bp_root root;

  if (strcmp (glob, name) == 0)
    return true;
  if (bp_root_parse (name, &root) == 0) {
    snprintf (behind_at, sizeof behind_at, "@%s", name);
    name = behind_at;
  }
  return (strchr (glob, '@') != NULL) == (strchr (name, '@') != NULL) &&
         fnmatch (glob, name, FNM_PATHNAME | FNM_NOESCAPE) == 0;
}

bool
policy_allows_export (const struct client_policy *policy, const char *name)
{
  size_t i;

  if (name[0] == '\0')
    return true;
  if (strncmp (name, "blob/", 5) == 0 && !policy->may_open_blobs)
    return false;
  for (i = 0; i < policy->nr_export_globs; i++)
    if (matches (policy->export_globs[i], name))
      return true;
  return policy->nr_export_globs == 0;
}

bool
policy_hides_exports (const struct client_policy *policy)
{
  return policy->nr_export_globs > 0 || !policy->may_list;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* daemon/front/policy: which exports a client may open, and whose word
 * counts where options and a listener's reach differ.
 */
#include <config.h>

#include <string.h>

#include <criterion/criterion.h>

#include "daemon/front/policy.h"
#include "lib/base/range.h"

#define ROOT \
  "daaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct client_settings nothing;

static bool
allows (const char *glob, const char *name)
{
  const struct client_policy policy = {
    .export_globs = &glob,
    .nr_export_globs = 1,
    .may_open_blobs = true,
  };

  return policy_allows_export (&policy, name);
}

Test (policy, glob_decides_by_name)
{
  static const struct {
    const char *glob, *name;
    bool allowed;
  } cases[] = {
    { "debian", "debian", true },
    { "debian", "debian12", false },
    { "debian", "Debian", false },
    { "debian*", "debian12", true },
    { "debian?[23]", "debian12", true },
    { "*", "anything", true },
    /* TAG@ROOT serves ROOT, whatever TAG names. */
    { "debian", "debian@" ROOT, false },
    { "*", "debian@" ROOT, false },
    { "debian[!x]" ROOT, "debian@" ROOT, false },
    { "debian@*", "debian@" ROOT, true },
    { "debian@*", "debian12@" ROOT, false },
    { "debian@" ROOT, "debian@" ROOT, true },
    { "*@" ROOT, "any@" ROOT, true },
    /* An image by its root, which may look like a tag. */
    { "*", ROOT, false },
    { "d*", ROOT, false },
    { "@*", ROOT, true },
    { ROOT, ROOT, true },
    { "@" ROOT, ROOT, true },
    { "debian@*", ROOT, false },
    /* Any blob. */
    { "*", "blob/" ROOT, false },
    { "blob*", "blob/" ROOT, false },
    { "blob?" ROOT, "blob/" ROOT, false },
    { "blob/*", "blob/" ROOT, true },
    { "*@*", "blob/" ROOT, false },
    /* No escapes, and a bracket that is not closed is a bracket. */
    { "a\\*", "a*", false },
    { "a[", "a[", true },
  };

  for (size_t i = 0; i < ARRAY_LEN (cases); i++)
    cr_expect_eq (allows (cases[i].glob, cases[i].name), cases[i].allowed,
                  "glob '%s', name '%s'", cases[i].glob, cases[i].name);
}

Test (policy, one_glob_of_several_is_enough)
{
  static const char *const globs[] = { "a", "b@*" };
  const struct client_policy policy = { .export_globs = globs,
                                        .nr_export_globs = 2 };

  cr_assert (policy_allows_export (&policy, "a"));
  cr_assert (policy_allows_export (&policy, "b@" ROOT));
  cr_assert (!policy_allows_export (&policy, "b"));
}

Test (policy, without_globs_only_blobs_can_be_forbidden)
{
  struct client_policy policy = { .may_open_blobs = false };

  cr_assert (policy_allows_export (&policy, "a"));
  cr_assert (policy_allows_export (&policy, "a@" ROOT));
  cr_assert (policy_allows_export (&policy, ROOT));
  cr_assert (!policy_allows_export (&policy, "blob/" ROOT));
  policy.may_open_blobs = true;
  cr_assert (policy_allows_export (&policy, "blob/" ROOT));
}

Test (policy, glob_does_not_allow_blobs_by_itself)
{
  static const char *const globs[] = { "blob/*" };
  const struct client_policy policy = { .export_globs = globs,
                                        .nr_export_globs = 1 };

  cr_assert (!policy_allows_export (&policy, "blob/" ROOT));
}

static void
assert_may (struct client_policy policy, bool list, bool blobs,
            bool residency)
{
  cr_assert_eq (policy.may_list, list);
  cr_assert_eq (policy.may_open_blobs, blobs);
  cr_assert_eq (policy.may_see_residency, residency);
}

Test (policy, all_is_allowed_on_unix_and_nothing_on_tcp)
{
  assert_may (client_policy_resolve (&nothing, &nothing, REACH_UNIX), true,
              true, true);
  assert_may (client_policy_resolve (&nothing, &nothing, REACH_LOOPBACK),
              false, false, false);
  assert_may (client_policy_resolve (&nothing, &nothing, REACH_NETWORK),
              false, false, false);
}

Test (policy, what_is_said_counts_whatever_the_reach)
{
  const struct client_settings list = { .has_allow = true,
                                        .may_list = true };
  const struct client_settings none = { .has_allow = true };

  assert_may (client_policy_resolve (&list, &nothing, REACH_UNIX), true,
              false, false);
  assert_may (client_policy_resolve (&nothing, &list, REACH_NETWORK), true,
              false, false);
  assert_may (client_policy_resolve (&none, &list, REACH_NETWORK), false,
              false, false);
}

Test (policy, a_listeners_own_settings_replace_those_for_all)
{
  static const char *a[] = { "a" }, *b[] = { "b" };
  const struct client_settings all = { .tls = TLS_ON,
                                       .export_globs = a,
                                       .nr_export_globs = 1 };
  const struct client_settings own = { .tls = TLS_OFF,
                                       .export_globs = b,
                                       .nr_export_globs = 1 };
  struct client_policy policy;

  policy = client_policy_resolve (&own, &all, REACH_UNIX);
  cr_assert_eq (policy.tls, TLS_OFF);
  cr_assert (policy_allows_export (&policy, "b"));
  cr_assert (!policy_allows_export (&policy, "a"));
  policy = client_policy_resolve (&nothing, &all, REACH_UNIX);
  cr_assert_eq (policy.tls, TLS_ON);
  cr_assert (policy_allows_export (&policy, "a"));
}

Test (policy, plain_text_goes_over_the_network_only_if_that_is_said)
{
  static const struct {
    enum listener_reach reach;
    bool has_credentials, is_insecure;
    enum tls_mode wanted;
  } cases[] = {
    { REACH_UNIX, false, false, TLS_OFF },
    { REACH_UNIX, true, false, TLS_ON },
    { REACH_LOOPBACK, false, false, TLS_OFF },
    { REACH_LOOPBACK, true, false, TLS_ON },
    { REACH_NETWORK, false, false, TLS_REQUIRE },
    { REACH_NETWORK, true, false, TLS_REQUIRE },
    { REACH_NETWORK, false, true, TLS_OFF },
    { REACH_NETWORK, true, true, TLS_REQUIRE },
  };

  for (size_t i = 0; i < ARRAY_LEN (cases); i++)
    cr_assert_eq (tls_mode_default (cases[i].reach, cases[i].has_credentials,
                                    cases[i].is_insecure),
                  cases[i].wanted, "case %zu", i);
}

# SPDX-License-Identifier: BSD-3-Clause
# The real programs together: shell scripts, and C programs on libnbd.

integration_scripts = \
	integration/test-allow-export.sh \
	integration/test-bench-cold.sh \
	integration/test-bench-front.sh \
	integration/test-import-block-device.sh \
	integration/test-corrupt-blob.sh \
	integration/test-damaged-store.sh \
	integration/test-lying-driver.sh \
	integration/test-sparse-export.sh \
	integration/test-quickstart.sh \
	integration/test-quickstart-login.sh \
	integration/test-bad-clients.sh \
	integration/test-block-status.sh \
	integration/test-control-bad-input.sh \
	integration/test-control-status.sh \
	integration/test-crowd.sh \
	integration/test-daemon-life.sh \
	integration/test-daemon-systemd.sh \
	integration/test-daemon-usage.sh \
	integration/test-daemon-users.sh \
	integration/test-drain.sh \
	integration/test-direct-corrupt.sh \
	integration/test-direct-exports.sh \
	integration/test-lagsim.sh \
	integration/test-plugin-command-line.sh \
	integration/test-port-probes.sh \
	integration/test-profile-commands.sh \
	integration/test-driver-killed.sh \
	integration/test-driver-remote.sh \
	integration/test-import-concurrent.sh \
	integration/test-import-formats.sh \
	integration/test-import-killed.sh \
	integration/test-import-nbd.sh \
	integration/test-import-refuses.sh \
	integration/test-import-second-version.sh \
	integration/test-import-several-packs.sh \
	integration/test-import-sizes.sh \
	integration/test-import-sparse.sh \
	integration/test-reimport.sh \
	integration/test-stdio.sh \
	integration/test-store-commands.sh \
	integration/test-store-manual.sh \
	integration/test-structured-reads.sh \
	integration/test-tls.sh \
	integration/test-tls-driver.sh \
	integration/test-tls-files.sh \
	integration/test-tls-policy.sh \
	integration/test-tls-psk.sh \
	integration/test-tls-versions.sh \
	integration/test-units.sh \
	integration/test-rule-1-start.sh \
	integration/test-rule-10-automatic.sh \
	integration/test-rule-11-counters.sh \
	integration/test-rule-2-limits.sh \
	integration/test-rule-2-replay.sh \
	integration/test-rule-3-damaged.sh \
	integration/test-rule-4-stop.sh \
	integration/test-rule-5-oracle.sh \
	integration/test-rule-5-windows.sh \
	integration/test-rule-6-warm.sh \
	integration/test-rule-7-abort.sh \
	integration/test-rule-8-scopes-and-ends.sh \
	$(NULL)

TESTS += $(integration_scripts)
EXTRA_DIST += $(integration_scripts)

# Clients of a driver of their own.
session_programs = \
	integration/test-session-bytes \
	integration/test-session-filters \
	integration/test-session-killed-client \
	integration/test-session-misuse \
	integration/test-session-order \
	integration/test-session-profiles \
	integration/test-session-round-trip \
	$(NULL)

session_ldadd = \
	harness/libtestdriver.la \
	$(top_builddir)/lib/libblobpager.la \
	$(LIBNBD_LIBS) \
	$(NULL)

integration_test_session_bytes_SOURCES = integration/test-session-bytes.c
integration_test_session_bytes_LDADD = $(session_ldadd) $(ZSTD_LIBS)
integration_test_session_filters_SOURCES = integration/test-session-filters.c
integration_test_session_filters_LDADD = $(session_ldadd)
integration_test_session_killed_client_SOURCES = integration/test-session-killed-client.c
integration_test_session_killed_client_LDADD = $(session_ldadd)
integration_test_session_misuse_SOURCES = integration/test-session-misuse.c
integration_test_session_misuse_LDADD = $(session_ldadd)
integration_test_session_order_SOURCES = integration/test-session-order.c
integration_test_session_order_LDADD = $(session_ldadd)
integration_test_session_profiles_SOURCES = integration/test-session-profiles.c
integration_test_session_profiles_LDADD = $(session_ldadd) $(JSONC_LIBS)
integration_test_session_round_trip_SOURCES = integration/test-session-round-trip.c
integration_test_session_round_trip_LDADD = $(session_ldadd)

check_PROGRAMS += $(session_programs)
TESTS += $(session_programs)

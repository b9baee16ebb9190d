# SPDX-License-Identifier: BSD-3-Clause
# Tests of threaded code: plain programs, so that they run under
# ThreadSanitizer, where Criterion does not start.
# Exit status 0: passed, 1: failed, 77: skipped.

# The pager, over a driver in memory.
pager_test_libs = \
	harness/libpagertest.la \
	harness/libharness.la \
	$(LDADD) \
	$(NULL)

thread_programs = \
	threads/test-cache-eviction \
	threads/test-cache-pins \
	threads/test-export-map \
	threads/test-cache-races \
	threads/test-export-open \
	threads/test-read-failing \
	threads/test-read-order \
	threads/test-control \
	threads/test-fetcher-hang \
	threads/test-fetcher-keys \
	threads/test-fetcher-lag \
	threads/test-fetcher-loss \
	threads/test-fetcher-reads \
	threads/test-fetcher-requests \
	threads/test-fetcher-vast \
	threads/test-front-block-status \
	threads/test-front-clients \
	threads/test-front-contexts \
	threads/test-front-exports \
	threads/test-front-handshake \
	threads/test-front-idle \
	threads/test-front-large \
	threads/test-front-requests \
	threads/test-front-stop \
	threads/test-front-structured \
	threads/test-front-tls \
	threads/test-hot-reads \
	threads/test-lane \
	threads/test-metrics \
	threads/test-profiles \
	threads/test-profiles-auto \
	threads/test-read-serving \
	threads/test-store-readers \
	$(NULL)

threads_test_store_readers_SOURCES = threads/test-store-readers.c
threads_test_control_SOURCES = threads/test-control.c

threads_test_front_block_status_SOURCES = threads/test-front-block-status.c
threads_test_front_block_status_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_contexts_SOURCES = threads/test-front-contexts.c
threads_test_front_contexts_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_clients_SOURCES = threads/test-front-clients.c
threads_test_front_clients_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_exports_SOURCES = threads/test-front-exports.c
threads_test_front_exports_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_handshake_SOURCES = threads/test-front-handshake.c
threads_test_front_handshake_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_idle_SOURCES = threads/test-front-idle.c
threads_test_front_idle_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_stop_SOURCES = threads/test-front-stop.c
threads_test_front_stop_LDADD = harness/libfronttest.la $(LDADD)
threads_test_metrics_SOURCES = threads/test-metrics.c
threads_test_front_large_SOURCES = threads/test-front-large.c
threads_test_front_large_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_structured_SOURCES = threads/test-front-structured.c
threads_test_front_structured_LDADD = harness/libfronttest.la $(LDADD)
threads_test_front_tls_SOURCES = threads/test-front-tls.c
threads_test_front_tls_LDADD = \
	harness/libtlstest.la \
	harness/libfronttest.la \
	$(LDADD) \
	$(LIBSSL_LIBS) \
	$(LIBCRYPTO_LIBS) \
	$(NULL)
threads_test_front_requests_SOURCES = threads/test-front-requests.c
threads_test_front_requests_LDADD = harness/libfronttest.la $(LDADD)

threads_test_profiles_SOURCES = threads/test-profiles.c
threads_test_profiles_LDADD = harness/libworld.la $(LDADD)
threads_test_profiles_auto_SOURCES = threads/test-profiles-auto.c
threads_test_profiles_auto_LDADD = harness/libworld.la $(LDADD)
threads_test_cache_eviction_SOURCES = threads/test-cache-eviction.c
threads_test_cache_eviction_LDADD = $(pager_test_libs)
threads_test_cache_pins_SOURCES = threads/test-cache-pins.c
threads_test_cache_pins_LDADD = $(pager_test_libs)
threads_test_export_map_SOURCES = threads/test-export-map.c
threads_test_export_map_LDADD = $(pager_test_libs)
threads_test_cache_races_SOURCES = threads/test-cache-races.c
threads_test_cache_races_LDADD = $(pager_test_libs)
threads_test_export_open_SOURCES = threads/test-export-open.c
threads_test_export_open_LDADD = $(pager_test_libs)
threads_test_hot_reads_SOURCES = threads/test-hot-reads.c
threads_test_hot_reads_LDADD = $(pager_test_libs)
threads_test_read_failing_SOURCES = threads/test-read-failing.c
threads_test_read_failing_LDADD = $(pager_test_libs)
threads_test_read_order_SOURCES = threads/test-read-order.c
threads_test_read_order_LDADD = $(pager_test_libs)
threads_test_read_serving_SOURCES = threads/test-read-serving.c
threads_test_read_serving_LDADD = $(pager_test_libs)

threads_test_fetcher_hang_SOURCES = threads/test-fetcher-hang.c
threads_test_fetcher_hang_LDADD = harness/libfetching.la $(LDADD)
threads_test_fetcher_keys_SOURCES = threads/test-fetcher-keys.c
threads_test_fetcher_keys_LDADD = harness/libfetching.la $(LDADD)
threads_test_fetcher_lag_SOURCES = threads/test-fetcher-lag.c
threads_test_fetcher_lag_LDADD = harness/libfetching.la $(LDADD)
threads_test_fetcher_loss_SOURCES = threads/test-fetcher-loss.c
threads_test_fetcher_loss_LDADD = harness/libfetching.la $(LDADD)
threads_test_fetcher_reads_SOURCES = threads/test-fetcher-reads.c
threads_test_fetcher_reads_LDADD = harness/libfetching.la $(LDADD)
threads_test_fetcher_requests_SOURCES = threads/test-fetcher-requests.c
threads_test_fetcher_requests_LDADD = harness/libfetching.la $(LDADD)
threads_test_fetcher_vast_SOURCES = threads/test-fetcher-vast.c
threads_test_fetcher_vast_LDADD = harness/libfetching.la $(LDADD)

# Parts of the plugin, over a stub of nbdkit.
threads_test_lane_SOURCES = \
	harness/stub-nbdkit.c \
	harness/stub-nbdkit.h \
	threads/test-lane.c \
	$(NULL)
threads_test_lane_CPPFLAGS = $(AM_CPPFLAGS) $(NBDKIT_CFLAGS)
threads_test_lane_LDADD = \
	$(top_builddir)/nbdkit-plugin/libdriver.la \
	harness/libtestdriver.la \
	$(top_builddir)/lib/libblobpager.la \
	$(NULL)

check_PROGRAMS += $(thread_programs)
TESTS += $(thread_programs)

# SPDX-License-Identifier: BSD-3-Clause
# Measuring tools, built with the tree.

noinst_PROGRAMS += \
	bench/boottrace \
	bench/hotreads \
	bench/lagsim \
	bench/limit \
	bench/verifying \
	$(NULL)

bench_lagsim_SOURCES = bench/lagsim.c
bench_lagsim_LDADD = $(top_builddir)/lib/libblobpager.la
bench_limit_SOURCES = bench/limit.c
bench_limit_LDADD = \
	$(top_builddir)/daemon/libdaemon.la \
	$(top_builddir)/lib/libblobpager.la \
	$(NULL)
bench_hotreads_SOURCES = bench/hotreads.c
bench_hotreads_LDADD = $(pager_test_libs)
bench_verifying_SOURCES = bench/verifying.c
bench_verifying_LDADD = \
	harness/libharness.la \
	$(top_builddir)/lib/libblobpager.la \
	$(LIBCRYPTO_LIBS) \
	$(NULL)
bench_boottrace_SOURCES = bench/boottrace.c
bench_boottrace_LDADD = $(top_builddir)/lib/libblobpager.la $(LIBNBD_LIBS)

EXTRA_DIST += \
	bench/bench-ahead.py \
	bench/bench-attach.py \
	bench/bench-boot.sh \
	bench/bench-cold.py \
	bench/bench-front.py \
	bench/bench-verify.py \
	bench/bench.sh \
	bench/benchlib.py \
	bench/record-trace.sh \
	$(NULL)

# make bench: the figures, side by side; BENCH=help says more.
BENCH = all
BENCH_FLAGS =
BENCH_IMAGE = $(abs_builddir)/images/debian-1

bench: all
	BENCH_IMAGE='$(BENCH_IMAGE)' BENCH_FLAGS='$(BENCH_FLAGS)' \
	  $(top_builddir)/run bash $(srcdir)/bench/bench.sh $(BENCH)

.PHONY: bench

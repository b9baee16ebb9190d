# SPDX-License-Identifier: BSD-3-Clause
# Measuring tools, built with the tree.

noinst_PROGRAMS += \
	bench/boottrace \
	bench/lagsim \
	bench/limit \
	$(NULL)

bench_lagsim_SOURCES = bench/lagsim.c
bench_lagsim_LDADD = $(top_builddir)/lib/libblobpager.la
bench_limit_SOURCES = bench/limit.c
bench_limit_LDADD = \
	$(top_builddir)/daemon/libdaemon.la \
	$(top_builddir)/lib/libblobpager.la \
	$(NULL)
bench_boottrace_SOURCES = bench/boottrace.c
bench_boottrace_LDADD = $(top_builddir)/lib/libblobpager.la $(LIBNBD_LIBS)

bench_scripts = \
	bench/bench-boot.sh \
	bench/record-trace.sh \
	$(NULL)
EXTRA_DIST += $(bench_scripts)

# make bench: the figures, side by side.  BENCH_IMAGE is a directory of
# examples/make-image.sh; it is made if it is not there.
BENCH_IMAGE = $(abs_builddir)/images/debian-1

bench: all
	test -e '$(BENCH_IMAGE)/disk.img' || \
	  bash $(top_srcdir)/examples/make-image.sh '$(BENCH_IMAGE)'
	$(top_builddir)/run bash $(srcdir)/bench/bench-boot.sh '$(BENCH_IMAGE)'

.PHONY: bench

# SPDX-License-Identifier: BSD-3-Clause
# Measuring tools, built with the tree.

noinst_PROGRAMS += bench/lagsim

bench_lagsim_SOURCES = bench/lagsim.c
bench_lagsim_LDADD = $(top_builddir)/lib/libblobpager.la

# SPDX-License-Identifier: BSD-3-Clause
# Campaigns: a short form of each in make check, the long one by
# make torture, which prints its figures (TORTURE=help says more).

check_PROGRAMS += torture/storm
torture_storm_SOURCES = \
	torture/storm-good.c \
	torture/storm-malformed.c \
	torture/storm-stalled.c \
	torture/storm.c \
	torture/storm.h \
	$(NULL)
torture_storm_LDADD = \
	harness/libnbdclient.la \
	harness/libharness.la \
	$(top_builddir)/lib/libblobpager.la \
	$(NULL)

torture_scripts = \
	torture/test-storm.sh \
	$(NULL)
TESTS += $(torture_scripts)
EXTRA_DIST += \
	$(torture_scripts) \
	torture/torture.sh \
	$(NULL)

TORTURE = all
torture: all $(check_PROGRAMS)
	$(AM_TESTS_ENVIRONMENT) \
	  SH_LOG_COMPILER='$(SH_LOG_COMPILER)' \
	  bash $(srcdir)/torture/torture.sh $(TORTURE)

.PHONY: torture

# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: Criterion, one file per module, named after it.

unit_programs = \
	unit/test-base \
	$(NULL)

unit_test_base_SOURCES = unit/test-base.c

if HAVE_CRITERION
check_PROGRAMS += $(unit_programs)
TESTS += $(unit_programs)
endif

# SPDX-License-Identifier: BSD-3-Clause
# Cache, exports and reads; the driver, its lanes and the verifier.
pager_sources = \
	pager/captive.c \
	pager/captive.h \
	pager/driver.h \
	pager/fetcher.h \
	pager/pager.h \
	pager/wire.c \
	pager/wire.h \
	$(NULL)

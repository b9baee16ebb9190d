# SPDX-License-Identifier: BSD-3-Clause
# Cache, exports and reads; the driver, its lanes and the verifier.
pager_sources = \
	pager/arena.c \
	pager/arena.h \
	pager/attempt.c \
	pager/cache.c \
	pager/cache.h \
	pager/captive.c \
	pager/captive.h \
	pager/driver-internal.h \
	pager/driver.c \
	pager/driver.h \
	pager/evict.c \
	pager/fetcher-internal.h \
	pager/fetcher.c \
	pager/fetcher.h \
	pager/ghost.c \
	pager/ghost.h \
	pager/keys.c \
	pager/keys.h \
	pager/lane.c \
	pager/lane.h \
	pager/opening.c \
	pager/page-in.c \
	pager/pager.h \
	pager/pins.h \
	pager/queue.c \
	pager/requests.c \
	pager/session-gate.c \
	pager/session-gate.h \
	pager/slow-request.c \
	pager/timer.c \
	pager/verifier.c \
	pager/verifier.h \
	pager/want.c \
	pager/wire.c \
	pager/wire.h \
	$(NULL)

# SPDX-License-Identifier: BSD-3-Clause
# Cache, exports and reads; the driver, its lanes and the verifier.
pager_sources = \
	pager/arena.c \
	pager/arena.h \
	pager/attempt.c \
	pager/captive.c \
	pager/captive.h \
	pager/driver-internal.h \
	pager/driver.c \
	pager/driver.h \
	pager/fetcher-internal.h \
	pager/fetcher.c \
	pager/fetcher.h \
	pager/keys.c \
	pager/keys.h \
	pager/lane.c \
	pager/lane.h \
	pager/opening.c \
	pager/pager.h \
	pager/queue.c \
	pager/requests.c \
	pager/session-gate.c \
	pager/session-gate.h \
	pager/slow-request.c \
	pager/timer.c \
	pager/verifier.c \
	pager/verifier.h \
	pager/wire.c \
	pager/wire.h \
	$(NULL)

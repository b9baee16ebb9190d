# SPDX-License-Identifier: BSD-3-Clause
# Recording and replay.
profile_sources = \
	profile/auto-rule.c \
	profile/auto-rule.h \
	profile/auto.c \
	profile/flight.c \
	profile/flight.h \
	profile/hash-index.c \
	profile/hash-index.h \
	profile/hooks.c \
	profile/manager.h \
	profile/meta.c \
	profile/meta.h \
	profile/profile.h \
	profile/profiles.c \
	profile/rate-limit.c \
	profile/rate-limit.h \
	profile/recording.c \
	profile/recording.h \
	profile/replay-plan.c \
	profile/replay-plan.h \
	profile/replay.c \
	profile/replay.h \
	profile/run.c \
	profile/run-replay.c \
	profile/status.c \
	profile/tasks.c \
	$(NULL)

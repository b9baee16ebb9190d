# SPDX-License-Identifier: BSD-3-Clause
profile_sources = \
	profile/auto-rule.c \
	profile/auto-rule.h \
	profile/flight.c \
	profile/flight.h \
	profile/hash-index.c \
	profile/hash-index.h \
	profile/profile.h \
	profile/rate-limit.c \
	profile/rate-limit.h \
	profile/recording.c \
	profile/recording.h \
	$(NULL)

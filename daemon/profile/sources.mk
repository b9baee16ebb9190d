# SPDX-License-Identifier: BSD-3-Clause
# Recording and replay.
profile_sources = \
	profile/profile.h \
	$(NULL)

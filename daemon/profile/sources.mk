	profile/auto-rule.c \
	profile/auto-rule.h \
	profile/flight.c \
	profile/flight.h \
	profile/rate-limit.c \
	profile/rate-limit.h \
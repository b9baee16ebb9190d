# SPDX-License-Identifier: BSD-3-Clause
# The NBD server.
front_sources = \
	front/acceptor.c \
	front/acceptor.h \
	front/attach.c \
	front/attach.h \
	front/conn.c \
	front/conn.h \
	front/front.c \
	front/front.h \
	front/handshake.c \
	front/handshake.h \
	front/large-read.c \
	front/large-read.h \
	front/limits.h \
	front/listener.c \
	front/listener.h \
	front/loop.c \
	front/loop.h \
	front/nbd-protocol.h \
	front/option-reply.c \
	front/option-reply.h \
	front/policy.c \
	front/policy.h \
	front/reply-layout.c \
	front/reply-layout.h \
	front/reply.c \
	front/reply.h \
	front/request.c \
	front/request.h \
	front/shard.c \
	front/shard.h \
	front/tls-config.h \
	front/tls-context.c \
	front/tls-internal.h \
	front/tls-pool.c \
	front/tls-psk.c \
	front/tls-psk.h \
	front/tls-server.c \
	front/tls-stream.c \
	front/tls-x509.c \
	front/tls.h \
	front/transport.h \
	$(NULL)

# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: Criterion, one file per module, named after it.

unit_programs = \
	unit/test-log \
	unit/test-tls-psk \
	unit/test-meta-context \
	unit/test-nbd-errno \
	unit/test-arena \
	unit/test-auto-rule \
	unit/test-flight \
	unit/test-rate-limit \
	unit/test-recording \
	unit/test-replay-plan \
	unit/test-base \
	unit/test-options \
	unit/test-policy \
	unit/test-image-index \
	unit/test-image-index-check \
	unit/test-merkle \
	unit/test-merkle-verify \
	unit/test-profile \
	unit/test-profile-convert \
	unit/test-segmenter \
	unit/test-sha256 \
	unit/test-direct-export \
	unit/test-filters \
	unit/test-mapper \
	unit/test-recording-log \
	unit/test-reply-memory \
	unit/test-session-proto \
	unit/test-session-proto-reply \
	unit/test-tag \
	unit/test-pack \
	unit/test-store \
	unit/test-store-tags \
	unit/test-store-profiles \
	unit/test-store-verify \
	$(NULL)

unit_test_base_SOURCES = unit/test-base.c
unit_test_options_SOURCES = unit/test-options.c
unit_test_policy_SOURCES = unit/test-policy.c
unit_test_image_index_SOURCES = unit/test-image-index.c
unit_test_image_index_LDADD = harness/libharness.la $(LDADD)
unit_test_image_index_check_SOURCES = unit/test-image-index-check.c
unit_test_image_index_check_LDADD = harness/libharness.la $(LDADD)
unit_test_merkle_SOURCES = unit/test-merkle.c
unit_test_merkle_LDADD = harness/libharness.la $(LDADD)
unit_test_merkle_verify_SOURCES = unit/test-merkle-verify.c
unit_test_merkle_verify_LDADD = harness/libharness.la $(LDADD)
unit_test_profile_SOURCES = unit/test-profile.c
unit_test_profile_LDADD = harness/libharness.la $(LDADD)
unit_test_profile_convert_SOURCES = unit/test-profile-convert.c
unit_test_profile_convert_LDADD = harness/libharness.la $(LDADD)
unit_test_session_proto_SOURCES = unit/test-session-proto.c
unit_test_session_proto_reply_SOURCES = unit/test-session-proto-reply.c
unit_test_sha256_SOURCES = unit/test-sha256.c
unit_test_sha256_LDADD = harness/libharness.la $(LDADD) $(LIBCRYPTO_LIBS)
unit_test_segmenter_SOURCES = unit/test-segmenter.c
unit_test_segmenter_LDADD = harness/libharness.la $(LDADD)

unit_test_arena_SOURCES = unit/test-arena.c
unit_test_auto_rule_SOURCES = unit/test-auto-rule.c
unit_test_flight_SOURCES = unit/test-flight.c
unit_test_rate_limit_SOURCES = unit/test-rate-limit.c
unit_test_recording_SOURCES = unit/test-recording.c
unit_test_replay_plan_SOURCES = unit/test-replay-plan.c
unit_test_tag_SOURCES = unit/test-tag.c
unit_test_pack_SOURCES = unit/test-pack.c
unit_test_store_SOURCES = unit/test-store.c
unit_test_store_profiles_SOURCES = unit/test-store-profiles.c
unit_test_store_tags_SOURCES = unit/test-store-tags.c
unit_test_store_verify_SOURCES = unit/test-store-verify.c

# Parts of the plugin.
driver_ldadd = $(top_builddir)/nbdkit-plugin/libdriver.la $(LDADD)
unit_test_direct_export_SOURCES = unit/test-direct-export.c
unit_test_direct_export_LDADD = $(driver_ldadd)
unit_test_filters_SOURCES = unit/test-filters.c
unit_test_filters_LDADD = $(driver_ldadd)
unit_test_mapper_SOURCES = unit/test-mapper.c
unit_test_mapper_LDADD = $(driver_ldadd)
unit_test_recording_log_SOURCES = unit/test-recording-log.c
unit_test_recording_log_LDADD = $(driver_ldadd)
unit_test_reply_memory_SOURCES = unit/test-reply-memory.c
unit_test_reply_memory_LDADD = $(driver_ldadd)

unit_test_tls_psk_SOURCES = unit/test-tls-psk.c
unit_test_log_SOURCES = unit/test-log.c
unit_test_meta_context_SOURCES = unit/test-meta-context.c
unit_test_nbd_errno_SOURCES = unit/test-nbd-errno.c

if CAN_RUN_CRITERION
check_PROGRAMS += $(unit_programs)
TESTS += $(unit_programs)
endif

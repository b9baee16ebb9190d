/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright the blobpager authors. */
/* The bugs of the broken server, and the checks that each must turn red:
 *
 *   "="  these and no other
 *   "~"  these and no other of their groups; the rest is not looked at
 *   "+"  these, and others that cannot get that far, which is too much to
 *        list, or takes the checks' time limits
 *
 * A line of broken-server --list-bugs, which test-conform-bugs.sh reads, is
 * a row of this table.
 */
#ifndef BP_CONFORM_BROKEN_BUGS_H
#define BP_CONFORM_BROKEN_BUGS_H

/* clang-format off */
#define BROKEN_BUGS(X) \
  X (BUG_NONE, "none", '=', "") \
  X (BUG_GREETING_MAGIC, "greeting-magic", '+', \
     "handshake/the-greeting-is-newstyle") \
  X (BUG_NO_FIXED_NEWSTYLE, "no-fixed-newstyle", '=', \
     "handshake/fixed-newstyle-is-set") \
  X (BUG_EXTRA_HANDSHAKE_FLAG, "extra-handshake-flag", '=', \
     "handshake/no-other-handshake-flags") \
  X (BUG_ANY_CLIENT_FLAGS, "any-client-flags", '=', \
     "handshake/an-unknown-client-flag-drops-the-connection") \
  X (BUG_UNMATCHED_CLIENT_FLAG, "unmatched-client-flag", '=', \
     "handshake/an-unmatched-client-flag-drops-the-connection") \
  X (BUG_UNKNOWN_OPTION_ACKED, "unknown-option-acked", '=', \
     "handshake/an-unknown-option-is-unsupported " \
     " handshake/an-unknown-option-is-skipped-whole " \
     " handshake/several-options-are-answered") \
  X (BUG_UNKNOWN_OPTION_NOT_SKIPPED, "unknown-option-not-skipped", '+', \
     "handshake/an-unknown-option-is-skipped-whole " \
     " handshake/the-data-of-an-option-is-not-parsed " \
     " handshake/several-options-are-answered") \
  X (BUG_LARGE_OPTION_ACKED, "large-option-acked", '=', \
     "handshake/a-large-option-is-refused-or-dropped") \
  X (BUG_ANY_OPTION_MAGIC, "any-option-magic", '=', \
     "handshake/a-wrong-magic-is-no-option") \
  X (BUG_ABORT_WITHOUT_REPLY, "abort-without-reply", '=', \
     "handshake/abort-is-acknowledged " \
     " handshake/abort-with-data-is-acknowledged") \
  X (BUG_ABORT_DATA_REFUSED, "abort-data-refused", '=', \
     "handshake/abort-with-data-is-acknowledged") \
  X (BUG_ABORT_ENDS_ALL, "abort-ends-all", '+', \
     "handshake/abort-without-waiting-is-harmless") \
  X (BUG_LOST_CLIENT_ENDS_ALL, "lost-client-ends-all", '+', \
     "handshake/lost-clients-are-harmless") \
  X (BUG_LOST_REQUEST_ENDS_ALL, "lost-request-ends-all", '+', \
     "several/lost-clients-are-harmless") \
  X (BUG_UNREAD_REPLIES_END_ALL, "unread-replies-end-all", '+', \
     "several/unread-replies-are-harmless") \
  X (BUG_SHORT_READS, "short-reads", '+', \
     "handshake/it-may-arrive-byte-by-byte " \
     " flow/a-request-may-arrive-byte-by-byte " \
     " flow/a-packet-may-end-inside-a-request " \
     " write/its-payload-may-come-in-pieces") \
  X (BUG_DROPS_BUFFERED, "drops-buffered", '+', \
     "handshake/flags-and-option-may-share-a-packet " \
     " flow/requests-may-share-a-packet " \
     " flow/a-request-may-share-a-packet-with-the-option") \
  X (BUG_OPTION_DROPS_REST, "option-drops-rest", '+', \
     "flow/a-request-may-share-a-packet-with-the-option") \
  X (BUG_WAITS_FOR_SILENT, "waits-for-silent", '+', \
     "handshake/silent-clients-block-nobody") \
  X (BUG_FEW_ZEROES, "few-zeroes", '+', \
     "export-name/124-zeroes-follow") \
  X (BUG_ALWAYS_ZEROES, "always-zeroes", '=', \
     "export-name/no-zeroes-follow-if-so-negotiated " \
     " flow/a-request-may-share-a-packet-with-the-option") \
  X (BUG_EXPORT_NAME_SIZE, "export-name-size", '=', \
     "export-name/it-says-the-same-as-go") \
  X (BUG_ANY_EXPORT_NAME, "any-export-name", '=', \
     "export-name/an-unknown-name-ends-the-session " \
     " export-name/an-overlong-name-ends-the-session") \
  X (BUG_OVERLONG_EXPORT_NAME, "overlong-export-name", '=', \
     "export-name/an-overlong-name-ends-the-session") \
  X (BUG_NO_PLAIN_NEWSTYLE, "no-plain-newstyle", '=', \
     "export-name/it-serves-clients-of-plain-newstyle") \
  X (BUG_NO_GO, "no-go", '=', \
     "info/info-and-go-are-implemented") \
  X (BUG_EXPORT_ITEM_MISSING, "export-item-missing", '+', \
     "info/info-and-go-are-implemented") \
  X (BUG_EXPORT_ITEM_ON_REQUEST, "export-item-on-request", '=', \
     "info/the-export-item-is-always-sent") \
  X (BUG_EXPORT_ITEM_LONG, "export-item-long", '=', \
     "info/the-export-item-has-12-bytes") \
  X (BUG_ITEM_TWICE, "item-twice", '=', \
     "info/an-item-appears-once") \
  X (BUG_UNKNOWN_REQUEST_REFUSED, "unknown-request-refused", '=', \
     "info/unknown-requests-are-ignored") \
  X (BUG_GO_OTHER_FLAGS, "go-other-flags", '=', \
     "export-name/it-says-the-same-as-go " \
     " info/go-says-the-same-as-info") \
  X (BUG_GO_PADDING, "go-padding", '=', \
     "info/go-sends-no-padding") \
  X (BUG_INFO_NAME_NUL, "info-name-nul", '=', \
     "info/names-are-strings") \
  X (BUG_NO_HAS_FLAGS, "no-has-flags", '=', \
     "info/has-flags-is-set") \
  X (BUG_DF_ALWAYS, "df-always", '=', \
     "info/df-is-clear-without-structured-replies") \
  X (BUG_FAST_ZERO_ALONE, "fast-zero-alone", '=', \
     "info/fast-zero-is-clear-without-write-zeroes") \
  X (BUG_UNKNOWN_EXPORT_INVALID, "unknown-export-invalid", '=', \
     "info/an-unknown-export-is-unknown") \
  X (BUG_LONGEST_NAME_CLOSES, "longest-name-closes", '=', \
     "info/the-longest-name-is-answered") \
  X (BUG_OVERLONG_NAME_SERVED, "overlong-name-served", '=', \
     "info/an-overlong-name-is-refused") \
  X (BUG_NUL_NAME_HANGS, "nul-name-hangs", '+', \
     "info/names-that-are-no-strings-are-survived") \
  X (BUG_EMPTY_NAME_CLOSES, "empty-name-closes", '=', \
     "info/the-default-export-may-be-asked-for") \
  X (BUG_INFO_NAME_UNCHECKED, "info-name-unchecked", '=', \
     "info/an-overlong-name-is-refused " \
     " info/a-name-longer-than-the-data-is-refused " \
     " info/a-name-length-that-wraps-is-refused") \
  X (BUG_INFO_NAME_WRAPS, "info-name-wraps", '=', \
     "info/an-overlong-name-is-refused " \
     " info/a-name-length-that-wraps-is-refused") \
  X (BUG_INFO_SHORT_TAKEN, "info-short-taken", '=', \
     "info/short-data-is-refused " \
     " info/a-go-that-failed-is-not-the-end") \
  X (BUG_INFO_COUNT_UNCHECKED, "info-count-unchecked", '=', \
     "info/a-wrong-count-of-requests-is-refused") \
  X (BUG_INFO_TRAILING_TAKEN, "info-trailing-taken", '=', \
     "info/trailing-data-is-refused") \
  X (BUG_FAILED_GO_IS_THE_END, "failed-go-is-the-end", '=', \
     "info/an-unknown-export-is-unknown " \
     " info/a-go-that-failed-is-not-the-end") \
  X (BUG_BLOCK_ITEM_LONG, "block-item-long", '=', \
     "block-size/the-item-has-14-bytes") \
  X (BUG_MINIMUM_3, "minimum-3", '+', \
     "block-size/the-minimum-is-sane") \
  X (BUG_PREFERRED_256, "preferred-256", '=', \
     "block-size/the-preferred-is-sane") \
  X (BUG_MAXIMUM_SMALL, "maximum-small", '=', \
     "block-size/the-maximum-is-sane " \
     " read/longer-than-the-maximum-block-is-invalid") \
  X (BUG_SIZE_NO_MULTIPLE, "size-no-multiple", '=', \
     "block-size/the-size-is-a-multiple-of-the-minimum " \
     " read/unaligned-is-invalid") \
  X (BUG_MINIMUM_NOT_KEPT, "minimum-not-kept", '=', \
     "read/unaligned-is-invalid") \
  X (BUG_MAXIMUM_NOT_KEPT, "maximum-not-kept", '=', \
     "block-size/the-maximum-is-sane " \
     " read/longer-than-the-maximum-block-is-invalid") \
  X (BUG_LIST_ACK_DATA, "list-ack-data", '=', \
     "list/it-ends-with-an-acknowledgement " \
     " list/a-name-fits-its-reply " \
     " list/names-are-strings " \
     " list/each-export-is-listed-once " \
     " list/what-is-listed-is-known") \
  X (BUG_LIST_NAME_LENGTH, "list-name-length", '=', \
     "list/a-name-fits-its-reply " \
     " list/what-is-listed-is-known") \
  X (BUG_LIST_NAME_NUL, "list-name-nul", '=', \
     "list/names-are-strings " \
     " list/what-is-listed-is-known") \
  X (BUG_LISTED_TWICE, "listed-twice", '=', \
     "list/each-export-is-listed-once") \
  X (BUG_LISTED_GHOST, "listed-ghost", '=', \
     "list/what-is-listed-is-known") \
  X (BUG_LIST_DATA_TAKEN, "list-data-taken", '=', \
     "list/data-is-refused") \
  X (BUG_LIST_META_EMPTY, "list-meta-empty", '=', \
     "meta/a-list-without-queries-returns-all") \
  X (BUG_CONTEXT_WITHOUT_COLON, "context-without-colon", '+', \
     "meta/names-have-a-namespace") \
  X (BUG_LIST_META_ID, "list-meta-id", '=', \
     "meta/ids-in-a-list-are-zero") \
  X (BUG_NO_BASE_WILDCARD, "no-base-wildcard", '=', \
     "meta/base-is-a-wildcard-in-a-list") \
  X (BUG_BASE_SELECTS, "base-selects", '=', \
     "meta/base-selects-nothing") \
  X (BUG_LIST_META_IGNORES_QUERY, "list-meta-ignores-query", '+', \
     "meta/base-is-a-wildcard-in-a-list " \
     " meta/a-list-matches-the-query " \
     " meta/an-unknown-namespace-is-ignored") \
  X (BUG_UNKNOWN_NAMESPACE_REFUSED, "unknown-namespace-refused", '=', \
     "meta/an-unknown-namespace-is-ignored " \
     " meta/many-queries-are-answered " \
     " meta/set-selects-beside-what-is-unknown " \
     " meta/a-set-replaces-what-was-set") \
  X (BUG_UNKNOWN_LEAF_REFUSED, "unknown-leaf-refused", '=', \
     "meta/an-unknown-leaf-is-ignored " \
     " meta/set-selects-beside-what-is-unknown") \
  X (BUG_COLON_OPTIONAL, "colon-optional", '=', \
     "meta/a-query-without-a-colon-finds-nothing") \
  X (BUG_MANY_QUERIES_CLOSE, "many-queries-close", '=', \
     "meta/many-queries-are-answered " \
     " meta/more-queries-promised-than-sent-are-invalid") \
  X (BUG_SET_SELECTS_MORE, "set-selects-more", '+', \
     "meta/set-selects-what-it-names " \
     " meta/set-selects-beside-what-is-unknown " \
     " block-status/one-chunk-for-each-context") \
  X (BUG_SET_STOPS_AT_UNKNOWN, "set-stops-at-unknown", '=', \
     "meta/set-selects-beside-what-is-unknown " \
     " meta/trailing-data-is-invalid") \
  X (BUG_EQUAL_IDS, "equal-ids", '=', \
     "meta/ids-are-unique") \
  X (BUG_EMPTY_SET_SELECTS, "empty-set-selects", '=', \
     "meta/a-set-without-queries-selects-none") \
  X (BUG_SET_ADDS, "set-adds", '=', \
     "meta/a-set-replaces-what-was-set " \
     " meta/a-set-that-failed-clears-what-was-set") \
  X (BUG_FAILED_SET_KEEPS, "failed-set-keeps", '=', \
     "meta/a-set-that-failed-clears-what-was-set") \
  X (BUG_SET_OF_ANY_EXPORT, "set-of-any-export", '=', \
     "meta/a-set-of-another-export-selects-none") \
  X (BUG_INFO_CLEARS_SELECTION, "info-clears-selection", '=', \
     "meta/a-selection-lasts-until-go") \
  X (BUG_META_QUERY_UNCHECKED, "meta-query-unchecked", '=', \
     "meta/a-query-longer-than-the-data-is-invalid") \
  X (BUG_META_NAME_UNCHECKED, "meta-name-unchecked", '=', \
     "meta/a-set-of-another-export-selects-none " \
     " meta/a-name-longer-than-the-data-is-invalid " \
     " meta/short-data-is-invalid") \
  X (BUG_META_COUNT_UNCHECKED, "meta-count-unchecked", '=', \
     "meta/more-queries-promised-than-sent-are-invalid") \
  X (BUG_META_SHORT_TAKEN, "meta-short-taken", '=', \
     "meta/a-set-that-failed-clears-what-was-set " \
     " meta/short-data-is-invalid") \
  X (BUG_META_TRAILING_TAKEN, "meta-trailing-taken", '=', \
     "meta/trailing-data-is-invalid") \
  X (BUG_EARLY_SET_META_TAKEN, "early-set-meta-taken", '=', \
     "meta/set-needs-structured-replies") \
  X (BUG_EARLY_LIST_META_CLOSES, "early-list-meta-closes", '=', \
     "meta/list-may-need-structured-replies") \
  X (BUG_WRONG_BYTE, "wrong-byte", '+', \
     "read/it-sends-what-is-asked " \
     " read/the-export-is-the-reference " \
     " commands/cache-changes-nothing " \
     " flow/pipelined-reads-are-sorted-by-cookie " \
     " flow/a-thousand-may-be-in-flight " \
     " several/many-clients-at-once " \
     " structured/the-bytes-are-those-of-simple-replies") \
  X (BUG_BYTES_VARY, "bytes-vary", '+', \
     "read/the-same-bytes-again") \
  X (BUG_STRUCTURED_OTHER_BYTES, "structured-other-bytes", '+', \
     "structured/the-bytes-are-those-of-simple-replies " \
     " structured/df-sends-one-chunk " \
     " structured/a-repeated-request-is-harmless " \
     " flow/pipelined-structured-reads-are-sorted-by-cookie") \
  X (BUG_LAST_BYTE_FAILS, "last-byte-fails", '+', \
     "read/it-reaches-the-last-byte") \
  X (BUG_ODD_READS_REFUSED, "odd-reads-refused", '+', \
     "read/odd-offsets-and-lengths") \
  X (BUG_LONG_READS_REFUSED, "long-reads-refused", '+', \
     "read/nearly-2^25-bytes-are-no-attack") \
  X (BUG_OFFSET_32_BIT, "offset-32-bit", '+', \
     "read/beyond-4-gib") \
  X (BUG_READ_ACROSS_END, "read-across-end", '=', \
     "read/across-the-end-is-invalid") \
  X (BUG_READ_AT_END_IO, "read-at-end-io", '=', \
     "read/at-the-end-is-invalid") \
  X (BUG_OFFSET_SIGNED, "offset-signed", '=', \
     "read/far-beyond-is-invalid " \
     " block-status/beyond-the-end-is-invalid") \
  X (BUG_END_WRAPS, "end-wraps", '=', \
     "read/an-end-that-wraps-is-invalid " \
     " commands/cache-beyond-the-end-is-survived " \
     " block-status/an-end-that-wraps-is-invalid") \
  X (BUG_LONGEST_READ_CLOSES, "longest-read-closes", '=', \
     "read/an-end-that-wraps-is-invalid " \
     " read/longer-than-the-export-is-invalid") \
  X (BUG_EMPTY_READ_CLOSES, "empty-read-closes", '=', \
     "read/no-bytes-do-not-disconnect") \
  X (BUG_REFUSED_READ_PAYLOAD, "refused-read-payload", '+', \
     "read/a-refusal-has-no-payload") \
  X (BUG_WRITE_SUCCEEDS, "write-succeeds", '=', \
     "write/it-fails " \
     " write/it-is-not-permitted " \
     " write/nearly-2^25-bytes-are-no-attack " \
     " write/beyond-the-end-fails " \
     " write/pipelined-writes-are-answered " \
     " errors/a-write-with-an-unknown-flag-is-read-over") \
  X (BUG_WRITE_IO_ERROR, "write-io-error", '=', \
     "write/it-is-not-permitted " \
     " write/beyond-the-end-fails") \
  X (BUG_WRITE_NOT_SKIPPED, "write-not-skipped", '+', \
     "write/its-payload-is-read-over " \
     " write/its-payload-is-not-parsed " \
     " write/pipelined-writes-are-answered") \
  X (BUG_WRITE_CHANGES, "write-changes", '+', \
     "write/no-byte-changes") \
  X (BUG_LARGE_WRITE_CLOSES, "large-write-closes", '=', \
     "write/its-payload-is-read-over " \
     " write/nearly-2^25-bytes-are-no-attack") \
  X (BUG_EMPTY_WRITE_CLOSES, "empty-write-closes", '=', \
     "write/no-bytes-do-not-disconnect") \
  X (BUG_WRITE_BEYOND_SUCCEEDS, "write-beyond-succeeds", '=', \
     "write/beyond-the-end-fails") \
  X (BUG_TRIM_SUCCEEDS, "trim-succeeds", '=', \
     "write/trim-is-not-permitted") \
  X (BUG_ZEROES_SUCCEED, "zeroes-succeed", '=', \
     "write/write-zeroes-is-not-permitted") \
  X (BUG_EMPTY_TRIM_CLOSES, "empty-trim-closes", '=', \
     "write/a-trim-of-no-bytes-does-not-disconnect") \
  X (BUG_UNKNOWN_COMMAND_CLOSES, "unknown-command-closes", '=', \
     "errors/an-unknown-command-is-invalid " \
     " errors/an-unknown-command-has-no-payload") \
  X (BUG_UNKNOWN_COMMAND_PAYLOAD, "unknown-command-payload", '+', \
     "errors/an-unknown-command-has-no-payload") \
  X (BUG_UNKNOWN_FLAG_TAKEN, "unknown-flag-taken", '=', \
     "errors/an-unknown-flag-is-invalid") \
  X (BUG_OTHER_FLAG_TAKEN, "other-flag-taken", '=', \
     "errors/a-flag-of-another-command-is-invalid") \
  X (BUG_DF_TAKEN, "df-taken", '=', \
     "errors/df-without-structured-replies-is-invalid") \
  X (BUG_REFUSED_FLAG_PAYLOAD, "refused-flag-payload", '=', \
     "errors/an-unknown-flag-is-invalid " \
     " errors/a-flag-of-another-command-is-invalid " \
     " errors/df-without-structured-replies-is-invalid " \
     " errors/a-refused-flag-has-no-payload") \
  X (BUG_WRITE_FLAG_NOT_SKIPPED, "write-flag-not-skipped", '=', \
     "errors/a-write-with-an-unknown-flag-is-read-over") \
  X (BUG_ERROR_NOT_DEFINED, "error-not-defined", '=', \
     "read/an-end-that-wraps-is-invalid " \
     " errors/they-are-of-the-defined-values " \
     " block-status/an-end-that-wraps-is-invalid") \
  X (BUG_ERROR_NOT_SUPPORTED, "error-not-supported", '=', \
     "errors/special-values-are-for-special-cases") \
  X (BUG_ERRORS_RUN_OUT, "errors-run-out", '=', \
     "errors/many-are-survived " \
     " flow/errors-find-their-requests") \
  X (BUG_FLUSH_FAILS, "flush-fails", '=', \
     "commands/flush-succeeds-if-advertised") \
  X (BUG_FLUSH_CLOSES, "flush-closes", '=', \
     "commands/flush-is-answered-in-any-case " \
     " commands/fua-is-accepted-if-advertised") \
  X (BUG_FUA_REFUSED, "fua-refused", '=', \
     "commands/fua-is-accepted-if-advertised") \
  X (BUG_FUA_TAKEN, "fua-taken", '=', \
     "commands/fua-is-invalid-otherwise") \
  X (BUG_CACHE_PAYLOAD, "cache-payload", '=', \
     "commands/cache-changes-nothing " \
     " commands/cache-beyond-the-end-is-survived") \
  X (BUG_CACHE_FLAG_TAKEN, "cache-flag-taken", '=', \
     "commands/cache-rejects-unknown-flags") \
  X (BUG_CACHE_BEYOND_TAKEN, "cache-beyond-taken", '=', \
     "commands/cache-beyond-the-end-is-survived") \
  X (BUG_DISC_REPLIES, "disc-replies", '=', \
     "commands/disc-closes-without-a-reply " \
     " commands/disc-closes-structured-sessions-too " \
     " commands/disc-answers-what-is-in-flight") \
  X (BUG_DISC_IGNORED, "disc-ignored", '+', \
     "commands/disc-closes-structured-sessions-too") \
  X (BUG_DISC_DROPS, "disc-drops", '=', \
     "commands/disc-answers-what-is-in-flight") \
  X (BUG_COOKIE_OF_HALF, "cookie-of-half", '+', \
     "flow/cookies-are-echoed") \
  X (BUG_COOKIE_OF_THE_NEXT, "cookie-of-the-next", '+', \
     "flow/requests-may-share-a-packet") \
  X (BUG_COOKIE_ONCE, "cookie-once", '=', \
     "flow/cookies-are-echoed " \
     " flow/a-cookie-may-be-used-again " \
     " flow/equal-cookies-are-both-answered") \
  X (BUG_EQUAL_COOKIES_ONCE, "equal-cookies-once", '+', \
     "flow/equal-cookies-are-both-answered") \
  X (BUG_ERROR_WITHOUT_COOKIE, "error-without-cookie", '+', \
     "flow/errors-find-their-requests") \
  X (BUG_FEW_IN_FLIGHT, "few-in-flight", '=', \
     "write/pipelined-writes-are-answered " \
     " flow/a-thousand-may-be-in-flight") \
  X (BUG_FEW_BYTES, "few-bytes", '+', \
     "flow/large-reads-may-be-in-flight") \
  X (BUG_ANY_REQUEST_MAGIC, "any-request-magic", '=', \
     "flow/a-wrong-magic-is-no-request") \
  X (BUG_CLIENTS_DIFFER, "clients-differ", '+', \
     "several/clients-see-the-same") \
  X (BUG_FEW_CLIENTS, "few-clients", '+', \
     "several/many-clients-at-once") \
  X (BUG_SLOW_READER_BLOCKS, "slow-reader-blocks", '+', \
     "several/a-slow-reader-blocks-nobody") \
  X (BUG_STRUCTURED_ACK_DATA, "structured-ack-data", '+', \
     "structured/the-request-is-acknowledged") \
  X (BUG_STRUCTURED_DATA_TAKEN, "structured-data-taken", '=', \
     "structured/data-in-the-request-is-refused") \
  X (BUG_STRUCTURED_TWICE_CLOSES, "structured-twice-closes", '=', \
     "structured/a-repeated-request-is-harmless") \
  X (BUG_STRUCTURED_ALWAYS, "structured-always", '+', \
     "structured/not-used-unless-negotiated") \
  X (BUG_READ_SIMPLE, "read-simple", '=', \
     "structured/a-read-is-answered-so " \
     " chunks/they-cover-the-request " \
     " chunks/the-last-is-marked") \
  X (BUG_REFUSED_READ_SIMPLE, "refused-read-simple", '=', \
     "structured/a-refused-read-is-answered-so") \
  X (BUG_DF_FRAGMENTS, "df-fragments", '=', \
     "structured/df-sends-one-chunk " \
     " structured/df-of-more-overflows-or-is-one-chunk") \
  X (BUG_DF_OVERFLOWS, "df-overflows", '=', \
     "structured/df-sends-one-chunk " \
     " structured/df-of-64-kib-is-supported") \
  X (BUG_DF_OVERFLOW_CONTENT, "df-overflow-content", '=', \
     "structured/df-of-more-overflows-or-is-one-chunk") \
  X (BUG_CHUNK_MISSING, "chunk-missing", '=', \
     "flow/pipelined-structured-reads-are-sorted-by-cookie " \
     " structured/the-bytes-are-those-of-simple-replies " \
     " chunks/they-cover-the-request") \
  X (BUG_CHUNK_OVERLAPS, "chunk-overlaps", '=', \
     "chunks/they-do-not-overlap " \
     " chunks/they-are-whole-sectors") \
  X (BUG_CHUNK_OUTSIDE, "chunk-outside", '+', \
     "chunks/they-lie-within-the-request") \
  X (BUG_CHUNK_EMPTY, "chunk-empty", '+', \
     "chunks/none-is-empty") \
  X (BUG_CHUNK_ODD, "chunk-odd", '=', \
     "chunks/they-are-whole-sectors") \
  X (BUG_NEVER_DONE, "never-done", '+', \
     "chunks/the-last-is-marked") \
  X (BUG_DONE_TWICE, "done-twice", '+', \
     "chunks/the-last-is-marked") \
  X (BUG_CHUNK_FLAG, "chunk-flag", '=', \
     "chunks/they-have-no-other-flags " \
     " block-status/the-reply-is-structured") \
  X (BUG_CHUNK_TYPE_UNKNOWN, "chunk-type-unknown", '=', \
     "chunks/they-have-types-for-their-request") \
  X (BUG_NONE_WITH_DATA, "none-with-data", '=', \
     "chunks/none-type-is-final-and-empty") \
  X (BUG_NONE_BEFORE_THE_END, "none-before-the-end", '=', \
     "chunks/none-type-is-final-and-empty") \
  X (BUG_HOLE_LONG, "hole-long", '=', \
     "chunks/a-hole-has-12-bytes") \
  X (BUG_ERROR_ZERO, "error-zero", '+', \
     "chunks/an-error-is-not-zero") \
  X (BUG_ERROR_MESSAGE_LONG, "error-message-long", '=', \
     "chunks/an-error-message-fits " \
     " chunks/an-error-offset-lies-within-the-request") \
  X (BUG_ERROR_OFFSET_OUTSIDE, "error-offset-outside", '=', \
     "chunks/an-error-offset-lies-within-the-request") \
  X (BUG_STATUS_UNSTRUCTURED, "status-unstructured", '=', \
     "block-status/it-needs-structured-replies") \
  X (BUG_STATUS_WITHOUT_CONTEXT, "status-without-context", '=', \
     "meta/a-set-without-queries-selects-none " \
     " meta/a-set-replaces-what-was-set " \
     " meta/a-set-that-failed-clears-what-was-set " \
     " meta/a-set-of-another-export-selects-none " \
     " block-status/it-needs-a-context") \
  X (BUG_STATUS_SIMPLE, "status-simple", '+', \
     "block-status/the-reply-is-structured") \
  X (BUG_STATUS_TWICE, "status-twice", '+', \
     "block-status/one-chunk-for-each-context") \
  X (BUG_STATUS_OF_ONE_CONTEXT, "status-of-one-context", '=', \
     "block-status/several-contexts-are-answered") \
  X (BUG_STATUS_LENGTH, "status-length", '+', \
     "block-status/a-length-is-4-and-eights") \
  X (BUG_REQ_ONE_IGNORED, "req-one-ignored", '=', \
     "block-status/req-one-is-one-extent") \
  X (BUG_STATUS_BEYOND, "status-beyond", '=', \
     "block-status/beyond-the-end-is-invalid") \
  X (BUG_STATUS_WRAPS, "status-wraps", '=', \
     "block-status/an-end-that-wraps-is-invalid") \
  X (BUG_EMPTY_STATUS_CLOSES, "empty-status-closes", '=', \
     "block-status/no-bytes-do-not-disconnect") \
  X (BUG_STATUS_FLAG_TAKEN, "status-flag-taken", '=', \
     "block-status/an-unknown-flag-is-invalid") \
  X (BUG_EXTENT_EMPTY, "extent-empty", '=', \
     "block-status/req-one-is-one-extent " \
     " extents/none-is-empty " \
     " extents/neighbours-differ " \
     " extents/a-walk-reaches-the-end " \
     " extents/an-odd-question-is-answered-from-its-offset") \
  X (BUG_EXTENTS_OF_MORE, "extents-of-more", '=', \
     "block-status/req-one-is-one-extent " \
     " extents/only-the-last-may-go-beyond-the-question") \
  X (BUG_EXTENT_BEYOND_EXPORT, "extent-beyond-export", '=', \
     "block-status/req-one-is-one-extent " \
     " extents/they-lie-within-the-export " \
     " extents/they-are-whole-blocks") \
  X (BUG_EXTENT_OF_HALF_A_BLOCK, "extent-of-half-a-block", '=', \
     "read/unaligned-is-invalid " \
     " extents/they-are-whole-blocks " \
     " extents/neighbours-differ") \
  X (BUG_EXTENTS_EQUAL, "extents-equal", '=', \
     "extents/neighbours-differ") \
  X (BUG_EXTENT_RESERVED_BIT, "extent-reserved-bit", '=', \
     "extents/reserved-bits-are-clear") \
  X (BUG_ZERO_LIES, "zero-lies", '=', \
     "extents/zero-reads-as-zeroes " \
     " extents/an-odd-question-is-answered-from-its-offset") \
  X (BUG_EXTENT_FROM_BEFORE, "extent-from-before", '+', \
     "extents/an-odd-question-is-answered-from-its-offset") \
  X (BUG_STARTTLS_DEMANDS_TLS, "starttls-demands-tls", '=', \
     "tls/starttls-is-answered") \
  X (BUG_STARTTLS_CLOSES, "starttls-closes", '=', \
     "tls/a-refused-starttls-is-not-the-end " \
     " tls/starttls-with-data-is-refused") \
  X (BUG_STARTTLS_DATA_TAKEN, "starttls-data-taken", '=', \
     "tls/starttls-with-data-is-refused") \
  X (BUG_LIST_DEMANDS_TLS, "list-demands-tls", '+', \
     "tls/a-server-without-tls-never-demands-it " \
     " list/it-ends-with-an-acknowledgement") \
  X (BUG_NONE_BUT_TLS, "none-but-tls", '=', "") \
  X (BUG_TLS_STRUCTURED, "tls-structured", '=', \
     "tls/demanded-for-other-options") \
  X (BUG_TLS_EXPORT_NAME, "tls-export-name", '=', \
     "tls/demanded-for-export-name") \
  X (BUG_TLS_ABORT, "tls-abort", '=', \
     "tls/not-demanded-for-abort") \
  X (BUG_TLS_NOISE_TAKEN, "tls-noise-taken", '+', \
     "tls/a-failed-handshake-ends-the-session") \
  X (BUG_OVER_TLS, "over-tls", '=', "") \
  X (BUG_OVER_TLS_SECOND_TAKEN, "over-tls-second-taken", '~', \
     "tls/a-second-starttls-is-invalid") \
  X (BUG_OVER_TLS_NOT_CLOSED, "over-tls-not-closed", '~', \
     "tls/disc-closes-it-first") \
  X (BUG_OVER_TLS_STATE_KEPT, "over-tls-state-kept", '~', \
     "tls/earlier-state-is-forgotten") \
  X (BUG_OVER_TLS_1_3_ALONE, "over-tls-1-3-alone", '~', \
     "tls/version-1.2-is-supported") \
  X (BUG_OVER_TLS_ANSWERS_PLAIN, "over-tls-answers-plain", '+', \
     "tls/everything-goes-over-it") \
  X (BUG_OVER_TLS_PLAIN_KEPT, "over-tls-plain-kept", '~', \
     "tls/plain-text-is-not-taken-over")
/* clang-format on */

enum bug {
#define X(id, name, kind, checks) id,
  BROKEN_BUGS (X)
#undef X
};

#endif /* BP_CONFORM_BROKEN_BUGS_H */

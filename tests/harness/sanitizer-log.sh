#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sanitizer-log.sh CMD ARG...: run a test, and fail it if a sanitizer said
# anything, whatever its exit status: Criterion runs tests in children and
# a report there does not reach the status of the parent.

out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$@" > "$out" 2>&1
status=$?
cat "$out"
if grep -qE 'ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error: ' "$out"; then
  echo "FAILED: a sanitizer reported"
  exit 1
fi
exit $status

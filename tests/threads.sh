#!/bin/sh
# threads.sh PROGRAM…: runs tests that were built with SAN=thread; ends in "N passed, N failed", one for each program.
export TSAN_OPTIONS="suppressions=$(dirname "$0")/tsan.supp halt_on_error=0 exitcode=66 ${TSAN_OPTIONS:-}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
for program; do
	if "$program" > "$log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$program:"
		grep -v '^\[ RUN \|^\[       OK' "$log"
	fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]

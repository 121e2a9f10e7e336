#!/bin/sh
# ptx.sh TLC COMMANDS TARGET...: compiles every variant that `test-run --sources DIR` listed in DIR/commands for each
# target, through ptxas where it is installed. Prints the command lines that fail and why; JOBS at a time.
tlc=$1
commands=$2
shift 2
kind=ptx
{ command -v ptxas || test -x /usr/local/cuda/bin/ptxas; } >/dev/null && kind=cubin
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for target; do
	sed "s|\$| --target cuda:$target --emit $kind -o /dev/null|" "$commands"
done > "$dir/all"
# one shell a line: the line has quoted arguments
tr '\n' '\0' < "$dir/all" | xargs -0 -P "${JOBS:-$(nproc)}" -I{} sh -c '
	err=$(eval "timeout 300 $1 $2" 2>&1 >/dev/null)
	code=$?
	[ $code = 0 ] || printf "exit %d: %s\n%s\n" $code "$2" "$(printf %s "$err" | head -n 12)"' sh "$tlc" {} > "$dir/failed"
cat "$dir/failed"
total=$(wc -l < "$dir/all")
failed=$(grep -c '^exit [0-9]*: ' "$dir/failed")
echo "$((total - failed)) passed, $failed failed"
[ "$failed" = 0 ]

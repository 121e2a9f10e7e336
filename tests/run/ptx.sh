#!/bin/sh
# ptx.sh TLC COMMANDS TARGET...: compiles every variant that `test-run --sources DIR` listed in DIR/commands for each
# target, through ptxas where it is installed. Prints the command lines that fail and why; JOBS at a time. A variant that
# needs more shared memory than the target has, and is refused for that, is counted apart.
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
	case $code:$err in
	0:*) ;;
	1:*": error: kernel "*" bytes of shared memory, and a block may use "*) echo "too large: $2" ;;
	*) printf "exit %d: %s\n%s\n" $code "$2" "$(printf %s "$err" | head -n 12)" ;;
	esac' sh "$tlc" {} > "$dir/failed"
grep -v '^too large: ' "$dir/failed"
total=$(wc -l < "$dir/all")
failed=$(grep -c '^exit [0-9]*: ' "$dir/failed")
large=$(grep -c '^too large: ' "$dir/failed")
[ "$large" = 0 ] || echo "$large too large for the target's shared memory"
echo "$((total - failed - large)) passed, $failed failed"
[ "$failed" = 0 ]

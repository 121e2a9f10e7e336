#!/bin/sh
# ahead.sh BUILD [COUNT]: random loops over tiles (test-random --kind tiles) that ask for several stages have their loads issued ahead,
# however their counters are written; but those that move the tile's number where they store, too. Ends in "N passed, N failed".
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$build/test-random" --sources "$dir" --kind tiles --count "${2:-60}" > "$dir/log"
npass=0 nfail=0
while read -r command; do
	kernel=${command%% *}
	case $command in
	*"--num-stages 1"*) continue ;;
	esac
	# in the branch of a tile's end, which stores
	awk '/^ *(if|for) / { stores = 0 } /tl.store\(c_ptr/ { stores = 1 } /^ *tile \+= 1$/ && stores { found = 1 } END { exit !found }' "$kernel" && continue
	if eval "'$build/tlc' $command --target cuda:sm_90a --remarks --emit ptx -o /dev/null" > "$dir/out" 2>&1 < /dev/null &&
		! grep -q 'remark: loop: not pipelined' "$dir/out"; then
		npass=$((npass + 1))
	else
		nfail=$((nfail + 1))
		echo "$command"
		cat "$kernel" "$dir/out"
	fi
done < "$dir/commands"
echo "$npass passed, $nfail failed"
[ $nfail = 0 ] && [ $npass != 0 ]

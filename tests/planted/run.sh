#!/bin/sh
# run.sh BUILD [NAME…]: faults planted into the analyses and passes, one at a time, each of which the checks of tests/run must
# find. Works on a copy of the tree and of BUILD. Prints a table; the last line is "N passed, N failed".
#
# A line of `faults`: name, file, sed commands, what it is; between tabs. A fault whose commands change nothing has failed.
# A check finds a fault by a case that fails and does not fail without it.
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-build}
[ $# -gt 0 ] && shift
work=$(mktemp -d /tmp/planted-XXXXXX) || exit 2
trap 'rm -rf "$work"' EXIT
(cd "$root" && tar -c --exclude=.git --exclude=./build* . && tar -c "$build") | tar -x -i -C "$work"
cd "$work" || exit 2
export TL_TESTS=$work/tests/run
npass=0 nfail=0

# check NUMBER FILE: the failing cases of one of the checks. Quick ones first. FILE.why: what it says of them.
check() {
	case $1 in
	1) promises=,promises every_pass "$build/test-random" --kind tree --seed 1000 --count 60 ;;
	2) every_pass "$build/test-random" --kind random --seed 1000 --count 40 ;;
	3) promises=,promises every_pass "$build/test-random" --kind tree --seed 2000 --count 500 ;;
	4) every_pass "$build/test-random" --kind random --seed 2000 --count 400 ;;
	5) every_pass "$build/test-run" --shard 1/12 ;;
	6) TL_DEVICE=sim timeout 120 "$build/test-random" --kind tree --seed 1000 --count 150 ;;
	7) TL_DEVICE=sim timeout 300 "$build/test-run" --shard 1/40 ;;
	8) TL_DEVICE=sim timeout 300 "$build/test-random" --kind pipelines --seed 1000 --count 60 ;;
	9) TL_DEVICE=sim timeout 600 "$build/test-random" --kind pipelines --seed 2000 --count 400 ;;
	10) TL_DEVICE=sim timeout 300 "$build/test-run" attention ;;
	11) TL_DEVICE=cpu timeout 300 "$build/test-run" --shard 1/10 ;;
	12) TL_DEVICE=cpu timeout 300 "$build/test-random" --kind random --seed 1000 --count 60 ;;
	13) TL_DEVICE=cpu timeout 300 "$build/test-random" --kind tree --seed 1000 --count 100 ;;
	14) TL_DEVICE=cpu timeout 300 "$build/test-random" --kind pipelines --seed 1000 --count 60 ;;
	15) TL_DEVICE=cpu timeout 300 "$build/test-run" alias ;;
	16) TL_DEVICE=cpu timeout 300 "$build/test-run" memory/ ;;
	17) TL_DEVICE=cpu timeout 300 "$build/test-run" control/ ;;
	18) TL_CPU=avx2 TL_DEVICE=cpu timeout 300 "$build/test-random" --kind edges --seed 1000 --count 150 ;;
	19) TL_DEVICE=cpu LD_PRELOAD=$work/$build/tests/libamx.so timeout 300 "$build/test-random" --kind edges --seed 1000 ;;
	20) TL_DEVICE=cpu LD_PRELOAD=$work/$build/tests/libamx.so timeout 300 "$build/test-run" dot ;;
	21) TL_DEVICE=cpu timeout 300 "$build/test-run" cast ;;
	22) TL_DEVICE=sim timeout 300 "$build/test-run" matmul/ ;;
	23) TL_DEVICE=cpu timeout 300 "$build/test-random" --kind edges --seed 1000 --count 1200 ;;
	24) TL_DEVICE=cpu LD_PRELOAD=$work/$build/tests/libamx.so timeout 300 "$build/test-random" --kind products --seed 1000 --count 300 ;;
	25) TL_CPU_CACHE=1 TL_DEVICE=cpu timeout 300 "$build/test-run" memory/ ;;
	26) TL_DEVICE=sim timeout 300 "$build/test-run" "turns of" ;;
	27) TL_DEVICE=sim timeout 300 "$build/test-run" "few blocks" ;;
	28) TL_DEVICE=sim timeout 300 "$build/test-run" control/groups ;;
	29) TL_DEVICE=sim timeout 300 "$build/test-random" --kind dots --seed 1000 --count 300 ;;
	30) every_pass "$build/test-random" --kind tiles --seed 1000 --count 400 ;;
	31) every_pass "$build/test-random" --kind tiles --seed 1000 --count 120 ;;
	32) every_pass "$build/test-random" --kind offsets --seed 1000 --count 100 ;;
	33) TL_DEVICE=sim timeout 300 "$build/test-random" --kind pairs --seed 1000 --count 100 ;;
	34) TL_DEVICE=sim timeout 300 "$build/test-random" --kind weights --seed 1000 --count 400 ;;
	35) TL_DEVICE=sim timeout 300 "$build/test-run" dot/across ;;
	esac 2>&1 | sed -n 's/^FAIL  //p' > "$2.why"
	sed 's/:.*//' "$2.why" | sort > "$2"
}
every_pass() {
	TL_DEVICE=interp TL_INTERP_CHECK=passes,facts$promises timeout 300 "$@"
}
# checks FILE: those for faults in this file
checks() {
	case $1 in
	*/persistent.c | */program_order.c) echo "${CHECKS:-27}" ;;
	*/cta_pair.c | */codegen/tma.c) echo "${CHECKS:-33}" ;;
	*/pipeline/* | */barriers.c | */completion.c) echo "${CHECKS:-26 35 33 34 8 9 10 7 22 29}" ;;
	*/bit_fields.c) echo "${CHECKS:-34}" ;;
	*/codegen/wgmma.c | */codegen/shared.c | */codegen/nvptx.c) echo "${CHECKS:-22 34 10}" ;;
	*/allocate.c) echo "${CHECKS:-29}" ;;
	*/cpu/streaming_stores.c) echo "${CHECKS:-25}" ;;
	*/cpu/amx.c) echo "${CHECKS:-19 20}" ;;
	*/launch_bounds.c) echo "${CHECKS:-31 32 1}" ;;
	*/modulo_to_mask.c | */analysis/demanded_rows.c) echo "${CHECKS:-23 18 22}" ;;
	*/strength_reduction.c) echo "${CHECKS:-16 30 1 2 8 9 3 4 5}" ;;
	*/unflatten_loops.c | */if_conversion.c) echo "${CHECKS:-30}" ;;
	*/induction_divisions.c) echo "${CHECKS:-28}" ;;
	*/index_set_splitting.c | */conditions.c) echo "${CHECKS:-1 2 8 9 3 4 5 6 7}" ;;
	*/bounded_tiles.c | */uniform_offsets.c) echo "${CHECKS:-22}" ;;
	*/cpu/convert.c) echo "${CHECKS:-21 12 18 13 11}" ;;
	*/cpu/*) echo "${CHECKS:-15 12 18 13 14 16 17 11 20 24}" ;;
	*) echo "${CHECKS:-1 2 3 4 5 6 7}" ;;
	esac
}
say() {
	case $1 in
	1 | 3) echo "trees, every pass, facts" ;;
	2 | 4) echo "tiles, every pass, facts" ;;
	5) echo "test-run --every-pass" ;;
	6) echo "trees on sim" ;;
	7) echo "test-run on sim" ;;
	8 | 9) echo "pipelines on sim" ;;
	10) echo "attention on sim" ;;
	11) echo "test-run on cpu" ;;
	12) echo "tiles on cpu" ;;
	13) echo "trees on cpu" ;;
	14) echo "pipelines on cpu" ;;
	15) echo "aliases on cpu" ;;
	16) echo "memory on cpu" ;;
	17) echo "control flow on cpu" ;;
	18 | 23) echo "edges on cpu" ;;
	19) echo "edges on cpu with tiles" ;;
	20) echo "dots on cpu with tiles" ;;
	21) echo "casts on cpu" ;;
	24) echo "products on cpu with tiles" ;;
	25) echo "stores past the cache on cpu" ;;
	22) echo "products on sim" ;;
	28) echo "groups on sim" ;;
	29) echo "dots on sim" ;;
	33) echo "pairs on sim" ;;
	34) echo "weights on sim" ;;
	35) echo "operands across k on sim" ;;
	30 | 31) echo "tiles, every pass, facts" ;;
	32) echo "offsets, every pass, facts" ;;
	26) echo "turns from tile to tile on sim" ;;
	27) echo "few blocks on sim" ;;
	esac
}

make BUILD="$build" CC="${CC:-gcc}" "$build/libtl.so" "$build/test-run" "$build/test-random" "$build/tests/libamx.so" > make.log 2>&1 || { cat make.log; exit 2; }
cp "$build/libtl.so" base.so
# before K: what K finds without a fault, once
before() {
	[ -f "base.$1" ] && return
	cp "$build/libtl.so" now.so
	cp base.so "$build/libtl.so"
	check "$1" "base.$1"
	cp now.so "$build/libtl.so"
}
tab=$(printf '\t')
while IFS=$tab read -r name file commands what; do
	case $name in '' | '#'*) continue ;; esac
	if [ $# -gt 0 ]; then
		case " $* " in *" $name "*) ;; *) continue ;; esac
	fi
	cp "$file" kept
	sed -i "$commands" "$file"
	found=
	if cmp -s "$file" kept; then
		found=
		echo "$name: its commands change nothing in $file"
	elif ! make BUILD="$build" CC="${CC:-gcc}" WARN=-w "$build/libtl.so" > make.log 2>&1; then
		echo "$name: does not compile"
		cat make.log
	else
		for k in $(checks "$file"); do
			before "$k"
			check "$k" now
			n=$(comm -13 "base.$k" now | wc -l)
			[ "$n" = 0 ] && continue
			first=$(comm -13 "base.$k" now | head -n 1)
			found="$(say $k): $n, first $first"
			! grep -q "^$first:.* invalid laid-out GPU IR" now.why || found="$found (refused before it runs)"
			break
		done
	fi
	cp kept "$file"
	if [ -n "$found" ]; then npass=$((npass + 1)); else nfail=$((nfail + 1)); fi
	printf '| %s | %s | %s |\n' "$name" "$what" "${found:-not found}"
done < tests/planted/faults
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]

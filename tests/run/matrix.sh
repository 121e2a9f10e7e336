#!/bin/sh
# matrix.sh BUILD CALLS…: does each built-in function, with each of its options, occur in what the kernels of tests/run call? CALLS are
# the files of `test-run --calls` on the device $TL_DEVICE. tests/run/options names the values that options have. Prints what does not; the last
# line is "N passed, N failed".
cd "$(dirname "$0")/../.." || exit 2
tlc=$1/tlc
shift
cat "$@" > /dev/null || exit 2
{ "$tlc" list --builtins && echo === && grep -v '^#' tests/run/options && echo === && cat "$@"; } | LC_ALL=C awk -F '\t' -v device="$TL_DEVICE" '
	# Parameters of a list, split at commas outside of brackets.
	function split_list(s, out,    n, depth, i, c, quoted) {
		n = 0; out[1] = ""
		if (s == "")
			return 0
		for (i = n = 1; i <= length(s); i++) {
			c = substr(s, i, 1)
			quoted = c == "\x27" ? !quoted : quoted
			depth += (c == "(") - (c == ")")
			if (c == "," && !depth && !quoted) {
				out[++n] = ""
				i++
			} else
				out[n] = out[n] c
		}
		return n
	}
	function inside(s) { sub(/^[^(]*\(/, "", s); sub(/\)$/, "", s); return s }
	$0 == "===" { part++; next }
	!part {
		name = $1; sub(/\(.*/, "", name)
		wanted[++nwanted] = name
		n = split_list(inside($1), p)
		for (i = 1; i <= n; i++)
			if (p[i] ~ /=/) {
				sub(/=.*/, "", p[i])
				wanted[++nwanted] = name " " p[i]
			}
		next
	}
	part == 1 && /^- / { # only on one device, if it is named
		if ($2 == "" || $2 == device)
			left_out[substr($1, 3)] = 1
		next
	}
	part == 1 && NF { wanted[++nwanted] = $0; next }
	part == 2 {
		name = $0; sub(/\(.*/, "", name)
		called[name] = 1
		n = split_list(inside($0), p)
		for (i = 1; i <= n; i++) {
			option = p[i]; sub(/=.*/, "", option)
			called[name " " option] = called[name " " p[i]] = 1
		}
	}
	END {
		for (i = 1; i <= nwanted; i++) {
			name = wanted[i]; sub(/ .*/, "", name)
			if ((wanted[i] in left_out) || ((name in left_out) && !(wanted[i] in called)))
				continue
			if (wanted[i] in called)
				passed++
			else {
				print "no kernel of tests/run calls " wanted[i]
				failed++
			}
		}
		for (w in left_out)
			if (w in called) {
				print "tests/run/options leaves out " w ", which a kernel calls"
				failed++
			}
		printf "%d passed, %d failed\n", passed, failed
		exit failed != 0
	}'

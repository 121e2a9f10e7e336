#!/bin/sh
# check.sh BUILD [FILE…]: the fenced blocks of README.md and docs/, or of the files, tried with the tlc and the libtl of BUILD.
#
# The blocks of one document are tried in order, in one folder that begins as a copy of examples/. By language:
#
#   sh            run by sh -e with BUILD first in PATH
#   python values lines of a kernel that are run on the interpreter, or on each of $DEVICES: see values below
#   python, tl    compiled where it holds a jit function; the words behind the language are options of tlc: -s '*fp32,i32'
#   c             with main() compiled, linked with libtl, and run; else compiled as a part of a function: see part below
#   text, mlir, cmake  straight below a block that was tried: its output must hold these lines, one after the other.
#                 A line … skips any lines, a … within a line any text; white space at both ends of a line does not count.
#
# Words behind the language that change this: `fails` wants an exit status other than 0, `device=D` runs values there,
# `file=NAME` saves the block under that name for those that follow, with `saved` it does no more (a later block compiles
# the file), `of=NAME` compares with that file instead of the output. Without FILE, what the documents say of files,
# options, variables and errors is compared with the tree, too (statements.py). Prints FILE:LINE of each failure; the last
# line is "N passed, N failed".
cd "$(dirname "$0")/.." || exit 2
root=$PWD
build=$(cd "${1:-build}" && pwd) || exit 2
[ -x "$build/tlc" ] || { echo "check.sh: no tlc in $build" >&2; exit 2; }
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
export PATH="$build:$PATH" LD_LIBRARY_PATH="$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export C_INCLUDE_PATH="$root/runtime" LIBRARY_PATH="$build" # as if the library were installed
export TL_CACHE_DIR="$tmp/cache" # not the one of who runs this
npass=0 nfail=0

# Every block into a file $tmp/N, and a line "FILE LINE NEXT INFO" for each, in order. NEXT is 1 where only blank lines
# lie between this block and the one before it.
list_blocks() {
	awk -v tmp="$tmp" '
		function unclosed() { print doc, line, 0, "unclosed"; ++n; inside = 0 }
		FNR == 1 { if (inside) unclosed(); next_to = 0 }
		inside && /^```[ \t]*$/ { inside = 0; next_to = 1; close(out); next }
		inside { print > out; next }
		/^```/ {
			inside = 1; doc = FILENAME; line = FNR; out = tmp "/" ++n
			printf "" > out
			info = substr($0, 4); gsub(/^[ \t]+|[ \t]+$/, "", info)
			print doc, line, next_to, info
			next
		}
		NF { next_to = 0 }
		END { if (inside) unclosed() }' "$@"
}

# holds WANT GOT: do the lines of WANT stand in GOT? Says which is missing.
holds() {
	LC_ALL=C awk '
		function trim(s) { gsub(/^[ \t]+|[ \t\r]+$/, "", s); return s }
		function fits(want, line,    parts, n, i, at) {
			n = split(want, parts, "…")
			if (n <= 1)
				return want == line
			for (i = 1; i <= n; i++) {
				if (i == n && parts[i] != "")
					return length(line) >= length(parts[i]) && substr(line, length(line) - length(parts[i]) + 1) == parts[i]
				at = parts[i] == "" ? 1 : index(line, parts[i])
				if (!at || (i == 1 && at > 1))
					return 0
				line = substr(line, at + length(parts[i]))
			}
			return 1
		}
		# want[w..] from got[g] on; `loose`: lines may be skipped first
		function match_from(w, g, loose) {
			for (; w <= nw && want[w] == "…"; w++)
				loose = 1
			if (w > nw)
				return 1
			if (w > furthest)
				furthest = w
			for (; g <= ng; g++) {
				if (fits(want[w], got[g]) && match_from(w + 1, g + 1, 0))
					return 1
				if (!loose)
					return 0
			}
			return 0
		}
		NR == FNR { if (NF) want[++nw] = trim($0); next }
		NF { got[++ng] = trim($0) }
		END {
			if (match_from(1, 1, 1))
				exit 0
			print "  not found in the output: " want[furthest]
			exit 1
		}' "$1" "$2"
}

# values FILE: the kernel of a block of lines such as
#
#   x = tl.arange(0, 4) * 2      # 0 2 4 6
#   a, b = tl.split(y)           # 0 1; 2 3
#   tl.sum(x)                    # 12
#
# where each value behind a '#' is printed: elements in row-major order, several values separated by ';'. In front stand
# functions and classes. `p` points to 64 numbers of fp32, 0 to 63, `q` to 16 of i32, all 0.
values() {
	awk '
		function expect(code, want,    names, n, i) {
			gsub(/[][,]/, " ", want)
			n = 1
			if (match(code, /^[A-Za-z_][A-Za-z_0-9, ]* = /)) {
				n = split(substr(code, 1, RLENGTH - 3), names, /, */)
			} else {
				code = "v_ = " code
				names[1] = "v_"
			}
			body = body "    " code "\n"
			for (i = 1; i <= n; i++)
				body = body "    tl.device_print(\"@" NR "." i "\", " names[i] ")\n"
			print NR, want > "wanted"
		}
		BEGIN { printf "" > "wanted" }
		!inside && /^(@|def |class |import |from |$)/ { top = top $0 "\n"; next }
		!inside && /^[ \t]/ && top != "" { top = top $0 "\n"; next }
		{ inside = 1 }
		match($0, /  +# *[-\[0-9in]/) && substr($0, RSTART) ~ /# *(-?[0-9]|\[|-?inf|nan)/ {
			want = substr($0, RSTART); sub(/^ *# */, "", want)
			expect(substr($0, 1, RSTART - 1), want)
			next
		}
		{ body = body "    " $0 "\n" }
		END { printf "%s\n@triton.jit\ndef example(p, q):\n%s", top, body }' "$1" > values.tl &&
	for device in ${device:-${DEVICES:-interp}}; do
		tlc run values.tl -k example -g 1 --device "$device" --num-warps 1 'p=fp32[64]:arange' 'q=i32[16]:zeros' > printed 2> said &&
			compare wanted printed || { cat said; echo "on $device"; return 1; }
	done
}

# compare WANTED PRINTED: lines "LINE VALUES" against what device_print wrote. Threads that print the same count once.
compare() {
	LC_ALL=C awk '
		function same(want, got,    digits) {
			if (want !~ /^-?[0-9.]+$/ || got !~ /^-?[0-9.]+$/)
				return want == got
			digits = index(want, ".") ? length(want) - index(want, ".") : 6
			return (want - got) ^ 2 <= (0.51 * 10 ^ -digits) ^ 2
		}
		FILENAME == ARGV[1] { line = $1; $1 = ""; want[line] = $0; next }
		match($0, /idx \([0-9, ]*\) @[0-9.]+: /) {
			idx = substr($0, RSTART + 5, RLENGTH); sub(/\).*/, "", idx)
			at = substr($0, RSTART, RLENGTH); sub(/.*@/, "", at); sub(/: $/, "", at)
			n = split(idx, index_, /, */); key = 0
			for (i = 1; i <= n; i++)
				key = key * 4096 + index_[i]
			if (!((at, key) in got))
				keys[at] = keys[at] " " key
			got[at, key] = substr($0, RSTART + RLENGTH)
		}
		END {
			for (line in want) {
				parts = split(want[line], part, ";")
				for (k = 1; k <= parts; k++) {
					at = line "." k
					n = split(part[k], w, " "); m = split(keys[at], key_, " "); text = ""
					for (i = 2; i <= m; i++) { # by their place
						x = key_[i] + 0
						for (j = i - 1; j && key_[j] + 0 > x; j--)
							key_[j + 1] = key_[j]
						key_[j + 1] = x
					}
					open = w[n] == "…"
					bad = open ? m < n - 1 : m != n
					for (i = 1; i <= m; i++) {
						g = got[at, key_[i] + 0]
						text = text " " g
						if (i <= n - open && !same(w[i], g))
							bad = 1
					}
					if (bad) {
						print "  line " line " of the example: want" part[k] ", got" text
						failed = 1
					}
				}
			}
			exit failed
		}' "$1" "$2"
}

# part BLOCK: a program with the block's lines in a function, but for static functions and directives, which stand above.
# What the block does not declare itself is declared here.
part() {
	cat <<- 'EOF'
		#include <stdio.h>
		#include <tl.h>
		tl_context *ctx;
		tl_kernel *add, *kernel;
		tl_tuner *tuner;
		tl_buffer *buffer;
		tl_config config;
		tl_arg args[5], odd_sizes[5], others[5];
		uint32_t blocks_x, blocks_y, n_blocks;
		int64_t rows, columns;
		float *x, *y, *sum;
		void *stream;
		void check(tl_status status);
	EOF
	awk '
		/^#|^static .*\)$/ { above = 1 }
		above { print; if (/^(}|#)/) above = 0; next }
		{ body = body $0 "\n" }
		END { print "void part(void);\nvoid part(void)\n{\n" body "}" }' "$1"
}

# try LANGUAGE BLOCK OPTIONS: in the document's folder. Status 99: there was nothing to try.
try() {
	case $1 in
	sh) sh -e "$2" ;;
	values) values "$2" ;;
	python | tl)
		grep -q '^ *@triton\.jit' "$2" || return 99
		cp "$2" "${name:-kernel.tl}" && eval "tlc '${name:-kernel.tl}' $3 -o /dev/null" ;;
	c)
		warnings='-std=c11 -Wall -Wextra -Werror'
		if grep -q '[ *]main(' "$2"; then
			cp "$2" "${name:-program.c}" && ${CC:-cc} $warnings -o ./a.out "${name:-program.c}" -ltl && ./a.out
		else
			part "$2" > part.c && ${CC:-cc} $warnings -Wno-unused -Wno-unused-but-set-variable -c -o part.o part.c
		fi ;;
	unclosed) echo "this block is never closed"; return 1 ;;
	*) return 99 ;;
	esac
}

if [ $# -gt 1 ]; then
	shift
else
	set -- README.md docs/*.md docs/*/*.md
	python3 docs/statements.py "$build" && npass=1 || nfail=1
fi
list_blocks "$@" > "$tmp/list"
n=0 tried=0
while read -r doc line next_to lang options; do
	n=$((n + 1)) here="$tmp/$(basename "$doc").d" name='' of='' fails='' device='' rest=''
	[ -d "$here" ] || { mkdir "$here" && cp -R examples "$here"; }
	set -f
	for word in $options; do
		case $word in
		saved) lang=none ;;
		values) lang=values ;;
		device=*) device=${word#device=} ;;
		fails) fails=1 ;;
		file=*) name=${word#file=} ;;
		of=*) of=${word#of=} ;;
		*) rest="$rest $word" ;;
		esac
	done
	set +f
	[ -z "$name" ] || cp "$tmp/$n" "$here/$name"
	case $lang in
	text | mlir | cmake)
		got=$tmp/out
		[ -z "$of" ] || got=$here/$of
		[ -n "$of" ] || { [ "$next_to" = 1 ] && [ $tried = 1 ]; } || continue
		tried=0
		holds "$tmp/$n" "$got" > "$tmp/why" 2>&1 && status=0 || status=1 ;;
	*)
		(cd "$here" && try "$lang" "$tmp/$n" "$rest") > "$tmp/out" 2>&1 < /dev/null
		status=$?
		tried=$((status != 99))
		[ $tried = 1 ] || continue
		{ cat "$tmp/out" && echo "exit status $status"; } > "$tmp/why"
		[ -z "$fails" ] || status=$((status == 0)) ;;
	esac
	if [ "$status" = 0 ]; then
		npass=$((npass + 1))
	else
		nfail=$((nfail + 1))
		echo "$doc:$line: $lang block failed"
		sed 's/^/    /' "$tmp/why" | tail -n 20
	fi
done < "$tmp/list"
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]

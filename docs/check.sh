#!/bin/sh
# check.sh BUILD: the fenced blocks of docs/*.md and README.md, tried with the tlc and the libtl of BUILD.
#
# The blocks of one document are tried in order, in one folder that begins as a copy of examples/. By language:
#
#   sh            run by sh -e with BUILD first in PATH
#   python, tl    compiled where it holds a jit function; the words behind the language are options of tlc: -s '*fp32,i32'
#   c             compiled where it holds main(), linked with libtl, and run
#   text, mlir    straight below a block that was tried: its output must hold these lines, one after the other.
#                 A line … skips any lines, a … within a line any text; white space at both ends of a line does not count.
#
# Words behind the language that change this: `no-run` leaves the block alone, `fails` wants an exit status other
# than 0, `file=NAME` saves the block under that name for those that follow, `of=NAME` compares with that file
# instead of the output. Prints FILE:LINE of each failure; the last line is "N passed, N failed".
cd "$(dirname "$0")/.." || exit 2
root=$PWD
build=$(cd "${1:-build}" && pwd) || exit 2
[ -x "$build/tlc" ] || { echo "check.sh: no tlc in $build" >&2; exit 2; }
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
export PATH="$build:$PATH" LD_LIBRARY_PATH="$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
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

# try LANGUAGE BLOCK OPTIONS: in the document's folder. Status 99: there was nothing to try.
try() {
	case $1 in
	sh) sh -e "$2" ;;
	python | tl)
		grep -q '^ *@triton\.jit' "$2" || return 99
		cp "$2" "${name:-kernel.tl}" && eval "tlc '${name:-kernel.tl}' $3 -o /dev/null" ;;
	c)
		grep -q '[ *]main(' "$2" || return 99
		cp "$2" "${name:-program.c}" && ${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$root/runtime" -o ./a.out "${name:-program.c}" \
			-L"$build" -ltl && ./a.out ;;
	unclosed) echo "this block is never closed"; return 1 ;;
	*) return 99 ;;
	esac
}

set -- docs/*.md
[ ! -f README.md ] || set -- README.md "$@"
list_blocks "$@" > "$tmp/list"
n=0 tried=0
while read -r doc line next_to lang options; do
	n=$((n + 1)) here="$tmp/$(basename "$doc").d" name='' of='' fails='' rest=''
	[ -d "$here" ] || { mkdir "$here" && cp -R examples "$here"; }
	set -f
	for word in $options; do
		case $word in
		no-run) lang=none ;;
		fails) fails=1 ;;
		file=*) name=${word#file=} ;;
		of=*) of=${word#of=} ;;
		*) rest="$rest $word" ;;
		esac
	done
	set +f
	[ -z "$name" ] || cp "$tmp/$n" "$here/$name"
	case $lang in
	text | mlir)
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

#!/bin/sh
# check.sh TLC FILE ARGUMENT…: runs tlc, which must fail, and compares all that it says with the comments of FILE:
#
#     x = foo + 1
#   #     ^~~ error: 'foo' is not defined          a message, under the columns that it points at
#   #     = hint: did you mean 'for'?              its hint
#   # expect: tlc: error: no input file            a message that has no place in FILE, word for word
#   # exit: 2                                      the exit status, where it is not 1
#
# In IR text a comment begins with //. Comments that begin otherwise are only comments.
tlc=$1 file=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
"$tlc" "$file" "$@" >"$tmp/out" 2>"$tmp/err"
status=$?
awk '
	{ text = $0 }
	!/^[ \t]*(#|\/\/)/ { line = NR; next }
	/^(#|\/\/) expect: / { sub(/^(#|\/\/) expect: /, "", text); print text; next }
	/^(#|\/\/) exit: / { next }
	match(text, /\^~* (error|warning|note|remark): /) {
		lead = substr(text, 1, RSTART - 1)
		if (lead !~ /^[ \t]*(#|\/\/)[ \t]*$/)
			next
		caret = substr(text, RSTART); sub(/ .*/, "", caret)
		message = substr(text, RSTART + length(caret) + 1)
		print line ":" RSTART ": " message
		print "  " caret
		next
	}
	/^[ \t]*(#|\/\/)[ \t]*= hint: / { sub(/^[ \t]*(#|\/\/)[ \t]*/, "", text); print "  " text }
' "$file" >"$tmp/want"
# of what tlc said: the place without the file name, the carets without the line, hints
awk -v file="$file:" '
	index($0, file) == 1 && /: (error|warning|note|remark): / { print substr($0, length(file) + 1); mine = 1; next }
	/^ +[0-9]+ \| / { next }
	/^      \| / { sub(/^      \| [ \t]*/, ""); if (mine) print "  " $0; next }
	/^      = hint: / { sub(/^ +/, ""); print "  " $0; next }
	/^tlc: error: / { gsub(file, "FILE:"); gsub(substr(file, 1, length(file) - 1), "FILE") }
	{ mine = 0; print }
' "$tmp/err" >"$tmp/got"
want=$(sed -n 's/^\(#\|\/\/\) exit: //p' "$file")
if [ "$status" != "${want:-1}" ]; then
	echo "exit status $status, expected ${want:-1}"
	cat "$tmp/err"
	exit 1
fi
[ -s "$tmp/out" ] && { echo "unexpected standard output:"; cat "$tmp/out"; exit 1; }
diff -u --label expected --label said "$tmp/want" "$tmp/got"

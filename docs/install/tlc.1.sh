#!/bin/sh
# tlc.1.sh TLC VERSION: the manual page of tlc, from what `tlc --help` says.
LC_ALL=C.UTF-8 "$1" --help | awk -v version="$2" '
	function roff(s) {
		gsub(/\\/, "\\e", s)
		gsub(/-/, "\\-", s)
		if (s ~ /^[.\047]/)
			s = "\\&" s
		return s
	}
	function item(head, text) { printf ".TP\n.B %s\n%s\n", roff(head), roff(text) }
	BEGIN {
		printf ".TH TLC 1 \"\" \"tlc %s\" \"User Commands\"\n", version
		print ".SH NAME\ntlc \\- compile, run and time Triton kernels\n.SH SYNOPSIS\n.nf"
	}
	/^  tlc / { print roff(substr($0, 3)); next }
	/^Passes:/ { print ".SH PASSES"; passes = 1; next }
	passes && /^  / { head = $1; $1 = ""; item(head, substr($0, 2)); next }
	/^$/ { if (++options == 2) {
			print ".fi\n.SH DESCRIPTION\ntlc compiles kernels in Triton\\(aqs tile language to PTX, images and cubins, runs them on a GPU,"
			print "a simulator or the reference interpreter, and times them.\n.SH OPTIONS" }
		next }
	/^  [^ ]/ && options > 1 {
		line = substr($0, 3)
		gap = match(line, /  +/)
		item(gap ? substr(line, 1, RSTART - 1) : line, gap ? substr(line, RSTART + RLENGTH) : "")
		next
	}
	/^ / && options > 1 { sub(/^ +/, ""); print roff($0) }
	END {
		print ".SH \"EXIT STATUS\"\n.TP\n.B 0\ndone\n.TP\n.B 1\na mistake of the user, with a message"
		print ".TP\n.B 2\nthe environment: no such device or file\n.TP\n.B 3\na defect of tlc"
		print ".SH ENVIRONMENT\n.TP\n.B TL_CACHE\n0: no disk cache"
		print ".TP\n.B TL_CACHE_DIR\nits folder; else tlc in $XDG_CACHE_HOME or ~/.cache"
		print ".TP\n.B TL_CACHE_TRUST\nwhose folders are trusted: user (the user\\(aqs and root\\(aqs), group or all"
		print ".TP\n.B TL_CACHE_MB\nits size in megabytes; 512\n.SH \"SEE ALSO\"\n.BR tl (3)"
	}'

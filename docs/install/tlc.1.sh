#!/bin/sh
# tlc.1.sh TLC VERSION [COMMAND]: the manual page of tlc, or of `tlc COMMAND`, from what `tlc [COMMAND] --help` says.
case ${3:-} in
'') about='compile, run and time Triton kernels' ;;
run) about='run a Triton kernel' ;;
bench) about='time Triton kernels' ;;
tune) about='find the best configuration of a Triton kernel' ;;
list) about='list the kernels of a file, or the built-in functions' ;;
show) about='print the contents of a kernel image' ;;
cache) about='list, verify or clear the disk cache of compiled kernels' ;;
build) about='compile Triton kernels ahead of time' ;;
serve) about='run configurations for the tuner of another process' ;;
*) echo "tlc.1.sh: no command '$3'" >&2; exit 2 ;;
esac
LC_ALL=C.UTF-8 $1 ${3:+"$3"} --help | awk -v version="$2" -v command="${3:-}" -v about="$about" '
	function roff(s) {
		gsub(/\\/, "\\e", s)
		gsub(/-/, "\\-", s)
		if (s ~ /^[.\047]/)
			s = "\\&" s
		return s
	}
	function item(head, text) { printf ".TP\n.B %s\n%s\n", roff(head), roff(text) }
	function describe() {
		print ".fi\n.SH DESCRIPTION"
		if (command == "") {
			print "tlc compiles kernels in Triton\\(aqs tile language to PTX, images and cubins, runs them on a GPU,"
			print "a simulator or the reference interpreter, and times them."
		} else {
			print "One of the commands of"
			print ".BR tlc (1)."
		}
	}
	BEGIN {
		page = command == "" ? "tlc" : "tlc-" command
		printf ".TH %s 1 \"\" \"tlc %s\" \"User Commands\"\n", toupper(roff(page)), version
		printf ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n", roff(page), about
	}
	# of a command its own lines, which those that begin far to the right go on
	/^(  +|usage: )tlc / && !options {
		sub(/^ *(usage: )?/, "")
		shown = command == "" || $2 == command
		if (shown) print roff($0)
		next
	}
	/^            / && !options { if (shown) print roff(substr($0, 3)); next }
	/^Passes:/ { if (command != "") exit; print ".SH PASSES"; passes = 1; next }
	passes && /^  / { head = $1; $1 = ""; item(head, substr($0, 2)); next }
	/^Example: / { sub(/^Example: /, ""); example = $0; next }
	/^  (-|[A-Z])/ && !options { options = 2; describe(); print ".SH OPTIONS" }
	!options || /^$/ { next }
	/^  [^ ]/ && options > 1 {
		line = substr($0, 3)
		gap = match(line, /  +/)
		item(gap ? substr(line, 1, RSTART - 1) : line, gap ? substr(line, RSTART + RLENGTH) : "")
		next
	}
	/^ / && options > 1 { sub(/^ +/, ""); print roff($0) }
	END {
		if (!options) describe()
		if (example != "") printf ".SH EXAMPLE\n.nf\n%s\n.fi\n", roff(example)
		print ".SH \"EXIT STATUS\"\n.TP\n.B 0\ndone\n.TP\n.B 1\na mistake of the user, with a message"
		print ".TP\n.B 2\nthe environment: no such device or file\n.TP\n.B 3\na defect of tlc"
		print ".SH ENVIRONMENT\n.TP\n.B TL_CACHE\n0: no disk cache"
		print ".TP\n.B TL_CACHE_DIR\nits folder; else tlc in $XDG_CACHE_HOME or ~/.cache"
		print ".TP\n.B TL_CACHE_TRUST\nwhose folders are trusted: user (the user\\(aqs and root\\(aqs), group or all"
		print ".TP\n.B TL_CACHE_MB\nits size in megabytes; 512\n.SH \"SEE ALSO\"\n.BR tl (3),"
		if (command != "")
			print ".BR tlc (1)"
		else
			print ".BR tlc\\-run (1),\n.BR tlc\\-bench (1),\n.BR tlc\\-tune (1),\n.BR tlc\\-build (1)"
	}'

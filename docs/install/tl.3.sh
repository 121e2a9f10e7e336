#!/bin/sh
# tl.3.sh HEADER: the manual page of the library, from tl.h: its comments, and below each what it is about.
version=$(sed -n 's/^.define TL_VERSION "\(.*\)"/\1/p' "$1")
LC_ALL=C.UTF-8 awk -v version="$version" '
	function roff(s) {
		gsub(/\\/, "\\e", s)
		gsub(/-/, "\\-", s)
		gsub(/\t/, "    ", s)
		if (s ~ /^[.\047]/)
			s = "\\&" s
		return s
	}
	# the text of a comment without its marks
	function bare(s) {
		sub(/^\/\* ?/, "", s)
		sub(/^ \* ?/, "", s)
		sub(/ ?\*\/$/, "", s)
		return s
	}
	function text(s,    code) {
		code = s ~ /^ /
		if (code != in_code)
			print (code ? ".nf" : ".fi")
		in_code = code
		print s == "" ? ".PP" : roff(s)
	}
	function end_text() { if (in_code) print ".fi"; in_code = 0 }
	BEGIN {
		printf ".TH TL 3 \"\" \"libtl %s\" \"Library Functions\"\n", version
		print ".SH NAME\ntl \\- compile and launch Triton kernels from C\n.SH SYNOPSIS\n.nf\n#include <tl.h>\n.fi"
		print "cc file.c $(pkg\\-config \\-\\-cflags \\-\\-libs libtl)\n.SH DESCRIPTION"
	}
	/^#define TL_H/ { started = 1 }
	/^#if|^#endif|^#include|^extern "C"|^#define TL_H|^#define TL_API/ { next }
	/^\/\* --- / {
		sub(/^\/\* --- /, "")
		sub(/ -+ \*\/$/, "")
		if (in_decl) print ".fi\n.RE"
		in_decl = 0
		printf ".SH \"%s\"\n", toupper($0)
		next
	}
	body { if (/^}/) body = 0; next }                      # of an inline function
	/^static inline/ { one = / }$/; sub(/^static inline /, ""); sub(/ *\{.*$/, ""); if (!one) body = 1; $0 = $0 }
	/^\{/ { body = 1; next }
	/^\/\*/ && !inside { if (in_decl) print ".fi\n.RE"; in_decl = 0; comment = 1; print ".PP" }
	comment {
		last = / ?\*\/$/
		text(bare($0))
		if (last) { comment = 0; end_text() }
		next
	}
	/^}$/ && !inside { next }
	/^$/ { next }
	{
		if (!in_decl) print ".RS\n.nf"
		in_decl = 1
		sub(/^TL_API /, "")
		if (/\{/) inside = 1
		if (/^}/) inside = 0
		print roff($0)
	}
	END { if (in_decl) print ".fi\n.RE"; print ".SH \"SEE ALSO\"\n.BR tlc (1)" }' "$1"

#!/bin/sh
# tl.3.sh HEADER [FOLDER]: writes the manual pages of the library, from the parts of tl.h and their comments: tl.3, tl-PART.3
# for each part, and for each function a page that refers to its part. Without FOLDER it lists the names of the pages.
#
# A part begins with a comment of the form "--- PART: TITLE ---". A comment describes the declarations below it, up to the
# next comment or empty line.
version=$(sed -n 's/^.define TL_VERSION "\(.*\)"/\1/p' "$1")
LC_ALL=C.UTF-8 awk -v folder="$2" -v version="$version" '
	function roff(s) {
		gsub(/\\/, "\\e", s)
		gsub(/-/, "\\-", s)
		gsub(/\t/, "    ", s)
		gsub(/…/, "...", s)
		if (s ~ /^[.\047]/)
			s = "\\&" s
		return s
	}
	# the text of a line of a comment
	function bare(s) {
		sub(/^[ \t]*\/\* ?/, "", s)
		sub(/^[ \t]*\* ?/, "", s)
		sub(/ ?\*\/$/, "", s)
		return s
	}
	# the roff of the text of a comment; indented lines are examples
	function paragraphs(s,    lines, n, i, code, out) {
		n = split(s, lines, "\n")
		for (i = 1; i <= n; i++) {
			if ((lines[i] ~ /^ /) != code)
				out = out (code ? ".fi\n" : ".nf\n")
			code = lines[i] ~ /^ /
			out = out (lines[i] == "" ? ".PP" : roff(lines[i])) "\n"
		}
		return out (code ? ".fi\n" : "")
	}
	function end_item() {
		if (heading != "")
			description = description ".SS \"" heading "\"\n"
		else if (text != "" && description ~ /\n\.SS|^\.SS/)
			description = description ".PP\n"
		if (text != "")
			description = description paragraphs(text)
		if (types != "")
			description = description (text != "" ? ".PP\n" : "") ".nf\n" types ".fi\n"
		heading = text = types = ""
	}
	function write_page(    file) {
		end_item()
		if (part == "" || folder == "")
			return
		file = folder "/" part ".3"
		printf ".TH %s 3 \"\" \"libtl %s\" \"Library Functions\"\n", part, version > file
		printf ".SH NAME\n%s \\- %s\n", names == "" ? part : names, roff(title) > file
		printf ".SH SYNOPSIS\n.nf\n#include <tl.h>\n%s.fi\n", prototypes > file
		if (part == "tl")
			print ".PP\ncc file.c $(pkg\\-config \\-\\-cflags \\-\\-libs libtl)" > file
		printf ".SH DESCRIPTION\n%s", description > file
		if (prototypes ~ /(^|\n)tl_status /)
			printf ".SH \"RETURN VALUE\"\nFunctions of type tl_status return TL_OK, or the status of an error. After an error\n" \
				".BR tl_error (3)\nreturns its message.\n" > file
		close(file)
		description = prototypes = names = ""
	}
	function begin_page(new, about) {
		write_page()
		part = new
		title = about
		pages[++npages] = new
	}
	function add_heading(s) { heading = heading (heading == "" ? "" : ", ") s }
	function add_function(s,    name) {
		name = s
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
		functions[++nfunctions] = name
		part_of[name] = part
		names = names (names == "" ? "" : ", ") name
		add_heading(name "()")
		prototypes = prototypes ".PP\n" roff(s) ";\n"
	}
	# a prototype that ends at the semicolon or the brace of s, with the comment after it
	function end_prototype(s,    comment) {
		comment = s
		if (sub(/.*\/\*/, "/*", comment))
			text = text (text == "" ? "" : "\n") bare(comment)
		in_body = s ~ /\{/ ? s !~ /\}$/ : inline && s !~ /;/
		sub(/ *[;{].*/, "", s)
		add_function(s)
		prototype = ""
	}
	/^\/\* libtl: / {
		begin_page("tl", "compile and launch Triton kernels from C")
		text = bare($0)
		in_comment = 1
		next
	}
	in_comment {
		text = text "\n" bare($0)
		in_comment = $0 !~ /\*\/$/
		next
	}
	/^#if|^#endif|^#include|^extern "C"|^#define TL_H|^#define TL_API/ { next }
	/^\/\* --- / {
		name = $3
		sub(/:$/, "", name)
		sub(/^\/\* --- [a-z]*: /, "")
		sub(/ -+ \*\/$/, "")
		begin_page("tl-" name, $0)
		next
	}
	in_body { in_body = $0 !~ /^\}/; next }
	in_type {
		types = types roff($0) "\n"
		in_type = $0 !~ /^\}/
		next
	}
	prototype != "" {
		sub(/^[ \t]*/, "    ")
		prototype = prototype "\n" $0
		if (/;|\)$/)
			end_prototype(prototype)
		next
	}
	/^\/\*/ { end_item(); text = bare($0); in_comment = $0 !~ /\*\/$/; next }
	/^$/ || /^\}$/ { end_item(); next }
	/^TL_API|^static inline/ {
		inline = /^static/
		sub(/^TL_API |^static inline /, "")
		if (/;|\)$|\{/)
			end_prototype($0)
		else
			prototype = $0
		next
	}
	{
		if (match($0, /tl_[a-z0-9_]+\(/))
			add_heading(substr($0, RSTART, RLENGTH - 1))
		else if (match($0, /tl_[a-z0-9_]+|TL_[A-Z_]+/))
			add_heading(substr($0, RSTART, RLENGTH))
		types = types roff($0) "\n"
		in_type = /\{/ && !/\}/
	}
	END {
		write_page()
		for (i = 1; i <= npages; i++) {
			if (folder == "") {
				print pages[i]
				continue
			}
			file = folder "/" pages[i] ".3"
			printf ".SH \"SEE ALSO\"\n.BR tlc (1)" >> file
			for (k = 1; k <= npages; k++)
				if (k != i) printf ",\n.BR %s (3)", roff(pages[k]) >> file
			print "" >> file
			close(file)
		}
		for (i = 1; i <= nfunctions; i++)
			if (folder == "") {
				print functions[i]
			} else {
				file = folder "/" functions[i] ".3"
				print ".so man3/" part_of[functions[i]] ".3" > file
				close(file)
			}
	}' "$1"

#!/bin/sh
# builtins.sh BUILD [--write]: does docs/reference/builtins.md have each built-in function that the tlc of BUILD lists, under a heading with its
# signature or in an example, and no others? --write writes the signatures. The last line is "N passed, N failed".
cd "$(dirname "$0")/.." || exit 2
build=${1:-build} doc=docs/reference/builtins.md
list=$(mktemp) || exit 2
trap 'rm -f "$list" "$list.md"' EXIT
"$build/tlc" list --builtins > "$list" || exit 2
LC_ALL=C awk -F '\t' -v write="$2" -v out="$list.md" '
	function name_of(s) { sub(/\(.*/, "", s); return s }
	# functions without headings: their signatures say little
	function in_examples_only(name) { return name ~ /^(libdevice|triton_helpers|dtype)\./ }
	function call_of(name,    before, after) {
		before = "(^|[^A-Za-z0-9_.])"; after = "[(]"
		if (name ~ /^tl\.(tensor|tensor_descriptor|tensor_descriptor_base|tuple_type)$/) # classes, which isinstance asks for
			after = "[^A-Za-z0-9_]"
		if (sub(/^(x|d|dtype|descriptor)\./, ".", name))
			before = ""
		sub(/^triton.profiler.language/, "pl", name)
		gsub(/\./, "[.]", name)
		return before name after
	}
	function fail(text) { print FILENAME ": " text; failed++ }
	NR == FNR {
		heading[name_of($1)] = "#### `" $1 "`" ($2 == "method" ? " ●" : "")
		names[++n] = name_of($1)
		next
	}
	/^```/ { code = !code }
	code { examples = examples $0 "\n" }
	/^#### / && !code {
		name = $0; gsub(/^#### `?/, "", name); name = name_of(name)
		if (!(name in heading))
			fail("line " FNR ": there is no " name)
		else if (seen[name]++)
			fail("line " FNR ": " name " a second time")
		else if (write != "")
			$0 = heading[name]
		else if ($0 != heading[name])
			fail("line " FNR ": now it is " substr(heading[name], 6) "; run make docs")
		else
			passed++
	}
	{ text = text $0 "\n" }
	END {
		for (i = 1; i <= n; i++) {
			name = names[i]
			if (!in_examples_only(name) && !seen[name])
				fail("no heading for " name)
			if (examples ~ call_of(name) || (heading[name] ~ /●$/ && examples ~ call_of("x" substr(name, 3))))
				passed++
			else
				fail("no example calls " name)
		}
		if (write != "" && !failed)
			printf "%s", text > out
		printf "%d passed, %d failed\n", passed, failed
		exit failed != 0
	}' "$list" "$doc" || exit 1
[ -z "$2" ] || cmp -s "$list.md" "$doc" || cp "$list.md" "$doc"

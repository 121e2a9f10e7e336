#!/bin/sh
# ptx_diff.sh OLD NEW COMMANDS TARGET...: the PTX of two builds of tlc for every variant that `test-run --sources DIR` listed
# in DIR/commands (the filter `table` gives the benchmark's configurations), without comments and source lines. Prints each
# variant whose instructions differ, with their numbers, and at the end how many there were; JOBS at a time.
old=$1 new=$2 commands=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for target; do
	sed "s|\$| --target cuda:$target --emit ptx -o|" "$commands"
done > "$dir/all"
cat > "$dir/one" << 'EOS'
code() { # code TLC COMMAND OUT: instructions alone, registers by their kind
	eval "timeout 300 $1 $2 '$3'" > /dev/null 2> "$3.err" || echo "fails: $(head -n 1 "$3.err")" > "$3"
	sed -e 's|//.*||' -e '/^[[:space:]]*\.\(loc\|file\|reg\)/d' -e '/^[[:space:]]*$/d' "$3" | sed 's/%\([a-z]*\)[0-9]*/%\1/g' > "$3.code"
}
mine=$(mktemp "$1/XXXXXX")
code "$2" "$4" "$mine.a"
code "$3" "$4" "$mine.b"
cmp -s "$mine.a.code" "$mine.b.code" || echo "$(wc -l < "$mine.a.code") -> $(wc -l < "$mine.b.code") lines: ${4% -o}"
rm -f "$mine"*
EOS
tr '\n' '\0' < "$dir/all" | xargs -0 -P "${JOBS:-$(nproc)}" -I{} sh "$dir/one" "$dir" "$old" "$new" {} > "$dir/differ"
cat "$dir/differ"
total=$(wc -l < "$dir/all")
differ=$(wc -l < "$dir/differ")
echo "$((total - differ)) the same, $differ differ"

#!/bin/sh
# Lines of the sources end at 120 columns, with tabs of eight.
set -eu
long=$(find compiler lang runtime examples tests \( -name '*.[chly]' -o -name '*.def' \) -exec env LC_ALL=C awk '
	{
		gsub(/[\200-\277]/, "") # a character of UTF-8 is one column
		n = split($0, part, "\t")
		width = 0
		for (i = 1; i <= n; i++)
			width += length(part[i]) + (i < n ? 8 - (width + length(part[i])) % 8 : 0)
		if (width > 120)
			print FILENAME ":" FNR ": " width " columns"
	}' {} +)
[ -z "$long" ] && echo "lines end at 120 columns" && exit
echo "$long"
exit 1

#!/bin/sh
# notices.sh PACKAGE…: the copyright and licences of what is linked into tlc and its libraries, as these Debian packages
# state them, on standard output, with the texts of the licences to which they refer.
set -eu
docs=${DOCS:-/usr/share}
echo "tlc and libtl contain, or run with, parts of other programs. This file has the statement of each about its copyright"
echo "and licence: $*."
texts=
for package; do
	file=$docs/doc/$package/copyright
	printf '\n%s\n\n' "=== $package ==="
	if [ -e "$file" ]; then
		cat "$file"
		texts="$texts $(grep -o 'common-licenses/[A-Za-z]*-[0-9.]*[0-9]' "$file" | sed 's|.*/||' | tr '\n' ' ')"
	else
		echo "notices.sh: $file is missing" >&2
		[ -z "${STRICT:-}" ] || exit 1
		echo "Its licence is part of its package."
	fi
done
for text in $(printf '%s\n' $texts | sort -u); do
	case $text in Apache-2.0 | GPL-3) ;; *) continue ;; esac # of tools and documentation, which are not linked
	printf '\n%s\n\n' "=== $text ==="
	cat "/usr/share/common-licenses/$text"
done

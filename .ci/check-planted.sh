#!/bin/sh
# Each planted fault changes its file: else it has been left behind by a change of that, and tests/planted/run.py would plant nothing.
set -eu
tab=$(printf '\t')
bad=$(while IFS=$tab read -r name file commands what; do
	case $name in '' | '#'*) continue ;; esac
	sed "$commands" "$file" | cmp -s - "$file" && echo "$name changes nothing in $file"
done < tests/planted/faults || true)
[ -z "$bad" ] && echo "planted faults fit the sources" && exit
echo "$bad"
exit 1

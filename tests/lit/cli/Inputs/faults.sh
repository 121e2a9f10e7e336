#!/bin/sh
# faults.sh FILE TLC...: runs each kernel of the file; its error must name the line that says "# fault" and hold the words above it.
file=$1
shift
found=0 right=0 bad=0
kernels=$(awk '/^# (FAULT|RIGHT)/ {want = $0} /^def/ {name = $2; sub(/\(.*/, "", name); print NR "\t" name "\t" want}' "$file")
while IFS='	' read -r line name want; do
	args=${want##*|}
	args=${args#\# RIGHT}
	# shellcheck disable=SC2086
	said=$("$@" "$file" -k "$name" --device cpu:check $args 2>&1)
	code=$?
	case $want in
	'# RIGHT'*) [ $code = 0 ] && right=$((right + 1)) && continue ;;
	*)
		words=${want#\# FAULT }
		at=$(awk -v from="$line" 'NR > from && /# fault/ {print NR; exit}' "$file")
		case $said in
		*"${file##*/}:$at:"*"${words% |*}"*) [ $code != 0 ] && found=$((found + 1)) && continue ;;
		esac
		;;
	esac
	bad=$((bad + 1))
	printf '%s:\n%s\n' "$name" "$said"
done <<EOF
$kernels
EOF
echo "$found faults found, $right kernels are right, $bad are not as they should be"

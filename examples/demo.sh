#!/bin/sh
# demo.sh PROGRAM...: runs the examples and prints one table of their results. $DEMO holds options for all of them.
# A second table compares the processor with PyTorch, NumPy and OpenBLAS where $PYTHON (python3) has them.
# Exits with 1 if a result is wrong, with 2 if a program could not do its work.
folder=$(dirname "$0")
log=$(mktemp) && ended=$(mktemp) && table=$(mktemp) || exit 2
trap 'rm -f "$log" "$ended" "$table"' EXIT
begin=$(date +%s)

run_all()
{
	header='' status=0
	for program; do
		# shellcheck disable=SC2086
		"$program" --kernels "$folder" $header $DEMO 2>>"$log"
		code=$?
		case $code in
		0) ;;
		1) [ $status = 2 ] || status=1 ;;
		*)
			echo "$program ended with $code" >>"$log"
			status=2
			;;
		esac
		header=--no-header
	done
	echo $status >"$ended"
}

run_all "$@" | tee "$table"
status=$(cat "$ended")
if [ -s "$log" ]; then # kept apart, so that the table stays whole
	echo
	cat "$log"
fi
if [ "$status" = 0 ] && command -v "${PYTHON:=python3}" >/dev/null; then
	"$PYTHON" "$folder/libraries.py" "$table"
fi
case $status in
0) echo "All right, in $(($(date +%s) - begin)) seconds." ;;
1) echo "Some results are WRONG." ;;
*) echo "Some examples did not run." ;;
esac
exit "$status"

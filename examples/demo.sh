#!/bin/sh
# demo.sh PROGRAM...: runs the examples and prints one table of their results. $DEMO has options for all of them.
# A second table compares the CPU with PyTorch, NumPy and OpenBLAS if $PYTHON (python3) has them.
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
if [ -s "$log" ]; then # printed after the table, so that the table is not interrupted
	echo
	cat "$log"
fi
if [ "$status" = 0 ] && command -v "${PYTHON:=python3}" >/dev/null; then
	"$PYTHON" "$folder/libraries.py" "$table"
fi
if [ -n "$GPT" ]; then # a transformer learns the project's documents
	learned=$(mktemp -d) || exit 2
	model=$learned/model
	device='' size='--layers 2 --channels 128 --heads 4 --context 64 --steps 600 --rate 4e-3'
	case " $DEMO " in *" --device "*) device="--device $(echo " $DEMO " | sed 's/.* --device *\([^ ]*\) .*/\1/')" ;; esac
	case $device in *interp* | *sim*) size='--layers 1 --channels 32 --heads 2 --context 32 --batch 2 --steps 20 --rate 1e-2' ;; esac
	cat "$folder"/../docs/*.md "$folder"/../docs/*/*.md >"$model.txt"
	echo
	# shellcheck disable=SC2086
	"$GPT" train "$model.txt" --out "$model" --kernels "$folder/gpt/gpt.tl" $device $size --log-every 150 &&
		"$GPT" sample "$model" --kernels "$folder/gpt/gpt.tl" $device --prompt 'The kernel' --tokens 250 --temperature 0.7 ||
		status=2
	rm -r "$learned"
fi
case $status in
0) echo "All right, in $(($(date +%s) - begin)) seconds." ;;
1) echo "Some results are WRONG." ;;
*) echo "Some examples did not run." ;;
esac
exit "$status"

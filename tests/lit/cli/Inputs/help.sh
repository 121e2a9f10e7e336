# help.sh TLC: `tlc COMMAND --help` of each command that `tlc --help` names: it lists the options that the command takes and
# no others, and its example runs. The last line counts commands, options and examples.
tlc=$1
commands=$("$tlc" --help | sed -n 's/^  tlc \([a-z][a-z]*\).*/\1/p' | sort -u)
options=$("$tlc" --help | sed -n '/^Passes:/q; s/^  \(-[-a-zA-Z]*\).*/\1/p' | grep -v -e --help)
ncommands=0 noptions=0 nexamples=0
for c in $commands; do
	ncommands=$((ncommands + 1))
	"$tlc" "$c" --help > help.txt || echo "$c: --help fails"
	[ "$(head -n 1 help.txt | cut -d: -f1)" = "tlc $c" ] || echo "$c: the help is not about it"
	grep -q "^  tlc $c" help.txt || echo "$c: no usage"
	grep "^  tlc " help.txt | grep -v "^  tlc $c" && echo "$c: usage of another command"
	[ "$c" = serve ] || for o in $options; do
		"$tlc" "$c" FILE "$o" > /dev/null 2> said.txt
		grep -q "takes no option '$o'" said.txt && takes=0 || takes=1
		grep -q -e "^  $o\( \|$\)" help.txt && shown=1 || shown=0
		[ $takes = $shown ] || echo "$c: $o: taken $takes, shown $shown"
		noptions=$((noptions + shown))
	done
	example=$(sed -n 's/^Example: //p' help.txt)
	case $c in
	serve) continue ;;
	tune) example=$(echo "$example" | sed 's/kernel\.py/tuned.py/') ;; # a file of the user's
	esac
	(PATH=$(dirname "$tlc"):$PATH && eval "$example" > out.txt 2>&1) ||
		{ echo "$c: the example fails: $example"; cat out.txt; }
	nexamples=$((nexamples + 1))
done
echo "$ncommands commands, $noptions options, $nexamples examples"

# For scripts of checks, which set $work and end in "$npass passed, $nfail failed".
npass=0 nfail=0

check() { # check WHAT COMMAND…
	what=$1
	shift
	if "$@" > "$work/log" 2>&1; then
		npass=$((npass + 1))
	else
		nfail=$((nfail + 1))
		echo "$what:"
		cat "$work/log"
	fi
}

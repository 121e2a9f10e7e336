# Read by test scripts: counts what passed in $npass and what failed in $nfail, and says what failed.
npass=0 nfail=0

verdict() { # verdict STATUS WHAT
	if [ "$1" = 0 ]; then
		npass=$((npass + 1))
	else
		nfail=$((nfail + 1))
		echo "$2"
	fi
}

#!/bin/sh
# python.sh BUILD [tree|emulated]: the tests of the Python package, installed from BUILD/wheel into a new environment, or,
# with `tree`, of the package in BUILD/python. $PYTHON runs them if it has NumPy, pytest and venv, with what else it has
# (torch); otherwise Debian's Python, with these packages installed. With `emulated`, BUILD is for arm64, and qemu runs
# Debian's Python for arm64 with the wheel unpacked. Ends in "N passed, N failed".
set -u
build=$(cd "$1" && pwd) mode=${2:-wheel}
work=$build/python-test
python=${PYTHON:-python3}
rm -rf "$work"
mkdir -p "$work"
cd "$(dirname "$0")/.." || exit 1

failed() { # failed LOG
	tail -n 20 "$1"
	echo "0 passed, 1 failed"
	exit 1
}
# has_packages: sets $python to one with NumPy, pytest and venv
has_packages() {
	"$python" -c 'import ensurepip, numpy, pytest, venv' 2> /dev/null && return
	python=/usr/bin/python3
	sh .ci/install-deps.sh python-test > "$work/deps" 2>&1 || failed "$work/deps"
}
# The wheel's package, then the packages of $PYTHON: a .pth file adds folders, of an environment too.
install() {
	"$python" -m venv "$work/venv" &&
		"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-index "$LIBTL_WHEEL" &&
		"$python" -c 'import sys; print(*[p for p in sys.path if p.endswith("-packages")], sep="\n")' \
			> "$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"
}
# Programs for arm64 start others by scripts, which begin with qemu.
emulated() {
	program() { # program SCRIPT PROGRAM
		printf '#!/bin/sh\nexec "%s/emulate" "%s" "$@"\n' "$build" "$2" > "$1" && chmod +x "$1"
	}
	package=$work/site/libtl
	"$python" -m zipfile -e "$LIBTL_WHEEL" "$work/site" && mv "$package/tlc" "$package/tlc.arm64" && chmod +x "$package/tlc.arm64" &&
		program "$package/tlc" "$package/tlc.arm64" && program "$work/tlc" "$build/tlc" && program "$work/python" "$build/root/usr/bin/python3.11"
}

npass=0 nfail=0
# run TEST…: each file in a process of its own, with $python, since what a process imports and installs stays. Adds what
# passed and failed; a file that is skipped as a whole ends with status 5.
run() {
	for test; do
		"$python" -m pytest -q -rfEs -p no:cacheprovider "$test" > "$work/log" 2>&1
		status=$?
		echo "$test"
		cat "$work/log"
		passed=$(count passed) failed=$(($(count failed) + $(count error)))
		[ $status = 0 ] || { [ $status = 5 ] && [ "$(count skipped)" != 0 ]; } || [ $failed != 0 ] || failed=1
		npass=$((npass + passed)) nfail=$((nfail + failed))
	done
}
count() { tail -n 1 "$work/log" | grep -o "[0-9]* $1" | sed 's/ .*//' | grep . || echo 0; }

unset PYTHONDONTWRITEBYTECODE # the time of an import is that with bytecode on disk
export LIBTL_BUILD="$build" LIBTL_TLC="$build/tlc" LIBTL_WORK="$work" TL_CACHE_DIR="$work/cache"
[ "$mode" = tree ] || export LIBTL_WHEEL="$(ls "$build"/wheel/libtl-*.whl)"
has_packages
case $mode in
tree)
	export PYTHONPATH="$build/python"
	;;
wheel)
	install > "$work/install" 2>&1 || failed "$work/install"
	python=$work/venv/bin/python
	;;
emulated)
	export LIBTL_MACHINE=aarch64
	run tests/python/test_wheel.py
	emulated > "$work/install" 2>&1 || failed "$work/install"
	unset LIBTL_WHEEL
	python=$work/python
	export PYTHONPATH="$work/site" LIBTL_PYTHON="$python" LIBTL_TLC="$work/tlc"
	;;
esac
"$python" -c 'import importlib.util, numpy, platform; print("Python", platform.python_version(), "NumPy", numpy.__version__,
	"with torch" if importlib.util.find_spec("torch") else "without torch")'
run tests/python/test_*.py
echo "$npass passed, $nfail failed"
[ $nfail = 0 ] && [ "$npass" != 0 ]

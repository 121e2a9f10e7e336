#!/bin/sh
# python.sh BUILD [tree]: the tests of the Python package, installed from BUILD/wheel into a new environment, or, with `tree`,
# of the package in BUILD/python. $PYTHON runs them if it has NumPy, pytest and venv, with what else it has (torch);
# otherwise Debian's Python, with these packages installed. Ends in "N passed, N failed".
set -u
build=$(cd "$1" && pwd) mode=${2:-wheel}
work=$build/python-test
python=${PYTHON:-python3}
rm -rf "$work"
mkdir -p "$work"
cd "$(dirname "$0")/.." || exit 1

if ! "$python" -c 'import ensurepip, numpy, pytest, venv' 2> /dev/null; then
	python=/usr/bin/python3
	sh .ci/install-deps.sh python-test > "$work/deps" 2>&1 || {
		tail -n 5 "$work/deps"
		echo "0 passed, 1 failed"
		exit 1
	}
fi
export LIBTL_BUILD="$build" LIBTL_WORK="$work" TL_CACHE_DIR="$work/cache" PYTHONDONTWRITEBYTECODE=1
if [ "$mode" = tree ]; then
	export PYTHONPATH="$build/python"
else
	LIBTL_WHEEL=$(ls "$build"/wheel/libtl-*.whl)
	export LIBTL_WHEEL
	# the wheel's package, then the packages of $PYTHON: a .pth file adds folders, of an environment too
	{
		"$python" -m venv "$work/venv" &&
			"$work/venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-index "$LIBTL_WHEEL" &&
			"$python" -c 'import sys; print(*[p for p in sys.path if p.endswith("-packages")], sep="\n")' \
				> "$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"
	} > "$work/install" 2>&1 || {
		cat "$work/install"
		echo "0 passed, 1 failed"
		exit 1
	}
	python=$work/venv/bin/python
fi
"$python" -c 'import importlib.util, numpy, platform; print("Python", platform.python_version(), "NumPy", numpy.__version__,
	"with torch" if importlib.util.find_spec("torch") else "without torch")'
"$python" -m pytest -q -rfEs -p no:cacheprovider tests/python > "$work/log" 2>&1
status=$?
cat "$work/log"
count() { tail -n 1 "$work/log" | grep -o "[0-9]* $1" | sed 's/ .*//' | grep . || echo 0; }
passed=$(count passed) failed=$(($(count failed) + $(count error)))
[ $status = 0 ] || [ $failed != 0 ] || failed=1
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ "$passed" != 0 ]

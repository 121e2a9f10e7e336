#!/usr/bin/env python3
# made.py TLC: values that double while a kernel is compiled end in an error, and chains of 100,000 comparisons compile, in 3 GB
# of memory. Ends in "N passed, N failed".
import os
import resource
import subprocess
import sys
import tempfile

HEAD = "import triton\nimport triton.language as tl\n"


def lines(text):
    return "".join("    " + line + "\n" for line in text.split("\n"))


def kernel(body, before=""):
    return HEAD + before + "\n@triton.jit\ndef k(x, n):\n" + lines(body)


def compile_time(body):
    function = "@triton.constexpr_function\ndef f():\n" + lines(body) + "    return 1\n"
    return kernel("t: tl.constexpr = f()\ntl.store(x, t)", function)


def doubled(start, again):
    return compile_time(f"a = {start}\nfor i in range(60):\n    a = {again}")


PAIR = """@triton.language.core._aggregate
class P:
    a: tl.tuple
    b: tl.tuple
"""
GLOBALS = "A0 = (1, 1)\n" + "".join(f"A{i + 1} = (A{i}, A{i})\n" for i in range(50))
SEVERAL = "@triton.jit\ndef d(*a):\n    return a + a\n"
CASES = {
    "tuples of a kernel": kernel("a = (n, n)\nfor i in tl.static_range(60):\n    a = (a, a)\ntl.store(x, 1)"),
    "tuples": doubled("(1, 1)", "(a, a)"),
    "lists": doubled("[1]", "[a, a, a]"),
    "a list of itself": compile_time("a = [1]\nfor i in range(60):\n    a.append(list(a))"),
    "sums of tuples": doubled("(1,)", "a + a"),
    "sums of texts": doubled("'x'", "a + a"),
    "multiples": doubled("[1]", "a * 3"),
    "f-strings": doubled("'x'", "f'{a}{a}'"),
    "f-strings in a loop": compile_time("a = 'x' * 10000\nfor i in range(10000000):\n    b = f'{a}{i}{a}{i}'"),
    "formats": doubled("'x'", "'{0}{0}'.format(a)"),
    "percent": doubled("'x'", "'%s%s' % (a, a)"),
    "join": doubled("'x'", "a.join((a, a))"),
    "replace": doubled("'xx'", "a.replace('x', a)"),
    "str": doubled("'xx'", "str((a, a))"),
    "dicts": doubled("{'x': 1}", "{'x': a, 'y': a}"),
    "comprehensions": doubled("[1]", "[y for x in a for y in (x, x)]"),
    "ranges": compile_time("for i in range(1000000):\n    b = list(range(1000000))"),
    "powers": doubled("3", "a ** a"),
    "objects": kernel("t: tl.constexpr = f()\ntl.store(x, t)", PAIR + "@triton.constexpr_function\ndef f():\n    p = P((1,), (1,))\n"
                      "    for i in range(60):\n        p = P((p, p), (p, p))\n    return 1\n"),
    "arguments": kernel("t = " + "d(*" * 50 + "(n, n)" + ")" * 50 + "\ntl.store(x, 1)", SEVERAL),
    "globals": kernel("tl.static_print(A50)\ntl.store(x, 1)", GLOBALS),
    "a chain of comparisons": kernel("tl.store(x, " + " < ".join(["n"] * 100000) + ")"),
}


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


passed = failed = 0
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "made.tl")
    for name, text in CASES.items():
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        command = [os.path.abspath(sys.argv[1]), path, "-k", "k", "-s", "*i32,i32", "--stop-after=eval", "--emit", "ttir", "-o", os.devnull]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=limited, check=False)
            wanted = run.returncode == 0 if name.startswith("a chain") else run.returncode == 1 and ": error: " in run.stderr
            what = f"exit {run.returncode}"
        except subprocess.TimeoutExpired:
            wanted, what = False, "no end"
        passed, failed = passed + wanted, failed + (not wanted)
        if not wanted:
            print(f"{name}: {what}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)

#!/usr/bin/env python3
# state.py TLC: kernels that change a list, a dict or an object under run-time control, in every way and in every place, are
# refused, or do what Python does with the same text. Ends in "N passed, N failed". -v shows each.
import os
import subprocess
import sys
import tempfile

# the state before, a change of it, and what can be read of it; {v} is a run-time value
LIST = "a = [n, n + 1, n + 2]"
DICT = "a = pairs()"
CHANGES = {
    "append": (LIST, "a.append({v})"),
    "extend": (LIST, "a.extend(({v}, {v}))"),
    "extend by itself": (LIST, "a.extend(a)"),
    "insert": (LIST, "a.insert(1, {v})"),
    "pop": (LIST, "a.pop()"),
    "pop the first": (LIST, "a.pop(0)"),
    "reverse": (LIST, "a.reverse()"),
    "clear": (LIST, "a.clear()"),
    "remove": ("a = [n, n + 1]\n    a = numbers()", "a.remove(2)"),
    "sort": ("a = numbers()", "a.sort()"),
    "sort backwards": ("a = numbers()", "a.sort(reverse=True)"),
    "item": (LIST, "a[1] = {v}"),
    "item +=": (LIST, "a[1] += {v}"),
    "slice": (LIST, "a[1:] = [{v}]"),
    "del": (LIST, "del a[0]"),
    "+=": (LIST, "a += [{v}]"),
    "*=": (LIST, "a *= 2"),
    "alias": (LIST + "\n    b = a", "b.append({v})"),
    "alias +=": (LIST + "\n    b = a", "b += [{v}]"),
    "alias, then it": (LIST + "\n    b = a", "a.append({v})"),
    "nested": (LIST + "\n    b = [a, a]", "b[0].append({v})"),
    "helper": (LIST, "grow(a, {v})"),
    "helper +=": (LIST, "grow_in_place(a, {v})"),
    "helper gives it": (LIST + "\n    b = same(a)", "b.append({v})"),
    "dict item": (DICT, "a['x'] = 5"),
    "dict update": (DICT, "a.update(z=3)"),
    "dict setdefault": (DICT, "a.setdefault('z', 3)"),
    "dict pop": (DICT, "a.pop('x')"),
    "dict clear": (DICT, "a.clear()"),
    "object": ("a = Counter(n).items", None),
    "global": ("a = SHARED", "a.append({v})"),
    "global by name": ("a = [n]", "SHARED.append({v})"),
}

# where the change {c} stands
PLACES = {
    "straight": "    {c}",
    "for": "    for i in range(n):\n        {c}",
    "tl.range": "    for i in tl.range(0, n, 2):\n        {c}",
    "while": "    k = n\n    while k > 0:\n        k -= 1\n        {c}",
    "while True": "    k = n\n    while True:\n        k -= 1\n        if k < 0:\n            break\n        {c}",
    "if": "    if n > 1:\n        {c}",
    "else": "    if n > 1:\n        k = 0\n    else:\n        {c}",
    "elif": "    if n > 2:\n        k = 0\n    elif n > 0:\n        {c}",
    "if in for": "    for i in range(n):\n        if i > 0:\n            {c}",
    "static_range in if": "    if n > 1:\n        for i in tl.static_range(2):\n            {c}",
    "if in static_range": "    for i in tl.static_range(2):\n        if n > i:\n            {c}",
    "continue in static_range": "    for i in tl.static_range(2):\n        if n > i + 1:\n            continue\n        {c}",
    "break in static_range": "    for i in tl.static_range(3):\n        if n > i + 1:\n            break\n        {c}",
    "behind a return": "    if n > 1:\n        return\n    {c}",
    "conditional": "    {c} if n > 1 else same(n)",
    "conditional else": "    same(n) if n > 1 else {c}",
    "and": "    n > 1 and {c}",
    "or": "    n > 1 or {c}",
    "comparison": "    0 < n < {c}",
    "if condition": "    if n > 1 and {c}:\n        k = 0",
    "in the region": "    if n > 1:\n        {s}\n        {c}\n        {r}",
}

USUAL = ("straight", "for", "while", "if", "and", "conditional", "behind a return", "in the region")  # for all changes
READ = "s = len(a)\n    for v in a:\n        s = s * 7 + {v}\n    tl.store(o, s)"

HEAD = """import triton
import triton.language as tl

SHARED = [1, 2]

@triton.constexpr_function
def pairs():
    return {{"x": 1, "y": 2}}

@triton.constexpr_function
def numbers():
    return [3, 1, 2]

@triton.jit
def same(x):
    return x

@triton.jit
def grow(x, v):
    if v > 1:
        x.append(v)
    return 0

@triton.jit
def grow_in_place(x, v):
    x += [v]
    return 0

@triton.language.core._aggregate
class Counter:
    items: tl.tuple

    @triton.constexpr_function
    def __init__(self, n):
        self.items = (n, n)
        for i in range(n):
            self.items = (n, i)

@triton.jit
def k(o, n):
    {body}
"""


def indented(text, by):
    return text.replace("\n    ", "\n" + " " * (4 + by))


def kernel(start, change, place):
    read = READ.format(v="a[v]" if "pairs" in start else "v")
    change = (change or "same(n)").format(v="n")
    nested = place.format(c=change, s=indented(start, 4), r=indented(read, 4))
    return HEAD.format(body=f"tl.store(o, 99)\n    {start}\n{nested}\n    {read}")


class Language:  # what the kernel's text means to Python
    core = type("core", (), {"_aggregate": staticmethod(lambda c: c)})
    tuple = tuple
    range = static_range = staticmethod(range)

    def __init__(self):
        self.stored = None

    def store(self, _, value):
        self.stored = value


def meaning(text, n):
    tl = Language()
    triton = type("triton", (), {"jit": staticmethod(lambda f: f), "constexpr_function": staticmethod(lambda f: f),
                                 "language": Language})
    names = {"tl": tl, "triton": triton}
    text = text.replace("import triton\nimport triton.language as tl\n", "")
    try:
        exec(compile(text, "kernel", "exec"), names)  # pylint: disable=exec-used
        names["k"](0, n)
    except (TypeError, AttributeError):
        return None
    return tl.stored


def said(tlc, path, n):
    run = subprocess.run([tlc, "run", path, "-k", "k", "-g", "1", "--device", "interp", "o=i32[1]:zeros", f"n=i32:{n}"],
                         capture_output=True, text=True, check=False)
    if run.returncode == 1 and " error: " in run.stderr:
        return "refused"
    last = run.stdout.strip().split("\n")[-1].rsplit(" ", 1)
    return int(last[-1]) if run.returncode == 0 and last[-1].lstrip("-").isdigit() else f"exit {run.returncode}"


def main():
    tlc, loud = os.path.abspath(sys.argv[1]), "-v" in sys.argv
    passed = failed = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.tl")
        for name, (start, change) in CHANGES.items():
            statement = change and ("=" in change.replace("=True", "").replace("z=3", "") or change.startswith("del"))
            for where, place in PLACES.items():
                if (name != "append" and where not in USUAL) or (statement and where in ("conditional", "and")):
                    continue
                text = kernel(start, change, place)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                wrong = None
                for n in (0, 3):
                    is_ = said(tlc, path, n)
                    if is_ == "refused":
                        refused += 1
                        break
                    want = meaning(text, n)
                    want = want if want is None else (want + 2 ** 31) % 2 ** 32 - 2 ** 31
                    if is_ != want:
                        wrong = f"{name}, {where}: for n = {n} it is {is_} and not {want}"
                        break
                passed, failed = passed + (wrong is None), failed + (wrong is not None)
                if wrong or loud:
                    print(wrong or f"{name}, {where}: " + ("refused" if is_ == "refused" else "right"))
    if refused == passed:
        print("all were refused")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())

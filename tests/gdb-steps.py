#!/usr/bin/env python3
"""gdb-steps.py TLC [SEED [COUNT]]: `next` in gdb goes through random kernels line by line.

A kernel of scalars, with branches, loops and calls of a helper, is run by Python, whose tracer tells the lines, and in
gdb, whose lines must be the same, up to the kernel's last one. The value of each variable at each line is compared, too:
one that Python does not have yet must be without a value. Prints the kernel where they differ; the last line is
"N kernels, N lines, N wrong".
"""
import os
import random
import re
import subprocess
import sys
import tempfile

TLC = os.path.abspath(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 0
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 20
HEAD = """import triton
import triton.language as tl


@triton.jit
def helper(v, k):
    w = v * 3 + k
    if w > 100:
        w = w & 63
    return w


@triton.jit
def kernel(x, n):
"""
NAMES = ["a", "b", "c", "d"]


class Writer:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.loops = ["a = n & 7", f"b = n * {self.r.randint(1, 5)}"], 0

    def value(self, known):
        r = self.r
        x, y = r.choice(known + ["n"]), r.choice(known + [str(r.randint(1, 9))])
        return r.choice([f"({x} {r.choice('+-*')} {y}) & 255", f"helper({x}, {y}) & 127", f"{x}"])

    def test(self, known):
        return f"{self.r.choice(known)} {self.r.choice(['<', '>', '=='])} {self.r.randint(0, 90)}"

    def block(self, known, depth, indent):
        """The names that are known behind it: those that it has assigned are dropped where it may not run."""
        known = list(known)
        for _ in range(self.r.randint(1, 4)):
            kind = self.r.choice(["set"] * 4 + (["if", "for", "while"] if depth < 3 else []))
            pad = "    " * indent
            if kind == "set":
                name = self.r.choice(NAMES)
                self.lines.append(f"{pad}{name} = {self.value(known)}")
                known += [name] if name not in known else []
            elif kind == "if":
                self.lines.append(f"{pad}if {self.test(known)}:")
                self.block(known, depth + 1, indent + 1)
                if self.r.random() < 0.4:
                    self.lines.append(f"{pad}elif {self.test(known)}:")
                    self.block(known, depth + 1, indent + 1)
                if self.r.random() < 0.5:
                    self.lines.append(f"{pad}else:")
                    self.block(known, depth + 1, indent + 1)
            else:
                self.loops += 1
                i = f"i{self.loops}"
                if kind == "for":
                    self.lines.append(f"{pad}for {i} in range(0, {self.r.choice(known)} & 3):")
                    self.block(known + [i], depth + 1, indent + 1)
                else:
                    self.lines.append(f"{pad}{i} = n & 1")
                    self.lines.append(f"{pad}while {i} < {self.r.randint(1, 4)}:")
                    self.block(known, depth + 1, indent + 1)
                    self.lines.append(f"{pad}    {i} += 1")
        return known

    def text(self):
        known = self.block(["a", "b"], 0, 0)
        self.lines.append("tl.store(x, " + " + ".join(known) + ")")
        return HEAD + "".join(f"    {line}\n" for line in self.lines)


class Tl:
    program_id = staticmethod(lambda axis: 0)
    store = staticmethod(lambda p, v: None)


def trace(text, n):
    """(line, variables) of each line of the kernel that runs."""
    steps = []
    env = {"tl": Tl}
    exec(compile("\n" * 2 + text.split("\n", 2)[2].replace("@triton.jit", "@(lambda f: f)"), "kernel.tl", "exec"), env)

    def on_event(frame, event, _):
        if frame.f_code.co_name != "kernel":
            return None
        if event == "line":
            steps.append((frame.f_lineno, {k: frame.f_locals.get(k) for k in NAMES}))
        return on_event

    sys.settrace(on_event)
    try:
        env["kernel"](0, n)
    finally:
        sys.settrace(None)
    return steps


def step(folder, text, n, count):
    with open(f"{folder}/kernel.tl", "w", encoding="utf-8") as f:
        f.write(text)
    with open(f"{folder}/cmd", "w", encoding="utf-8") as f:
        f.write("set debuginfod enabled off\nset breakpoint pending on\nset width 0\ntbreak kernel.tl:kernel\nrun\n")
        f.write("info locals\nnext\n" * (count - 1) + "info locals\nkill\n")
    env = dict(os.environ, TL_GDB="1", TL_CACHE="0", ASAN_OPTIONS="detect_leaks=0")
    run = [TLC, "run", "kernel.tl", "-k", "kernel", "--device", "cpu", "-g", "1", "x=i32[4]", f"n={n}"]
    out = subprocess.run(["gdb", "-q", "-batch", "-x", "cmd", "--args"] + run, cwd=folder, env=env, capture_output=True,
                         text=True, timeout=300, check=False).stdout
    steps = []
    for line in out.splitlines():
        if m := re.match(r"(\d+)\t", line):
            steps.append((int(m.group(1)), {}))
        elif steps and (m := re.match(r"([a-d]) = (.*)", line)):
            steps[-1][1][m.group(1)] = None if m.group(2) == "<optimized out>" else m.group(2)
    return steps, out


def main():
    wrong = lines = 0
    for seed in range(SEED, SEED + COUNT):
        text, n = Writer(seed).text(), 3 + seed % 50
        want = trace(text, n)[:120]
        with tempfile.TemporaryDirectory() as folder:
            got, out = step(folder, text, n, len(want))
        lines += len(want)
        for k, (line, values) in enumerate(want):
            g = got[k] if k < len(got) else (0, {})
            bad = [name for name, v in values.items() if g[1].get(name) is not None and str(v) != g[1][name]]
            if g[0] != line or bad:
                wrong += 1
                print(f"seed {seed}, n {n}, step {k}: line {line}, gdb is at {g[0]}; {bad} {values} {g[1]}")
                print("".join(f"{i:3} {t}\n" for i, t in enumerate(text.splitlines(), 1)))
                print("want", [w[0] for w in want], "got", [x[0] for x in got])
                if not got:
                    print(out)
                break
    print(f"{COUNT} kernels, {lines} lines, {wrong} wrong")
    return wrong != 0


sys.exit(main())

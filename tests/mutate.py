#!/usr/bin/env python3
"""mutate.py BUILD [--seed N] [--count N] [--seconds N]: IR texts with tokens changed, lines taken away and given twice. tlc must accept
them or say what is wrong: a signal or the status of a bug in tlc (3) is a failure, and the text is shown. Ends in "N passed, N failed"."""
import argparse, glob, os, random, re, subprocess, sys, tempfile, time

TOKEN = re.compile(r'%[\w.$-]+(?:#\d+)?|#\w+|![\w.]+|"[^"]*"|[A-Za-z_][\w.]*|-?\d+(?:\.\d+)?(?:e[+-]\d+)?|->|[^\s\w]')
KINDS = [("name", re.compile(r'%')), ("number", re.compile(r'-?\d')), ("dtype", re.compile(r'(i1|i8|i16|i32|i64|f16|bf16|f32|f64)$')),
         ("layout", re.compile(r'#\w')), ("word", re.compile(r'[A-Za-z_"!]'))]
NUMBERS = ["0", "1", "-1", "2", "3", "4", "16", "31", "64", "1024", "4096", "2147483647", "-2147483648", "4294967296", "9223372036854775807"]


def kind(token):
    return next((k for k, test in KINDS if test.match(token)), "sign")


def mutate(text, r):
    lines = text.split("\n")
    for _ in range(r.choice([1, 1, 1, 2, 4])):
        at = r.randrange(len(lines))
        what = r.random()
        if what < 0.08:
            del lines[at]
        elif what < 0.16:
            lines.insert(at, lines[r.randrange(len(lines))])
        elif what < 0.22:
            other = r.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            tokens = list(TOKEN.finditer(lines[at]))
            if not tokens:
                continue
            m = r.choice(tokens)
            like = [t for t in TOKEN.findall(text) if kind(t) == kind(m[0])]
            new = r.choice(NUMBERS) if kind(m[0]) == "number" and r.random() < 0.5 else r.choice(like)
            if kind(m[0]) == "dtype" and r.random() < 0.5:
                new = r.choice(["i1", "i8", "i64", "f16", "bf16", "f64", "f8E5M2"])
            if r.random() < 0.05:
                new = ""
            lines[at] = lines[at][:m.start()] + new + lines[at][m.end():]
        if not lines:
            lines = [""]
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=250)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--placed", action="store_true", help="placed texts too")
    p.add_argument("--keep", help="a folder for texts that fail")
    a = p.parse_args()
    tlc = os.path.join(a.build, "tlc")
    tmp = tempfile.mkdtemp()
    texts = [(f, open(f).read(), "ttir") for f in sorted(glob.glob("tests/lit/ir/*.ttir"))]
    for f in ["attention", "layer_norm", "matmul", "mean", "softmax", "vector_add"]:
        for form, ext in [("ttir", "ttir")] + [("ttgir", "ttgir")] * a.placed:
            out = subprocess.run([tlc, f"examples/{f}.tl", "--target", "sm_90a", "--emit", form, "-o", "-"], capture_output=True, text=True)
            texts.append((f, out.stdout, ext))
    r = random.Random(a.seed)
    end, passed, failed = time.time() + a.seconds, 0, 0
    for i in range(a.count):
        if time.time() > end:
            break
        name, text, ext = r.choice(texts)
        path = os.path.join(tmp, "m." + ext)
        with open(path, "w") as f:
            f.write(mutate(text, r))
        target = [] if ext == "ttgir" else ["--target", r.choice(["sm_80", "sm_90a"])]
        try:
            status, said = (lambda o: (o.returncode, o.stderr))(subprocess.run([tlc, path, *target, "-o", "/dev/null"], capture_output=True, timeout=60))
        except subprocess.TimeoutExpired:
            status, said = "no end", b""
        if status in (0, 1):
            passed += 1
            continue
        failed += 1
        print(f"{name}, seed {a.seed}, number {i}: {status}: {said.decode(errors='replace')[:300]}")
        if a.keep:
            os.makedirs(a.keep, exist_ok=True)
            os.rename(path, os.path.join(a.keep, f"{a.seed}-{i}.{ext}"))
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())

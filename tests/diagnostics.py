#!/usr/bin/env python3
# diagnostics.py: every diagnostic of compiler/support/diag.def has a test: a file under tests/ holds its text, with any values in
# it. Prints those without one. Texts that are hardly more than values are told by the words of a message that uses them.
import os
import re
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEXTS = {  # of diagnostics whose format is too general to be found, and of those of which a test has a part only
    "E_IR_SYNTAX": "error: expected 'tt.func'",
    "E_IR_INVALID": "error: tt.dot: the shapes do not match",
    "N_DECORATOR_UNKNOWN": "note: 'EVEN' of triton.heuristics: ",
    "R_ACCESS": "remark: load: ",
    "R_CONVERSION": "remark: layout conversion: ",
    "R_CHAINED": "remark: loop: continues with the buffers of the preceding loop",
    "R_ANY_SIZE": "for sizes at which 32-bit indices may overflow",
    "W_SPILLS": "bytes of tiles are live at once in the order in which the kernel is written, and do not fit the registers of",
}
UNREACHABLE = {"E_LLVM", "W_LLVM"}  # no kernel is known that LLVM has something to say about


def table():
    text = open(os.path.join(root, "compiler/support/diag.def"), encoding="utf-8").read()
    string = r'"(?:[^"\\]|\\.)*"'
    for m in re.finditer(rf"^D\((\w+), (\w+),\s*((?:{string}\s*)+),", text, re.M):
        parts = re.findall(string, m[3])
        yield m[1], m[2].lower(), "".join(p[1:-1] for p in parts).replace('\\"', '"').replace("%%", "%")


def pattern(text):
    parts = re.split(r"%(?:lld|llu|\.\*s|[a-z])", text)
    return ".*?".join(map(re.escape, parts))


def corpus():
    out = []
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name.endswith((".tl", ".ttir", ".ttgir", ".test", ".c")):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                    out.append(f.read())
    return "\n".join(out)


tests = corpus()
missing = []
count = 0
for name, severity, text in table():
    if name in UNREACHABLE:
        continue
    count += 1
    want = TEXTS.get(name)
    found = want in tests if want else re.search(pattern(text), tests)
    if not found:
        missing.append(f"{name}: no test has its text: {severity}: {text}")
print("\n".join(missing + [f"{count - len(missing)} passed, {len(missing)} failed"]))
sys.exit(bool(missing))

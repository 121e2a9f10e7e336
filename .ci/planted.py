"""Each command of each planted fault changes its file. Otherwise tests/planted/run.py would plant half a fault, or none."""
import subprocess
import sys


def field(text, i):
    """The end of a field of sed that begins at i: after the next slash without a backslash."""
    while text[i] != "/":
        i += 2 if text[i] == "\\" else 1
    return i + 1


def commands(text):
    """The commands, which semicolons separate: a range of two addresses or none, and s/…/…/ or another command."""
    i, out = 0, []
    while i < len(text):
        begin = i
        while text[i] in "/,+0123456789":
            i = field(text, i + 1) if text[i] == "/" else i + 1
        if text[i] == "s":
            i = field(text, field(text, i + 2))
        while i < len(text) and text[i] != ";":
            i += 1
        out.append(text[begin:i])
        i += 1
    return out


bad = []
for line in open("tests/planted/faults", encoding="utf-8"):
    if line.startswith("#") or not line.strip():
        continue
    name, file, text, what = line.rstrip("\n").split("\t")
    now = open(file, encoding="utf-8").read()
    for command in commands(text):
        then = subprocess.run(["sed", command], input=now, capture_output=True, text=True, check=True).stdout
        if then == now:
            bad.append(f"{name} changes nothing in {file}: {command}")
        now = then
print("\n".join(bad) or "planted faults fit the sources")
sys.exit(bool(bad))

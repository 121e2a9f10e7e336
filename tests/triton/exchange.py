#!/usr/bin/env python3
"""Texts of the tile IR, exchanged with Triton: exchange.py TLC DIR [--per-kernel N] [--verbose]

DIR/commands holds command lines of tlc, as `test-run --sources DIR` writes them. For each of them (--per-kernel: for at
most N of each kernel, spread over the list; 0: all)

  ours    tlc's text is read and verified by Triton;
  theirs  Triton compiles the same source, where it can, and tlc reads the text, as built and after Triton's passes.

Triton's texts stay in DIR as HASH.ttir, the hash being that of the command line, for `test-run --texts DIR`, which
launches them. What fails is told with the first line of the reason; the last lines are the shares. Status 1 if a text is
refused; what Triton cannot compile is counted, and is no failure.

Needs Python's package triton, 3.9 or later, and no GPU."""
import collections
import importlib.machinery
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile

try:
    import triton
    import triton.language as tl
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget, Language
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend
except ImportError as e:
    print(f"SKIPPED: {sys.executable} has no Triton ({e}): nothing was tested")
    sys.exit(77)

BACKEND = make_backend(GPUTarget("cuda", 90, 32))


def new_context():
    context = ir.context()
    ir.load_dialects(context)
    BACKEND.load_dialects(context)
    return context


class Quiet:
    """What is written to standard error meanwhile, by C++ too, is kept in .text."""

    def __enter__(self):
        sys.stderr.flush()
        self.file = tempfile.TemporaryFile()
        self.old = os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *_):
        sys.stderr.flush()
        os.dup2(self.old, 2)
        os.close(self.old)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()


def hash_of(line):
    """As in tests/run/run.c."""
    h = 0xCBF29CE484222325
    for c in line.encode():
        h = (h ^ c) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


# --- command lines -------------------------------------------------------------------------------------------------


def split_list(text):
    """At the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([<") - (c in ")]>")
        if c == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [p for p in parts + [text[start:]] if p]


class Command:

    def __init__(self, line):
        self.line = line
        self.words = words = shlex.split(line)
        self.path, self.kernel, self.constants, self.types, self.warps, self.debug = words[0], None, {}, {}, 4, False
        i = 1
        while i < len(words):
            if words[i] in ("--debug", "--persistent"):
                self.debug |= words[i] == "--debug"
                i += 1
                continue
            value = words[i + 1]
            if words[i] == "-k":
                self.kernel = value
            elif words[i] == "-D":
                name, text = value.split("=", 1)
                self.constants[name] = text
            elif words[i] == "-s":
                self.types = dict(p.split("=", 1) for p in split_list(value))
            elif words[i] == "--num-warps":
                self.warps = int(value)
            i += 2


DTYPES = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64, "i1": tl.int1,
          "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64,
          "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64,
          "fp8e4nv": tl.float8e4nv, "fp8e5": tl.float8e5, "fp8e4b15": tl.float8e4b15, "fp8e4b8": tl.float8e4b8,
          "fp8e5b16": tl.float8e5b16}


def constant(text, module):
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if text[:1] == '"':
        return text[1:-1]
    if text in DTYPES:
        return DTYPES[text]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return getattr(module, text)


def argument(text, path, module, constants, attributes):
    """The type of an argument in Triton's notation; its constants and attributes are noted under their paths."""
    if text[:1] == "(":
        leaves = split_list(text[1:-1])
        return tuple(argument(re.sub(r"^\w+=", "", t), path + (i,), module, constants, attributes)
                     for i, t in enumerate(leaves))
    if text.startswith("tensordesc<"):
        return re.sub(r"(:16)?(,nan)?>$", ">", text)
    name, _, divisor = text.partition(":")
    if name.lstrip("*") not in DTYPES:
        constants[path] = constant(text, module)
        return "constexpr"
    if divisor == "16":
        attributes[path] = [["tt.divisibility", 16]]
    return name


MODULES = {}


def module_of(path):
    if path not in MODULES:
        name = "tl_" + re.sub(r"\W", "_", path)
        loader = importlib.machinery.SourceFileLoader(name, os.path.abspath(path))
        MODULES[path] = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        loader.exec_module(MODULES[path])
    return MODULES[path]


def compile_by_triton(c):
    """Triton's text as built, and after its passes."""
    module = module_of(c.path)
    f = getattr(module, c.kernel)
    constants, attributes, signature = {}, {}, {}
    for i, p in enumerate(f.params):
        if p.name in c.constants:
            constants[(i,)] = constant(c.constants[p.name], module)
            signature[p.name] = "constexpr"
        elif p.name in c.types:
            signature[p.name] = argument(c.types[p.name], (i,), module, constants, attributes)
        elif p.annotation_type:
            signature[p.name] = p.annotation_type
        else:
            constants[(i,)] = p.default
            signature[p.name] = "constexpr"
    options = BACKEND.parse_options({"num_warps": c.warps, "debug": c.debug})
    source = ASTSource(f, signature, constants, attributes)
    context = new_context()
    m = source.make_ir(BACKEND.target, options, BACKEND.get_codegen_implementation(options),
                       BACKEND.get_module_map(), context)
    built = str(m)
    stages = {}
    BACKEND.add_stages(stages, options, Language.TRITON)
    return built, str(stages["ttir"](m, {}))


# --- the two ways --------------------------------------------------------------------------------------------------


def first_line(text):
    lines = [l.strip() for l in text.splitlines() if l.strip()]
    told = [l for l in lines if "error" in l.lower() or "Error" in l]
    return (told or lines or ["no reason given"])[0][:300]


def last_line(text):
    lines = [l.strip() for l in text.splitlines() if l.strip()]
    return (lines or ["no reason given"])[-1][:300]


def run(*words):
    p = subprocess.run(words, capture_output=True, text=True)
    return None if p.returncode == 0 else p.stderr or f"status {p.returncode}"


def ours(tlc, c, path):
    problem = run(tlc, *c.words, "--emit", "ttir", "-o", path)
    if problem:
        return "ours: tlc fails: " + first_line(problem)
    context = new_context()  # which must live as long as the module
    with Quiet() as q:
        try:
            good = ir.parse_mlir_module(path, context).verify()
        except RuntimeError as e:
            good, q.why = False, str(e)
    return None if good else "ours: " + first_line(q.text)


def theirs(tlc, c, path):
    """Why Triton has no text, or None; why tlc does not take the text as built, or None; the same after the passes."""
    with Quiet():
        try:
            texts = compile_by_triton(c)
        except Exception as e:  # of whatever kind: Triton's compiler raises many
            while e.__cause__:
                e = e.__cause__
            return last_line(str(e) or type(e).__name__), None, None
    problems = []
    for text, end in zip(texts, (".built.ttir", ".ttir")):
        with open(path + end, "w", encoding="utf-8") as f:
            f.write(text)
        problem = run(tlc, path + end, "--emit", "ttir", "-o", "/dev/null")
        problems.append(problem and f"theirs{' as built' if 'built' in end else ''}: " + first_line(problem))
    return None, *problems


def choose(lines, most):
    """At most so many of each kernel, spread over its lines."""
    of = collections.defaultdict(list)
    for line in lines:
        of[" ".join(line.split()[:3])].append(line)
    for group in of.values():
        n = min(most or len(group), len(group))
        yield from (group[i * len(group) // n] for i in range(n))


def main():
    args = sys.argv[1:]
    verbose = "--verbose" in args
    most = int(args[args.index("--per-kernel") + 1]) if "--per-kernel" in args else 0
    if len(args) < 2:
        sys.exit(__doc__)
    tlc, folder = args[:2]
    with open(f"{folder}/commands", encoding="utf-8") as f:
        lines = list(choose([l.rstrip("\n") for l in f], most))
    reasons, good = collections.Counter(), collections.Counter()
    for line in lines:
        c = Command(line)
        path = f"{folder}/{hash_of(line + chr(10))}"
        problems = [ours(tlc, c, path + ".ours.ttir")]
        cannot, *more = theirs(tlc, c, path)
        if cannot:
            reasons[cannot] += 1
            if verbose:
                print(f"note  Triton: {cannot}\n      {line}")
        else:
            problems += more
        for i, what in enumerate(problems):
            good[i] += not what
            if what:
                print(f"FAIL  {what}\n      {line}  {path}")
        sys.stdout.flush()
    for why, n in reasons.most_common():
        print(f"note  Triton compiles {n} not: {why}")
    compiled = len(lines) - reasons.total()
    print(f"{good[0]} of {len(lines)} texts of tlc are taken by Triton {triton.__version__}")
    print(f"{good[1]} of {compiled} texts of Triton as built are taken by tlc")
    print(f"{good[2]} of {compiled} texts of Triton after its passes are taken by tlc")
    return good.total() < len(lines) + 2 * compiled


if __name__ == "__main__":
    sys.exit(main())

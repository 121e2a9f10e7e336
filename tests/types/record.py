#!/usr/bin/env python3
"""Records what types Triton gives to operations: python record.py > types.txt, with a Python that has Triton and no GPU.

The operations are those of operations.txt. Triton's own code generator evaluates each on each combination of operands,
and the module that comes of it is verified. Operations on fp8 and dots, which the back end may still refuse, are also
compiled to LLVM IR, one for all combinations that the back end does not tell apart.
"""
import ast
import inspect
import multiprocessing
import os
import re
import sys
import warnings

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import code_generator
from triton.backends.compiler import Language
from triton.compiler.compiler import make_backend
from triton.language import core
from triton.language.extra.cuda import libdevice
from triton.language.semantic import TritonSemantic

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

# A letter for each type; the two pointers stand for all others. Digits are constants.
TYPES = {"b": "i1", "c": "i8", "s": "i16", "i": "i32", "l": "i64", "C": "u8", "S": "u16", "I": "u32", "L": "u64",
         "n": "fp8e4nv", "m": "fp8e5", "v": "fp8e4b15", "h": "fp16", "y": "bf16", "f": "fp32", "d": "fp64",
         "P": "*fp32", "Q": "*i32"}
NAMES = {"b": "int1", "c": "int8", "s": "int16", "i": "int32", "l": "int64", "C": "uint8", "S": "uint16",
         "I": "uint32", "L": "uint64", "n": "float8e4nv", "m": "float8e5", "v": "float8e4b15", "h": "float16",
         "y": "bfloat16", "f": "float32", "d": "float64"}
CONSTANTS = {"0": "True", "1": "2", "2": "-1", "3": "300", "4": "2147483648", "5": "4294967296", "6": "0.5",
             "7": "1e300"}
FP8 = "nmv"
NUMBERS = "bcsilCSILnmvhyfd"
SETS = {"every": NUMBERS + "PQ01234567", "tensors": NUMBERS + "PQ", "numbers": NUMBERS, "types": NUMBERS,
        "few": "bciCImhyfdP136", "few_types": "bcihymf", "dot": "cCsinmvhyfd", "dot_acc": "ihyfd",
        "some": "biImhyfd16", "lib": "ilhfd1", "lib1": "ilILhyfdP16", "lib3": "ilfd1"}


def read_operations():
    for line in open(os.path.join(HERE, "operations.txt")):
        line = line.strip()
        if line and not line.startswith("#"):
            expression, _, sets = line.rpartition(";")
            flag = expression[0] if expression[:2] in ("@ ", "> ") else ""
            yield line, flag, expression[len(flag):].strip(), [SETS[s] for s in sets.split()]


WORDS = re.compile(r"\b(T[abc]|P[ABC]|p[abc]|[ABC]|[abc]|aa|bb|cc)\b")
FIXED = {"pf": "*fp32", "PF": "*fp32", "pi": "*i32", "PI": "*i32", "I": "i32", "i": "i32"}


def statements(expression, operands):
    """The parameters with their types, and the statements, for one combination of operands."""
    params, lines, names = {}, [], {}
    for word in dict.fromkeys(WORDS.findall(expression)):
        slot = word.strip("TPp").lower()[0]
        letter = operands["abc".index(slot)]
        if word[0] == "T":
            names[word] = "tl." + NAMES[letter]
            continue
        if letter in CONSTANTS:
            names[word] = "(" + CONSTANTS[letter] + ")"
            continue
        pointer = word[0] in "pP"
        scalar = ("P" if pointer else "") + slot.upper()
        params[scalar] = ("*" if pointer else "") + TYPES[letter]
        if word != scalar:
            lines.append(f"{word} = tl.broadcast_to({scalar}, [32{', 32' if len(word) == 2 and not pointer else ''}])")
        names[word] = word
    for word in ("pf", "PF", "pi", "I", "i"):
        if re.search(rf"\b{word}\b", expression):
            scalar = word if word.isupper() else word.upper()
            params[scalar] = FIXED[word]
            if word != scalar:
                lines.append(f"{word} = tl.broadcast_to({scalar}, [32])")
    text = WORDS.sub(lambda m: names[m.group()], expression)
    return params, lines + [("" if "index_" in text else "observe") + f"({text})"]


state = {}


@core.builtin
def observe(x, _semantic=None):
    """Keeps x, and stores it, so that it is not dropped as unused."""
    state["seen"] = x
    if isinstance(x, core.tensor) and "OUT" in state and letter_of(x) in NAMES:
        out = _semantic.cast(state["OUT"], core.pointer_type(x.type.scalar))
        core.store(_semantic.splat(out, x.type.shape) if x.type.is_block() else out, x, _semantic=_semantic)


@core.builtin
def keep(x, _semantic=None):
    state["OUT"] = x


def letter_of(x):
    if x is None:
        return "o"
    if isinstance(x, core.constexpr):
        return "o" if x.value is None else "k"
    if not isinstance(x, core.tensor):
        return "?"
    t = x.type.scalar
    if t.is_ptr():
        return {"fp32": "P", "int32": "Q"}.get(t.element_ty.name, "*")
    if t.name == "void":
        return "o"
    return {v: k for k, v in NAMES.items()}[{"int1": "int1", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
                                              "fp64": "float64", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5",
                                              "fp8e4b15": "float8e4b15"}.get(t.name, t.name)]


def watch():
    """Keeps the type that a comparison is computed in, and the sign of a shift."""
    check = TritonSemantic.binary_op_type_checking_impl

    def checked(self, *args, **kwargs):
        r = check(self, *args, **kwargs)
        state["computed"] = r[0]
        return r

    TritonSemantic.binary_op_type_checking_impl = checked
    TritonSemantic._has_native_tma = lambda self: True  # as of the target; Triton asks the GPU
    for name, sign in (("lshr", "u"), ("ashr", "s")):
        def shift(self, a, b, method=getattr(TritonSemantic, name), sign=sign):
            state["sign"] = sign
            return method(self, a, b)
        setattr(TritonSemantic, name, shift)


class Recorder:
    def __init__(self):
        import helpers
        self.scope = dict(vars(helpers), tl=tl, triton=triton, libdevice=libdevice, observe=observe, keep=keep)
        helpers.observe = observe
        self.helpers = helpers
        self.backend = make_backend(GPUTarget("cuda", 90, 32))
        self.options = self.backend.parse_options({})
        self.codegen = self.backend.get_codegen_implementation(self.options)
        self.module_map, self.count = self.backend.get_module_map(), 0
        self.verdicts = {}

    def evaluate(self, flag, expression, operands):
        params, lines = statements(expression, operands)
        if "index_" not in lines[-1]:  # a helper, which does not see OUT, observes
            params["OUT"] = "*i8"
            lines.insert(0, "keep(OUT)")
        self.count += 1
        if self.count % 200 == 1:
            self.context = ir.context()
            ir.load_dialects(self.context)
            self.backend.load_dialects(self.context)
        context = self.context
        f = self.helpers.combine_add
        kernel = ast.parse("def k({}):\n    {}".format(", ".join(params), "\n    ".join(lines)))
        types = [code_generator.str_to_ty(t, None) for t in params.values()]
        generator = code_generator.CodeGenerator(
            context, code_generator.ASTFunction(*self.prototype(types)), self.scope, "k", Dummy(f, params), options=self.options,
            codegen_fns=self.codegen, module_map=self.module_map, is_gluon=False, is_kernel=True, file_name="k", begin_line=1)
        state.clear()
        try:
            generator.visit(kernel)
            generator.module.context = context
            if not generator.module.verify() or "seen" not in state:
                return "."
        except Exception as e:
            self.error = e
            return "."
        if self.is_doubtful(expression, operands) and not self.compiles(generator.module, expression, operands):
            return "."
        if flag == "@":
            return letter_of(state["computed"]) if letter_of(state["seen"]) == "b" else letter_of(state["seen"])
        if flag == ">":
            return state.get("sign", "k")
        return letter_of(state["seen"])


    @staticmethod
    def prototype(types):
        """Triton 3.6 asks for constants too."""
        older = "constants" in inspect.signature(code_generator.ASTFunction).parameters
        return ([], types, {}, {}) if older else ([], types, {})

    def is_doubtful(self, expression, operands):
        """Is an operation one that the back end may refuse?"""
        computed = letter_of(state["computed"]) if "computed" in state else letter_of(state["seen"])
        return computed in FP8 or any(x in FP8 for x in operands) or letter_of(state["seen"]) in FP8 or ".dot(" in expression

    def compiles(self, module, expression, operands):
        kinds = [x if x in FP8 + "dPQ" or x in CONSTANTS or ".dot(" in expression else
                 "i" if x in NUMBERS[:9] else "f" for x in operands]
        key = expression, "".join(kinds), letter_of(state["seen"])
        if key not in self.verdicts:
            stages, metadata = {}, dict(self.options.__dict__)
            self.backend.add_stages(stages, self.options, Language.TRITON)
            try:
                for stage in ("ttir", "ttgir", "llir"):
                    module = stages[stage](module, metadata)
                self.verdicts[key] = True
            except Exception as e:
                self.error = e
                self.verdicts[key] = False
        return self.verdicts[key]


class Dummy:
    """Stands for the kernel's jit function."""
    def __init__(self, function, params):
        self.function, self.params = function, [Param(p) for p in params]

    def __getattr__(self, name):
        return getattr(self.function, name)


class Param:
    is_constexpr = do_not_specialize = do_not_specialize_on_alignment = False

    def __init__(self, name):
        self.name = name


def combinations(sets):
    return [""] if not sets else [x + y for x in sets[0] for y in combinations(sets[1:])]


def record(operation):
    """The letters of all combinations; one on which Triton dies is refused too. `recorder` lives in a process of its own."""
    _, flag, expression, sets = operation
    cells, letters = combinations(sets), ""
    while len(letters) < len(cells):
        reader, writer = os.pipe()
        if not os.fork():
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            warnings.simplefilter("ignore")
            watch()
            recorder = Recorder()
            for cell in cells[len(letters):]:
                os.write(writer, recorder.evaluate(flag, expression, cell).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            letters += pipe.read()
        if os.wait()[1]:
            letters += "."
    return letters


def table(sets, letters):
    """A row for each combination of the first operands."""
    if not sets:
        return ["  " + letters]
    heads, n = combinations(sets[:-1]), len(sets[-1])
    space = len(sets) - 1 + (len(sets) > 1)
    return ["  " + " " * space + sets[-1]] + [
        "  " + (h + " ") * (len(sets) > 1) + letters[i * n:(i + 1) * n] for i, h in enumerate(heads)]


def main():
    operations = [o for o in read_operations() if all(only in o[0] for only in sys.argv[1:])]
    known = {}
    print(f"# The types that Triton {triton.__version__} gives, by record.py: for each operation a row for each choice of "
          "the first operands")
    with multiprocessing.Pool() as pool:
        for (line, _, _, sets), letters in zip(operations, pool.imap(record, operations)):
            print(line)
            if len(sets) > 1 and (letters, *sets) in known:
                print("  as " + known[letters, *sets])
            else:
                known[letters, *sets] = line
                print("\n".join(table(sets, letters)), flush=True)


main()

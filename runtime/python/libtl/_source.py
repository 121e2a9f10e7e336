"""The source texts of a kernel: that of each jit function, with its file and line, as it was written.

A function is a source of its own. The names that it takes from its module or an enclosing function are bound on one
line in front of the text, to the values that they have in Python: numbers, texts, dtypes, functions of triton.language,
and jit functions, which are imported from their own sources. The compiler's messages so have the lines and columns of
the Python file. Names are looked up as Python does it; nothing else is evaluated.
"""

import ast
import builtins
import enum
import inspect
import math
import re
import sys
import textwrap
import types

from . import _core, language

__all__ = ["Sources", "Function", "NotWritten"]

_LANGUAGES = ("triton.language", "libtl.language")
# TorchInductor's functions for its kernels, which the compiler has, too
_INDUCTOR = "torch._inductor.runtime.triton_helpers"


class NotWritten(Exception):
    """A value that the language has no text for."""


# the short names of element types, and those of the longer names
TYPES = {"u1", "bf16", *(f"{s}{n}" for s in "iu" for n in (8, 16, 32, 64)), "fp16", "fp32", "fp64", "fp8e4nv", "fp8e5",
         "fp8e4b15", "fp8e4b8", "fp8e5b16"}
SHORT = {"bool": "u1", "int1": "u1", "i1": "u1", "uint1": "u1", "half": "fp16", "float16": "fp16", "bfloat16": "bf16",
          "float32": "fp32", "float64": "fp64", "double": "fp64", "float": "fp32", "float8e4nv": "fp8e4nv",
          "float8e5": "fp8e5", "float8e4b15": "fp8e4b15", "float8e4b8": "fp8e4b8", "float8e5b16": "fp8e5b16",
          **{f"{u}int{n}": f"{u or 'i'}{n}" for u in ("", "u") for n in (8, 16, 32, 64)}}


def type_name(annotation):
    """The short name of the type that an annotation states: "i32", "*fp32", "constexpr"; or its text."""
    if isinstance(annotation, str):
        name = annotation.strip()
        if name.startswith("const "):
            return "*k" + type_name(name[6:])[1:]
        if name.startswith("*"):
            return "*" + type_name(name[1:])
        if name.endswith("*"):
            return "*" + type_name(name[:-1])
        name = name.removeprefix("tl.")
    elif hasattr(annotation, "element_ty"):
        return "*" + type_name(annotation.element_ty)
    elif type(annotation).__name__ == "dtype":
        name = annotation.name
    else:
        name = getattr(annotation, "__name__", None) or str(annotation)
    return SHORT.get(name.removesuffix("_t"), name)


class Function:
    """The text of a Python function.

    text: from `def` on, without the indentation. file, line: of the `def`. indent: the bytes of indentation. tree: the
    syntax tree, an ast.FunctionDef. free_names: see the function free_names.
    """

    def __init__(self, fn, changed=None):
        """changed: the text from `def` on that replaces the function's own."""
        self.fn = fn
        try:
            lines, start = inspect.findsource(fn)
        except (OSError, TypeError) as e:
            raise NotWritten(f"the source of {fn.__qualname__} is not available: {e}") from None
        self.file = inspect.getsourcefile(fn) or fn.__code__.co_filename
        self.indent = len(lines[start]) - len(lines[start].lstrip())
        while not re.match(r"\s*def\b", lines[start]) and start < len(lines) - 1:
            start += 1
        self.line = start + 1
        self.text, self.tree = self.definition(lines, start)
        if changed is not None:
            self.file, self.indent, self.text = f"<changed text of {fn.__qualname__}>", 0, changed
            self.tree = ast.parse(self.text).body[0]
        self.annotate()
        self.free_names = free_names(self.tree)

    def definition(self, lines, start):
        """The text and the syntax tree of the definition that begins with lines[start]. It ends before a line that is not
        indented more, and with which it is complete."""
        margin = lines[start][:self.indent]
        for end in range(start + 1, len(lines) + 1):
            if end < len(lines) and re.match(rf"\s{{{self.indent + 1}}}|\s*(#|$)", lines[end]):
                continue
            text = "".join(line.removeprefix(margin) for line in lines[start:end])
            try:
                tree = ast.parse(text).body[0]
            except SyntaxError:
                continue
            if isinstance(tree, ast.FunctionDef) and tree.name == self.fn.__code__.co_name:
                return "".join(text.splitlines(True)[:tree.end_lineno]), tree
            break
        raise NotWritten(f"the source of {self.fn.__qualname__} is not at {self.file}:{start + 1}; the file has changed "
                         "since it was imported, or the function is a lambda\n"
                         "      = hint: import the module again, or give the kernel a name with def")

    def annotate(self):
        """Writes annotations that the parameters have in Python, but not in the text: a decorator gave them."""
        edits = []
        for a in [*self.tree.args.posonlyargs, *self.tree.args.args, *self.tree.args.kwonlyargs]:
            given = self.fn.__annotations__.get(a.arg)
            if a.annotation is None and given is not None:
                name = type_name(given)
                word = "__triton.language.constexpr" if "constexpr" in name else repr(name) if name in TYPES else None
                if word:
                    edits.append((a.end_lineno, a.end_col_offset, f": {word}"))
        if not edits:
            return
        lines = [line.encode() for line in self.text.splitlines(True)]
        for line, column, words in reversed(edits):
            lines[line - 1] = lines[line - 1][:column] + words.encode() + lines[line - 1][column:]
        self.text = b"".join(lines).decode()
        self.tree = ast.parse(self.text).body[0]

    @staticmethod
    def of(jit):
        """The text of a jit function or a constexpr function. It is read once: the code of a function does not change."""
        key = jit.fn.__code__, getattr(jit, "_changed_text", None), tuple(jit.fn.__annotations__.items())
        read = jit.__dict__.get("_text")
        if read is None or read[0] != key:
            read = jit.__dict__["_text"] = key, Function(jit.fn, key[1])
        return read[1]

    def scope(self):
        """The names that the function sees: its module's, and those of enclosing functions in front of them."""
        scope = dict(self.fn.__globals__)
        for name, cell in zip(self.fn.__code__.co_freevars, self.fn.__closure__ or ()):
            try:
                scope[name] = cell.cell_contents
            except ValueError:  # it has no value yet
                scope.pop(name, None)
        return scope


def free_names(tree):
    """The names that a function takes from outside, each with the attributes that are read of it: {"tl": {"load": {}}}."""
    a = tree.args
    local = {x.arg for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg] if x is not None}
    used = []

    def visit(n, path):
        if isinstance(n, ast.Attribute):
            visit(n.value, [n.attr, *path])
        elif not isinstance(n, ast.Name):
            for child in ast.iter_child_nodes(n):
                visit(child, [])
        elif isinstance(n.ctx, ast.Store):
            local.add(n.id)
        else:
            used.append((n.id, path))

    for part in [*tree.body, a, *([tree.returns] if tree.returns is not None else [])]:
        visit(part, [])
    found = {}
    for name, path in used:
        if name not in local:
            at = found.setdefault(name, {})
            for part in path:
                at = at.setdefault(part, {})
    return found


def free_names_of(expression):
    """The same of an expression, as pairs."""
    return free_names(ast.parse(f"def f(): {ast.unparse(expression)}").body[0]).items()


def language_name(v):
    """The dotted name of a module or function of triton.language, or None: triton.language.load."""
    module = v.__name__ if isinstance(v, types.ModuleType) else getattr(v, "__module__", None) or ""
    if module in ("triton", "libtl", "math"):
        return module.replace("libtl", "triton") if isinstance(v, types.ModuleType) else None
    for language in _LANGUAGES:
        if module == language or module.startswith(language + "."):
            rest = module[len(language):]
            break
    else:
        return None
    if "libdevice" in rest:
        rest = ".extra.cuda.libdevice"
    elif rest in (".core", ".standard", ".random", "._builtins"):
        rest = ""
    elif rest.startswith(".extra.cuda."):
        rest = ".extra.cuda"
    if isinstance(v, types.ModuleType):
        return "triton.language" + rest
    name = getattr(v, "__name__", None)
    return f"triton.language{rest}.{name}" if name else None


def is_jit(v):
    """Is it a jit function, libtl's or Triton's?"""
    return type(v).__name__ == "JITFunction" and hasattr(v, "fn")


def is_constexpr_function(v):
    return type(v).__name__ == "ConstexprFunction" and hasattr(v, "fn")


def is_inductor(v):
    """Is it one of TorchInductor's functions that the compiler has?"""
    return getattr(v, "__module__", None) == _INDUCTOR and v.__name__ in language._inductor.__all__


def is_named_tuple(c):
    return isinstance(c, type) and issubclass(c, tuple) and hasattr(c, "_fields")


def is_aggregate(c):
    return isinstance(c, type) and getattr(c, "__triton_aggregate__", False)


def has_text(v):
    """Can a source have the value?"""
    s = Sources.__new__(Sources)
    s.sources, s.names, s.known, s.watched, s.imports = [None], {}, {}, [], []
    try:
        return bool(s.definition("v", v, {}))
    except NotWritten:
        return False


def is_constexpr(v):
    return type(v).__name__ == "constexpr" and hasattr(v, "value")


class _Same:
    """An object that is equal to itself only. It is kept, so that no other object has its address."""

    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return isinstance(other, _Same) and self.v is other.v

    def __hash__(self):
        return id(self.v)

    def __repr__(self):
        return f"<{type(self.v).__qualname__} at {id(self.v):#x}>"


def identity(v):
    """Equal, and of the same repr, for values that have the same text in a source."""
    if v is None or isinstance(v, (bool, int, float, str, enum.Enum)):
        return type(v), repr(v)
    if isinstance(v, (tuple, list)) or type(v).__name__ == "tuple" and hasattr(v, "values"):
        return type(v), *map(identity, v)
    if isinstance(v, dict):
        return "dict", *((identity(k), identity(x)) for k, x in v.items())
    if is_aggregate(type(v)):
        return type(v), *(identity(getattr(v, n)) for n in type(v).__aggregate_fields__)
    if is_constexpr(v):
        return "constexpr", identity(v.value)
    if type(v).__name__ in ("dtype", "pointer_type") and hasattr(v, "name"):
        return type(v).__name__, str(v), getattr(v, "const", False)
    return _Same(v)


_core.set_identity(identity)


def can_change(v):
    """Can the value change in place, without an assignment to a variable?"""
    if isinstance(v, tuple):
        return any(is_constexpr(x) or can_change(x) for x in v)
    return isinstance(v, (list, dict)) or is_aggregate(type(v)) or type(v).__name__ == "tuple"


class Sources:
    """The sources of a kernel: tuples (name, file, first line, indent, text), the kernel's first.

    watched: (holder, name, value, identity, can change in place) of each variable that the texts depend on; the holder is
    a dict, or an object with the attribute `name`.
    """

    def __init__(self, jit, values=()):
        """jit: the kernel. values: functions and compile-time values that are passed as arguments; `names` has the names
        that the kernel's source gives them. NotWritten: one of them has no text."""
        self.sources, self.names, self.known, self.watched, self.imports = [None], {}, {}, [], []
        main = Function.of(jit)
        bound = self.bind(main)
        for v in values:
            if id(v) not in self.names:
                self.names[id(v)] = name = f"__argument_{len(self.names)}"
                try:
                    bound.append(self.definition(name, v, {}))
                except NotWritten:
                    raise TypeError(f"an argument of type {type(v).__module__}.{type(v).__qualname__} cannot be passed to "
                                    "a kernel") from None
        self.sources[0] = self.source(None, main, bound, jit)

    def function(self, jit):
        """The module and the name of a jit function or constexpr function."""
        if id(jit) not in self.known:
            f = Function.of(jit)
            self.known[id(jit)] = module = f"__module_{len(self.sources)}"
            self.sources.append(None)
            at = len(self.sources) - 1
            self.sources[at] = self.source(module, f, self.bind(f), jit)
        return self.known[id(jit)], jit.fn.__name__

    def source(self, module, f, bound, jit):
        head = ["import triton as __triton; " + "; ".join(b for b in bound if b), *self.decorators(jit)]
        return module, f.file, max(f.line - len(head), 0), f.indent, "\n".join([*head, f.text])

    @staticmethod
    def decorators(jit):
        """The lines in front of the `def`."""
        words = getattr(jit, "_must_use_result", False)
        if words:
            yield "@__triton.must_use_result" + (f"({words!r})" if isinstance(words, str) else "")
        if is_constexpr_function(jit):
            yield "@__triton.constexpr_function"
        else:
            yield "@__triton.jit" + ("(noinline=True)" if getattr(jit, "noinline", False) else "")

    # --- names

    def bind(self, f):
        """A definition of each name that the function takes from outside."""
        scope, bound = f.scope(), []
        cells = dict(zip(f.fn.__code__.co_freevars, f.fn.__closure__ or ()))
        for name, attributes in f.free_names.items():
            if name not in scope or getattr(builtins, name, None) is scope[name]:
                continue
            self.watch_name(f.fn, cells, name, scope[name])
            bound.append(self.binding(name, scope[name], attributes))
        return bound

    def watch_name(self, fn, cells, name, v):
        """Notes a variable of an enclosing function, or of the module."""
        if name in cells:
            self.watch(cells[name], "cell_contents", v)
        else:
            self.watch(fn.__globals__, name, v)

    def watch(self, holder, name, v):
        """Notes a variable whose value the texts have. holder: a dict, or an object with the attribute."""
        if isinstance(v, (types.ModuleType, types.FunctionType, type)):
            return
        if is_constexpr(v):
            self.watch(v, "value", v.value)
        self.watched.append((holder, name, v, identity(v), can_change(v)))

    def binding(self, name, v, attributes):
        """A statement that gives `name` the value v in a source; None: it has no text, and a use of it is an error."""
        try:
            return self.definition(name, v, attributes)
        except NotWritten:
            return None

    def definition(self, name, v, attributes):
        if is_inductor(v):
            return f"from {_INDUCTOR} import {v.__name__} as {name}"
        dotted = language_name(v)
        if dotted and isinstance(v, types.ModuleType):
            return f"import {dotted} as {name}"
        if dotted and (is_jit(v) or callable(v)) and not is_constexpr_function(v):
            module, _, own = dotted.rpartition(".")
            return f"from {module} import {own} as {name}"
        if getattr(v, "__module__", None) in ("triton", "libtl") and callable(v):
            return f"from triton import {v.__name__} as {name}"
        if is_jit(v) or is_constexpr_function(v):
            module, own = self.function(v)
            return f"from {module} import {own} as {name}"
        if is_named_tuple(v) or is_aggregate(v):
            return f"from {self.class_(v)} import {v.__name__} as {name}"
        imports, self.imports = self.imports, []
        try:
            return "; ".join([f"{name} = {self.literal(v)}", *self.imports][::-1])
        except NotWritten:
            if not attributes:
                raise
            return f"import {self.namespace(v, attributes)} as {name}"
        finally:
            self.imports = imports

    def imported(self, module, own):
        """A name for a function or class of another source, in the expression that is being written."""
        name = f"__{module.strip('_')}_{own}"
        statement = f"from {module} import {own} as {name}"
        if statement not in self.imports:
            self.imports.append(statement)
        return name

    def namespace(self, v, attributes):
        """A source with the attributes of an object that are used: a Python module, a class, an instance."""
        module = f"__module_{len(self.sources)}"
        self.sources.append(None)
        at, bound = len(self.sources) - 1, []
        for name, inner in attributes.items():
            if not hasattr(v, name):
                continue
            value = getattr(v, name)
            self.watch(v.__dict__ if isinstance(v, types.ModuleType) else v, name, value)
            bound.append(self.binding(name, value, inner))
        text = "; ".join(b for b in bound if b) + "\n"
        self.sources[at] = module, getattr(v, "__file__", None) or "<namespace>", 0, 0, text
        return module

    # --- values

    def literal(self, v):
        """An expression with the value v."""
        if hasattr(v, "value") and type(v).__name__ == "constexpr":
            return self.literal(v.value)
        if isinstance(v, enum.Enum) and type(v).__name__ == "PropagateNan" or type(v).__name__ == "PROPAGATE_NAN":
            return f"__triton.language.PropagateNan.{v.name}"
        if v is None or isinstance(v, (bool, str)) and not isinstance(v, enum.Enum):
            return repr(v)
        if isinstance(v, int):
            return repr(int(v))
        if isinstance(v, float) and not isinstance(v, enum.Enum):
            return repr(float(v)) if math.isfinite(v) else f'float("{float(v)}")'
        if type(v).__module__.startswith("numpy") and getattr(v, "shape", None) == () and hasattr(v, "item"):
            return self.literal(v.item())
        if type(v).__name__ == "pointer_type" and hasattr(v, "element_ty"):
            return f"__triton.language.pointer_type({self.literal(v.element_ty)})"
        if type(v).__name__ == "dtype" and language_name(type(v)):
            return f"__triton.language.{repr(v).rpartition('.')[2]}"
        if is_jit(v) or is_constexpr_function(v):
            dotted = language_name(v) if is_jit(v) else None
            return dotted.replace("triton", "__triton", 1) if dotted else self.imported(*self.function(v))
        if isinstance(v, types.FunctionType) and language_name(v):
            return language_name(v).replace("triton", "__triton", 1)
        if is_aggregate(type(v)):
            return self.constructed(v)
        if is_named_tuple(type(v)):
            return f"{self.imported(self.class_(type(v)), type(v).__name__)}({', '.join(self.literal(x) for x in v)})"
        if isinstance(v, dict):
            return "{" + ", ".join(f"{self.literal(k)}: {self.literal(x)}" for k, x in v.items()) + "}"
        if type(v).__name__ == "tuple" and is_named_tuple(getattr(v, "type", None)):
            return self.literal(v.type(*v))
        if isinstance(v, enum.Enum):
            return f"{self.imported(self.class_(type(v)), type(v).__name__)}({v.name!r}, {self.literal(v.value)})"
        if isinstance(v, (tuple, list)) or type(v).__name__ == "tuple" and hasattr(v, "values"):
            items = ", ".join(self.literal(x) for x in v)
            return f"[{items}]" if isinstance(v, list) else f"({items},)" if v else "()"
        raise NotWritten(f"a value of type {type(v).__module__}.{type(v).__qualname__}")

    def constructed(self, v):
        """The expression that makes an aggregate as Python code made it: constructors may compute."""
        args, kwargs = v._made
        parts = [*map(self.literal, args), *(f"{n}={self.literal(x)}" for n, x in kwargs.items())]
        return f"{self.imported(self.class_(type(v)), type(v).__name__)}({', '.join(parts)})"

    # --- classes

    def class_(self, c):
        """The module with the class of a named tuple, an aggregate, or of enumerators, which are named tuples there."""
        if id(c) in self.known:
            return self.known[id(c)]
        self.known[id(c)] = module = f"__module_{len(self.sources)}"
        self.sources.append(None)
        at = len(self.sources) - 1
        self.sources[at] = (self.aggregate(module, c) if is_aggregate(c) else
                            self.named_tuple(module, c, ("name", "value"), {}) if issubclass(c, enum.Enum) else
                            self.named_tuple(module, c, c._fields, c._field_defaults))
        return module

    def named_tuple(self, module, c, fields, defaults):
        lines = ["from typing import NamedTuple; import triton as __triton", f"class {c.__name__}(NamedTuple):"]
        for f in fields:
            default = f" = {self.literal(defaults[f])}" if f in defaults else ""
            lines.append(f"    {f}: object{default}")
        return module, "<named tuple>", 0, 0, "\n".join([*lines, "    pass", ""])

    def aggregate(self, module, c):
        own = getattr(c, "__aggregate_class__", c)
        try:
            lines, start = inspect.getsourcelines(own)
        except (OSError, TypeError) as e:
            raise NotWritten(f"the source of {c.__qualname__} is not available: {e}") from None
        indent = len(lines[0]) - len(lines[0].lstrip())
        text = textwrap.dedent("".join(lines))
        tree = ast.parse(text).body[0]
        bound = ["import triton as __triton", *self.bind_class(own, tree)]
        body = "".join(text.splitlines(True)[tree.lineno - 1:])
        source = "; ".join(b for b in bound if b) + "\n@__triton.language.core._aggregate\n" + body
        return module, inspect.getsourcefile(own) or "<class>", start + tree.lineno - 3, indent, source

    def bind_class(self, own, tree):
        bound, done = [], set()
        for n in tree.body:
            f = own.__dict__.get(getattr(n, "name", ""))
            while f is not None and not isinstance(f, types.FunctionType):
                f = getattr(f, "fget", None) or getattr(f, "__func__", None) or getattr(f, "fn", None)
            if f is None or not isinstance(n, ast.FunctionDef):
                continue
            function = Function.__new__(Function)
            function.fn, function.tree = f, n
            scope = function.scope()
            names = free_names(n)
            for d in n.decorator_list:
                root = d.func if isinstance(d, ast.Call) else d
                names.update(free_names(ast.parse(f"def f(): {ast.unparse(root)}").body[0]))
            for name, attributes in names.items():
                if name not in done and name in scope and getattr(builtins, name, None) is not scope[name]:
                    done.add(name)
                    self.watch_name(f, dict(zip(f.__code__.co_freevars, f.__closure__ or ())), name, scope[name])
                    bound.append(self.binding(name, scope[name], attributes))
        for base in own.__bases__:
            if is_aggregate(base):
                bound.append(self.binding(base.__name__, base, {}))
        module = vars(sys.modules.get(own.__module__, own))
        for n in tree.body:
            for name, attributes in free_names_of(n.value) if isinstance(n, ast.AnnAssign) and n.value else ():
                if name in module and name not in done:
                    done.add(name)
                    self.watch(module, name, module[name])
                    bound.append(self.binding(name, module[name], attributes))
            if isinstance(n, ast.AnnAssign) and isinstance(n.annotation, ast.Name):
                v = own.__annotations__.get(n.target.id) if isinstance(n.target, ast.Name) else None
                if is_aggregate(v) and n.annotation.id not in done:
                    done.add(n.annotation.id)
                    bound.append(self.binding(n.annotation.id, v, {}))
        return bound

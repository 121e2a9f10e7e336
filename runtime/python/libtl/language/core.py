"""Types and compile-time values of the language, as Python objects: what host code does with them."""

import enum
import operator

from .. import _core

__all__ = ["dtype", "pointer_type", "block_type", "tuple_type", "constexpr_type", "constexpr", "const", "tensor",
           "tensor_descriptor", "tensor_descriptor_base", "tuple", "slice", "PropagateNan", "TRITON_MAX_TENSOR_NUMEL",
           "builtin", "must_use_result", "aggregate_replace", "str_to_ty"]

TRITON_MAX_TENSOR_NUMEL = 1048576
_NUMBERS = {{"i": "int", "u": "uint"}.get(name[0], name[0]) + name[1:]: number
            for number, name in enumerate(_core.dtype_names())}
_LONG = {"fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp8e4b15": "float8e4b15", "fp8e4b8": "float8e4b8",
         "fp8e5b16": "float8e5b16", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
_MANTISSA = {"fp8e4nv": (3, 7), "fp8e5": (2, 15), "fp8e4b15": (3, 15), "fp8e4b8": (3, 8), "fp8e5b16": (2, 16),
             "fp16": (10, 15), "bf16": (7, 127), "fp32": (23, 127), "fp64": (52, 1023)}


class base_type:
    """The type of a value in a kernel."""


class base_value:
    """A value in a kernel."""


class dtype(base_type):
    """A type of elements: tl.float16, or dtype("fp16")."""

    SINT_TYPES = ["int8", "int16", "int32", "int64"]
    UINT_TYPES = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES = list(_MANTISSA)
    STANDARD_FP_TYPES = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES = ["void"]

    class SIGNEDNESS(enum.Enum):
        SIGNED = 0
        UNSIGNED = 1

    class KIND(enum.Enum):
        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    def __init__(self, name):
        name = getattr(name, "value", name)
        if name != "void" and name not in _NUMBERS:
            raise ValueError(f"there is no type {name!r}; there are {', '.join(_NUMBERS)}")
        self.name = name
        digits = name[2:3] if name.startswith("fp8") else name.lstrip("uintfpb")
        self.primitive_bitwidth = int(digits) if digits.isdigit() else 0
        self.int_bitwidth = self.primitive_bitwidth
        self.fp_mantissa_width, self.exponent_bias = _MANTISSA.get(name, (0, 0))
        self.int_signedness = dtype.SIGNEDNESS.UNSIGNED if name.startswith("uint") else dtype.SIGNEDNESS.SIGNED
        self.__tl_arg__ = _core.type(_NUMBERS[name]) if name in _NUMBERS else None

    @property
    def itemsize(self):
        """Bytes of an element in memory."""
        return max(self.primitive_bitwidth // 8, 1)

    def is_fp8(self):
        return self.name.startswith("fp8")

    def is_floating(self):
        return self.name in _MANTISSA

    def is_standard_floating(self):
        return self.name in ("fp16", "bf16", "fp32", "fp64")

    def is_int_signed(self):
        return self.name.startswith("int")

    def is_int_unsigned(self):
        return self.name.startswith("uint")

    def is_int(self):
        return "int" in self.name

    def is_bool(self):
        return self.name == "int1"

    def kind(self):
        kinds = dtype.KIND
        return kinds.BOOLEAN if self.is_bool() else kinds.INTEGRAL if self.is_int() else kinds.FLOATING

    def is_void(self):
        return self.name == "void"

    def is_block(self):
        return False

    def is_ptr(self):
        return False

    def is_const(self):
        return False

    @property
    def scalar(self):
        return self

    @staticmethod
    def is_dtype(name):
        return name in _NUMBERS

    for _name in "fp8e4nv fp8e4b8 fp8e4b15 fp8e5 fp8e5b16 fp16 bf16 fp32 fp64 int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split():
        locals()["is_" + _name] = lambda self, _name=_name: self.name == _name
    del _name

    @property
    def cache_key_part(self):
        return self.name

    def codegen_name(self):
        return self.name

    def __eq__(self, other):
        other = getattr(other, "value", other) if isinstance(other, constexpr) else other
        return type(other) is dtype and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"triton.language.{_LONG.get(self.name, self.name)}"

    def __reduce__(self):
        return dtype, (self.name,)


class pointer_type(dtype):
    """A pointer to elements of a type."""

    def __init__(self, element_ty, address_space=1, const=False):
        if not isinstance(element_ty, dtype):
            raise TypeError(f"element_ty is a {type(element_ty).__name__}, not a dtype")
        self.element_ty, self.address_space, self.const = element_ty, address_space, const
        self.name, self.primitive_bitwidth, self.__tl_arg__ = f"pointer<{element_ty}>", 64, None

    def is_ptr(self):
        return True

    def is_const(self):
        return self.const

    def __eq__(self, other):
        return isinstance(other, pointer_type) and (self.element_ty, self.const) == (other.element_ty, other.const)

    def __hash__(self):
        return hash((self.name, self.const))

    def __repr__(self):
        return f"triton.language.pointer_type({self.element_ty!r})"

    def __reduce__(self):
        return pointer_type, (self.element_ty, self.address_space, self.const)


class block_type(dtype):
    """A tile: an element type and a shape."""

    def __init__(self, element_ty, shape):
        self.element_ty, self.shape = element_ty, list(shape)
        self.name, self.primitive_bitwidth = f"<{self.shape}, {element_ty}>", element_ty.primitive_bitwidth
        self.__tl_arg__ = None

    @property
    def scalar(self):
        return self.element_ty

    def is_block(self):
        return True

    def get_block_shapes(self):
        return self.shape

    def __eq__(self, other):
        return isinstance(other, block_type) and (self.element_ty, self.shape) == (other.element_ty, other.shape)

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return block_type, (self.element_ty, self.shape)


class tuple_type(base_type):
    """The type of a tuple."""

    def __init__(self, types, fields=None):
        self.types, self.fields = types, fields


class constexpr_type(base_type):
    """The type of a compile-time value."""

    def __init__(self, value):
        self.value = value


def _unwrap(value):
    return value.value if isinstance(value, constexpr) else value


class constexpr(base_value):
    """A compile-time value. Operators give compile-time values again."""

    def __init__(self, value):
        self.value = _unwrap(value)

    def __repr__(self):
        return f"constexpr[{self.value}]"

    def __index__(self):
        return operator.index(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __bool__(self):
        return bool(self.value)

    def __hash__(self):
        return hash((constexpr, self.value))

    def __call__(self, *args, **kwargs):
        return self.value(*args, **kwargs)

    def __getitem__(self, index):
        return constexpr(self.value[_unwrap(index)])

    def __iter__(self):
        return iter(self.value)

    def logical_and(self, other):
        return constexpr(self.value and _unwrap(other))

    def logical_or(self, other):
        return constexpr(self.value or _unwrap(other))

    def __neg__(self):
        return constexpr(-self.value)

    def __pos__(self):
        return constexpr(+self.value)

    def __invert__(self):
        return constexpr(~self.value)


def _operators():
    for name in "add sub mul truediv floordiv mod pow lshift rshift and or xor".split():
        f = getattr(operator, name + "_" if name in ("and", "or") else name)
        setattr(constexpr, f"__{name}__", lambda a, b, f=f: constexpr(f(a.value, _unwrap(b))))
        setattr(constexpr, f"__r{name}__", lambda a, b, f=f: constexpr(f(_unwrap(b), a.value)))
    for name in "lt le gt ge eq ne".split():
        f = getattr(operator, name)
        setattr(constexpr, f"__{name}__", lambda a, b, f=f: constexpr(f(a.value, _unwrap(b))))


_operators()


CONSTEXPR_0 = constexpr(0)


class const:
    """An annotation: a pointer to memory that the kernel does not write."""


class _only_in_kernels:

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"tl.{type(self).__name__} exists in kernels only, under @libtl.jit")


class tensor(_only_in_kernels, base_value):
    """A tile or a scalar of a kernel."""


class tensor_descriptor_base(_only_in_kernels, base_value):
    """A tensor in memory, which a kernel loads and stores in blocks."""


class tensor_descriptor(tensor_descriptor_base):
    """A tensor descriptor that a kernel made."""


class slice(_only_in_kernels):
    """A slice of a tuple."""


class tuple(base_value):
    """A tuple for a kernel; named, if its type is a named tuple's."""

    def __init__(self, args, type=None):
        self.values, self.type = list(args), type

    def __getitem__(self, index):
        return self.values[_unwrap(index)]

    def __getattr__(self, name):
        fields = getattr(self.__dict__.get("type"), "_fields", None) or getattr(self.__dict__.get("type"), "fields", None)
        if name in (fields or ()):
            return self.values[list(fields).index(name)]
        raise AttributeError(f"a tl.tuple has no field {name!r}")

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)


def aggregate_replace(instance, **changes):
    """An aggregate that is constructed anew from the fields, with other values of those in `changes`."""
    fields = getattr(type(instance), "__aggregate_fields__", None)
    if fields is None:
        raise TypeError(f"aggregate_replace() expects an aggregate instance, got {type(instance)}")
    for name in changes:
        if name not in fields:
            raise TypeError(f"{type(instance).__name__} has no field '{name}'")
    return type(instance)(**{name: changes.get(name, getattr(instance, name)) for name in fields})


class PropagateNan(enum.IntFlag):
    """What tl.maximum, tl.minimum and tl.clamp do with NaN."""

    NONE = 0
    ALL = 0xFFFF


void = dtype("void")
for _name in _NUMBERS:
    globals()[_LONG.get(_name, _name)] = dtype(_name)
    __all__.append(_LONG.get(_name, _name))
__all__.append("void")
pi32_t = pointer_type(int32)  # noqa: F821
__all__.append("pi32_t")


class builtin:
    """Triton's decorator for functions of its compiler, which libtl does not have: a use of the function is an error."""

    def __init__(self, fn):
        self.fn, self.__name__, self.__doc__ = fn, fn.__name__, fn.__doc__

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self.__name__}: libtl has no functions under @builtin; use @libtl.jit")


def must_use_result(x, s=True):
    """Marks a jit function whose result must be used."""
    if isinstance(x, str):
        return lambda fn: must_use_result(fn, x)
    x._must_use_result = s
    return x


def str_to_ty(name, c=None):
    """The type that a signature names: "fp32", "i32", "*fp16", "*kfp16"."""
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(str_to_ty(name[1 + const:]), const=const)
    return dtype({"u1": "int1", "i1": "int1"}.get(name) or _FULL.get(name, name))


_FULL = {f"{letter}{bits}": f"{word}{bits}" for letter, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}


def get_int_dtype(bitwidth, signed):
    """The integer type of a width in bits."""
    return dtype(("int" if signed else "uint") + str(bitwidth))


def _unwrap_if_constexpr(value):
    return [_unwrap_if_constexpr(v) for v in value] if isinstance(value, list) else _unwrap(value)

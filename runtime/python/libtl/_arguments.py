"""Arguments that the extension does not know itself: arrays by DLPack and the array interfaces, descriptors, dtypes,
NumPy's numbers. `convert` is called by the extension, and returns an object that the extension knows."""

import enum
import functools

from . import _core

__all__ = ["convert", "memory", "dtype_number"]

_NUMBERS = {{"i": "int", "u": "uint"}.get(name[0], name[0]) + name[1:]: number
            for number, name in enumerate(_core.dtype_names())}
_ALIASES = {"bool": "int1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "half": "fp16",
            "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float": "fp32", "double": "fp64", "i1": "int1",
            **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)}, **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)}}
# type codes of the array interface (a letter and bytes)
_TYPESTR = {"b1": "int1", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
            "u4": "uint32", "u8": "uint64", "f2": "fp16", "f4": "fp32", "f8": "fp64"}


def dtype_number(dtype):
    """The number of a dtype of libtl, torch, NumPy, or of a name of it."""
    name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    name = _ALIASES.get(name, name)
    if name not in _NUMBERS:
        raise TypeError(f"elements of type {name} cannot be used in kernels; there are {', '.join(_NUMBERS)}")
    return _NUMBERS[name]


def _extent(shape, strides, size):
    """Bytes from the first element on, with strides in bytes; (before, after) for negative strides."""
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(shape, strides)]
    return -sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + size


def _by_interface(v, interface, device):
    kind = interface["typestr"]
    if kind[0] == ">":
        raise TypeError("an array in another byte order than the machine's cannot be passed to a kernel")
    name = _TYPESTR.get(kind[1:])
    if name is None and kind[1] == "V" and hasattr(v, "dtype"):
        name = _ALIASES.get(str(v.dtype), str(v.dtype))  # the types of ml_dtypes
    if name not in _NUMBERS:
        raise TypeError(f"an array with elements {kind} cannot be passed to a kernel")
    shape, size = interface["shape"], int(kind[2:])
    strides = interface.get("strides")
    if strides is None:
        strides, at = [0] * len(shape), size
        for i in reversed(range(len(shape))):
            strides[i], at = at, at * shape[i]
    before, after = _extent(shape, strides, size)
    if before:
        raise ValueError("an array with negative strides cannot be passed to a kernel; pass a copy")
    return _core.pointer(_NUMBERS[name], interface["data"][0], after, device, v, bool(interface["data"][1]))


_DL_TYPES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
             (1, 32): "uint32", (1, 64): "uint64", (2, 16): "fp16", (2, 32): "fp32", (2, 64): "fp64", (4, 16): "bf16",
             (6, 8): "int1", (10, 8): "fp8e4nv", (12, 8): "fp8e5"}


@functools.cache
def _dlpack_reader():
    """A function that reads the DLTensor of a capsule."""
    import ctypes

    class DLTensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                    ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                    ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return lambda capsule: ctypes.cast(address(capsule, b"dltensor"), ctypes.POINTER(DLTensor)).contents


def _by_dlpack(v):
    capsule = v.__dlpack__()
    t = _dlpack_reader()(capsule)
    name = _DL_TYPES.get((t.code, t.bits))
    if name is None or t.lanes != 1:
        raise TypeError(f"an array with elements of DLPack's type {t.code}, {t.bits} bits cannot be passed to a kernel")
    if t.device_type not in (1, 2, 3, 13):
        raise TypeError(f"an array on DLPack's device {t.device_type} cannot be passed to a kernel; kernels run on the CPU "
                        "and on NVIDIA GPUs")
    size = t.bits // 8
    shape = [t.shape[i] for i in range(t.ndim)]
    strides, at = [0] * t.ndim, size
    for i in reversed(range(t.ndim)):
        strides[i], at = t.strides[i] * size if t.strides else at, at * shape[i]
    before, after = _extent(shape, strides, size)
    device = t.device_id if t.device_type in (2, 13) else -1
    return _core.pointer(_NUMBERS[name], (t.data or 0) + t.byte_offset, after, device, (v, capsule))


def _descriptor(v):
    base = convert(v.base) if not isinstance(v.base, _core.Arg) else v.base
    if not isinstance(base, _core.Arg):
        raise TypeError(f"the base of a descriptor is a {type(v.base).__name__}, not a tensor")
    return _core.descriptor(base, [int(s) for s in v.shape], [int(s) for s in v.strides],
                            [int(s) for s in v.block_shape], getattr(v, "padding", "zero") == "nan",
                            bool(getattr(v, "round_f32_to_tf32", False)))


def convert(v):
    """The argument for an object, or NotImplemented: the kernel's module must contain the object."""
    arg = getattr(v, "__tl_arg__", None)
    if arg is not None:
        return arg
    kind = type(v)
    if kind.__name__ == "constexpr" and hasattr(v, "value"):
        inner = convert(v.value) if not isinstance(v.value, (bool, int, float, str, type(None))) else v.value
        return inner if inner is NotImplemented or inner is None else _constant(inner)
    if kind.__name__ == "JITFunction" or kind.__name__ == "ConstexprFunction":
        return NotImplemented
    if hasattr(v, "block_shape") and hasattr(v, "base") and hasattr(v, "strides"):
        return _descriptor(v)
    tensor = _core.tensor(v)
    if tensor is not None:
        return tensor
    if hasattr(v, "__cuda_array_interface__") and not hasattr(v, "untyped_storage"):
        index = getattr(v.device, "id", 0) if hasattr(v, "device") else 0
        return _by_interface(v, v.__cuda_array_interface__, index)
    if hasattr(v, "__array_interface__"):
        return v.item() if getattr(v, "shape", None) == () and not hasattr(v, "ctypes") else _by_interface(
            v, v.__array_interface__, -1)
    if hasattr(v, "untyped_storage"):
        dtype_number(v.dtype)
        raise TypeError(f"a tensor on the device {v.device} cannot be passed to a kernel; kernels run on the CPU and on "
                        "NVIDIA GPUs")
    if hasattr(v, "__dlpack__"):
        return _by_dlpack(v)
    if isinstance(v, enum.Enum) and not isinstance(v, int):
        return NotImplemented
    if hasattr(v, "__index__"):
        return v.__index__()
    if isinstance(v, float):
        return float(v)
    if type(v).__name__ == "dtype" and hasattr(v, "name"):
        return _core.type(dtype_number(v))
    if hasattr(v, "__iter__") and hasattr(v, "__len__") and type(v).__name__ == "tuple":
        return tuple(v)
    return NotImplemented


def _constant(v):
    return _core.constant(v) if not isinstance(v, (tuple, list)) else v


def memory(v):
    """Address and bytes of the allocation that a tensor lies in."""
    if hasattr(v, "untyped_storage"):
        s = v.untyped_storage()
        return s.data_ptr(), s.nbytes()
    while hasattr(v, "__array_interface__") and hasattr(getattr(v, "base", None), "__array_interface__"):
        v = v.base
    arg = v if isinstance(v, _core.Arg) else convert(v)
    return arg.address, arg.bytes


_core.set_converter(convert)

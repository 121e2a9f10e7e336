"""The part of libtl's C interface that the benchmarks call. Needs neither torch nor triton."""
import ctypes
import os
import sys

os.environ["TL_CACHE"] = "0"  # what is timed as compiling compiles

DTYPES = {"int8": 1, "int32": 3, "int64": 4, "uint8": 5, "float8_e4m3fn": 9, "float8_e5m2": 10, "float16": 11, "bfloat16": 12, "float32": 13, "float64": 14}


class Value(ctypes.Union):
    _fields_ = [("ptr", ctypes.c_void_p), ("i", ctypes.c_int64), ("f", ctypes.c_double)]


class Arg(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("dtype", ctypes.c_int), ("typed", ctypes.c_uint64, 8),
                ("bytes", ctypes.c_uint64, 56), ("value", Value)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("num_warps", ctypes.c_int), ("num_stages", ctypes.c_int),
                ("group_pids", ctypes.c_int), ("debug", ctypes.c_bool), ("stream", ctypes.c_void_p),
                ("max_ctas", ctypes.c_int), ("grid_dims", ctypes.c_int), ("launch_cooperative_grid", ctypes.c_bool),
                ("launch_pdl", ctypes.c_bool), ("specialization", ctypes.c_int), ("maxnreg", ctypes.c_int),
                ("reserved", ctypes.c_uint64), ("ftz", ctypes.c_int), ("unused", ctypes.c_int), ("fp_fusion", ctypes.c_int), ("abi", ctypes.c_int)]


class Tuning(ctypes.Structure):
    _fields_ = [("keys", ctypes.POINTER(ctypes.c_char_p)), ("nkeys", ctypes.c_size_t),
                ("reset", ctypes.POINTER(ctypes.c_char_p)), ("nreset", ctypes.c_size_t),
                ("restore", ctypes.POINTER(ctypes.c_char_p)), ("nrestore", ctypes.c_size_t), ("warmup_ms", ctypes.c_int),
                ("rep_ms", ctypes.c_int), ("limit_ms", ctypes.c_int), ("threads", ctypes.c_int), ("again", ctypes.c_bool),
                ("check", ctypes.c_bool), ("tolerance", ctypes.c_double),
                ("helper", ctypes.POINTER(ctypes.c_char_p)), ("most", ctypes.c_int), ("unused", ctypes.c_int),
                ("reserved", ctypes.c_uint64 * 6)]


class NamedArg(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", Arg)]


class Choice(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("config", Config), ("cost", ctypes.c_double), ("tried", ctypes.c_int),
                ("failed", ctypes.c_int), ("stored", ctypes.c_bool), ("reserved", ctypes.c_uint64 * 4)]


PLAN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Config), ctypes.POINTER(Arg), ctypes.c_size_t)


class TlError(Exception):
    pass


def pointer(dtype, address, size=0):
    """size: the bytes behind the address that are meant, as of tl_range; 0: the allocation around it."""
    return Arg(1, DTYPES[dtype], 1, size, Value(ptr=address))


TEXTS = {}  # strings that were passed, as C has them


def scalar(v):
    """None, a bool, an int, a float or a string."""
    if isinstance(v, bool):
        return Arg(4, 0, 1, 0, Value(i=v))
    if isinstance(v, int):
        return Arg(2, 3, 0, 0, Value(i=v))
    if isinstance(v, float):
        return Arg(3, 13, 1, 0, Value(f=v))
    if isinstance(v, str):
        return Arg(5, 3, 0, 0, Value(ptr=ctypes.addressof(TEXTS.setdefault(v, ctypes.create_string_buffer(v.encode())))))
    if v is not None:
        raise TypeError(f"no argument for {v!r}")
    return Arg(0, 3, 0, 0, Value(i=0))


class Context:
    """libtl in the CUDA context current on this thread, or on a device by its name."""

    def __init__(self, lib, device=None):
        self.lib, self.context = lib, ctypes.c_void_p()
        lib.tl_error.restype = ctypes.c_char_p
        lib.tl_error.argtypes = [ctypes.c_void_p]
        create = lib.tl_context_create if device else lib.tl_context_from_cuda
        self.must(create(device.encode() if device else None, ctypes.byref(self.context)))

    def must(self, status):
        if status:
            raise TlError(self.lib.tl_error(self.context).decode())

    def kernel(self, path, function):
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.must(self.lib.tl_module_load(self.context, path.encode(), ctypes.byref(module)))
        self.must(self.lib.tl_module_kernel(module, function.encode(), ctypes.byref(kernel)))
        return kernel

    def launcher(self, kernel, grid, args, warps, stages, stream=None):
        """A function that launches; nothing but the call is left to do in it."""
        array, config = (Arg * len(args))(*args), Config((ctypes.c_uint32 * 3)(*grid), warps, stages, 0, False, stream)
        launch, must, ref, n = self.lib.tl_launch, self.must, ctypes.byref(config), ctypes.c_size_t(len(args))
        return lambda: must(launch(kernel, ref, array, n))

    def dump(self, kernel, args, warps, stages, stage, programs=1):
        """The text of a stage, compiled anew for so many programs."""
        array, config = (Arg * len(args))(*args), Config((ctypes.c_uint32 * 3)(programs), warps, stages, 0, False, None)
        text = ctypes.c_char_p()
        self.must(self.lib.tl_kernel_dump(kernel, ctypes.byref(config), array, ctypes.c_size_t(len(args)), stage.encode(), ctypes.byref(text)))
        return text.value.decode()

    def synchronize(self):
        self.must(self.lib.tl_synchronize(self.context))


def keep_blocks():
    """Starts this program anew with a glibc that keeps large blocks, once. It gives them back to the system otherwise and faults
    them in again at each call, for PyTorch's results, which PyTorch would be timed with."""
    if os.environ.get("MALLOC_MMAP_THRESHOLD_") is None:
        os.environ.update(MALLOC_MMAP_THRESHOLD_=str(1 << 33), MALLOC_TRIM_THRESHOLD_=str(1 << 34), MALLOC_TOP_PAD_=str(1 << 28))
        os.execv(sys.executable, [sys.executable] + sys.argv)


def load(build):
    return ctypes.CDLL(os.path.join(build, "libtl.so"))

"""Launches run on the current stream of the library whose tensors they get, the first launch of each variant too.

A process with a CUDA driver that is backed by the simulator (`make build/simcuda/libcuda.so.1`) launches on tensors whose
DLPack interface notes who asks for the stream.
"""

import os
import subprocess
import sys

import libtl
import pytest

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(libtl.__file__)))
DRIVER = os.path.join(os.path.dirname(FOLDER), "simcuda")

PROGRAM = '''
import ctypes
import libtl
import libtl.language as tl
from libtl import knobs

cuda = ctypes.CDLL("libcuda.so.1")


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class Tensor_(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


VIEW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor_))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("unused", ctypes.c_void_p * 3), ("view", VIEW), ("stream", STREAM)]


shape, stream, asked = (ctypes.c_int64 * 1)(16), ctypes.c_void_p(), []


@VIEW
def view(o, out):
    out[0] = Tensor_(o.address, Device(2, 0), 1, 0, 32, 1, shape, None, 0)
    return 0


@STREAM
def current(kind, index, out):
    asked.append((kind, index))
    out[0] = stream.value
    return 0


exchange = Exchange(1, 0, None, (ctypes.c_void_p * 3)(), view, current)
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    __dlpack_c_exchange_api__ = capsule(ctypes.addressof(exchange), b"dlpack_exchange_api", None)

    def __init__(self, address):
        self.address = address


@libtl.jit
def fill(x, v):
    tl.store(x + tl.arange(0, 16), v)


libtl._device.context("cuda:0")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxPushCurrent_v2(context)
assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0 and cuda.cuMemAlloc_v2(ctypes.byref(memory), 64) == 0
knobs.runtime.launch_enter_hook.add(lambda metadata: None)
fill[(1,)](Tensor(memory.value), 9)
knobs.runtime.launch_enter_hook.remove(knobs.runtime.launch_enter_hook.calls[0])
for i, v in enumerate((3, 3, 16, 1, 5)):
    asked.clear()
    fill[(1,)](Tensor(memory.value), v)
    libtl.synchronize()
    values = list(ctypes.cast(memory.value, ctypes.POINTER(ctypes.c_int32))[:16])
    assert values == [v] * 16 and asked == [(2, 0)], (v, values, asked)
print("done")
'''


@pytest.mark.skipif(not os.path.exists(os.path.join(DRIVER, "libcuda.so.1")), reason="build/simcuda is not built")
def test_first_launches(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": FOLDER, "LD_LIBRARY_PATH": DRIVER}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "done\n", done.stderr

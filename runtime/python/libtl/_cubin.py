"""Machine code of a GPU as a file: PTX assembled by ptxas, or without ptxas by the driver's linker."""

import ctypes
import importlib.machinery
import os
import shutil
import subprocess
import tempfile

from .errors import CompileError, DeviceError

__all__ = ["assemble", "find_program", "find_ptxas"]

_PTX = 1  # CUjitInputType


def find_program(name):
    """The path of a program of the CUDA toolkit: that of PATH, of $CUDA_HOME, of /usr/local/cuda, of Triton; or None."""
    roots = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    triton = importlib.machinery.PathFinder.find_spec("triton")  # also after libtl.install()
    folders = [*(os.path.join(r, "bin") for r in roots if r),
               os.path.join(os.path.dirname(getattr(triton, "origin", None) or ""), "backends", "nvidia", "bin")]
    found = [shutil.which(name), *(os.path.join(f, name) for f in folders)]
    return next((f for f in found if f and os.access(f, os.X_OK)), None)


def find_ptxas():
    """The path of ptxas: $TRITON_PTXAS_PATH, or as find_program says; or None."""
    path = os.environ.get("TRITON_PTXAS_PATH")
    return path if path and os.access(path, os.X_OK) else find_program("ptxas")


def assemble(ptx, target):
    """The cubin, bytes, for PTX text. target: "sm_90a". CompileError: ptxas refuses. DeviceError: there is neither."""
    ptxas = find_ptxas()
    if ptxas is None:
        return _linked(ptx)
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "w") as f:
            f.write(ptx)
        done = subprocess.run([ptxas, f"-arch={target}", source, "-o", out], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"{ptxas}: {done.stderr.strip()}")
        with open(out, "rb") as f:
            return f.read()


def _linked(ptx):
    """By the driver, for the GPU whose context is current."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise DeviceError(f"a cubin needs ptxas or a CUDA driver: {e}") from None

    def call(name, *args):
        result = getattr(cuda, name)(*args)
        if result:
            raise DeviceError(f"{name}: CUDA error {result}; the driver cannot assemble the kernel, and there is no ptxas")

    state, binary, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    text = ptx.encode() + b"\0"
    call("cuLinkCreate_v2", 0, None, None, ctypes.byref(state))
    try:
        call("cuLinkAddData_v2", state, _PTX, text, ctypes.c_size_t(len(text)), b"kernel.ptx", 0, None, None)
        call("cuLinkComplete", state, ctypes.byref(binary), ctypes.byref(size))
        return ctypes.string_at(binary, size.value)  # the linker owns the memory
    finally:
        cuda.cuLinkDestroy(state)

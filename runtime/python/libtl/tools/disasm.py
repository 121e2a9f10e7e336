"""triton.tools.disasm: SASS, the instructions of a GPU's machine code, as text."""

import os
import subprocess
import tempfile

from .._cubin import find_program

__all__ = ["extract", "get_sass"]


def extract(file_path, fun=None):
    """The SASS of a cubin file, or of its kernel `fun`, by nvdisasm of the CUDA toolkit or of Triton. RuntimeError: there
    is no nvdisasm, or it refuses the file."""
    program = find_program("nvdisasm")
    if program is None:
        raise RuntimeError("SASS needs nvdisasm, of the CUDA toolkit, in $PATH or /usr/local/cuda/bin")
    done = subprocess.run([program, "-c", os.fspath(file_path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr.strip()}")
    if fun is None:
        return done.stdout
    section = f"//--------------------- .text.{fun} "
    if section not in done.stdout:
        raise RuntimeError(f"{file_path} has no kernel {fun!r}")
    return done.stdout[done.stdout.index(section):].partition("\n\n//-----")[0]


def get_sass(cubin_asm, fun=None):
    """The SASS of a cubin in memory."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        f.write(cubin_asm)
        f.flush()
        return extract(f.name, fun)

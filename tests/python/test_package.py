"""The package as a program sees it before the first kernel: imports, the command line, other versions of Python."""

import os
import re
import shutil
import subprocess
import sys

import pytest

import libtl

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(libtl.__file__)))
TLC = os.environ["LIBTL_TLC"]  # the program of the tree
EMULATED = "LIBTL_PYTHON" in os.environ  # by qemu
PYTHON = os.environ.get("LIBTL_PYTHON", sys.executable)
not_emulated = pytest.mark.skipif(EMULATED, reason="the processor is emulated")
with open(os.path.join(TOP, "runtime/tl.h"), encoding="utf-8") as header:
    VERSION = re.search(r'#define TL_VERSION "(.*)"', header.read())[1]
SCALE = """
import triton
import triton.language as tl

@triton.jit
def scale(x, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
"""


def command(*arguments, **options):
    """`python -m libtl` with these arguments, elsewhere than in the tree."""
    environment = {**os.environ, "PYTHONPATH": FOLDER, **options.pop("env", {})}
    return subprocess.run(
        [PYTHON, "-m", "libtl", *arguments], capture_output=True, text=True, env=environment, check=False, **options
    )


def test_version():
    assert libtl.__version__ == VERSION


@not_emulated
def test_import_time():
    """At most 50 ms of the processor, for the import alone: the least of several times, as other programs may run."""
    code = "import time; begin = time.process_time(); import libtl; print(time.process_time() - begin)"
    times = [float(subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(15)]
    assert min(times) <= 0.050, times


def test_imports_nothing_else():
    """The import loads neither NumPy nor torch, and no libraries but the package's own."""
    code = "import libtl, sys; print(*sys.modules); print(open('/proc/self/maps').read())"
    text = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout
    modules, _, maps = text.partition("\n")
    assert "libtl._core" in modules.split()
    assert not {"numpy", "torch", "triton"} & set(modules.split())
    assert "libtl-python.so" in maps and not re.search(r"libcuda\.|libtorch", maps)


def pythons():
    """Other versions of Python that run here, from 3.10 on."""
    for minor in range(10, 20):
        program = shutil.which(f"python3.{minor}")
        folder = os.path.expanduser("~/.pyenv/versions")
        versions = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        found = [os.path.join(folder, name, "bin", "python3") for name in versions if name.startswith(f"3.{minor}.")]
        for path in [*found, program]:
            if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
                yield path
                break


@not_emulated
@pytest.mark.parametrize("python", list(pythons()))
def test_versions_of_python(python):
    """Each version imports the same files, without any other package (-I -S)."""
    code = f"import sys; sys.path.insert(0, {FOLDER!r}); import libtl; print(libtl.__version__)"
    ran = subprocess.run([python, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, f"{VERSION}\n"), ran.stderr


def test_command_line(tmp_path):
    """All of tlc, with its exit codes and the same PTX."""
    shown = command("--version", cwd=tmp_path)
    assert (shown.returncode, shown.stdout.split()[:2]) == (0, ["tlc", f"{VERSION},"])
    missing = command("missing.tl", cwd=tmp_path)
    assert missing.returncode == 2 and "missing.tl" in missing.stderr
    softmax = os.path.join(TOP, "examples/softmax.tl")
    arguments = softmax, "--target", "sm_90a", "--emit", "ptx", "-o", "-"
    made = command(*arguments, cwd=tmp_path)
    expected = subprocess.run([TLC, *arguments], capture_output=True, text=True, check=True).stdout
    assert made.returncode == 0 and ".visible .entry softmax_kernel" in made.stdout
    assert made.stdout == expected


@not_emulated
def test_command_starts_itself(tmp_path):
    """A kernel that faults on the CPU runs again on the interpreter: the command starts its own program."""
    source = tmp_path / "scale.tl"
    source.write_text(SCALE)
    ran = command("run", str(source), "-g", "1", "--device", "cpu", "x=fp32[100]:ones", "n=100", cwd=tmp_path)
    assert ran.returncode == 0 and "min 2 max 2" in ran.stdout, ran.stderr
    source.write_text(SCALE.replace("x + i, 2", "x + i * 100000000, 2"))
    ran = command("run", str(source), "-g", "1", "--device", "cpu", "x=fp32[100]:ones", "n=100", cwd=tmp_path)
    assert ran.returncode == 1
    assert "once more with --device interp" in ran.stderr and "scale.tl:8" in ran.stderr, ran.stderr


def test_program_is_missing(tmp_path):
    """A package without its program says so."""
    shutil.copytree(os.path.dirname(libtl.__file__), tmp_path / "libtl", ignore=shutil.ignore_patterns("tlc", "__pycache__"))
    ran = command("--version", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == 1 and "libtl: error: " in ran.stderr and "hint" in ran.stderr


BESIDE = """
import torch, triton
import ctypes, os, sys
import libtl
library = ctypes.CDLL(os.path.join(os.path.dirname(libtl.__file__), "libtl-python.so"))
words = [b"tlc", *map(os.fsencode, sys.argv[1:])]
sys.exit(library.tlc_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))
"""


def test_beside_torch(tmp_path):
    """The compiler works in a process with torch's libraries and Triton's LLVM, and makes the same PTX."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    softmax = os.path.join(TOP, "examples/softmax.tl")
    arguments = softmax, "--target", "sm_90a", "--emit", "ptx", "-o", "-"
    environment = {**os.environ, "PYTHONPATH": FOLDER}
    made = subprocess.run(
        [PYTHON, "-c", BESIDE, *arguments], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    expected = subprocess.run([TLC, *arguments], capture_output=True, text=True, check=True).stdout
    assert made.returncode == 0, made.stderr
    assert made.stdout == expected


def test_names_of_public_libraries():
    """Each name that Liger, FLA, vLLM and SGLang use of triton is there after libtl.install()."""
    code = """
import importlib, sys
import libtl
libtl.install()
text = "".join(line for line in open(sys.argv[1]) if not line.startswith("#")).replace("\\n    ", " ")
count = 0
for line in text.splitlines():
    path, _, names = line.partition(": ")
    o = importlib.import_module("triton")
    for part in path.split(".")[1:]:
        o = getattr(o, part)
    for name in names.split():
        count += 1
        if not hasattr(o, name):
            importlib.import_module(f"{path}.{name}")
print(count)
"""
    names = os.path.join(TOP, "tests", "python", "triton_names.txt")
    done = subprocess.run([PYTHON, "-c", code, names], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and int(done.stdout) > 200, done.stderr


@not_emulated
def test_sass(tmp_path):
    """The SASS of a kernel, where there are ptxas and nvdisasm."""
    from libtl import _cubin
    from libtl.tools import disasm
    if not _cubin.find_ptxas():
        pytest.skip("there is no ptxas")
    path = tmp_path / "scale.py"
    path.write_text(SCALE)
    ptx = command(str(path), "-s", "*fp32:16,i32", "--target", "sm_90a", "--emit", "ptx").stdout
    try:
        text = disasm.get_sass(_cubin.assemble(ptx, "sm_90a"), "scale")
    except RuntimeError as e:
        pytest.skip(str(e))
    assert "STG" in text and "EXIT" in text
    with pytest.raises(RuntimeError, match="no kernel 'other'"):
        disasm.get_sass(_cubin.assemble(ptx, "sm_90a"), "other")

"""The wheel itself: its files, what they need and export, the notices, and how it is packed."""

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

WHEEL = os.environ.get("LIBTL_WHEEL")
if not WHEEL:
    pytest.skip("these are tests of the wheel, and the package is the tree's", allow_module_level=True)
BUILD = os.environ["LIBTL_BUILD"]
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MACHINE = os.environ.get("LIBTL_MACHINE", os.uname().machine)
native = pytest.mark.skipif(MACHINE != os.uname().machine, reason="the wheel is for another machine")
INFO = "libtl-0.1.dist-info"
MAKE_WHEEL = os.path.join(TOP, "runtime/python/make_wheel.py")


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def archive():
    with zipfile.ZipFile(WHEEL) as opened:
        yield opened


@pytest.fixture(scope="module")
def elves(archive, tmp_path_factory):
    """The ELF files of the wheel, unpacked: a dict of path by name."""
    folder = tmp_path_factory.mktemp("elves")
    found = {}
    for name in archive.namelist():
        if archive.read(name).startswith(b"\x7fELF"):
            found[os.path.basename(name)] = archive.extract(name, folder)
    return found


def test_sizes(archive):
    assert os.path.getsize(WHEEL) <= 60 * 10**6
    assert sum(file.file_size for file in archive.infolist()) <= 120 * 10**6


def test_record(archive):
    """RECORD has each file once, with its hash and size."""
    rows = list(csv.reader(io.StringIO(archive.read(f"{INFO}/RECORD").decode())))
    assert sorted(row[0] for row in rows) == sorted(archive.namelist())
    for name, digest, size in rows:
        if name.endswith("/RECORD"):
            assert (digest, size) == ("", "")
            continue
        contents = archive.read(name)
        kind, _, value = digest.partition("=")
        expected = base64.urlsafe_b64encode(hashlib.new(kind, contents).digest()).decode().rstrip("=")
        assert (value, int(size)) == (expected, len(contents)), name


def test_files(archive):
    """The Python files are the tree's, and modules of the language's functions; the program is executable."""
    names = {name for name in archive.namelist() if name.startswith("libtl/")}
    sources = {
        os.path.relpath(os.path.join(at, name), os.path.join(TOP, "runtime/python"))
        for at, _, files in os.walk(os.path.join(TOP, "runtime/python/libtl"))
        for name in files
        if name.endswith((".py", ".pyi", "py.typed"))
    }
    made = names - sources - {"libtl/_core.abi3.so", "libtl/libtl-python.so", "libtl/tlc"}
    assert "libtl/language/_builtins.py" in made and sources < names
    assert all(re.fullmatch(r"libtl/language/[\w/]+\.py", name) for name in made)
    for name in sources:
        with open(os.path.join(TOP, "runtime/python", name), "rb") as file:
            assert archive.read(name) == file.read(), name
    modes = {name: archive.getinfo(name).external_attr >> 16 for name in archive.namelist()}
    assert {name for name, mode in modes.items() if mode & 0o111} == {"libtl/tlc"}


def needed(path):
    """The libraries and the versions of symbols that an ELF file needs, as objdump states them."""
    text = output("objdump", "-p", path)
    return set(re.findall(r"NEEDED +(\S+)", text)), set(re.findall(r"GLIBC_(?:ABI_)?([\w.]+)", text))


def test_platform(elves):
    """The files need libraries of glibc 2.34 or older, and each other. The name of the wheel states the version."""
    versions = set()
    for path in elves.values():
        libraries, symbols = needed(path)
        versions |= symbols
        loader = {name for name in libraries if name.startswith("ld-linux-")}
        assert libraries - loader <= {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libtl-python.so"}, path
    newest = max(tuple(map(int, version.split("."))) for version in versions)
    assert newest[:2] <= (2, 34)
    name = re.fullmatch(r"libtl-0\.1-cp310-abi3-manylinux_(\d+)_(\d+)_(\w+)\.whl", os.path.basename(WHEEL))
    assert (int(name[1]), int(name[2]), name[3]) == (*newest[:2], MACHINE)


def test_tag(archive):
    wheel = archive.read(f"{INFO}/WHEEL").decode()
    assert re.search(r"^Tag: (\S+)$", wheel, re.M)[1] == os.path.basename(WHEEL)[len("libtl-0.1-") : -len(".whl")]


def test_auditwheel():
    pytest.importorskip("auditwheel", reason="auditwheel is not installed")
    text = " ".join(output(sys.executable, "-m", "auditwheel", "show", WHEEL).split())
    platform = os.path.basename(WHEEL)[: -len(".whl")].rpartition("-")[2]
    assert f'consistent with the following platform tag: "{platform}"' in text


def test_stable_abi(elves):
    """The extension has symbols of Python's stable ABI only."""
    pytest.importorskip("abi3audit", reason="abi3audit is not installed")
    output(sys.executable, "-m", "abi3audit", "--strict", WHEEL)


def test_exports(elves):
    """LLVM and the C++ library inside are hidden: another copy in the process changes nothing."""
    for name, pattern in ("libtl-python.so", r"tlc?_\w+"), ("_core.abi3.so", "PyInit__core"):
        symbols = output("nm", "-D", "--defined-only", "--format=just-symbols", elves[name]).split()
        assert symbols and all(re.fullmatch(pattern, symbol) for symbol in symbols), name
    text = output("readelf", "-d", elves["libtl-python.so"])
    assert "SONAME" in text and "TEXTREL" not in text and "STATIC_TLS" not in text


def test_notices(archive):
    """Each archive that was linked belongs to a package with a notice, or to glibc."""
    if not shutil.which("dpkg"):
        pytest.skip("dpkg is not installed")
    notices = archive.read(f"{INFO}/licenses/NOTICES").decode()
    with open(f"{BUILD}-static/python/inside", encoding="utf-8") as file:
        linked = {os.path.realpath(path) for path in re.findall(r"^\(?(/[^()\s]+\.(?:a|o))\b", file.read(), re.M)}
    assert any(path.endswith("libLLVMCore.a") for path in linked)
    gcc = r"libgcc-\d+-dev"  # the C++ library's notice is that of all of GCC's libraries
    for path in sorted(linked):
        # of a cross compiler, or of this machine's packages of the same names
        if path.startswith(f"{BUILD}/root/"):
            path = path.removeprefix(f"{BUILD}/root").replace(f"/{MACHINE}-", f"/{os.uname().machine}-")
        package = output("dpkg", "-S", path).partition(":")[0].removesuffix("-arm64-cross")
        if not re.fullmatch(f"libc6-dev|{gcc}", package):
            assert f"=== {package} ===" in notices, path
    assert "GCC RUNTIME LIBRARY EXCEPTION" in notices.upper() and "LLVM Exceptions to the Apache 2.0 License" in notices
    with open(os.path.join(TOP, "LICENSE"), "rb") as file:
        assert archive.read(f"{INFO}/licenses/LICENSE") == file.read()


def test_metadata(archive):
    text = archive.read(f"{INFO}/METADATA").decode()
    assert "\nVersion: 0.1\n" in text and "@" not in text.partition("\n\n")[0]
    assert "Requires-Dist" not in text
    for name in re.findall(r"^License-File: (.*)$", text, re.M):
        assert archive.read(f"{INFO}/licenses/{name}")


def pack(folder, out, **variables):
    """make_wheel.py for a package: the completed process."""
    os.makedirs(out, exist_ok=True)
    environment = {**os.environ, **variables}
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    command = sys.executable, MAKE_WHEEL, out, "0.1", os.path.dirname(folder), *files, "--licenses", os.path.join(TOP, "LICENSE")
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture
def package(archive, elves, tmp_path):
    """A small package: all but the large library."""
    folder = tmp_path / "libtl"
    shutil.copytree(os.path.join(TOP, "runtime/python/libtl"), folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(elves["tlc"], folder / "tlc")
    (folder / "libtl-python.so").symlink_to(elves["tlc"])
    return folder


def test_same_bytes(package, tmp_path):
    """Times and the order of the files do not matter; SOURCE_DATE_EPOCH is the time of all files."""
    made = pack(package, tmp_path / "1")
    assert made.returncode == 0, made.stderr
    again = tmp_path / "again" / "libtl"
    again.mkdir(parents=True)
    for name in sorted(os.listdir(package), reverse=True):
        (shutil.copytree if (package / name).is_dir() else shutil.copyfile)(package / name, again / name)
    remade = pack(again, tmp_path / "2")
    wheels = [path.strip() for path in (made.stdout, remade.stdout)]
    contents = [open(path, "rb").read() for path in wheels]
    assert contents[0] == contents[1]
    dated = pack(package, tmp_path / "3", SOURCE_DATE_EPOCH="1700000000").stdout.strip()
    with zipfile.ZipFile(dated) as opened:
        assert {file.date_time for file in opened.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def compiled(source, path, *flags):
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, *flags], input=source, text=True, check=True)


@native
def test_refused(package, tmp_path):
    """A symbol of a later glibc, a library that is not inside, and files of two machines are errors."""
    extra = package / "extra.so"
    compiled("unsigned arc4random(void); unsigned f(void) { return arc4random(); }", extra)
    made = pack(package, tmp_path / "out")
    if "arc4random" in output("nm", "-D", extra) and "GLIBC_2.36" in output("objdump", "-p", extra):
        assert made.returncode == 1 and "extra.so uses symbols of GLIBC_2.36 in libc.so.6" in made.stderr
    else:
        assert made.returncode == 0
    compiled("const char *zlibVersion(void); const char *f(void) { return zlibVersion(); }", extra, "-lz")
    made = pack(package, tmp_path / "out")
    assert made.returncode == 1 and "extra.so needs libz.so.1, which is not in the package" in made.stderr
    data = bytearray(extra.read_bytes())
    data[18:20] = (243).to_bytes(2, "little")  # EM_RISCV
    extra.write_bytes(data)
    made = pack(package, tmp_path / "out")
    assert made.returncode == 1 and "files of several machines: machine243 " in made.stderr
    assert not os.listdir(tmp_path / "out")


@native
def test_installed():
    """What is tested is what the wheel has installed."""
    import libtl

    assert os.path.dirname(os.path.dirname(libtl.__file__)) == sysconfig.get_path("platlib")

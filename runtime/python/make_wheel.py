#!/usr/bin/env python3
"""make_wheel.py OUT VERSION FOLDER FILE… --licenses LICENSE…: packs these files of FOLDER as a wheel in OUT, and prints its
path.

The wheel is for Python 3.10 and later, by the stable ABI. The platform in its name comes from the ELF files of the package:
their machine, and the newest version of glibc whose symbols they use. It is an error if that is later than GLIBC, or if a
file needs a library that is neither glibc's nor in the package.

The bytes depend on the files alone. SOURCE_DATE_EPOCH gives the time of the files, 1980-01-01 if it is not set.
"""

import argparse
import base64
import hashlib
import os
import re
import struct
import sys
import time
import zipfile

GLIBC = (2, 34)  # of RHEL 9; Ubuntu 22.04 has 2.35
FIRST = (2, 17)  # of the first tag manylinux_2_N
MACHINES = {62: "x86_64", 183: "aarch64"}
# libraries of glibc, and libgcc, on which glibc depends at run time
SYSTEM = r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|libgcc_s\.so\.1|ld-linux.*\.so\.\d+"
PYTHON = "cp310-abi3"
ELF = b"\x7fELF"


class Elf:
    """What a 64-bit little-endian ELF file needs: `machine` (a name), `needed` (names of libraries), and `versions` (pairs
    of a library and a version of its symbols)."""

    def __init__(self, data):
        self.data = data
        if data[4:6] != b"\2\1":
            sys.exit("make_wheel.py: error: an ELF file is not of 64 bits, little-endian")
        number = self.read("<H", 18)[0]
        self.machine = MACHINES.get(number, f"machine{number}")
        start, size, count = self.read("<Q", 32)[0], *self.read("<HH", 54)
        self.segments = [self.read("<IIQQQQQQ", start + i * size) for i in range(count)]
        entries = self.dynamic()
        names = self.offset(dict(entries).get(5, 0))
        self.needed = [self.text(names + value) for tag, value in entries if tag == 1]
        self.versions = set(self.references(dict(entries), names))

    def read(self, form, at):
        return struct.unpack_from(form, self.data, at)

    def text(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def offset(self, address):
        """The place in the file of an address in memory."""
        for kind, _, offset, start, _, size, _, _ in self.segments:
            if kind == 1 and start <= address < start + size:
                return address - start + offset
        return 0

    def dynamic(self):
        """The pairs of the dynamic section."""
        entries = []
        for kind, _, offset, _, _, size, _, _ in self.segments:
            if kind == 2:
                entries += [self.read("<QQ", at) for at in range(offset, offset + size, 16)]
        return entries[: next((i for i, e in enumerate(entries) if e[0] == 0), len(entries))]

    def references(self, entries, names):
        """The section of needed versions (SHT_GNU_verneed): a list of libraries, each with a list of versions."""
        at = self.offset(entries.get(0x6FFFFFFE, 0))
        for _ in range(entries.get(0x6FFFFFFF, 0)):
            _, count, library, first, following = self.read("<HHIII", at)
            version = at + first
            for _ in range(count):
                _, _, _, name, step = self.read("<IHHII", version)
                yield self.text(names + library), self.text(names + name)
                version += step
            at += following


def platform(elves):
    """The platform tag of these ELF files, a dict of Elf by name. Exits with a message where they cannot be carried."""
    machines = {elf.machine for elf in elves.values()}
    if len(machines) != 1:
        sys.exit(f"make_wheel.py: error: files of several machines: {' '.join(sorted(machines))}")
    newest = FIRST
    for name, elf in sorted(elves.items()):
        for library in elf.needed:
            if library not in elves and not re.fullmatch(SYSTEM, library):
                sys.exit(
                    f"make_wheel.py: error: {name} needs {library}, which is not in the package\n"
                    "      = hint: make wheel links it statically"
                )
        for library, version in sorted(elf.versions):
            match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
            if match and (int(match[1]), int(match[2])) > GLIBC:
                sys.exit(
                    f"make_wheel.py: error: {name} uses symbols of {version} in {library}, and the package is for glibc "
                    f"{GLIBC[0]}.{GLIBC[1]}\n      = hint: objdump -T {name} | grep {version} lists the symbols"
                )
            newest = max(newest, (int(match[1]), int(match[2]))) if match else newest
    return f"manylinux_{newest[0]}_{newest[1]}_{machines.pop()}"


def package_files(folder, paths):
    """The files of the package: a dict of path in the wheel to (contents, whether it is a program)."""
    files = {}
    for path in paths:
        with open(path, "rb") as file:
            contents = file.read()
        inside = os.path.relpath(path, folder).replace(os.sep, "/")
        files[inside] = contents, contents[:4] == ELF and ".so" not in os.path.basename(path)
    return files


def record(files, own):
    """RECORD: each file with its hash and size, and RECORD itself."""
    lines = []
    for path, (contents, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(contents)}\n")
    return "".join(lines) + f"{own},,\n"


def write(path, files):
    """Writes the archive, those files last that installers read first."""
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (contents, program) in sorted(files.items(), key=lambda file: (".dist-info/" in file[0], file[0])):
            info = zipfile.ZipInfo(name, date)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, for the mode
            info.external_attr = (0o100755 if program else 0o100644) << 16
            archive.writestr(info, contents)


def main():
    parser = argparse.ArgumentParser(description="packs a wheel of libtl")
    for name in "out", "version", "folder":
        parser.add_argument(name)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--licenses", nargs="*", default=[])
    given = parser.parse_args()
    version = given.version
    files = package_files(given.folder, given.files)
    elves = {path.split("/")[-1]: Elf(contents) for path, (contents, _) in files.items() if contents[:4] == ELF}
    tag = f"{PYTHON}-{platform(elves)}"
    info = f"libtl-{version}.dist-info"
    for path in given.licenses:
        with open(path, "rb") as file:
            files[f"{info}/licenses/{os.path.basename(path)}"] = file.read(), False
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "METADATA"), encoding="utf-8") as file:
        files[f"{info}/METADATA"] = file.read().replace("@VERSION@", version).encode(), False
    wheel = f"Wheel-Version: 1.0\nGenerator: make_wheel.py ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/WHEEL"] = wheel.encode(), False
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD").encode(), False
    path = os.path.join(given.out, f"libtl-{version}-{tag}.whl")
    write(path, files)
    print(path)


if __name__ == "__main__":
    main()

# lit configuration: how the files of tests/lit are run. Each file says at its top what
# to run and in its comments what must come out. Parameters: build=DIR, the build to test.
#
#   %tlc           the compiler
#   %ast           … printing the syntax tree
#   %eval          … printing the tile IR as evaluated, before any pass
#   %after=PASS    … printing the IR after that pass, and going no further
#   %ptx           … printing PTX; tests name their --target
#   %bad           … failing, and saying exactly what the file's comments say (tests/lit/bad/check.sh)
#   %build         the folder of the build
#   %ptxas         runs ptxas on PTX from standard input (feature `ptxas`)
import os
import shutil
import subprocess

import lit.formats

config.name = "tlc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".tl", ".ttir", ".ttgir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(config.test_source_root))
build = os.path.join(root, lit_config.params.get("build", "build"))
config.test_exec_root = os.path.join(build, "tests")

tlc = os.path.join(build, "tlc")
tests = config.test_source_root
for pattern, command in [
    (r"%tlc\b", tlc),
    (r"%ast\b", tlc + " --emit ast"),
    (r"%eval\b", tlc + " --target sm_90a --stop-after=eval --emit ttir"),
    (r"%after=([a-z0-9-]+)", tlc + r" --target sm_90a --print-after=\1 --stop-after=\1 -o /dev/null 2>&1"),
    (r"%ptx\b", tlc + " --emit ptx"),
    (r"%build\b", build),
    (r"%bad\b", "sh %s/bad/check.sh %s" % (tests, tlc)),
    (r"%ptxas\b", "sh %s/codegen/ptxas.sh" % tests),
    (r"\bcount\b", shutil.which("count-19") or "count"),
    (r"\bFileCheck\b", shutil.which("FileCheck-19") or "FileCheck"),
]:
    config.substitutions.append((pattern, command))

config.environment["LC_ALL"] = "C"
config.environment["TL_COMPILE_CHECK"] = "buffers"  # a failed proof of buffers is an error
if "SAN" not in os.environ:
    config.available_features.add("plain")  # a process that was not built with the sanitizers loads libtl.so
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas"):
    config.available_features.add("ptxas")
# where processes may be traced
if shutil.which("gdb") and subprocess.run(["gdb", "-q", "-batch", "-ex", "run", "/bin/true"], capture_output=True, text=True).stdout.find("exited normally") >= 0:
    config.available_features.add("gdb")
if shutil.which("gnuplot"):
    config.available_features.add("gnuplot")

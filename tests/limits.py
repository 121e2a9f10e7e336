"""limits.py TLC: what a user waits for and pays. Compiles every example with all dumps, several times, and fails when
softmax takes more than 15 ms beyond what a process takes that only starts (CPU time of the fastest run: other work on the
machine is no fault of tlc, which has one thread, nor is the loading of a shared LLVM), when any takes more than 150 MB at its peak, or when the binary, if linked statically, is over 60 MB."""
import glob
import os
import sys

tlc = sys.argv[1]
top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
passed = failed = 0


def limit(what, value, most, unit):
    global passed, failed
    print(f"{what:40} {value:8.1f} {unit}" + (f", more than {most}" if value > most else ""))
    passed += value <= most
    failed += value > most


def run(arguments):
    """Milliseconds of CPU time and peak megabytes of one process."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(tlc, [tlc] + arguments, os.environ, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"{arguments}: status {status}")
    return (used.ru_utime + used.ru_stime) * 1e3, used.ru_maxrss / 1024


start = min(run(["--version"])[0] for _ in range(40))
print(f"{'process start':40} {start:8.1f} ms")
for path in sorted(glob.glob(os.path.join(top, "examples", "*.tl"))):
    name = os.path.basename(path)
    arguments = [path, "--target", "cuda:sm_90a", "--emit", "ttir,ttgir,llir,ptx", "-o", os.devnull]
    runs = [run(arguments) for _ in range(40 if name == "softmax.tl" else 3)]
    limit(f"{name} to PTX with all dumps", min(r[0] for r in runs), start + 15 if name == "softmax.tl" else 1000, "ms")
    limit(f"{name} peak memory", max(r[1] for r in runs), 150, "MB")
if os.path.getsize(tlc) > 20e6:
    limit("statically linked tlc", os.path.getsize(tlc) / 1e6, 60, "MB")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)

"""PyTorch's own tests of TorchInductor, with libtl behind it, on CPUs and on NVIDIA GPUs.

PYTHONPATH=build/python python3 tests/python/torchinductor.py FOLDER RESULTS [--backend B] [--device cuda] [NAME …]
python3 tests/python/torchinductor.py --compare DEFAULT.jsonl LIBTL.jsonl

FOLDER has PyTorch's test_torchinductor.py, of the installed version. RESULTS receives a line of JSON for each test:
name, result, seconds, text, and error, the line of a failure's text that names it. For libtl on a GPU there are also
compiled and fallbacks, the numbers of kernels that libtl and Triton compiled, and reasons, the warnings of libtl. Tests in
RESULTS do not run again. They run in a random order that is always the same, so that the first ones are a fair sample. A
crash, or a test of more than --limit seconds, ends the process, and a new one goes on.

--device cpu: PyTorch's CPU backend for Triton with libtl, or with --backend cpp TorchInductor's own code for CPUs.
--device cuda: libtl, or with --backend triton Triton.
--suite flex_attention: the classes for the device in FOLDER's test_flex_attention.py.
--jobs N: so many processes share the tests. With --jobs, or on a GPU, their output is in RESULTS.log, RESULTS.log1, ….
--seconds N: no test runs after that time. What runs then is ended, and has no line.
--compare: what passes with TorchInductor's default backend, and what with libtl.
"""

import argparse
import collections
import contextlib
import ctypes
import fcntl
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

GRACE = 15  # seconds after which a process is ended that does not end itself


def results(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def note(path, name, result, seconds=0.0, text="", **more):
    line = {"name": name, "result": result, "seconds": round(seconds, 1), "text": text[-3000:], **more}
    f = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)  # one write: processes share the file
    try:
        os.write(f, (json.dumps(line) + "\n").encode())
    finally:
        os.close(f)


# --- the tests


def cpu_case(folder, backend):
    """PyTorch's tests for devices in general, as a class for the CPU."""
    import libtl.torch
    libtl.torch.enable(cpu=True)
    from torch._inductor import config
    sys.path.insert(0, folder)
    import test_torchinductor as theirs

    @config.patch(cpu_backend=backend)
    class Tests(theirs.TestCase):
        common, device = theirs.check_model, "cpu"

    theirs.copy_tests(theirs.CommonTemplate, Tests, "cpu")
    return Tests


def cuda_case(folder):
    """The same for a GPU."""
    sys.path.insert(0, folder)
    import test_torchinductor as theirs

    class Tests(theirs.TestCase):
        common, device = theirs.check_model_gpu, "cuda"

    theirs.copy_tests(theirs.CommonTemplate, Tests, "cuda")
    return Tests


def flex_cases(folder, device):
    sys.path.insert(0, folder)
    import test_flex_attention as theirs
    return [c for n, c in sorted(vars(theirs).items())
            if isinstance(c, type) and issubclass(c, unittest.TestCase) and n.endswith(device.upper())]


def all_tests(a):
    """The class and the method of each test, by name."""
    if a.device == "cuda":
        import torch
        if not torch.cuda.is_available():
            sys.exit("PyTorch finds no GPU")
        if a.backend == "libtl":
            import libtl.torch
            libtl.torch.enable()
    if a.suite == "flex_attention":
        if a.device == "cpu" and a.backend != "cpp":
            import libtl.torch
            libtl.torch.enable(cpu=True)
        return {f"{c.__name__}.{n}": (c, n) for c in flex_cases(a.folder, a.device)
                for n in unittest.defaultTestLoader.getTestCaseNames(c)}
    tests = cuda_case(a.folder) if a.device == "cuda" else cpu_case(a.folder, a.backend)
    return {n: (tests, n) for n in dir(tests) if n.startswith("test_")}


def outcome(r):
    bad = r.failures + r.errors
    if bad:
        return "fail", bad[0][1]
    return ("skip", str(r.skipped)) if r.skipped else ("pass", "")


# --- a process


class Reasons(logging.Handler):
    """The warnings of libtl.torch: why Triton compiled a kernel."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage()[:500])


def file_of(a, kind):
    return f"{a.results}.{kind}{a.slot or ''}"


def take(path):
    """The next number from a file that processes share."""
    with open(path, "r+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        n = int(f.read())
        f.seek(0)
        f.write(str(n + 1))
    return n


def run(a):
    """Runs what is left, in this process."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    tests, current = all_tests(a), {}
    names = sorted(n for n in tests if not a.names or n in a.names)
    random.Random(7).shuffle(names)
    done = {r["name"] for r in results(a.results)}
    ours = a.device == "cuda" and a.backend == "libtl"
    reasons = Reasons()
    logging.getLogger("libtl.torch").addHandler(reasons)

    def watch():
        while True:
            time.sleep(1)
            now = dict(current)
            if now and time.time() - now["start"] > a.limit:
                note(a.results, now["name"], "timeout", a.limit)
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    import torch
    while (n := take(a.results + ".next")) < len(names) and (not a.until or time.time() < a.until):
        name = names[n]
        if name in done:
            continue
        with open(file_of(a, "current"), "w") as f:
            f.write(name)
        more, reasons.texts = {}, []
        if ours:
            import libtl.torch
            before = libtl.torch.statistics()
        start = time.time()
        current.update(name=name, start=start)
        r = unittest.TestResult()
        case, method = tests[name]
        unittest.TestSuite([case(method)]).run(r)
        result, text = outcome(r)
        broken = ""
        if a.device == "cuda":
            try:
                torch.cuda.synchronize()
            except Exception as e:  # every later call would fail
                broken = str(e)
                result, text = "fail", f"{text}\nthe test ended with an error of the GPU: {broken}"
        current.clear()
        if ours:
            now = libtl.torch.statistics()
            more = {"compiled": now.compiled - before.compiled, "fallbacks": now.fallbacks - before.fallbacks,
                    "reasons": reasons.texts[:20]}
        if result == "fail":
            more["error"] = last_line(text)
        note(a.results, name, result, time.time() - start, text, **more)
        if broken:
            os._exit(3)
        torch._dynamo.reset()
        if a.device == "cuda" and torch.cuda.memory_reserved() > 1 << 31:
            torch.cuda.empty_cache()
    with contextlib.suppress(FileNotFoundError):
        os.remove(file_of(a, "current"))


# --- all processes


def environment(a, folder):
    """The variables of a process. Processes that run at once have their own caches and few threads."""
    if not folder:
        return None
    own = os.path.join(folder, str(a.slot))
    os.makedirs(os.path.join(own, "tmp"), exist_ok=True)
    e = {**os.environ, "TMPDIR": os.path.join(own, "tmp"), "TL_CACHE_DIR": os.path.join(own, "tl"),
         "TORCHINDUCTOR_CACHE_DIR": os.path.join(own, "inductor"), "TRITON_CACHE_DIR": os.path.join(own, "triton"),
         "PYTHONFAULTHANDLER": "1"}
    e.setdefault("OMP_NUM_THREADS", "2")
    if a.device == "cuda":
        e["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # for Triton as for libtl
    return e


def kill(child):
    """Ends a process and those that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(10)


def wait(a, child):
    """Waits for a process, but not beyond the limit of its test or the time for all. Was it ended here, and why?"""
    current = file_of(a, "current")
    while True:
        try:
            child.wait(0.2)
            return None
        except subprocess.TimeoutExpired:
            pass
        now = time.time()
        if a.until and now >= a.until:
            return "end"
        with contextlib.suppress(FileNotFoundError):
            if now - os.stat(current).st_mtime > a.limit + GRACE:
                return "timeout"


def last_text(a, size):
    if not a.logs:
        return ""
    with open(file_of(a, "log"), "rb") as f:
        f.seek(0, 2)
        f.seek(max(0, f.tell() - size))
        return f.read().decode(errors="replace")


def slot(a, folder, children, failed):
    """Runs processes, one after the other, until no test is left."""
    current = file_of(a, "current")
    with contextlib.suppress(FileNotFoundError):
        os.remove(current)
    while not a.until or time.time() < a.until:
        out = open(file_of(a, "log"), "ab") if a.logs else None
        try:
            child = subprocess.Popen([sys.executable, *sys.argv, "--here", "--slot", str(a.slot), "--until", str(a.until)],
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment(a, folder),
                                     start_new_session=True)
        finally:
            if out:
                out.close()
        children[a.slot] = child
        why = wait(a, child)
        kill(child)
        if why == "end" or child.returncode == 0:
            return
        if not os.path.exists(current):
            failed.append(last_text(a, 2000))
            return
        with open(current) as f:
            name = f.read()
        os.remove(current)
        if name not in {r["name"] for r in results(a.results)}:
            code = child.returncode
            text = "" if code is None else f"signal {-code}" if code < 0 else f"status {code}"
            note(a.results, name, why or "crash", a.limit if why else 0.0, f"{last_text(a, 2500)}\n{text}" if a.logs else "")


def supervise(a):
    a.until = time.time() + a.seconds if a.seconds else 0.0
    a.logs = a.jobs > 1 or a.device == "cuda"
    folder = tempfile.mkdtemp(prefix="torchinductor-") if a.logs else None
    with open(a.results + ".next", "w") as f:
        f.write("0")
    children, failed = {}, []

    def end(*_):
        for c in list(children.values()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(c.pid, signal.SIGKILL)
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    threads = [threading.Thread(target=slot, args=(argparse.Namespace(**{**vars(a), "slot": k}), folder, children, failed),
                                daemon=True) for k in range(a.jobs)]
    for t in threads:
        t.start()
    for t in threads:  # the signals are handled meanwhile
        while t.is_alive() and (not a.until or time.time() < a.until + GRACE):
            t.join(0.2)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.remove(a.results + ".next")
    if failed:
        print(failed[0])
        print(f"the tests cannot start in {len(failed)} of {a.jobs} processes")
    found = results(a.results)
    print(dict(collections.Counter(r["result"] for r in found)), flush=True)
    if any("compiled" in r for r in found):
        print(f"kernels of libtl: {sum(r.get('compiled', 0) for r in found)}, "
              f"of Triton instead: {sum(r.get('fallbacks', 0) for r in found)}", flush=True)
    sys.stdout.flush()
    os._exit(1 if len(failed) == a.jobs else 0)


# --- a comparison


def last_line(text):
    """The last error that a text names, or else its last line. PyTorch's tests end with how to run them again."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    hint = [k for k, line in enumerate(lines) if line.startswith(("To execute this test", "This message can be suppr"))]
    lines = lines[:hint[0]] if hint else lines
    kinds = ("Error", "Exception", "OutOfResources", "Unsupported")
    errors = [line for line in lines if line.partition(":")[0].rpartition(".")[2].endswith(kinds)]
    return ((errors or lines or [""])[-1])[:300]


def error(r):
    return r.get("error") or last_line(r["text"])


def compare(default, ours):
    a, b = ({r["name"]: r for r in results(path)} for path in (default, ours))
    both = [n for n in a if n in b]
    groups = collections.defaultdict(list)
    for n in both:
        if "skip" in (a[n]["result"], b[n]["result"]):
            groups["skipped by both" if a[n]["result"] == b[n]["result"] else "skipped by one"].append(n)
        else:
            groups[{(True, True): "pass in both", (True, False): "pass with the default only",
                    (False, True): "pass with libtl only", (False, False): "fail in both"}[
                        a[n]["result"] == "pass", b[n]["result"] == "pass"]].append(n)
    print(f"run in both: {len(both)} (with the default: {len(a)}, with libtl: {len(b)})")
    for g in ("pass in both", "pass with the default only", "pass with libtl only", "fail in both", "skipped by both",
              "skipped by one"):
        print(f"{g}: {len(groups[g])}")
    alone = [n for n in b if n not in a and b[n]["result"] not in ("pass", "skip")]
    print(f"run with libtl only, and not passed: {len(alone)}")
    seconds = [sum(r[n]["seconds"] for n in groups["pass in both"]) for r in (a, b)]
    print(f"seconds of the tests that pass in both: {seconds[0]:.0f} with the default, {seconds[1]:.0f} with libtl")
    print(f"kernels that libtl compiled: {sum(r.get('compiled', 0) for r in b.values())}")
    falls = {n: r for n, r in b.items() if r.get("fallbacks")}
    print(f"kernels that Triton compiled instead: {sum(r['fallbacks'] for r in falls.values())}, in {len(falls)} tests")
    reasons = collections.Counter(t.partition(" is compiled by Triton: ")[2] or t
                                  for r in falls.values() for t in r["reasons"])
    for text, count in reasons.most_common(40):
        print(f"  {count} times: {text}")
    for g, sides in (("pass with the default only", [b]), ("pass with libtl only", [a]), ("fail in both", [a, b])):
        if groups[g]:
            print(f"\n{g}:")
        for n in sorted(groups[g]):
            print(f"  {n}")
            for r in sides:
                print(f"    {'libtl' if r is b else 'default'}: {r[n]['result']}: {error(r[n])}")
    if alone:
        print("\nrun with libtl only, and not passed:")
    for n in sorted(alone):
        print(f"  {n}\n    {b[n]['result']}: {error(b[n])}")


def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("folder")
    p.add_argument("results")
    p.add_argument("names", nargs="*")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--suite", choices=("torchinductor", "flex_attention"), default="torchinductor")
    p.add_argument("--backend", choices=("libtl", "triton", "cpp"), help="default: libtl")
    p.add_argument("--seconds", type=float, default=0.0, help="the time for all tests; default: no limit")
    p.add_argument("--limit", type=float, default=150.0, help="seconds for a test (default: %(default)s)")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--compare", action="store_true", help="FOLDER and RESULTS are two files of results")
    p.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--slot", type=int, default=0, help=argparse.SUPPRESS)
    p.add_argument("--until", type=float, default=0.0, help=argparse.SUPPRESS)
    a = p.parse_intermixed_args()
    if a.compare:
        return compare(a.folder, a.results)
    if a.backend is None:
        a.backend = "libtl"
    if a.backend == "cpp" and a.device == "cuda":
        p.error("--backend cpp is for CPUs")
    if a.device == "cpu" and a.backend == "libtl":
        a.backend = "triton"  # the name of PyTorch's CPU backend behind which libtl is
    if a.here:
        run(a)
        sys.stdout.flush()
        os._exit(0)
    supervise(a)


if __name__ == "__main__":
    main()

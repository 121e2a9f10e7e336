"""PyTorch's own tests of TorchInductor, with libtl behind it, on CPUs and on NVIDIA GPUs.

PYTHONPATH=build/python python3 tests/python/torchinductor.py FOLDER RESULTS [--backend B] [--device cuda] [NAME …]
python3 tests/python/torchinductor.py --compare DEFAULT.jsonl LIBTL.jsonl

FOLDER has PyTorch's test_torchinductor.py, of the installed version. RESULTS receives a line of JSON for each test:
name, result, seconds, text, and error, the line of a failure's text that names it. For libtl on a GPU there are also
compiled and fallbacks, the numbers of kernels that libtl and Triton compiled, and reasons, the warnings of libtl. Tests in
RESULTS do not run again. They run in a random order that is always the same, so that the first ones are a fair sample. A
crash, or a test of more than --limit seconds, ends the process that runs the tests (workers.py), and a new one goes on.

--device cpu: PyTorch's CPU backend for Triton with libtl, or with --backend cpp TorchInductor's own code for CPUs.
--device cuda: libtl, or with --backend triton Triton.
--suite flex_attention: the classes for the device in FOLDER's test_flex_attention.py.
--jobs N: so many processes share the tests. Their output is in RESULTS.log-0, RESULTS.log-1, ….
--seconds N: no test runs after that time. What runs then is ended, and has no line.
--compare: what passes with TorchInductor's default backend, and what with libtl.
"""

import argparse
import collections
import logging
import os
import random
import sys
import tempfile
import unittest

import workers

# --- the tests


def cases(a):
    """The classes of PyTorch's tests for the device."""
    import torch
    if a.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    if a.backend == "libtl" or a.device == "cpu" and a.suite == "torchinductor":  # libtl makes "import triton" work
        import libtl.torch
        libtl.torch.enable(cpu=a.device == "cpu")
    sys.path.insert(0, a.folder)
    if a.suite == "flex_attention":
        import test_flex_attention as theirs
        return [c for n, c in sorted(vars(theirs).items())
                if isinstance(c, type) and issubclass(c, unittest.TestCase) and n.endswith(a.device.upper())]
    import test_torchinductor as theirs

    class Tests(theirs.TestCase):
        common, device = theirs.check_model_gpu if a.device == "cuda" else theirs.check_model, a.device

    if a.device == "cpu":  # libtl is behind PyTorch's CPU backend for Triton
        from torch._inductor import config
        Tests = config.patch(cpu_backend="triton" if a.backend == "libtl" else a.backend)(Tests)
    theirs.copy_tests(theirs.CommonTemplate, Tests, a.device)
    return [Tests]


class Reasons(logging.Handler):
    """The warnings of libtl.torch: why Triton compiled a kernel."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage()[:500])


def work(a):
    """This process is a worker."""
    pipes = workers.Pipes()
    classes, reasons = cases(a), Reasons()
    import torch
    ours = a.device == "cuda" and a.backend == "libtl"
    if ours:
        from libtl.torch import statistics
    logging.getLogger("libtl.torch").addHandler(reasons)
    names = unittest.defaultTestLoader.getTestCaseNames
    tests = {f"{c.__name__}.{n}" if a.suite == "flex_attention" else n: (c, n) for c in classes for n in names(c)}
    order = sorted(n for n in tests if not a.names or n in a.names)
    random.Random(7).shuffle(order)

    def run(name):
        reasons.texts, r, more = [], unittest.TestResult(), {}
        before = ours and statistics()
        case, method = tests[name]
        unittest.TestSuite([case(method)]).run(r)
        if ours:
            now = statistics()
            more = {"compiled": now.compiled - before.compiled, "fallbacks": now.fallbacks - before.fallbacks,
                    "reasons": reasons.texts[:20]}
        if bad := r.failures + r.errors:
            return "fail", bad[0][1], more
        return ("skip", str(r.skipped), more) if r.skipped else ("pass", "", more)

    def after():
        torch._dynamo.reset()
        if a.device == "cuda" and torch.cuda.memory_reserved() > 1 << 31:
            torch.cuda.empty_cache()

    pipes.serve(order, run, a.limit, after)


def run(a):
    """Runs the tests in workers that have their own caches and few threads."""
    command = [sys.executable, *sys.argv, "--work"]

    def worker(folder, number):
        own = os.path.join(folder, str(number))
        os.makedirs(os.path.join(own, "tmp"), exist_ok=True)
        environment = {"OMP_NUM_THREADS": "2", **os.environ, "TMPDIR": os.path.join(own, "tmp")}
        for n in ("TL_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            environment[n] = os.path.join(own, n)
        if a.device == "cuda":
            environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # for Triton as for libtl
        return workers.Worker(command, f"{a.results}.log-{number}", env=environment)

    def line(name, result, seconds, text, **more):
        if result == "fail":
            more["error"] = workers.last_line(text)
        return {"name": name, "result": result, "seconds": round(seconds, 1), "text": text[-3000:], **more}

    with tempfile.TemporaryDirectory(prefix="torchinductor-", ignore_cleanup_errors=True) as folder:
        started = workers.Run(f"{a.suite}, {a.backend}, {a.device}", a.results, "name", lambda n: worker(folder, n), line,
                              a.jobs, a.seconds, a.limit).run()
    found = workers.results(a.results)
    if any("compiled" in r for r in found):
        print(f"kernels of libtl: {sum(r.get('compiled', 0) for r in found)}, "
              f"of Triton instead: {sum(r.get('fallbacks', 0) for r in found)}")
    return started


def compare(default, ours):
    a, b = ({r["name"]: r for r in workers.results(path)} for path in (default, ours))
    groups = workers.groups(a, b)
    one = [n for kind, names in groups.items() if "skip" in kind and kind != ("skip", "skip") for n in names]
    alone = workers.alone(a, b)
    default_only, ours_only, bad = groups["pass", "bad"], groups["bad", "pass"], groups["bad", "bad"]
    print(f"run in both: {sum(map(len, groups.values()))} (with the default: {len(a)}, with libtl: {len(b)})")
    print(f"pass in both: {len(groups['pass', 'pass'])}\npass with the default only: {len(default_only)}\n"
          f"pass with libtl only: {len(ours_only)}\nfail in both: {len(bad)}\n"
          f"skipped by both: {len(groups['skip', 'skip'])}\nskipped by one: {len(one)}\n"
          f"run with libtl only, and not passed: {len(alone)}")
    seconds = [sum(r[n]["seconds"] for n in groups["pass", "pass"]) for r in (a, b)]
    print(f"seconds of the tests that pass in both: {seconds[0]:.0f} with the default, {seconds[1]:.0f} with libtl")
    print(f"kernels that libtl compiled: {sum(r.get('compiled', 0) for r in b.values())}")
    falls = {n: r for n, r in b.items() if r.get("fallbacks")}
    print(f"kernels that Triton compiled instead: {sum(r['fallbacks'] for r in falls.values())}, in {len(falls)} tests")
    reasons = collections.Counter(t.partition(" is compiled by Triton: ")[2] or t
                                  for r in falls.values() for t in r["reasons"])
    for text, count in reasons.most_common(40):
        print(f"  {count} times: {text}")
    workers.show("pass with the default only", default_only, libtl=b)
    workers.show("pass with libtl only", ours_only, default=a)
    workers.show("fail in both", bad, default=a, libtl=b)
    workers.show("run with libtl only, and not passed", alone, libtl=b)


def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("folder")
    p.add_argument("results")
    p.add_argument("names", nargs="*")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--suite", choices=("torchinductor", "flex_attention"), default="torchinductor")
    p.add_argument("--backend", choices=("libtl", "triton", "cpp"), default="libtl")
    p.add_argument("--seconds", type=float, default=0.0, help="the time for all tests; default: no limit")
    p.add_argument("--limit", type=float, default=150.0, help="seconds for a test (default: %(default)s)")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--compare", action="store_true", help="FOLDER and RESULTS are two files of results")
    p.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_intermixed_args()
    if a.compare:
        return compare(a.folder, a.results)
    if a.backend == "cpp" and a.device == "cuda":
        p.error("--backend cpp is for CPUs")
    if a.device == "cpu" and a.backend == "triton":
        a.backend = "libtl"  # which is behind PyTorch's CPU backend of that name
    status = work(a) if a.work else not run(a)
    sys.stdout.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    main()

"""The test suites of Liger-Kernel and of flash-linear-attention on a GPU, with Triton or with libtl in its place.

python3 libraries.py FOLDER RESULTS --with libtl|triton --library liger|fla [--seconds 200] [--jobs 6] [--limit 60]
                     [--seed 1] [--configs 0]
python3 libraries.py --compare A.jsonl B.jsonl [...]

FOLDER has a folder for each library, with its package and its tests as in its repository: liger/src/liger_kernel,
liger/test, fla/fla, fla/tests.
RESULTS receives a line of JSON for each test: library, with, id, result (pass, fail, skip, crash, timeout), seconds,
text. Tests in it do not run again. RESULTS.cache has the compilers' caches, RESULTS.log-N what worker N printed.

JOBS processes run tests, one test at a time (workers.py). A crash, a test of more than LIMIT seconds, or a GPU in an error
state ends such a process, and a new one takes its place. All are killed after SECONDS. SEED decides the order of the tests:
a first round has one test of each test function, the next round has another one, and so on. The functions are in a random
order, the tests of a function begin with the smallest parameters.

--configs N: a kernel with more than N configurations for its autotuner tries only N of them, evenly chosen. If the compiler
refuses all of these, it tries the others too. 0: all.

Not run are tests that start several processes for several GPUs; tests of other compilers (CuTe, cuTile, TileLang, Ascend);
the tests of flash-linear-attention's packaging, which need its repository; and Liger-Kernel's convergence tests, which need
data. Hugging Face's libraries are offline.

--compare: a table of the tests that ran with both, and the tests with different results.
"""

import argparse
import collections
import inspect
import math
import os
import random
import re
import sys

import workers

TESTS = {"liger": "test", "fla": "tests"}
IGNORED = {"liger": ["test/convergence", "test/cutedsl", "test/transformers/test_cut*", "test/transformers/*cutedsl*"],
           "fla": ["tests/test_split_package_release.py", "tests/utils/test_ascend_ub_manager.py",
                   "tests/ops/test_dplr_tilelang.py"]}
SEVERAL_GPUS = re.compile(r"\bmp\.spawn|with_spawn|start_processes|init_process_group")


# --- a worker: pytest in a process that asks for one test after the other


def size(value):
    """The logarithm of the number of elements that a test's parameters stand for."""
    if isinstance(value, int):
        return math.log(max(abs(value), 1))
    if isinstance(value, (list, tuple)):
        offsets = len(value) > 1 and all(isinstance(v, int) for v in value) and list(value) == sorted(value) and not value[0]
        return size(value[-1]) if offsets else sum(size(v) for v in value)
    return 0.0


def ordered(items, seed):
    """The tests in rounds of one test for each function."""
    groups = collections.defaultdict(list)
    for i in sorted(items, key=lambda i: i.nodeid):
        groups[i.nodeid.partition("[")[0]].append(i)
    names = sorted(groups)
    random.Random(seed).shuffle(names)
    for n in names:
        random.Random(f"{seed} {n}").shuffle(groups[n])
        groups[n].sort(key=lambda i: round(sum(map(size, i.callspec.params.values())) if hasattr(i, "callspec") else 0))
    rounds = max(map(len, groups.values()), default=0)
    return [groups[n][r] for r in range(rounds) for n in names if r < len(groups[n])]


def needs_several_gpus(item):
    try:
        return bool(SEVERAL_GPUS.search(inspect.getsource(item.function)))
    except (AttributeError, OSError, TypeError):
        return False


def try_fewer_configurations(most):
    from triton.runtime.autotuner import Autotuner
    prune, run = Autotuner.prune_configs, Autotuner.run

    def fewer(self, kwargs):
        found = list(prune(self, kwargs))
        if len(found) <= most or getattr(self, "tries_all", False):
            return found
        return [found[i * len(found) // most] for i in range(most)]

    def run_with_fewer(self, *args, **kwargs):
        try:
            return run(self, *args, **kwargs)
        except Exception as e:
            refused = type(e).__name__ in ("OutOfResources", "PTXASError", "CompilationError", "CompileError")
            if not refused or len(self.configs) <= most or getattr(self, "tries_all", False):
                raise
        self.tries_all = True
        self.cache.clear()
        return run(self, *args, **kwargs)

    Autotuner.prune_configs, Autotuner.run = fewer, run_with_fewer


class Plugin:
    """Runs the tests that the parent names."""

    def __init__(self, arguments, pipes):
        self.a, self.pipes, self.deterministic = arguments, pipes, set()

    def pytest_collection_modifyitems(self, items):
        items[:] = ordered([i for i in items if not needs_several_gpus(i)], self.a.seed)

    def pytest_collectreport(self, report):
        import torch
        if report.failed:
            self.pipes.send(say=f"cannot be imported: {report.nodeid}: {str(report.longrepr).strip()[-300:]}")
        # some files choose deterministic algorithms when they are imported: this is to hold for their tests alone
        if torch.are_deterministic_algorithms_enabled():
            self.deterministic.add(report.fspath)
        torch.use_deterministic_algorithms(False)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.result, self.text = "fail", self.text or str(report.longrepr)
        elif report.skipped and self.result == "pass":
            self.result = "skip"
            self.text = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)

    def pytest_runtestloop(self, session):
        import torch
        import triton
        self.items = {i.nodeid: i for i in session.items}
        self.pipes.send(say=f"triton is {triton.__version__}, {triton.__file__}")
        self.pipes.serve(list(self.items), self.run, self.a.limit, torch.cuda.empty_cache)
        return True

    def run(self, name):
        import torch
        item, environment = self.items[name], dict(os.environ)
        self.result, self.text = "pass", ""
        torch.use_deterministic_algorithms(name.partition("::")[0] in self.deterministic)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)
        return self.result, self.text, {}


def work(a):
    """This process is a worker."""
    pipes = workers.Pipes()
    if a.compiler == "libtl":
        import libtl
        libtl.install()
        try:
            import libtl.torch
            libtl.torch.enable()
        except Exception as e:
            pipes.send(say=f"libtl.torch.enable(): {e!r}")
    import pytest
    if a.configs:
        try_fewer_configurations(a.configs)
    Plugin.pytest_runtestloop = pytest.hookimpl(tryfirst=True)(Plugin.pytest_runtestloop)
    ignored = [f"--ignore-glob={pattern}" for pattern in IGNORED[a.library]]
    pytest.main(["-q", "--capture=no", "--tb=short", "-W", "ignore", "-p", "no:cacheprovider", "-o", "log_cli=false",
                 "-c", os.devnull, "--rootdir", os.getcwd(), *ignored, TESTS[a.library]], plugins=[Plugin(a, pipes)])


# --- the parent


def run(a):
    folder, path = os.path.join(os.path.abspath(a.folder), a.library), os.path.abspath(a.results)
    theirs = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    environment = {
        "OMP_NUM_THREADS": "2", **os.environ, "PYTHONPATH": os.pathsep.join([folder, os.path.join(folder, "src"), *theirs]),
        "TRITON_CACHE_DIR": f"{path}.cache/triton", "TL_CACHE_DIR": f"{path}.cache/libtl",
        "TORCHINDUCTOR_CACHE_DIR": f"{path}.cache/inductor", "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--work"]

    def line(name, result, seconds, text):
        return {"library": a.library, "with": a.compiler, "id": name, "result": result, "seconds": round(seconds, 2),
                "text": text[-1500:]}

    workers.Run(f"{a.library}, {a.compiler}", path, "id",
                lambda n: workers.Worker(command, f"{path}.log-{n}", cwd=folder, env=environment),
                line, a.jobs, a.seconds, a.limit).run()


def compare(paths):
    """Prints what differs between the results with Triton and those with libtl."""
    found = collections.defaultdict(dict)
    for path in paths:
        for r in workers.results(path):
            found[r["library"], r["with"]][r["id"]] = r
    print("| library | run with both | skipped by both | pass with both | with Triton only | with libtl only "
          "| fail with both | s with Triton | s with libtl |\n|---|---|---|---|---|---|---|---|---|")
    lists = []
    for library in sorted({lib for lib, _ in found}):
        triton, libtl = found[library, "triton"], found[library, "libtl"]
        kinds = workers.groups(triton, libtl)
        ran = [n for kind, names in kinds.items() if kind != ("skip", "skip") for n in names]
        numbers = [len(ran), *(len(kinds[k]) for k in (("skip", "skip"), ("pass", "pass"), ("pass", "bad"), ("bad", "pass"),
                                                       ("bad", "bad"))),
                   *(f"{sum(of[n]['seconds'] for n in ran):.0f}" for of in (triton, libtl))]
        print(f"| {library} | {' | '.join(map(str, numbers))} |")
        skipped = [n for n in ran if "skip" in (triton[n]["result"], libtl[n]["result"])]
        lists += [(f"{library}: {title}", names, sides) for title, names, sides in (
            ("passes with Triton only", kinds["pass", "bad"], {"libtl": libtl}),
            ("passes with libtl only", kinds["bad", "pass"], {"Triton": triton}),
            ("fails with both", kinds["bad", "bad"], {"libtl": libtl}),
            ("skipped with one of them", skipped, {"libtl": libtl}),
            ("ran with libtl only, and fails", workers.alone(triton, libtl), {"libtl": libtl}))]
    for title, names, sides in lists:
        workers.show(title, names, **sides)


def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("folder", nargs="?")
    p.add_argument("results", nargs="?")
    p.add_argument("--with", dest="compiler", choices=["libtl", "triton"])
    p.add_argument("--library", choices=sorted(TESTS))
    p.add_argument("--seconds", type=float, default=200)
    p.add_argument("--jobs", type=int, default=6)
    p.add_argument("--limit", type=float, default=60)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--configs", type=int, default=0)
    p.add_argument("--compare", nargs="+", metavar="RESULTS")
    p.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.compare:
        return compare(a.compare)
    if not a.compiler or not a.library or not (a.work or a.results):
        p.error("FOLDER, RESULTS, --with and --library are needed")
    if a.work:
        work(a)
    else:
        run(a)
    sys.stdout.flush()
    os._exit(0)  # threads may still wait


if __name__ == "__main__":
    main()

"""The test suites of Liger-Kernel and of flash-linear-attention on a GPU, with Triton or with libtl in its place.

python3 libraries.py FOLDER RESULTS --with libtl|triton --library liger|fla [--seconds 200] [--jobs 6] [--limit 60]
                     [--seed 1] [--configs 0]
python3 libraries.py --compare A.jsonl B.jsonl [...]

FOLDER has a folder for each library, with its package and its tests as in its repository: liger/src/liger_kernel,
liger/test, fla/fla, fla/tests.
RESULTS receives a line of JSON for each test: library, with, id, result (pass, fail, skip, crash, timeout), seconds,
text. Tests in it do not run again. RESULTS.cache has the compilers' caches, RESULTS.log-N what worker N printed.

JOBS processes run tests, one test at a time. A crash, a test of more than LIMIT seconds, or a GPU in an error state ends
such a process, and a new one goes on. All of them are killed after SECONDS. The order of the tests depends on SEED alone:
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
import faulthandler
import inspect
import json
import math
import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time

TESTS = {"liger": "test", "fla": "tests"}
IGNORED = {"liger": ["test/convergence", "test/cutedsl", "test/transformers/test_cut*", "test/transformers/*cutedsl*"],
           "fla": ["tests/test_split_package_release.py", "tests/utils/test_ascend_ub_manager.py",
                   "tests/ops/test_dplr_tilelang.py"]}
SEVERAL_GPUS = re.compile(r"\bmp\.spawn|with_spawn|start_processes|init_process_group")
BAD = ("fail", "crash", "timeout")
START = 150  # seconds until a worker has the tests


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
    """Runs the tests that the parent names, on pipes."""

    def __init__(self, arguments, commands, answers):
        self.a, self.commands, self.answers = arguments, commands, answers
        self.deterministic, self.result, self.text = {}, "pass", ""

    def send(self, **message):
        self.answers.write(json.dumps(message) + "\n")
        self.answers.flush()

    def pytest_collection_modifyitems(self, items):
        items[:] = ordered([i for i in items if not needs_several_gpus(i)], self.a.seed)

    def pytest_collectreport(self, report):
        if report.failed:
            self.send(collect=report.nodeid, text=str(report.longrepr)[-1500:])

    def pytest_collectstart(self, collector):
        """Some files choose deterministic algorithms when they are imported: this is to hold for their tests alone."""
        import torch
        self.notice_settings()
        torch.use_deterministic_algorithms(False)
        self.collecting = str(collector.path)

    def notice_settings(self):
        import torch
        if getattr(self, "collecting", None) and torch.are_deterministic_algorithms_enabled():
            self.deterministic[self.collecting] = True

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.result, self.text = "fail", self.text or str(report.longrepr)
        elif report.skipped and self.result == "pass":
            self.result = "skip"
            self.text = str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)

    def pytest_runtestloop(self, session):
        import triton
        self.notice_settings()
        self.collecting, items = None, {i.nodeid: i for i in session.items}
        self.send(ids=list(items), triton=f"{triton.__version__}, {triton.__file__}")
        for line in self.commands:
            name = json.loads(line)
            if name not in items:
                self.send(result="missing", seconds=0, text="")
            elif not self.run(items[name]):
                break
        return True

    def run(self, item):
        """Runs a test. False: this process cannot run another one."""
        import torch
        self.result, self.text = "pass", ""
        torch.use_deterministic_algorithms(self.deterministic.get(str(item.path), False))
        environment, start, usable = dict(os.environ), time.time(), True
        faulthandler.dump_traceback_later(self.a.limit, exit=True, file=2)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        try:
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
        except Exception as e:
            usable, self.result, self.text = False, "fail", f"{self.text}\n{e}"
        faulthandler.cancel_dump_traceback_later()
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)
        self.send(result=self.result, seconds=round(time.time() - start, 2), text=self.text[-1500:], usable=usable)
        return usable


def end_with_parent(parent):
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def work(a):
    """This process is a worker. The parent reads its standard output; what the tests print goes to standard error."""
    commands, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    if a.compiler == "libtl":
        import libtl
        libtl.install()
        try:
            import libtl.torch
            libtl.torch.enable()
        except Exception as e:
            print(json.dumps({"problem": f"libtl.torch.enable(): {e!r}"}), file=answers, flush=True)
    import pytest
    if a.configs:
        try_fewer_configurations(a.configs)
    Plugin.pytest_runtestloop = pytest.hookimpl(tryfirst=True)(Plugin.pytest_runtestloop)
    ignored = [f"--ignore-glob={pattern}" for pattern in IGNORED[a.library]]
    pytest.main(["-q", "--capture=no", "--tb=short", "-W", "ignore", "-p", "no:cacheprovider", "-o", "log_cli=false",
                 "-c", os.devnull, "--rootdir", os.getcwd(), *ignored, TESTS[a.library]],
                plugins=[Plugin(a, commands, answers)])
    os._exit(0)


# --- the parent


def results(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


class Worker:
    """A process that runs tests."""

    def __init__(self, number, a):
        folder = os.path.join(os.path.abspath(a.folder), a.library)
        caches = os.path.abspath(a.results) + ".cache"
        theirs = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        path = os.pathsep.join([folder, os.path.join(folder, "src"), *theirs])
        environment = dict(
            os.environ, PYTHONPATH=path, TRITON_CACHE_DIR=f"{caches}/triton", TL_CACHE_DIR=f"{caches}/libtl",
            TORCHINDUCTOR_CACHE_DIR=f"{caches}/inductor",
            TORCHINDUCTOR_COMPILE_THREADS="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", CUBLAS_WORKSPACE_CONFIG=":4096:8",
            HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
        environment.pop("PYTEST_ADDOPTS", None)
        environment.setdefault("OMP_NUM_THREADS", "2")
        self.log, self.rest = f"{os.path.abspath(a.results)}.log-{number}", b""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "--work", "--with", a.compiler, "--library", a.library, "--seed",
                 str(a.seed), "--limit", str(a.limit), "--configs", str(a.configs)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, env=environment,
                start_new_session=True)
        self.log_start = os.path.getsize(self.log)

    def send(self, name):
        self.log_start = os.path.getsize(self.log)
        try:
            self.process.stdin.write(json.dumps(name).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # receive() sees that the process has ended

    def receive(self, seconds):
        """The next message. None: the process ended, or the time is over."""
        end, stdout = time.time() + seconds, self.process.stdout.fileno()
        while b"\n" not in self.rest:
            ended = self.process.poll() is not None
            if select.select([stdout], [], [], 0 if ended else 0.2)[0]:
                data = os.read(stdout, 1 << 16)
                self.rest += data
                if data:
                    continue
                ended = True
            if ended or time.time() > end:
                return None
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def last_words(self):
        """What the process printed since the last command: the stack if there is one, or the end."""
        with open(self.log, "rb") as f:
            f.seek(self.log_start)
            text = f.read().decode(errors="replace")
        fatal = text.rfind("Fatal Python error")
        stack = text.rfind("Current thread") if fatal >= 0 else text.rfind("(most recent call first)")
        if stack < 0:
            return text[-1500:]
        frames = [x for x in text[stack:].splitlines() if "/_pytest/" not in x and "/pluggy/" not in x]
        return (text[max(fatal - 400, 0):fatal + 100] + "\n" if fatal >= 0 else "") + "\n".join(frames)[:1000]

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()


class Run:
    """The tests of a library, and the threads that give them to workers."""

    def __init__(self, a):
        self.a, self.lock, self.pending, self.over = a, threading.Lock(), None, False
        self.workers, self.current, self.notes = {}, {}, []
        self.done = {r["id"] for r in results(a.results)}
        os.makedirs(os.path.dirname(os.path.abspath(a.results)), exist_ok=True)
        self.file = open(a.results, "a")

    def note(self, name, result, seconds, text, **rest):
        with self.lock:
            if not self.over:
                self.file.write(json.dumps({"library": self.a.library, "with": self.a.compiler, "id": name, "result": result,
                                            "seconds": round(seconds, 2), "text": text[-1500:]}) + "\n")
                self.file.flush()

    def say(self, text):
        with self.lock:
            if text not in self.notes:
                self.notes.append(text)
                print(f"{self.a.library}, {self.a.compiler}: {text}", flush=True)

    def started(self, worker):
        """Waits until a worker has its tests."""
        while True:
            message = worker.receive(START)
            if message is None:
                return False
            if "problem" in message:
                self.say(message["problem"])
            if "collect" in message:
                self.say(f"cannot be imported: {message['collect']}: {message['text'].strip()[-300:]}")
            if "ids" in message:
                break
        with self.lock:
            if self.pending is None:
                self.pending = collections.deque(n for n in message["ids"] if n not in self.done)
                self.total = len(message["ids"])
        self.say(f"{len(message['ids'])} tests, triton is {message['triton']}")
        return True

    def next(self):
        with self.lock:
            return self.pending.popleft() if self.pending and not self.over else None

    def drive(self, number):
        """Runs tests in a worker, and in a new one after each crash."""
        failures = 0
        while not self.over and failures < 3:
            with self.lock:
                if self.over:
                    return
                worker = self.workers[number] = Worker(number, self.a)
            if not self.started(worker):
                failures += 1
                if not self.over:
                    self.say(f"a worker does not start: {worker.last_words()[-800:]}")
                worker.kill()
                continue
            while True:
                name = self.next()
                if name is None:
                    worker.kill()
                    return
                if not self.one(number, worker, name):
                    break
            worker.kill()

    def one(self, number, worker, name):
        """Runs a test. False: the worker has to be replaced."""
        start = time.time()
        self.current[number] = name
        worker.send(name)
        message = worker.receive(self.a.limit + 5)
        seconds = time.time() - start
        if message is not None:
            self.note(name, **message)
        elif not self.over and seconds > self.a.limit - 0.5:
            self.note(name, "timeout", seconds, worker.last_words())
        elif not self.over:
            worker.kill()
            self.note(name, "crash", seconds, f"{worker.last_words()}\nexit status {worker.process.returncode}")
        if not self.over:
            self.current.pop(number, None)
        return message is not None and message.get("usable", True)

    def end(self):
        with self.lock:
            self.over = True
        for w in list(self.workers.values()):
            w.kill()

    def run(self):
        end, shown = time.time() + self.a.seconds, time.time()
        threads = [threading.Thread(target=self.drive, args=(n,), daemon=True) for n in range(self.a.jobs)]
        for t in threads:
            t.start()
        try:
            while time.time() < end and any(t.is_alive() for t in threads):
                time.sleep(0.2)
                if time.time() - shown > 20:
                    shown = time.time()
                    print(self.summary(), flush=True)
        finally:
            self.end()
        print(self.summary())
        if self.current:
            print(f"{self.a.library}, {self.a.compiler}: unfinished: {', '.join(sorted(self.current.values()))}", flush=True)

    def summary(self):
        found = [r for r in results(self.a.results) if r["library"] == self.a.library]
        total = self.total if self.pending is not None else "?"
        return (f"{self.a.library}, {self.a.compiler}: {len(found)} of {total} tests, "
                f"{dict(collections.Counter(r['result'] for r in found))}, {sum(r['seconds'] for r in found):.0f} s")


# --- the comparison


def last_line(text):
    """The line of a text that tells the most: the error, or the place."""
    before, stack, frames = text.rpartition("(most recent call first):")
    lines = [x.strip() for x in (frames if stack else text).splitlines() if x.strip()]
    if stack:
        fatal = re.search("Fatal Python error.*", before)
        return f"{fatal.group() if fatal else 'stopped'}: {lines[0] if lines else ''}"[:200]
    errors = [x for x in lines if re.match(r"E\s|\w*(Error|Exception)\b", x)]
    return (errors or lines or [""])[-1][:200]


def compare(paths):
    """Prints what differs between the results with Triton and those with libtl."""
    found = collections.defaultdict(dict)
    for path in paths:
        for r in results(path):
            found[r["library"], r["with"]][r["id"]] = r
    print("| library | run with both | skipped by both | pass with both | with Triton only | with libtl only "
          "| fail with both | s with Triton | s with libtl |\n|---|---|---|---|---|---|---|---|---|")
    lists = []
    for library in sorted({lib for lib, _ in found}):
        triton, libtl = found[library, "triton"], found[library, "libtl"]
        kinds = collections.defaultdict(list)
        both = [n for n in triton if n in libtl and "missing" not in (triton[n]["result"], libtl[n]["result"])]
        for n in both:
            kinds[triton[n]["result"] if triton[n]["result"] not in BAD else "bad",
                  libtl[n]["result"] if libtl[n]["result"] not in BAD else "bad"].append(n)
        run = [n for n in both if n not in kinds["skip", "skip"]]
        numbers = [len(run)] + [len(kinds[k]) for k in (("skip", "skip"), ("pass", "pass"), ("pass", "bad"), ("bad", "pass"),
                                                        ("bad", "bad"))]
        numbers += [f"{sum(of[n]['seconds'] for n in run):.0f}" for of in (triton, libtl)]
        print(f"| {library} | {' | '.join(map(str, numbers))} |")
        lists += [(library, "passes with Triton only", kinds["pass", "bad"], libtl),
                  (library, "passes with libtl only", kinds["bad", "pass"], triton),
                  (library, "fails with both, the text is libtl's", kinds["bad", "bad"], libtl),
                  (library, "skipped with one of them", [n for n in run if (triton[n]["result"] == "skip")
                                                         != (libtl[n]["result"] == "skip")], libtl),
                  (library, "ran with libtl only, and fails", [n for n in libtl if n not in triton
                                                               and libtl[n]["result"] in BAD], libtl)]
    for library, title, names, of in lists:
        if names:
            print(f"\n{library}: {title}: {len(names)}")
            for n in sorted(names):
                print(f"  {n}\n    {of[n]['result']}, {of[n]['seconds']} s: {last_line(of[n]['text'])}")


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
        return work(a)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    Run(a).run()
    sys.stdout.flush()
    os._exit(0)  # threads may still wait


if __name__ == "__main__":
    main()

"""Tests in worker processes, for libraries.py and torchinductor.py.

A worker first sends the names of its tests. The parent then writes one name after the other to the worker, which runs the
test and answers with a line of JSON: result (pass, fail, skip, missing), seconds, text and more. A worker that ends without
an answer is replaced: the test's result is crash, or timeout if its time was over. A worker whose GPU is in an error state
ends itself.
"""

import collections
import ctypes
import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

START = 300  # seconds until a worker has the tests
GRACE = 5  # seconds after which a worker is ended that does not end itself


def results(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


# --- a worker


class Pipes:
    """The worker's side. The parent reads standard output; what tests print goes to standard error."""

    def __init__(self):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the worker ends with its parent
        faulthandler.enable()
        self.names, self.answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)

    def send(self, **message):
        self.answers.write(json.dumps(message) + "\n")
        self.answers.flush()

    def serve(self, names, run, limit, after=lambda: None):
        """Runs the tests that the parent names. run(name): result, text, and a dict. after(): not in the test's time."""
        import torch
        self.send(names=names)
        known = set(names)
        for line in self.names:
            name, start, broken = json.loads(line), time.time(), False
            faulthandler.dump_traceback_later(limit, exit=True, file=2)
            result, text, more = run(name) if name in known else ("missing", "", {})
            try:
                if torch.cuda.is_initialized():
                    torch.cuda.synchronize()
            except Exception as e:  # every later call would fail
                result, text, broken = "fail", f"{text}\nthe test ended with an error of the GPU: {e}", True
            faulthandler.cancel_dump_traceback_later()
            self.send(result=result, seconds=time.time() - start, text=text, **more)
            if broken:
                break
            after()


# --- the parent


class Worker:
    """A process that runs tests."""

    def __init__(self, command, log, **options):
        self.log = log
        with open(log, "ab") as f:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=f, text=True,
                                            start_new_session=True, **options)
        self.log_start = os.path.getsize(log)

    def send(self, name):
        self.log_start = os.path.getsize(self.log)
        try:
            self.process.stdin.write(json.dumps(name) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # receive() sees that the process has ended

    def receive(self, seconds):
        """The next message. None: the process ended, or the time was over."""
        timer = threading.Timer(seconds, self.kill)
        timer.daemon = True
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        return json.loads(line) if line.endswith("\n") else None

    def last_words(self):
        """What the process printed since the last name: the stack if there is one, or the end."""
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
        """Ends the process and those that it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()


class Run:
    """Gives tests to workers, and writes the results.

    worker: a function of a number, which makes that Worker. line: a function of a test's name, result, seconds, text and
    more, which makes its line of the results; key is the name's key in it.
    """

    def __init__(self, title, path, key, worker, line, jobs, seconds, limit):
        self.title, self.path, self.key, self.make, self.line = title, path, key, worker, line
        self.jobs, self.seconds, self.limit = jobs, seconds, limit
        self.lock, self.over, self.all, self.pending = threading.Lock(), False, None, None
        self.workers, self.current, self.said = {}, {}, set()
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.file = open(path, "a")

    def note(self, name, result, seconds, text, **more):
        with self.lock:
            if not self.over:
                self.file.write(json.dumps(self.line(name, result, seconds, text, **more)) + "\n")
                self.file.flush()

    def say(self, text):
        with self.lock:
            if text not in self.said and not self.over:
                self.said.add(text)
                print(f"{self.title}: {text}", flush=True)

    def started(self, worker):
        """Waits until a worker has its tests."""
        while (message := worker.receive(START)) and "say" in message:
            self.say(message["say"])
        if not message:
            self.say(f"a worker does not start: {worker.last_words()[-800:]}")
            return False
        names = message["names"]
        with self.lock:
            if self.pending is None:
                done = {r[self.key] for r in results(self.path)}
                self.all, self.pending = set(names), collections.deque(n for n in names if n not in done)
        self.say(f"{len(names)} tests")
        return True

    def drive(self, number):
        """Runs tests in a worker, and in a new one after each crash."""
        failures = 0
        while failures < 3:
            with self.lock:
                if self.over or self.pending is not None and not self.pending:
                    return
                worker = self.workers[number] = self.make(number)
            if self.started(worker):
                while self.one(number, worker):
                    pass
            else:
                failures += 1
            worker.kill()

    def one(self, number, worker):
        """Runs a test. False: there is none, or the worker has ended."""
        with self.lock:
            if self.over or not self.pending:
                return False
            name = self.current[number] = self.pending.popleft()
        start = time.time()
        worker.send(name)
        message = worker.receive(self.limit + GRACE)
        seconds = time.time() - start
        if message is None:
            worker.kill()
            late = seconds > self.limit - 0.5
            end = "" if late else f"\nexit status {worker.process.returncode}"
            self.note(name, "timeout" if late else "crash", seconds, worker.last_words() + end)
        else:
            self.note(name, **message)
        with self.lock:
            if not self.over:
                del self.current[number]
        return message is not None

    def end(self):
        with self.lock:
            self.over = True
        for w in list(self.workers.values()):
            w.kill()

    def run(self):
        """Until all tests have run, or the time is over. Has a worker started?"""
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        threads = [threading.Thread(target=self.drive, args=(n,), daemon=True) for n in range(self.jobs)]
        end, shown = time.time() + (self.seconds or float("inf")), time.time()
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
            print(f"{self.title}: unfinished: {', '.join(sorted(self.current.values()))}")
        sys.stdout.flush()
        return self.all is not None

    def summary(self):
        found = [r for r in results(self.path) if r[self.key] in (self.all or ())]
        return (f"{self.title}: {len(found)} of {len(self.all or ())} tests, "
                f"{dict(collections.Counter(r['result'] for r in found))}, {sum(r['seconds'] for r in found):.0f} s")


# --- the comparison of two files of results


def last_line(text):
    """The line of a text that tells the most: the error, or the place. PyTorch's tests end with how to run them again."""
    before, stack, frames = text.rpartition("(most recent call first):")
    lines = [x.strip() for x in (frames if stack else text).splitlines() if x.strip()]
    if stack:
        fatal = re.search("Fatal Python error.*", before)
        return f"{fatal.group() if fatal else 'stopped'}: {lines[0] if lines else ''}"[:300]
    hint = [k for k, x in enumerate(lines) if x.startswith(("To execute this test", "This message can be suppr"))]
    lines = lines[:hint[0]] if hint else lines
    errors = [x for x in lines if re.match(r"E\s|[\w.]*(Error|Exception|OutOfResources|Unsupported)\b", x)]
    return ((errors or lines or [""])[-1])[:300]


def groups(a, b):
    """Names of the tests that are in both results, by their kinds in the two: pass, skip, or bad."""
    def kind(r):
        return r["result"] if r["result"] in ("pass", "skip") else "bad"

    found = collections.defaultdict(list)
    for n in a:
        if n in b and "missing" not in (a[n]["result"], b[n]["result"]):
            found[kind(a[n]), kind(b[n])].append(n)
    return found


def alone(a, b):
    """Names of the tests that ran in b alone, and are bad."""
    return [n for n in b if n not in a and b[n]["result"] in ("fail", "crash", "timeout")]


def show(title, names, **sides):
    """Tests, with their results on each side."""
    if names:
        print(f"\n{title}: {len(names)}")
    for n in sorted(names):
        print(f"  {n}")
        for side, r in sides.items():
            r = r[n]
            print(f"    {side}: {r['result']}, {r['seconds']} s: {r.get('error') or last_line(r['text'])}")

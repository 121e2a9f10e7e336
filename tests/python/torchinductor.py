"""PyTorch's own tests of TorchInductor, with its CPU backend for Triton and libtl behind it.

PYTHONPATH=build/python python3 tests/python/torchinductor.py FOLDER RESULTS [--backend cpp] [NAME …]

FOLDER has PyTorch's test_torchinductor.py, of the installed version. RESULTS receives a line of JSON for each test:
name, result, seconds, text. Tests in it do not run again. They run in a random order that is always the same, so that
the first ones are a fair sample. A crash, or a test of more than 150 seconds, ends the process, and a new one goes on.
--backend cpp: TorchInductor's own code for CPUs, to compare with.
"""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import threading
import time
import unittest

LIMIT = 150


def results(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def note(path, name, result, seconds=0.0, text=""):
    with open(path, "a") as f:
        f.write(json.dumps({"name": name, "result": result, "seconds": round(seconds, 1), "text": text[-3000:]}) + "\n")


def test_case(folder, backend):
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


def outcome(r):
    bad = r.failures + r.errors
    if bad:
        return "fail", bad[0][1]
    return ("skip", str(r.skipped)) if r.skipped else ("pass", "")


def run(a):
    """Runs what is left in this process."""
    tests, current = test_case(a.folder, a.backend), {}
    names = sorted(n for n in dir(tests) if n.startswith("test_") and (not a.names or n in a.names))
    random.Random(7).shuffle(names)
    done = {r["name"] for r in results(a.results)}

    def watch():
        while True:
            time.sleep(1)
            now = dict(current)
            if now and time.time() - now["start"] > LIMIT:
                note(a.results, now["name"], "timeout", LIMIT)
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    import torch
    for name in (n for n in names if n not in done):
        with open(a.results + ".current", "w") as f:
            f.write(name)
        start = time.time()
        current.update(name=name, start=start)
        r = unittest.TestResult()
        unittest.TestSuite([tests(name)]).run(r)
        current.clear()
        result, text = outcome(r)
        note(a.results, name, result, time.time() - start, text)
        torch._dynamo.reset()


def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("folder")
    p.add_argument("results")
    p.add_argument("names", nargs="*")
    p.add_argument("--backend", default="triton")
    p.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.here:
        run(a)
        sys.stdout.flush()
        os._exit(0)
    current = a.results + ".current"
    while subprocess.run([sys.executable, *sys.argv, "--here"], check=False).returncode:
        if not os.path.exists(current):
            sys.exit("the tests cannot start")
        with open(current) as f:
            name = f.read()
        os.remove(current)
        if name not in {r["name"] for r in results(a.results)}:
            note(a.results, name, "crash")
    print(dict(collections.Counter(r["result"] for r in results(a.results))))


if __name__ == "__main__":
    main()

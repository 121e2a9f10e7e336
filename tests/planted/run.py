#!/usr/bin/env python3
"""run.py BUILD [NAME...] [--jobs N] [--pick N] [--seed N] [--all]: do the tests find planted faults?

Each line of `faults` is a fault: name, file, sed commands, description, between tabs. The commands are applied to a
copy of the tree, libtl is built again, and the checks below run until one reports a case that passes without the fault.
The checks are the suites of `make test` that compile kernels (tests/test.sh, `core`): first those that are most likely to
find a fault of the file, then the lit tests, then the other suites. A fault whose commands change nothing, or that no
check finds, has failed.

  NAME...    these faults; default: all
  --jobs N   faults at once, each in its own copy of the tree; default: one
  --pick N   N faults, chosen by the commit or $TEST_SEED
  --seed N   the seed of the checks; default: the one of the table in docs/notes/planted-faults.md
  --all      faults that those checks do not find are looked for by the suites of `make test-all`, too

Prints a table; the last line is "N passed, N failed"."""
import argparse
import os
import queue
import random
import re
import shutil
import subprocess
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KINDS = """blocks products moves values scaled pipelines offsets edges tiles attention gradients experts pairs weights
    dots strips""".split()
SLOW = 900  # seconds that a check may take
SEED = 9001  # of the table in docs/notes/planted-faults.md
NEEDED = "obj gen deps tlc libtl.so libtl.so.0 test-run test-random tests/libamx.so".split()  # of the build
LIT = ["python3", "/usr/lib/llvm-19/build/utils/lit/lit.py"]


def commit_seed():
    if os.environ.get("TEST_SEED"):
        return int(os.environ["TEST_SEED"])
    out = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=6", "HEAD"], capture_output=True, text=True).stdout
    return int(out.strip()[:6] or "1", 16)


def make_checks(build, seed):
    """Name -> (environment, command), of `core`; and those of `all`."""
    run, rand = [build + "/test-run"], [build + "/test-random"]
    pairs, new = ["--pairs", str(seed)], ["--seed", str(10000 + seed % 1000000 * 10000)]
    every = {"TL_DEVICE": "interp", "TL_INTERP_CHECK": "passes,facts"}
    amx = {"TL_DEVICE": "cpu", "LD_PRELOAD": os.path.abspath(build + "/tests/libamx.so")}
    past = {"TL_DEVICE": "cpu", "TL_CPU_CACHE": "1"}
    core = {}

    def device(name, **more):
        return {"TL_DEVICE": name, **more}

    for kind, count in [("tree", 500), ("random", 125), ("loops", 75)] + [(k, 25) for k in KINDS]:
        core[kind + ", every pass"] = (every, rand + new + ["--kind", kind, "--count", str(count)])
    core["run, every pass"] = (every, run + pairs + ["--shard", f"{seed % 16}/16"])
    for kind in ["random", "tree", "loops"] + KINDS:
        core[f"{kind}, sim"] = (device("sim"), rand + new + ["--kind", kind, "--shard", "0/4"])
        core[f"{kind}, cpu"] = (device("cpu"), rand + new + ["--kind", kind, "--shard", "2/4"])
        core[f"{kind}, interp"] = (device("interp"), rand + new + ["--kind", kind, "--shard", "3/4"])
    core["random kinds, sim:80"] = (device("sim:80"), rand + new + ["--shard", "1/8"])
    core["run, sim"] = (device("sim", TL_SIM_SEED=str(seed % 1000)), run + pairs)
    core["run, sim:80"] = (device("sim:80"), run + pairs + ["--shard", f"{seed % 4}/4"])
    core["run, cpu"] = (device("cpu"), run + pairs)
    core["run, interp"] = (device("interp"), run + pairs)
    core["run, cpu past the cache"] = (dict(past, TL_CPU="baseline"), run + pairs + ["--shard", f"{seed % 16}/16"])
    core["random kinds, cpu past the cache"] = (dict(past, TL_CPU="baseline"), rand + new + ["--shard", "0/32"])
    core["run, tile registers"] = (amx, run + pairs + ["--shard", "0/2", "dot"])
    for kind in ["edges", "products", "pipelines"]:
        core[kind + ", tile registers"] = (amx, rand + new + ["--kind", kind, "--count", "40"])
    in_order = ["-s", "-j1", "--order", "lexical", "--no-progress-bar"]
    core["lit"] = ({}, LIT + in_order + ["--param", "build=" + build, "tests/lit"])
    full = {}
    full["tree, every pass, all"] = (every, rand + ["--kind", "tree"])
    for kind in ["random", "loops"] + KINDS:
        count = "500" if kind == "random" else "100"
        full[kind + ", every pass, all"] = (every, rand + ["--kind", kind, "--count", count])
    full["run, every pass, all"] = (every, run + ["--shard", "0/4"])
    for name in ["sim", "cpu", "sim:80", "interp"]:
        full[f"random kinds, {name}, all"] = (device(name, TL_SIM_SEED="2"), rand)
        full[f"run, {name}, all"] = (device(name), run + ["--schedules", "3"])
    full["run, tile registers, all"] = (amx, run + ["dot"])
    for kind in ["edges", "products", "pipelines"]:
        full[kind + ", tile registers, all"] = (amx, rand + ["--kind", kind, "--count", "100"])
    full["run, cpu past the cache, all"] = (past, run + ["memory/"])
    return core, full


# file -> the checks that are most likely to find its faults, by the beginnings of their names
LIKELY = [
    (r"cpu/amx|cpu/pack", ["edges, tile", "products, tile", "run, tile"]),
    (r"cpu/streaming", ["run, cpu past"]),
    (r"compiler/cpu/|llvm/emit_object", ["run, cpu", "edges, cpu", "random, cpu", "tree, cpu", "pipelines, cpu"]),
    (r"cta_pair|codegen/tma", ["pairs, sim", "run, sim"]),
    (r"persistent|program_order", ["tiles, sim", "run, sim", "experts, sim"]),
    (r"bit_fields", ["weights, sim", "run, sim"]),
    (r"gpu/", ["pipelines, sim", "dots, sim", "run, sim", "weights, sim", "attention, sim"]),
    (r"launch_bounds|unflatten|if_conversion", ["tiles, every", "offsets, every", "tree, every", "tiles, sim"]),
    (r"modulo_to_mask|demanded", ["edges, cpu", "edges, every", "run, sim"]),
    (r"", ["tree, every", "random, every", "run, every", "loops, every"]),
]


def likely(file, checks):
    names = next(names for pattern, names in LIKELY if re.search(pattern, file))
    return [c for begin in names + ["lit"] for c in checks if c.startswith(begin)]


def failing_case(line):
    """The case that a line of a suite, or of lit, says has failed."""
    if line.startswith("FAIL: tlc :: "):
        return "tests/lit/" + line.split()[3]
    return line[6:].split(": seed")[0] if ": seed" in line else line[6:].split(":")[0].strip()


class Planter:
    def __init__(self, args):
        self.args, self.lock, self.locks, self.base = args, threading.Lock(), {}, {}
        self.core, self.full = make_checks(args.build, args.seed)
        self.work = tempfile.mkdtemp(prefix="planted-")
        self.trees = queue.Queue()
        for i in range(args.jobs + 1):
            tree = os.path.join(self.work, str(i))
            os.mkdir(tree)
            subprocess.run(f"tar -C {ROOT} -c --exclude=.git --exclude='./build*' . | tar -x -C {tree} && "
                           f"tar -C {ROOT} -c {' '.join(f'{args.build}/{f}' for f in NEEDED)} | tar -x -C {tree}",
                           shell=True, check=True)
            if i:
                self.trees.put(tree)
            else:
                self.clean = tree

    def cases(self, tree, check, known=None):
        """The failing cases; with `known`, only the first one that is not in it."""
        env, command = {**self.core, **self.full}[check]
        env = {**os.environ, "TL_CACHE": "0", "TL_COMPILE_CHECK": "buffers", "TL_TESTS": tree + "/tests/run", **env}
        p = subprocess.Popen(["timeout", str(SLOW)] + command, cwd=tree, env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace")
        failed = []
        for line in p.stdout:
            if line.startswith(("FAIL  ", "FAIL: tlc :: ")):
                case = failing_case(line)
                if known is None or case not in known:
                    failed.append((case, line))
                    if known is not None:
                        p.terminate()  # with the processes that it started
                        break
        p.stdout.close()
        p.wait()
        return failed

    def known(self, check):
        with self.lock:
            lock = self.locks.setdefault(check, threading.Lock())
        with lock:
            if check not in self.base:
                self.base[check] = {case for case, _ in self.cases(self.clean, check)}
            return self.base[check]

    def plant(self, tree, file, commands, checks):
        """Plants the fault: the check that finds it, and the case; None where no check does, and why."""
        path = os.path.join(tree, file)
        kept = open(path, encoding="utf-8").read()
        try:
            subprocess.run(["sed", "-i", commands, path], check=True)
            if open(path, encoding="utf-8").read() == kept:
                return None, f"its commands change nothing in {file}"
            env = {k: v for k, v in os.environ.items() if k != "MAKEFLAGS"}
            made = subprocess.run(["make", "-j1", f"BUILD={self.args.build}", "WARN=-w", f"{self.args.build}/libtl.so",
                                   f"{self.args.build}/tlc"],
                                  cwd=tree, capture_output=True, text=True, env=env)
            if made.returncode:
                return None, "does not compile: " + made.stderr.strip().splitlines()[-1]
            for check in checks:
                found = self.cases(tree, check, self.known(check))
                if found:
                    case, line = found[0]
                    refused = " (refused before it runs)" if "invalid laid-out GPU IR" in line else ""
                    return check, f"{check}: {case}{refused}"
            return None, "not found"
        finally:
            open(path, "w", encoding="utf-8").write(kept)

    def round(self, faults, checks_of, last):
        """Plants each fault, and prints what is found; returns the checks, and the faults not found."""
        found, missed, jobs = [], [], queue.Queue()
        for fault in faults:
            jobs.put(fault)

        def worker():
            tree = self.trees.get()
            while True:
                try:
                    fault = jobs.get_nowait()
                except queue.Empty:
                    break
                name, file, commands, what = fault
                check, text = self.plant(tree, file, commands, checks_of(file))
                with self.lock:
                    (found.append(check) if check else missed.append(fault))
                    if check or last or text != "not found":
                        print(f"| {name} | {what} | {text} |", flush=True)
            self.trees.put(tree)

        threads = [threading.Thread(target=worker) for _ in range(self.args.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return found, missed

    def run(self, faults):
        """The likely checks of all faults, then the other ones of those that are not found yet."""
        found, missed = self.round(faults, lambda file: likely(file, self.core), False)
        rest = lambda file: [c for c in self.core if c not in likely(file, self.core)]
        more, missed = self.round(missed, rest, not self.args.all)
        found += more
        print(f"make test finds {len(found)} of {len(faults)}", flush=True)
        if self.args.all:
            more, missed = self.round(missed, lambda file: list(self.full), True)
            found += more
        shutil.rmtree(self.work)
        print(f"{len(found)} passed, {len(missed)} failed")
        return not missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pick", type=int)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    text = open(os.path.join(ROOT, "tests/planted/faults"), encoding="utf-8").read()
    faults = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    if args.pick:
        faults = random.Random(commit_seed()).sample(faults, args.pick)
    else:
        faults = [f for f in faults if not args.names or f[0] in args.names]
    return 0 if Planter(args).run(faults) else 1


if __name__ == "__main__":
    raise SystemExit(main())

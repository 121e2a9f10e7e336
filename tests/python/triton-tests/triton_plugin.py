"""A pytest plugin (-p triton_plugin): Triton's tests with `triton` replaced by the package libtl.

$SAMPLE, $SEED: at most this many parameter sets of each test function are chosen at random. $LOG: a file to which a JSON
line for each test is added.
"""

import json
import os
import random
import zlib

import triton_stand_in  # noqa: F401

_log = None


def pytest_configure(config):
    global _log
    if os.environ.get("LOG"):
        _log = open(os.environ["LOG"], "a")


def _sampled_range(*bounds):
    """Tests of conversions that try 2^32 values, 2^24 at a time, try one of the 256 parts."""
    return (131,) if bounds == (256,) else range(*bounds)


def pytest_collection_modifyitems(config, items):
    for module in {i.module for i in items if i.module.__name__.endswith("test_conversions")}:
        module.range = _sampled_range
    most, seed, groups = int(os.environ.get("SAMPLE", "20")), int(os.environ.get("SEED", "1")), {}
    for i in items:
        groups.setdefault(i.nodeid.split("[")[0], []).append(i)
    keep = set()
    for name, group in groups.items():
        chosen = random.Random(zlib.crc32(name.encode()) + seed)
        keep |= {id(i) for i in (group if len(group) <= most else chosen.sample(group, most))}
    items[:] = [i for i in items if id(i) in keep]


def pytest_collectreport(report):
    if report.failed:
        _write(report, 0)


def pytest_runtest_logreport(report):
    if report.when == "call" or not report.passed:
        _write(report, report.duration)


def _write(report, seconds):
    if _log is None:
        return
    crash, text = getattr(report.longrepr, "reprcrash", None), ""
    if not report.passed and report.longrepr is not None:
        text = str(report.longrepr)
        if crash:
            text = f"{crash.path}:{crash.lineno}: {crash.message}"[:4000] + "\n...\n" + text[-1500:]
    print(json.dumps({"id": report.nodeid, "outcome": report.outcome, "seconds": round(seconds, 2),
                      "text": text[-6000:]}), file=_log, flush=True)

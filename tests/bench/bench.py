"""Our kernels beside Triton's and PyTorch's: the same kernel text, the same tensors, the same stream, one process.

    python3 tests/bench/bench.py BUILD [FILTER[,FILTER]...] [--json PATH] [--all]

Prints a Markdown table of median times; see harness.py. A row runs if its name contains one of the filters. Needs a GPU,
torch and triton; BUILD holds libtl.so. The columns "best" name the fastest of the configurations listed with each kernel;
--all prints the others too. `copy` is a copy by PyTorch of as many bytes as the kernel must move.
"""
import argparse

import bandwidth
import dots
from harness import Bench

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("filter", nargs="?", default="")
parser.add_argument("--json")
parser.add_argument("--all", action="store_true")
given = parser.parse_args()
bench = Bench(given.build, given.filter, given.all)
for group in (bandwidth, dots):
    group.rows(bench)
if given.json:
    bench.save(given.json)

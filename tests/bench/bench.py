"""Our kernels beside Triton's and PyTorch's: the same kernel text, the same tensors, the same stream, one process.

    python3 tests/bench/bench.py BUILD [FILTER[,FILTER]...] [--group bandwidth|dots|attention|workloads] [--json PATH] [--all] [--jobs N]
    python3 tests/bench/bench.py BUILD [FILTER[,FILTER]...] --device cpu [--cpu-time] [--json PATH] [--all]

The second form times the workloads, of smaller sizes, on the CPU beside PyTorch, without Triton. --cpu-time: the time of the
process on the CPU, for machines with other load; run it on one core (taskset -c 0), as it adds up the time of all threads.

Prints a Markdown table of times with a cold L2 cache; see harness.py. A row runs if its name contains one of the filters,
in which * and ? stand for any text and any character, or begins with what follows ^. Needs a GPU, torch and triton; BUILD
holds libtl.so. The columns "best" name the fastest of the configurations listed with each kernel; --all prints the others
too; --jobs compiles for Triton by N processes before, so that its column "compile ms" is the time of finding that.
`copy` is a copy by PyTorch of as many bytes as the kernel must move; `tutorial` is another kernel in Triton for the
same task, written as its tutorials do (fused_attention.py); `anchors` are others for the same task, each with its time and
that divided by ours; `roof` is the copy, or the operations at cuBLAS's rate for 8192³ where that takes longer.

Seconds of the rows of each filter on an H100, with an empty cache of Triton's, which compiles in most of them; the JSON has
each row's: "add f32" 15, "softmax" 60, "layer_norm" 45, "mean" 15, "rms_norm" 10, "cross_entropy" 15, --group dots
" float16" 120 (the blank keeps bfloat16 out), "bfloat16" 110, "float8,int8,tf32" 90, --group workloads 200; and 15 for the
start of each process. What --group attention takes has not been measured: docs/notes/measurements.md has filters that divide it.
"""
import argparse

import torch

import ahead
import attention
import bandwidth
import dots
import harness
import libtl
import workloads
from harness import Bench


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--group")
    parser.add_argument("--json")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    given = parser.parse_args()
    if given.device == "cpu":
        libtl.keep_blocks()
        harness.DEVICE = "cpu"
        bench = harness.Host(given.build, given.filter, given.all, given.cpu_time)
        workloads.rows(bench)
        if given.json:
            bench.save(given.json)
        return
    groups = [group for group in (bandwidth, dots, attention, workloads) if given.group in (None, group.__name__)]
    if given.jobs:
        ahead.compile_ahead(given.filter, groups, given.jobs)
    bench = Bench(given.build, given.filter, given.all)
    with torch.cuda.stream(torch.cuda.Stream()):  # libtl, given no stream, would take one of its own and wait for torch's
        for group in groups:
            group.rows(bench)
    if given.json:
        bench.save(given.json)


if __name__ == "__main__":  # the processes that compile import this too
    main()

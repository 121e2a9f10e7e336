"""The tuner of libtl, with the configurations of examples/matmul.tl, and processes that compile ahead of it.

For tuned.py and shapes.py. Needs neither torch nor triton."""
import ast
import concurrent.futures
import ctypes
import json
import multiprocessing
import sys
import time

import libtl

NAMES = ["BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M"]
CONFIGS = [((128, 256, 64, 8), 8, 3), ((64, 256, 32, 8), 4, 4), ((128, 128, 32, 8), 4, 4), ((128, 64, 32, 8), 4, 4),
           ((64, 128, 32, 8), 4, 4), ((128, 32, 32, 8), 4, 4), ((64, 32, 32, 8), 2, 5), ((32, 64, 32, 8), 2, 5),
           ((128, 128, 64, 8), 8, 3), ((256, 128, 64, 8), 8, 3), ((64, 64, 64, 8), 4, 4), ((16, 64, 128, 8), 4, 4)]
# for shapes.py too: larger tiles, and more or less of K at a time
LARGER = [((128, 256, 64, 8), 8, 4), ((256, 128, 64, 8), 8, 4), ((128, 256, 32, 8), 8, 5), ((64, 256, 64, 8), 4, 4),
          ((256, 64, 64, 8), 8, 4), ((128, 128, 64, 8), 4, 4), ((128, 128, 128, 8), 8, 3), ((64, 128, 64, 8), 4, 5),
          ((128, 64, 64, 8), 4, 5), ((64, 64, 128, 8), 4, 5), ((16, 128, 128, 8), 4, 4)]
FAKE = 1 << 40  # between the addresses of arguments that nothing accesses


class Tuner:
    """Of one kernel: see tl_tuner in tl.h.

    names: the parameters that a configuration sets, which follow the arguments of a launch. configs: values, warps and
    stages. keys: names of parameters. options: further members of tl_tuning. A grid is a function of the values."""

    def __init__(self, tl, kernel, names, configs, keys=(), stream=None, **options):
        self.tl, self.kernel, self.names, self.stream, self.tuner = tl, kernel, names, stream, ctypes.c_void_p()
        tuning = libtl.Tuning((ctypes.c_char_p * len(keys))(*[k.encode() for k in keys]), len(keys), **options)
        tl.must(tl.lib.tl_tuner_create(kernel, ctypes.byref(tuning), ctypes.byref(self.tuner)))
        for values, warps, stages in configs:
            named = [libtl.NamedArg(name.encode(), libtl.scalar(v)) for name, v in zip(names, values)]
            config = libtl.Config((ctypes.c_uint32 * 3)(), warps, stages)
            tl.must(tl.lib.tl_tuner_add(self.tuner, ctypes.byref(config), (libtl.NamedArg * len(named))(*named),
                                        ctypes.c_size_t(len(named))))

    def call(self, function, args, grid, *out):
        def plan(user, config, given, n):
            config.contents.grid[:] = grid(*[given[len(args) + i].value.i for i in range(len(self.names))])
            return 0
        config, array, n = libtl.Config(stream=self.stream), (libtl.Arg * len(args))(*args), ctypes.c_size_t(len(args))
        self.tl.must(function(self.tuner, ctypes.byref(config), libtl.PLAN(plan), None, array, n, *out))

    def launch(self, args, grid):
        self.call(self.tl.lib.tl_tuner_launch, args, grid)

    def choice(self, args, grid):
        """The tl_choice, the values of its configuration, and what launches it."""
        out = libtl.Choice()
        self.call(self.tl.lib.tl_tuner_choose, args, grid, ctypes.byref(out))
        given = dict(pair.split("=") for pair in out.text.decode().split())
        values = [ast.literal_eval(given[name]) for name in self.names]
        return out, values, self.tl.launcher(self.kernel, list(out.config.grid), args + list(map(libtl.scalar, values)),
                                             out.config.num_warps, out.config.num_stages, self.stream)

    def report(self):
        """Of the key that was tuned last: an object for each configuration, as in tl_tuner_report."""
        text = ctypes.c_char_p()
        self.tl.must(self.tl.lib.tl_tuner_report(self.tuner, ctypes.byref(text)))
        return json.loads(text.value.decode())[-1]["configurations"]

    def close(self):
        self.tl.lib.tl_tuner_destroy(self.tuner)


def fake_arg(i, a):
    """Of a pair, memory that nothing accesses."""
    return libtl.pointer(a[0], (i + 1) * FAKE, a[1]) if isinstance(a, tuple) else libtl.scalar(a)


def compile_one(build, device, path, function, grid, args, warps, stages):
    """In a process of its own. The error, if there is one."""
    kernels, args = compile_one.kernels, [fake_arg(i, a) for i, a in enumerate(args)]
    array, config = (libtl.Arg * len(args))(*args), libtl.Config((ctypes.c_uint32 * 3)(*grid), warps, stages)
    try:
        tl = kernels[None] = kernels.get(None) or libtl.Context(libtl.load(build), device)
        kernel = kernels[path, function] = kernels.get((path, function)) or tl.kernel(path, function)
        tl.must(tl.lib.tl_prepare(kernel, ctypes.byref(config), array, ctypes.c_size_t(len(args)), None))
    except libtl.TlError as e:  # the tuner will leave it out
        return str(e).splitlines()[0]


compile_one.kernels = {}


def compile_ahead(build, jobs, processes, seconds=None, device="cuda"):
    """Fills the disk cache, which must be on. jobs: what compile_one takes after the device; memory is a pair of a type
    and bytes. The processes are forks, so CUDA must not be in use yet. Jobs for one variant should not be neighbours,
    since one waits for the other. After so many seconds no job begins."""
    begin, context = time.perf_counter(), multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        futures = [pool.submit(compile_one, build, device, *job) for job in jobs]
        done = concurrent.futures.wait(futures, seconds).done
        pool.shutdown(cancel_futures=True)
    errors = [str(e) for e in (future.exception() or future.result() for future in done) if e]
    seconds = time.perf_counter() - begin
    print(f"compiled {len(done)} of {len(jobs)} configurations in {seconds:.1f} s, {len(errors)} failed", *errors[:5],
          sep="\n", file=sys.stderr, flush=True)

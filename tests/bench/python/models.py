"""models.py: torch.compile of ten models with Triton and with libtl on one GPU: its time, and the speed of the result.

It needs PyTorch, Triton, timm, transformers and libtl (PYTHONPATH=build/python, or the wheel), and one GPU. The models have
random weights of type bfloat16; a step is a forward and a backward pass without dropout. Nothing is downloaded.

    models.py [--models a,b] [--out FOLDER] [--seconds 230] [--jobs 10] [--seed 0] [--dry-run [--cpp]]

Each model has a process of its own, which measures both compilers, in an order that the seed chooses; the next seed after
an even one has the opposite order. Both are warmed up by
a small function; then each compiles a copy of the model on one thread, without caches. The time of the first step ends when
the GPU has finished. "compile s" is the part of it in which kernels are compiled and loaded: Triton's has ptxas in it,
libtl's the driver's compilation of PTX. When all processes have finished this part, one after the other times the steps of
both copies, in turns, on an otherwise idle GPU: as CUDA graphs where both can be captured, else behind a kernel that waits.
Before that the configurations of kernels that TorchInductor chooses by measurement are measured again on the idle GPU.

The gradients are compared with those of the model in float32 without a compiler. The error may be twice that of the model
in bfloat16 without a compiler, and one hundredth more.

--dry-run needs no GPU: small models on the CPU, with libtl and the backend "aot_eager" (--cpp: TorchInductor's C++) in place
of Triton. FOLDER gets <model>.jsonl with each result as soon as it is there, <model>.log, and table.md.
"""

import argparse
import contextlib
import copy
import faulthandler
import fcntl
import functools
import gc
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import types

COMPILERS = ("triton", "libtl")
SPEED_SECONDS = 4.5  # of the time limit, for each model
ROUNDS, ROUND_MS = 7, 80


# --- models: functions of "small" (for the CPU), which return a module and its inputs

def vision(name, batch, sized=False, small_options=None):
    def make(small):
        import timm
        import torch
        size = 64 if small else 224
        options = {**({"img_size": size} if sized else {}), **(small_options or {} if small else {})}
        n = 2 if small else batch
        m = timm.create_model(name, pretrained=False, **options)
        return m, (torch.randn(n, 3, size, size), torch.randint(1000, (n,)))
    return make


def language(model, config, batch, length, layers, vocabulary="vocab_size", labels=None, **options):
    """layers: names of the numbers of layers in the configuration. labels: their length, if it is not that of the text."""
    def make(small):
        import torch
        import transformers
        c = getattr(transformers, config)(**{**options, **(dict.fromkeys(layers, 2) if small else {})})
        c.use_cache = False
        m = getattr(transformers, model)(c)
        m.loss_type = m.loss_type or "ForCausalLM"  # else a warning breaks the graph
        n, long, short = (2, 32, 16) if small else (batch, length, labels)
        words = getattr(c, vocabulary)
        return m, (torch.randint(5, words, (n, long)), torch.randint(5, words, (n, short if labels else long)))
    return make


MODELS = {
    "resnet50": vision("resnet50", 64),
    "vit_base_patch16_224": vision("vit_base_patch16_224", 32, True, {"depth": 2}),
    "convnext_tiny": vision("convnext_tiny", 32, False, {"depths": (1, 1, 2, 1)}),
    "mixer_b16_224": vision("mixer_b16_224", 32, True),
    "efficientnet_b0": vision("efficientnet_b0", 64),
    "bert": language("BertForMaskedLM", "BertConfig", 16, 256, ["num_hidden_layers"], hidden_dropout_prob=0.0,
                     attention_probs_dropout_prob=0.0),
    "gpt2": language("GPT2LMHeadModel", "GPT2Config", 8, 512, ["n_layer"], resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "t5_small": language("T5ForConditionalGeneration", "T5Config", 16, 256, ["num_layers", "num_decoder_layers"], labels=128,
                         d_model=512, d_kv=64, d_ff=2048, num_heads=8, dropout_rate=0.0, decoder_start_token_id=0),
    "llama": language("LlamaForCausalLM", "LlamaConfig", 8, 512, ["num_hidden_layers"], hidden_size=1024,
                      intermediate_size=2816, num_attention_heads=16, num_key_value_heads=4, num_hidden_layers=8,
                      max_position_embeddings=1024),
    "electra_small": language("ElectraForMaskedLM", "ElectraConfig", 32, 256, ["num_hidden_layers"], hidden_dropout_prob=0.0,
                              attention_probs_dropout_prob=0.0),
}


def with_loss(name, small):
    """A module whose result is the loss, in bfloat16, and its inputs."""
    import torch

    class Loss(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x, target):
            if x.is_floating_point():
                return torch.nn.functional.cross_entropy(self.model(x).float(), target)
            return self.model(input_ids=x, labels=target).loss.float()

    model, inputs = MODELS[name](small)
    return Loss(model).train().to(torch.bfloat16), [x.bfloat16() if x.is_floating_point() else x for x in inputs]


# --- the process of one model

class Clock:
    """Time in TorchInductor's functions: seconds by name, without that of functions within; and calls by name."""

    def __init__(self):
        self.seconds, self.calls, self._stack = {}, {}, []

    def wrap(self, owner, name):
        """Measures a method of a class. A function that undoes it."""
        original = owner.__dict__[name]

        @functools.wraps(original)
        def measured(*args, **kwargs):
            start, inner = time.perf_counter(), [0.0]
            self._stack.append(inner)
            try:
                return original(*args, **kwargs)
            finally:
                elapsed = time.perf_counter() - start
                self._stack.pop()
                if self._stack:
                    self._stack[-1][0] += elapsed
                self.seconds[name] = self.seconds.get(name, 0.0) + elapsed - inner[0]
                self.calls[name] = self.calls.get(name, 0) + 1

        setattr(owner, name, measured)
        return lambda: setattr(owner, name, original)


class Process:
    """What the process of a model does."""

    def __init__(self, options):
        self.options, self.name = options, options.child
        self.file = open(os.path.join(options.out, self.name + ".jsonl"), "a")
        self.cpu = options.dry_run
        self.tuned = {c: [] for c in COMPILERS}  # autotuners with all of their launchers
        self.steps = {}

    def write(self, **result):
        self.file.write(json.dumps({"model": self.name, **result}) + "\n")
        self.file.flush()

    def run(self):
        try:
            self.compile_part()
        finally:
            mark(self.options.state, self.name)
        if self.wait() and len(self.steps) == 2:
            self.speed_part()

    def synchronize(self):
        import torch
        if not self.cpu:
            torch.cuda.synchronize()

    # the time of compilation

    def compile_part(self):
        start = time.monotonic()
        import torch
        import torch._functorch.config
        import torch._inductor.compile_fx  # noqa: F401
        import torch._inductor.config as config
        import libtl.torch  # noqa: F401
        torch.set_num_threads(1)
        config.compile_threads = 1
        config.fx_graph_cache = config.fx_graph_remote_cache = False
        torch._functorch.config.enable_autograd_cache = False
        self.device = "cpu" if self.cpu else "cuda"
        if not self.cpu:
            torch.cuda.set_stream(torch.cuda.Stream())
        torch.manual_seed(self.options.seed)
        module, inputs = with_loss(self.name, self.cpu)
        self.module, self.inputs = module.to(self.device), [x.to(self.device) for x in inputs]
        self.reference()
        usable = [c for c in COMPILERS if self.attempt(c, self.warm_up, c)]
        self.synchronize()
        self.write(what="start", seconds=round(time.monotonic() - start, 2), batch=len(inputs[0]),
                   parameters=sum(p.numel() for p in module.parameters()), torch=torch.__version__,
                   error=self.eager_error, loss=self.loss)
        if random.Random(f"{self.options.seed // 2} {self.name}").getrandbits(1) ^ self.options.seed & 1:
            usable.reverse()
        for i, compiler in enumerate(usable):
            self.attempt(compiler, self.first_step, compiler, i)
        del self.exact
        self.module = None
        for module, _ in self.steps.values():
            module.zero_grad(set_to_none=True)
        if not self.cpu:
            torch.cuda.empty_cache()

    def attempt(self, compiler, f, *arguments):
        """Calls a function. False: it failed, and the results say so."""
        try:
            f(*arguments)
            return True
        except Exception as e:
            import traceback
            traceback.print_exc()
            self.write(what="failed", compiler=compiler, why=f"{type(e).__name__}: {e}"[:500])
            return False

    def gradients(self, module):
        return {n: p.grad for n, p in module.named_parameters() if p.grad is not None}

    def error(self, module):
        """The relative distance of the gradients from those in float32, and their norm."""
        mine, far, all_ = self.gradients(module), 0.0, 0.0
        if mine.keys() != self.exact.keys():
            return math.inf, 0.0
        for n, g in self.exact.items():
            far += (mine[n].double() - g.double()).square().sum().item()
            all_ += mine[n].double().square().sum().item()
        return math.sqrt(far / self.size), math.sqrt(all_)

    def reference(self):
        """Loss and gradients without a compiler, in float32 and bfloat16."""
        import torch
        m = copy.deepcopy(self.module).float()
        inputs = [x.float() if x.is_floating_point() else x for x in self.inputs]
        loss = m(*inputs)
        loss.backward()
        self.loss, self.exact = loss.item(), self.gradients(m)
        self.size = sum(g.double().square().sum().item() for g in self.exact.values())
        del m, loss
        m = copy.deepcopy(self.module)
        loss = m(*self.inputs)
        loss.backward()
        self.eager_error, self.eager_loss = self.error(m)[0], loss.item()
        del m, loss
        if not self.cpu:
            torch.cuda.empty_cache()

    @contextlib.contextmanager
    def compiler(self, name):
        """Inductor with a compiler and without files of earlier compilations: a backend for torch.compile."""
        import libtl.torch
        from torch._dynamo.backends.registry import lookup_backend
        from torch._inductor import utils
        from torch._inductor.compile_fx import compile_fx

        # the two are different objects: Dynamo then keeps what it has compiled for the one apart from that for the other
        def backend(graph, examples, **rest):
            if self.cpu and name == "triton" and not self.options.cpp:
                return lookup_backend("aot_eager")(graph, examples)
            return compile_fx(graph, examples)

        with utils.fresh_cache(dir=self.options.state, delete=False):
            if name == "libtl":
                libtl.torch.enable(cpu=self.cpu)
            try:
                yield backend
            finally:
                if name == "libtl":
                    libtl.torch.disable()

    def warm_up(self, compiler):
        """A small compilation: imports and what is made once in a process."""
        import torch

        def small(x, w):
            y = torch.nn.functional.layer_norm(torch.nn.functional.gelu(x @ w), (256,))
            return (torch.softmax(y, 1) * y).sum()

        dtype = torch.bfloat16
        x, w = (torch.randn(n, 256, device=self.device, dtype=dtype, requires_grad=True) for n in (512, 256))
        with self.compiler(compiler) as backend:
            torch.compile(small, backend=backend, dynamic=False)(x, w).backward()
            self.synchronize()

    def clear(self):
        """Forgets what an earlier compilation left in this process, but not the compiled code."""
        import torch
        import sympy.core.cache
        from torch._dynamo import convert_frame
        from torch._dynamo.utils import orig_code_map
        from torch._subclasses import FakeTensorMode
        # reset() takes the compiled code away from the functions that are known here
        trackers = (convert_frame.input_codes, convert_frame.output_codes)
        known = [[code for ref in t.seen if (code := ref()) is not None] for t in trackers]
        values, refs = dict(orig_code_map.values), dict(orig_code_map.refs)
        for t in trackers:
            t.clear()
        torch._dynamo.reset()
        for t, codes in zip(trackers, known):
            for code in codes:
                t.add(code)
        orig_code_map.values.update(values)
        orig_code_map.refs.update(refs)
        sympy.core.cache.clear_cache()
        FakeTensorMode.cache_clear()
        gc.collect()
        gc.freeze()

    def instrument(self, compiler, clock):
        """Measures the compilation of kernels, and notes what is chosen by measurement. A list of functions that undo."""
        from torch._inductor.runtime import triton_heuristics as h
        undo = [clock.wrap(h.CachingAutotuner, n) for n in ("_precompile_config", "bench", "run")]
        undo += [clock.wrap(c, "make_launcher") for c in (h.TritonCompileResult, h.StaticTritonCompileResult)]
        original = h.CachingAutotuner.benchmark_all_configs

        def benchmark_all_configs(autotuner, *args, **kwargs):
            timings = original(autotuner, *args, **kwargs)
            self.tuned[compiler].append((autotuner, dict(timings)))
            return timings

        h.CachingAutotuner.benchmark_all_configs = benchmark_all_configs
        undo.append(lambda: setattr(h.CachingAutotuner, "benchmark_all_configs", original))
        return undo

    @staticmethod
    def function(module, name):
        """A function that calls a module. Dynamo keeps what it compiles by code, so each has code of its own."""
        def loss(*inputs):
            return module(*inputs)

        code = loss.__code__.replace(co_name=f"loss_{name}")
        return types.FunctionType(code, loss.__globals__, code.co_name, None, loss.__closure__)

    def step(self, compiler):
        """A forward and a backward pass. The loss."""
        module, function = self.steps[compiler]
        module.zero_grad(set_to_none=True)
        loss = function(*self.inputs)
        loss.backward()
        return loss.detach()

    def first_step(self, compiler, turn):
        import libtl.torch
        import torch
        from torch._dynamo.utils import counters
        module = copy.deepcopy(self.module)
        self.clear()
        counters.clear()
        clock, before = Clock(), libtl.torch.statistics()
        undo = self.instrument(compiler, clock)
        try:
            with self.compiler(compiler) as backend:
                self.steps[compiler] = module, torch.compile(self.function(module, compiler), backend=backend, dynamic=False)
                self.synchronize()
                start = time.perf_counter()
                cpu = time.process_time()
                loss = self.step(compiler)
                self.synchronize()
                seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        except BaseException:
            self.steps.pop(compiler, None)
            raise
        finally:
            for f in undo:
                f()
        after = libtl.torch.statistics()
        error, norm = self.error(module)
        loss = loss.item()
        fits = (error <= 2 * self.eager_error + 0.01
                and abs(loss - self.loss) <= 2 * abs(self.eager_loss - self.loss) + 0.01 * abs(self.loss))
        s, n = clock.seconds, clock.calls
        made = s.get("_precompile_config", 0.0) + s.get("make_launcher", 0.0)
        self.write(what="compile", compiler=compiler, turn=turn, first_step_s=round(seconds, 3), cpu_s=round(cpu, 3),
                   compile_s=round(made, 4), load_s=round(s.get("make_launcher", 0.0), 4),
                   bench_s=round(s.get("bench", 0.0), 3), launch_s=round(s.get("run", 0.0), 4),
                   kernels=n.get("_precompile_config", 0), by_libtl=after.compiled - before.compiled,
                   fallbacks=after.fallbacks - before.fallbacks, tuned=len(self.tuned[compiler]),
                   graphs=counters["stats"]["unique_graphs"], breaks=sum(counters["graph_break"].values()),
                   loss=loss, grad_norm=norm, grad_error=error,
                   grads_ok=bool(fits))

    # the speed

    def wait(self):
        """Until no process compiles any more. Has it come to this?"""
        folder, names = self.options.state, self.options.models
        while time.time() < self.options.until:
            if all(os.path.exists(os.path.join(folder, n + ".compiled")) for n in names):
                return True
            time.sleep(0.1)
        self.write(what="failed", compiler="both", why="other processes did not finish in time")
        return False

    def speed_part(self):
        with open(os.path.join(self.options.state, "lock"), "w") as lock:
            while True:
                if time.time() > self.options.until - 3:
                    self.write(what="failed", compiler="both", why="no time was left for the speed")
                    return
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(0.02)
            start = time.time()
            (self.speed_cpu if self.cpu else self.speed_gpu)(start)

    def retune(self, start):
        """Sets autotuners back, so that the next step measures again: those of the slowest kernels first, as time allows.

        A text: how many were set back, of how many whose choice is in doubt.
        """
        waiting = sum(not os.path.exists(os.path.join(self.options.state, n + ".timed")) for n in self.options.models)
        left = (self.options.until - start) / max(waiting, 1) - 2
        doubtful = []
        for autotuner, timings in (t for c in COMPILERS for t in self.tuned[c]):
            best, second, *_ = sorted(timings.values())
            if second < 2 * best:  # infinite where registers are spilled
                doubtful.append((best, autotuner, list(timings)))
        again = 0
        for _, autotuner, launchers in sorted(doubtful, key=lambda d: -d[0]):
            left -= 0.04 * len(launchers)
            if left < 0:
                break
            autotuner.launchers = launchers
            again += 1
        return f"{again} of {len(doubtful)}"

    def speed_cpu(self, start):
        from torch._dynamo.utils import counters
        counters.clear()
        retuned = self.retune(start)
        times = {c: [] for c in COMPILERS}
        for i in range(3):
            for c in COMPILERS:
                t = time.perf_counter()
                self.step(c)
                if i:
                    times[c].append((time.perf_counter() - t) * 1e3)
        self.report(times, "cpu", retuned, start, counters["stats"]["unique_graphs"])

    def speed_gpu(self, start):
        import torch
        from torch._dynamo.utils import counters
        counters.clear()
        retuned = self.retune(start)
        for c in COMPILERS:
            for _ in range(3):
                self.step(c)
        torch.cuda.synchronize()
        again, way = counters["stats"]["unique_graphs"], "graph"
        try:
            launches = {c: self.captured(c) for c in COMPILERS}
        except Exception as e:
            self.write(what="note", why=f"no CUDA graph: {type(e).__name__}: {e}"[:500])
            launches, way = {c: functools.partial(self.step, c) for c in COMPILERS}, "queue"
        self.report(self.in_turns(launches, way), way, retuned, start, again)

    def captured(self, compiler):
        """A function that launches a step as a CUDA graph."""
        import torch
        self.steps[compiler][0].zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            loss = self.step(compiler)
        graph.replay()
        torch.cuda.synchronize()
        if not abs(loss.item() - self.loss) <= 2 * abs(self.eager_loss - self.loss) + 0.02 * abs(self.loss):
            self.write(what="note", why=f"{compiler}: the loss of the CUDA graph is {loss.item()}")
        return graph.replay

    def in_turns(self, launches, way):
        """Milliseconds of a step by compiler, one for each round."""
        import torch
        times, steps = {c: [] for c in COMPILERS}, 2
        for i in range(ROUNDS + 1):
            for c in COMPILERS if i % 2 else reversed(COMPILERS):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                # about 5 ms for the launch of a graph; the launches of a step take longer
                torch.cuda._sleep(10_000_000 if way == "graph" else 150_000_000)
                begin.record()
                for _ in range(steps if way == "graph" else 1):
                    launches[c]()
                end.record()
                torch.cuda.synchronize()
                ms = begin.elapsed_time(end) / (steps if way == "graph" else 1)
                if i:
                    times[c].append(ms)
            if not i:  # the first round is not counted
                steps = max(2, min(50, round(ROUND_MS / ms)))
        return times

    def report(self, times, way, retuned, start, again):
        ms = {c: statistics.median(times[c]) for c in COMPILERS}
        self.write(what="speed", way=way, triton_ms=round(ms["triton"], 4), libtl_ms=round(ms["libtl"], 4),
                   ratio=round(ms["triton"] / ms["libtl"], 4), retuned=retuned, compiled_again=again,
                   triton_all=[round(t, 4) for t in times["triton"]], libtl_all=[round(t, 4) for t in times["libtl"]],
                   seconds=round(time.time() - start, 2))
        mark(self.options.state, self.name, "timed")


# --- the parent

def mark(folder, name, what="compiled"):
    with open(os.path.join(folder, f"{name}.{what}"), "w"):
        pass


def command(options, name, until):
    flags = ["--dry-run"] * options.dry_run + ["--cpp"] * options.cpp
    return [sys.executable, os.path.abspath(__file__), "--child", name, "--models", ",".join(options.models),
            "--out", options.out, "--state", options.state, "--seed", str(options.seed), "--until", str(until), *flags]


def stop(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_all(options):
    """Runs the processes. Returns why each of those without a result has none."""
    begin, until = time.time(), time.time() + options.seconds
    compiled_by = until - 5 - SPEED_SECONDS * len(options.models) if options.compile_seconds is None else (
        begin + options.compile_seconds)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
                   "CUDA_CACHE_DISABLE": "1", "TL_CACHE": "0", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
                   "PYTHONUNBUFFERED": "1"}
    for n in ("TRITON_INTERPRET", "TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TRITON_ALWAYS_COMPILE"):
        environment.pop(n, None)
    queue, running, why = list(options.models), {}, {}

    def compiled(name):
        return os.path.exists(os.path.join(options.state, name + ".compiled"))

    try:
        while queue or running:
            now = time.time()
            if now > until:
                why.update(dict.fromkeys([*queue, *running], "time limit"))
                break
            if now > compiled_by:  # the GPU must be idle for the others
                for name in [*queue, *(n for n in running if not compiled(n))]:
                    why[name] = "not compiled in time"
                    if name in running:
                        stop(running.pop(name))
                    mark(options.state, name)
                queue = []
            while queue and sum(not compiled(n) for n in running) < options.jobs:
                name = queue.pop(0)
                folder = os.path.join(options.state, "caches-" + name)
                os.makedirs(folder)
                own = {"TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
                       "TMPDIR": options.state}
                with open(os.path.join(options.out, name + ".log"), "w") as log:
                    running[name] = subprocess.Popen(command(options, name, until), env=environment | own, stdout=log,
                                                     stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
            for name, process in list(running.items()):
                if process.poll() is not None:
                    del running[name]
                    mark(options.state, name)
                    mark(options.state, name, "timed")
                    print(f"{time.time() - begin:5.0f} s: {name}: exit {process.returncode}", flush=True)
                    if process.returncode:
                        why[name] = f"exit {process.returncode}"
            time.sleep(0.1)
    finally:
        for process in running.values():
            stop(process)
    return why


def results(options, name):
    path = os.path.join(options.out, name + ".jsonl")
    found = []
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                with contextlib.suppress(ValueError):  # the process was killed while it wrote
                    found.append(json.loads(line))
    return found


def table(options, why):
    """The results as Markdown."""
    lines = ["| model | first step s Triton | libtl | ratio | kernels | compile s Triton | libtl | ratio "
             "| Triton − its compile time + 10 % | step ms Triton | libtl | Triton/libtl |", "|---|" + "---|" * 11]
    notes, ratios = [], {"first step": [], "compile": [], "step": []}

    def ratio(kind, a, b):
        if not a or not b:
            return "–"
        ratios[kind].append(a / b)
        return f"{a / b:.2f}"

    def shown(value, form="{:.2f}"):
        return "–" if value is None else form.format(value)

    for name in options.models:
        all_ = results(options, name)
        by = {r["compiler"]: r for r in all_ if r["what"] == "compile"}
        t, b = (by.get(c, {}) for c in COMPILERS)
        speed = next((r for r in all_ if r["what"] == "speed"), {})
        first, ours = t.get("first_step_s"), b.get("first_step_s")
        limit = None if first is None else (first - t["compile_s"]) * 1.1
        kernels = shown(t.get("kernels"), "{}") if t.get("kernels") == b.get("kernels") else (
            f"{shown(t.get('kernels'), '{}')}, {shown(b.get('kernels'), '{}')}")
        met = "" if limit is None or ours is None else " (met)" if ours <= limit else " (missed)"
        lines.append("| " + " | ".join([
            name, shown(first), shown(ours), ratio("first step", first, ours), kernels, shown(t.get("compile_s")),
            shown(b.get("compile_s")), ratio("compile", t.get("compile_s"), b.get("compile_s")), shown(limit) + met,
            shown(speed.get("triton_ms"), "{:.3f}"), shown(speed.get("libtl_ms"), "{:.3f}"),
            ratio("step", speed.get("triton_ms"), speed.get("libtl_ms"))]) + " |")
        if name in why:
            notes.append(f"{name}: {why[name]}")
        notes += [f"{name}: {r.get('compiler', '')} {r['why']}" for r in all_ if r["what"] in ("failed", "note")]
        for c, r in by.items():
            if r["fallbacks"]:
                notes.append(f"{name}: Triton compiled {r['fallbacks']} kernels for libtl")
            if not r["grads_ok"]:
                notes.append(f"{name}: {c}: gradients' error {r['grad_error']:.3g}, loss {r['loss']:.5g}")
            if r["breaks"]:
                notes.append(f"{name}: {c}: {r['graphs']} graphs, {r['breaks']} graph breaks")
        if b and not options.dry_run and b["by_libtl"] + b["fallbacks"] != b["kernels"]:
            notes.append(f"{name}: libtl compiled {b['by_libtl']} of {b['kernels']} kernels")
        if speed:
            notes += [f"{name}: timed as {speed['way']}"] * (speed["way"] == "queue")
            again, _, doubtful = speed["retuned"].split()
            notes += [f"{name}: {again} of {doubtful} kernels tuned again on the idle GPU"] * (again != doubtful)
            notes += [f"{name}: compiled again"] * bool(speed["compiled_again"])
    means = ", ".join(f"{kind} {math.exp(statistics.fmean(map(math.log, r))):.3f} ({len(r)} models)"
                      for kind, r in ratios.items() if r)
    return "\n".join([*lines, "", f"Geometric means of Triton/libtl: {means or 'none'}", "", *(f"- {n}" for n in notes)])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default=",".join(MODELS), help="names with commas between them")
    p.add_argument("--out", default="models-out", help="the folder of the results")
    p.add_argument("--seconds", type=float, default=230, help="time limit of all")
    p.add_argument("--compile-seconds", type=float, help="time limit of the first part")
    p.add_argument("--jobs", type=int, default=10, help="processes that compile at the same time")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--dry-run", action="store_true", help="small models on the CPU")
    p.add_argument("--cpp", action="store_true", help="with --dry-run: TorchInductor's C++ in place of Triton")
    p.add_argument("--child", help=argparse.SUPPRESS)
    p.add_argument("--state", help=argparse.SUPPRESS)
    p.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = p.parse_args()
    options.models = [m for m in options.models.split(",") if m]
    if unknown := [m for m in options.models if m not in MODELS]:
        p.error(f"unknown: {', '.join(unknown)}; there are {', '.join(MODELS)}")
    options.out = os.path.abspath(options.out)
    if options.child:
        faulthandler.dump_traceback_later(max(options.until - time.time(), 1) + 2, exit=True)
        Process(options).run()
        return
    os.makedirs(options.out, exist_ok=True)
    for name in options.models:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(options.out, name + ".jsonl"))
    options.state = tempfile.mkdtemp(prefix="models-")
    try:
        text = table(options, run_all(options))
    finally:
        shutil.rmtree(options.state, ignore_errors=True)
    with open(os.path.join(options.out, "table.md"), "w") as f:
        f.write(text + "\n")
    print(text)


if __name__ == "__main__":
    main()

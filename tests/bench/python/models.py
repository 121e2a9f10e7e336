"""models.py: torch.compile of ten models with Triton and with libtl on one GPU: its time, and the speed of the result.

It needs PyTorch, Triton, timm, transformers and libtl (PYTHONPATH=build/python, or the wheel), and one GPU. The models have
random weights of type bfloat16; a step is a forward and a backward pass without dropout. Nothing is downloaded.

    models.py [--models a,b] [--out FOLDER] [--seconds 230] [--jobs 10] [--seed 0] [--dry-run]

Each model has a process of its own, which measures both compilers, in an order that the seed chooses; the next seed after
an even one has the opposite order. Both are warmed up by a small function; then each compiles a copy of the model on one
thread, without caches. The time of the first step ends when the GPU has finished. "compile s" is the part of it in which
kernels are compiled and loaded: Triton's has ptxas in it, libtl's the driver's compilation of PTX. When all processes have
finished this part, one after the other times the steps of both copies as CUDA graphs, in turns, on an otherwise idle GPU.
Before that the configurations of kernels that TorchInductor chooses by measurement are measured again on the idle GPU, as
time allows.

The gradients are compared with those of the model in float32 without a compiler. The error may be twice that of the model
in bfloat16 without a compiler, and one hundredth more.

--dry-run needs no GPU: small models on the CPU, with libtl and the backend "aot_eager" in place of Triton. FOLDER gets
<model>.jsonl with each result as soon as it is there, <model>.log, and table.md.
"""

import argparse
import collections
import contextlib
import copy
import functools
import gc
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from unittest import mock

import sympy.core.cache
import torch
import torch._functorch.config
import torch._inductor.config
from torch._dynamo import convert_frame
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.utils import counters, orig_code_map
from torch._inductor import utils
from torch._inductor.compile_fx import compile_fx
from torch._inductor.runtime import triton_heuristics
from torch._subclasses import FakeTensorMode

import libtl.torch

COMPILERS = ("triton", "libtl")
SPEED_SECONDS = 4.5  # of the time limit, for each model
ROUNDS, ROUND_MS = 7, 80


# --- models: functions of "small" (for the CPU), which return a module and its inputs

def vision(name, batch, sized=False, small_options=None):
    def make(small):
        import timm
        size = 64 if small else 224
        options = {**({"img_size": size} if sized else {}), **(small_options or {} if small else {})}
        n = 2 if small else batch
        m = timm.create_model(name, pretrained=False, **options)
        return m, (torch.randn(n, 3, size, size), torch.randint(1000, (n,)))
    return make


def language(model, config, batch, length, layers, vocabulary="vocab_size", labels=None, **options):
    """layers: names of the numbers of layers in the configuration. labels: their length, if it is not that of the text."""
    def make(small):
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
    """Time in methods of classes: seconds by name, without that of methods within; and calls by name."""

    def __init__(self):
        self.seconds, self.calls, self.inner = collections.Counter(), collections.Counter(), [0.0]

    def measure(self, owner, name):
        original = owner.__dict__[name]

        @functools.wraps(original)
        def measured(*args, **kwargs):
            start = time.perf_counter()
            self.inner.append(0.0)
            try:
                return original(*args, **kwargs)
            finally:
                elapsed = time.perf_counter() - start
                self.seconds[name] += elapsed - self.inner.pop()
                self.inner[-1] += elapsed
                self.calls[name] += 1

        return mock.patch.object(owner, name, measured)


def gradients(module):
    return {n: p.grad for n, p in module.named_parameters() if p.grad is not None}


def own_function(module):
    """A function that calls a module. Dynamo keeps what it compiles by code, so each has code of its own."""
    return eval("lambda *inputs: module(*inputs)", {"module": module})


class Process:
    """What the process of a model does."""

    def __init__(self, options):
        self.options, self.name, self.cpu = options, options.child, options.dry_run
        self.device, self.synchronize = ("cpu", lambda: None) if self.cpu else ("cuda", torch.cuda.synchronize)
        self.tuned, self.steps = [], {}  # autotuners with the times of all of their launchers; modules and functions

    def write(self, **result):
        with open(os.path.join(self.options.out, self.name + ".jsonl"), "a") as f:
            f.write(json.dumps({"model": self.name, **result}) + "\n")

    def run(self):
        try:
            self.compile_part()
        finally:
            with open(os.path.join(self.options.state, self.name), "w"):
                pass  # the parent looks for this file
        seconds = float(sys.stdin.readline() or "nan")  # when it is this model's turn
        if len(self.steps) == 2:
            self.attempt("both", self.speed_part, seconds)

    def attempt(self, compiler, f, *arguments):
        """Calls a function. False: it failed, and the results say so."""
        try:
            f(*arguments)
            return True
        except Exception as e:
            sys.excepthook(type(e), e, e.__traceback__)
            self.write(what="failed", compiler=compiler, why=f"{type(e).__name__}: {e}"[:500])
            return False

    # the time of compilation

    def compile_part(self):
        start = time.monotonic()
        torch.set_num_threads(1)
        config = torch._inductor.config
        config.compile_threads, config.fx_graph_cache, config.fx_graph_remote_cache = 1, False, False
        torch._functorch.config.enable_autograd_cache = False
        if not self.cpu:
            torch.cuda.set_stream(torch.cuda.Stream())
        torch.manual_seed(self.options.seed)
        module, inputs = with_loss(self.name, self.cpu)
        self.module, self.inputs = module.to(self.device), [x.to(self.device) for x in inputs]
        self.loss, self.exact = self.without_compiler(torch.float32)
        self.eager_loss, eager = self.without_compiler(torch.bfloat16)
        self.eager_error = self.error(eager)[0]
        del eager
        torch.cuda.empty_cache()
        usable = [c for c in COMPILERS if self.attempt(c, self.warm_up, c)]
        self.synchronize()
        self.write(what="start", seconds=round(time.monotonic() - start, 2), batch=len(inputs[0]),
                   parameters=sum(p.numel() for p in module.parameters()), torch=torch.__version__,
                   error=self.eager_error, loss=self.loss)
        if random.Random(f"{self.options.seed // 2} {self.name}").getrandbits(1) ^ self.options.seed & 1:
            usable.reverse()
        for i, compiler in enumerate(usable):
            self.attempt(compiler, self.first_step, compiler, i)
        del self.exact, self.module
        for module, _ in self.steps.values():
            module.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()

    def without_compiler(self, dtype):
        """Loss and gradients."""
        m = copy.deepcopy(self.module).to(dtype)
        loss = m(*[x.to(dtype) if x.is_floating_point() else x for x in self.inputs])
        loss.backward()
        return loss.item(), gradients(m)

    def error(self, mine):
        """The relative distance of gradients from those in float32, and their norm."""
        def squares(values):
            return sum(v.double().square().sum().item() for v in values)

        if mine.keys() != self.exact.keys():
            return math.inf, 0.0
        far = squares(mine[n].double() - g.double() for n, g in self.exact.items())
        return math.sqrt(far / squares(self.exact.values())), math.sqrt(squares(mine.values()))

    @contextlib.contextmanager
    def compiler(self, name):
        """Inductor with a compiler and without files of earlier compilations: a backend for torch.compile."""
        # the two are different objects: Dynamo then keeps what it has compiled for the one apart from that for the other
        def backend(graph, examples, **rest):
            return (lookup_backend("aot_eager") if self.cpu and name == "triton" else compile_fx)(graph, examples)

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
        def small(x, w):
            y = torch.nn.functional.layer_norm(torch.nn.functional.gelu(x @ w), (256,))
            return (torch.softmax(y, 1) * y).sum()

        options = {"device": self.device, "dtype": torch.bfloat16, "requires_grad": True}
        x, w = torch.randn(512, 256, **options), torch.randn(256, 256, **options)
        with self.compiler(compiler) as backend:
            torch.compile(small, backend=backend, dynamic=False)(x, w).backward()
            self.synchronize()

    def clear(self):
        """Forgets what an earlier compilation left in this process, but not the compiled code."""
        with contextlib.ExitStack() as stack:  # reset() takes the compiled code away from the functions that are known here
            for codes in (convert_frame.input_codes, convert_frame.output_codes):
                stack.enter_context(mock.patch.multiple(codes, seen=[], seen_ids=set()))
            stack.enter_context(mock.patch.multiple(orig_code_map, values={}, refs={}))
            torch._dynamo.reset()
        sympy.core.cache.clear_cache()
        FakeTensorMode.cache_clear()
        gc.collect()
        gc.freeze()

    def measured(self, clock):
        """Context managers that measure the compilation of kernels, and note what is chosen by measurement."""
        tuner, original = triton_heuristics.CachingAutotuner, triton_heuristics.CachingAutotuner.benchmark_all_configs

        def benchmark_all_configs(autotuner, *args, **kwargs):
            timings = original(autotuner, *args, **kwargs)
            self.tuned.append((autotuner, dict(timings)))
            return timings

        results = triton_heuristics.TritonCompileResult, triton_heuristics.StaticTritonCompileResult
        return [mock.patch.object(tuner, "benchmark_all_configs", benchmark_all_configs),
                *(clock.measure(tuner, n) for n in ("_precompile_config", "bench", "run")),
                *(clock.measure(c, "make_launcher") for c in results)]

    def step(self, module, function):
        """A forward and a backward pass. The loss."""
        module.zero_grad(set_to_none=True)
        loss = function(*self.inputs)
        loss.backward()
        return loss.detach()

    def first_step(self, compiler, turn):
        module = copy.deepcopy(self.module)
        self.clear()
        counters.clear()
        clock, before, tuned = Clock(), libtl.torch.statistics(), len(self.tuned)
        with contextlib.ExitStack() as stack:
            for manager in self.measured(clock):
                stack.enter_context(manager)
            backend = stack.enter_context(self.compiler(compiler))
            function = torch.compile(own_function(module), backend=backend, dynamic=False)
            self.synchronize()
            start, cpu = time.perf_counter(), time.process_time()
            loss = self.step(module, function)
            self.synchronize()
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        self.steps[compiler] = module, function
        after, loss, (error, norm) = libtl.torch.statistics(), loss.item(), self.error(gradients(module))
        fits = (error <= 2 * self.eager_error + 0.01
                and abs(loss - self.loss) <= 2 * abs(self.eager_loss - self.loss) + 0.01 * abs(self.loss))
        s, kernels = clock.seconds, clock.calls["_precompile_config"]
        self.write(what="compile", compiler=compiler, turn=turn, first_step_s=round(seconds, 3), cpu_s=round(cpu, 3),
                   compile_s=round(s["_precompile_config"] + s["make_launcher"], 4), load_s=round(s["make_launcher"], 4),
                   bench_s=round(s["bench"], 3), launch_s=round(s["run"], 4), kernels=kernels,
                   by_libtl=after.compiled - before.compiled, fallbacks=after.fallbacks - before.fallbacks,
                   tuned=len(self.tuned) - tuned, graphs=counters["stats"]["unique_graphs"],
                   breaks=sum(counters["graph_break"].values()), loss=loss, grad_norm=norm, grad_error=error,
                   grads_ok=bool(fits))

    # the speed

    def speed_part(self, seconds):
        start = time.time()
        counters.clear()
        retuned = self.retune(seconds - 2)
        for c in COMPILERS:
            for _ in range(3):
                self.step(*self.steps[c])
        self.synchronize()
        again = counters["stats"]["unique_graphs"]
        launches = {c: functools.partial(self.step, *self.steps[c]) if self.cpu else self.captured(c) for c in COMPILERS}
        times = self.in_turns(launches)
        ms = {c: statistics.median(times[c]) for c in COMPILERS}
        self.write(what="speed", way="cpu" if self.cpu else "graph", triton_ms=round(ms["triton"], 4),
                   libtl_ms=round(ms["libtl"], 4), ratio=round(ms["triton"] / ms["libtl"], 4), retuned=retuned,
                   compiled_again=again, **{c + "_all": [round(t, 4) for t in times[c]] for c in COMPILERS},
                   seconds=round(time.time() - start, 2))

    def retune(self, left):
        """Lets the next step measure again, the slowest kernels first: how many, of how many whose choice is in doubt."""
        again, doubtful = 0, [t for t in self.tuned if sorted(t[1].values())[1] < 2 * min(t[1].values())]
        for autotuner, timings in sorted(doubtful, key=lambda t: -min(t[1].values())):
            left -= 0.04 * len(timings)
            if left < 0:
                break
            autotuner.launchers = list(timings)
            again += 1
        return f"{again} of {len(doubtful)}"

    def captured(self, compiler):
        """A function that launches a step as a CUDA graph."""
        self.steps[compiler][0].zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            loss = self.step(*self.steps[compiler])
        graph.replay()
        torch.cuda.synchronize()
        if not abs(loss.item() - self.loss) <= 2 * abs(self.eager_loss - self.loss) + 0.02 * abs(self.loss):
            self.write(what="note", why=f"{compiler}: the loss of the CUDA graph is {loss.item()}")
        return graph.replay

    def timed(self, launch, steps):
        """Milliseconds of a step."""
        if self.cpu:
            start = time.perf_counter()
            launch()
            return (time.perf_counter() - start) * 1e3
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(10_000_000)  # about 5 ms for the launch of a graph
        begin.record()
        for _ in range(steps):
            launch()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / steps

    def in_turns(self, launches):
        """Milliseconds of a step by compiler, one for each round. The first round is not counted."""
        times, steps = {c: [] for c in COMPILERS}, 2
        for i in range(ROUNDS + 1):
            for c in COMPILERS if i % 2 else reversed(COMPILERS):
                times[c].append(self.timed(launches[c], steps))
            if not i:
                steps = max(2, min(50, round(ROUND_MS / times["triton"].pop())))
                times["libtl"].clear()
        return times


# --- the parent

def start(options, name):
    """The process of a model."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
                   "CUDA_CACHE_DISABLE": "1", "TL_CACHE": "0", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
                   "PYTHONUNBUFFERED": "1", "TMPDIR": options.state,
                   "TORCHINDUCTOR_CACHE_DIR": os.path.join(options.state, "caches-" + name),
                   "TRITON_CACHE_DIR": os.path.join(options.state, "caches-" + name, "triton")}
    for n in ("TRITON_INTERPRET", "TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TRITON_ALWAYS_COMPILE"):
        environment.pop(n, None)
    with open(os.path.join(options.out, name + ".log"), "w") as log:
        return subprocess.Popen([sys.executable, *sys.argv, "--child", name, "--state", options.state], env=environment,
                                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True)


def run_all(options):
    """Runs the processes. Returns why each of those without a result has none."""
    begin, waiting, compiling, ready, why = time.time(), list(options.models), {}, {}, {}
    compile_seconds = options.compile_seconds or options.seconds - 5 - SPEED_SECONDS * len(options.models)
    try:
        while (waiting or compiling) and time.time() - begin < compile_seconds:
            while waiting and len(compiling) < options.jobs:
                name = waiting.pop(0)
                compiling[name] = start(options, name)
            for name, process in list(compiling.items()):
                if process.poll() is not None or os.path.exists(os.path.join(options.state, name)):
                    ready[name] = compiling.pop(name)
            time.sleep(0.1)
        why.update(dict.fromkeys([*waiting, *compiling], "not compiled in time"))
        for process in compiling.values():  # the GPU must be idle for the others
            process.kill()
        for i, (name, process) in enumerate(ready.items()):
            left = max(begin + options.seconds - time.time(), 0.1)
            try:
                process.communicate(f"{left / (len(ready) - i)}\n", timeout=left)
                if process.returncode:
                    why[name] = f"exit {process.returncode}"
            except subprocess.TimeoutExpired:
                process.kill()
                why[name] = "time limit"
            print(f"{time.time() - begin:5.0f} s: {name}: exit {process.returncode}", flush=True)
    finally:
        for process in (*compiling.values(), *ready.values()):
            process.kill()
    return why


def results(options, name):
    with contextlib.suppress(FileNotFoundError), open(os.path.join(options.out, name + ".jsonl")) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]
    return []


def table(options, why):
    """The results as Markdown."""
    lines = ["| model | first step s Triton | libtl | ratio | kernels | compile s Triton | libtl | ratio "
             "| Triton − its compile time + 10 % | step ms Triton | libtl | Triton/libtl |", "|---|" + "---|" * 11]
    notes, ratios = [], {"first step": [], "compile": [], "step": []}

    def shown(value, form="{:.2f}"):
        return "–" if value is None else form.format(value)

    def three(kind, a, b, form="{:.2f}"):
        ratios[kind] += [a / b] if a and b else []
        return [shown(a, form), shown(b, form), shown(a / b if a and b else None)]

    for name in options.models:
        all_ = results(options, name)
        by = {r["compiler"]: r for r in all_ if r["what"] == "compile"}
        t, b = (by.get(c, {}) for c in COMPILERS)
        speed = next((r for r in all_ if r["what"] == "speed"), {})
        first, ours = t.get("first_step_s"), b.get("first_step_s")
        limit = None if first is None else (first - t["compile_s"]) * 1.1
        met = "" if limit is None or ours is None else " (met)" if ours <= limit else " (missed)"
        kernels = dict.fromkeys(shown(r.get("kernels"), "{}") for r in (t, b))
        lines.append("| " + " | ".join([
            name, *three("first step", first, ours), ", ".join(kernels),
            *three("compile", t.get("compile_s"), b.get("compile_s")), shown(limit) + met,
            *three("step", speed.get("triton_ms"), speed.get("libtl_ms"), "{:.3f}")]) + " |")
        found = [why[name]] if name in why else []
        found += [f"{r.get('compiler', '')} {r['why']}" for r in all_ if r["what"] in ("failed", "note")]
        for c, r in by.items():
            found += [f"{c}: gradients' error {r['grad_error']:.3g}, loss {r['loss']:.5g}"] * (not r["grads_ok"])
            found += [f"{c}: {r['graphs']} graphs, {r['breaks']} graph breaks"] * bool(r["breaks"])
        if b and (b["fallbacks"] or not options.dry_run and b["by_libtl"] != b["kernels"]):
            found.append(f"libtl compiled {b['by_libtl']} of {b['kernels']} kernels, Triton {b['fallbacks']}")
        if speed:
            again, _, doubtful = speed["retuned"].split()
            found += [f"{speed['retuned']} kernels tuned again on the idle GPU"] * (again != doubtful)
            found += ["compiled again"] * bool(speed["compiled_again"])
        notes += [f"- {name}: {n}" for n in found]
    means = ", ".join(f"{kind} {math.exp(statistics.fmean(map(math.log, r))):.3f} ({len(r)} models)"
                      for kind, r in ratios.items() if r)
    return "\n".join([*lines, "", f"Geometric means of Triton/libtl: {means or 'none'}", "", *notes])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default=",".join(MODELS), help="names with commas between them")
    p.add_argument("--out", default="models-out", help="the folder of the results")
    p.add_argument("--seconds", type=float, default=230, help="time limit of all")
    p.add_argument("--compile-seconds", type=float, help="time limit of the first part")
    p.add_argument("--jobs", type=int, default=10, help="processes that compile at the same time")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--dry-run", action="store_true", help="small models on the CPU")
    p.add_argument("--child", help=argparse.SUPPRESS)
    p.add_argument("--state", help=argparse.SUPPRESS)
    options = p.parse_args()
    options.models = [m for m in options.models.split(",") if m]
    if unknown := [m for m in options.models if m not in MODELS]:
        p.error(f"unknown: {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if options.child:
        Process(options).run()
        return
    os.makedirs(options.out, exist_ok=True)
    for name in options.models:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(options.out, name + ".jsonl"))
    with tempfile.TemporaryDirectory(prefix="models-", ignore_cleanup_errors=True) as options.state:
        text = table(options, run_all(options))
    with open(os.path.join(options.out, "table.md"), "w") as f:
        f.write(text + "\n")
    print(text)


if __name__ == "__main__":
    main()

"""The model of examples/gpt in PyTorch: what the program is compared with.

torch_gpt.py losses PROGRAM TEXT    losses of 200 steps, and gradients' norms, from the same weights and sequences
torch_gpt.py gradients PROGRAM TEXT gradients of each parameter against PyTorch's in double precision
torch_gpt.py bench PROGRAM [OPTION] tokens/s of training and generation: PyTorch eager, torch.compile, the program, in turns
"""
import json
import math
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


class Block(torch.nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(channels), torch.nn.LayerNorm(channels)
        self.qkv, self.out = torch.nn.Linear(channels, 3 * channels), torch.nn.Linear(channels, channels)
        self.up, self.down = torch.nn.Linear(channels, 4 * channels), torch.nn.Linear(4 * channels, channels)

    def forward(self, x, cache=None, position=None):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(c, 2))
        if cache is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            cache[0][:, :, position:position + t], cache[1][:, :, position:position + t] = k, v
            y = F.scaled_dot_product_attention(q, cache[0][:, :, :position + t], cache[1][:, :, :position + t], is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    def __init__(self, vocabulary, context, channels, heads, layers):
        super().__init__()
        self.heads, self.context = heads, context
        self.wte, self.wpe = torch.nn.Embedding(vocabulary, channels), torch.nn.Embedding(context, channels)
        self.h = torch.nn.ModuleList([Block(channels, heads) for _ in range(layers)])
        self.ln_f = torch.nn.LayerNorm(channels)
        for name, p in self.named_parameters():
            torch.nn.init.normal_(p, std=0.02) if p.dim() == 2 else torch.nn.init.zeros_(p) if "bias" in name else None

    def forward(self, tokens, caches=None, position=0):
        x = self.wte(tokens) + self.wpe.weight[position:position + tokens.shape[1]]
        for i, block in enumerate(self.h):
            x = block(x, caches[i] if caches else None, position)
        x = self.ln_f(x if caches is None else x[:, -1:])
        return F.linear(x, self.wte.weight)

    def loss(self, tokens, targets):
        return F.cross_entropy(self(tokens).flatten(0, 1).float(), targets.flatten())

    def optimizer(self, rate, fused):
        matrices = [p for p in self.parameters() if p.dim() == 2]
        vectors = [p for p in self.parameters() if p.dim() < 2]
        return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}], lr=rate,
                                 betas=(0.9, 0.95), eps=1e-8, fused=fused)


ALIGNMENT = 64  # of the program's arenas, in elements
NAMES = {"ln_1": "ln_1", "attn.c_attn": "qkv", "attn.c_proj": "out", "ln_2": "ln_2", "mlp.c_fc": "up", "mlp.c_proj": "down"}


def read(path):
    """Of a checkpoint: tensors by PyTorch's names, in the program's order, and what else it says."""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()
    meta, tensors = header.pop("__metadata__"), {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).view(entry["shape"])
    return tensors, meta


def renamed(tensors):
    """By PyTorch's names and layouts."""
    state = {}
    for name, x in tensors.items():
        part = re.match(r"(h\.\d+\.)(.*)\.(weight|bias)", name)
        if part:
            own = NAMES[part[2]]
            name = f"{part[1]}{own}.{part[3]}"
            if own in ("qkv", "out", "up", "down") and part[3] == "weight":
                x = x.T.contiguous()  # Linear keeps rows of outputs
        state[name] = x
    return state


def weights(tensors):
    return {name: x for name, x in tensors.items() if not name.startswith("optimizer")}


def load(path):
    """A checkpoint of the program as a model, and its seed."""
    tensors, meta = read(path)
    state = renamed(weights(tensors))
    vocabulary, channels = state["wte.weight"].shape
    layers = sum(name.endswith("ln_1.weight") for name in state)
    model = GPT(vocabulary, state["wpe.weight"].shape[0], channels, int(meta["heads"]), layers)
    model.load_state_dict(state)
    return model, int(meta["seed"])


def first_moments(path):
    """In the program's arena matrices come first, and each tensor begins at a multiple of 64 elements."""
    tensors, _ = read(path)
    at, out = 0, {}
    for rank in (2, 1):
        for name, x in weights(tensors).items():
            if x.dim() == rank:
                out[name] = tensors["optimizer.m"][at:at + x.numel()].view(x.shape)
                at += (x.numel() + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    return renamed(out)


def splitmix(state):
    mask = (1 << 64) - 1
    state = (state + 0x9E3779B97F4A7C15) & mask
    z = state
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return state, z ^ z >> 31


def place(seed, step, i, places):
    state = (seed * 0x9E3779B97F4A7C15 + (step << 32 | i)) & ((1 << 64) - 1)
    state, _ = splitmix(state)
    return splitmix(state)[1] % places


def rate_of(step, steps, most):
    warmup = steps // 20 + 1
    if step <= warmup:
        return most * step / warmup
    return most * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))))


def batch_of(text, seed, step, batch, context):
    """The sequences of a step, and what follows each token."""
    data = open(text, "rb").read()
    tokens, places = torch.tensor(list(data)), len(data) - len(data) // 10 - context
    at = [place(seed, step, i, places) for i in range(batch)]
    return torch.stack([tokens[a:a + context] for a in at]), torch.stack([tokens[a + 1:a + 1 + context] for a in at])


def gradients(program, text, options):
    """The first moments after one step are a tenth of its gradients; with so small a rate the weights are still the same."""
    type = options[options.index("--dtype") + 1] if "--dtype" in options else "fp32"
    bound, batch, failed, passed = {"fp32": 1e-4, "bf16": 3e-2}[type], 8, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/start.safetensors"
        subprocess.run([program, "train", text, "--seed", "7", *options, "--layers", "3", "--channels", "96", "--heads", "3", "--context", "64",
                        "--batch", str(batch), "--steps", "1", "--rate", "1e-9", "--clip", "1e9", "--out", path], check=True, stdout=subprocess.DEVNULL)
        model, seed = load(path)
        ours = first_moments(path)
    model = model.double()
    model.loss(*batch_of(text, seed, 1, batch, model.context)).backward()
    worst = (0, "")
    for name, p in model.named_parameters():
        error = ((ours[name].double() / 0.1 - p.grad).norm() / p.grad.norm()).item()
        worst = max(worst, (error, name))
        good = error < bound
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"FAIL {name}: the gradient is {error:.1e} of its norm away from PyTorch's")
    print(f"{type}: the gradient that is the farthest from PyTorch's in double precision is that of {worst[1]}, by {worst[0]:.1e} of its norm")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


def losses(program, text, options):
    """The program trains from a checkpoint whose moments are 0; PyTorch trains from it too."""
    steps, batch = 200, 8
    shape = ["--layers", "3", "--channels", "96", "--heads", "3", "--context", "64", "--batch", str(batch)]
    with tempfile.TemporaryDirectory() as folder:
        start = f"{folder}/start.safetensors"
        run = [program, "train", text, "--seed", "7", *options]
        subprocess.run([*run, *shape, "--steps", "1", "--rate", "1e-9", "--out", start], check=True, stdout=subprocess.DEVNULL)
        out = subprocess.run([*run, "--from", start, "--batch", str(batch), "--steps", str(steps), "--log-every", "1",
                              "--out", f"{folder}/end.safetensors"], check=True, capture_output=True, text=True).stdout
        ours = [(float(a), float(b)) for a, b in re.findall(r"loss (\S+)  norm (\S+)", out)]
        model, seed = load(start)
        ended, _ = load(f"{folder}/end.safetensors")
    optimizer = model.optimizer(1e-3, False)
    worst = worst_norm = 0
    for step in range(1, steps + 1):
        loss = model.loss(*batch_of(text, seed, step, batch, model.context))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, steps, 1e-3)
        optimizer.step()
        worst = max(worst, abs(ours[step - 1][0] - loss.item()) / loss.item())
        worst_norm = max(worst_norm, abs(ours[step - 1][1] - norm.item()) / norm.item())
    apart = max(((a - b).norm() / b.norm()).item() for a, b in zip(ended.parameters(), model.parameters()))
    print(f"{len(ours)} steps: the last loss {ours[-1][0]}, PyTorch's {loss.item():.4f}; relative errors of losses at most {worst:.2e}, "
          f"of norms {worst_norm:.2e}; parameters at the end {apart:.2e}")
    right = len(ours) == steps and worst < 1e-3
    print(f"{int(right)} passed, {int(not right)} failed")
    return not right


# --- speed --------------------------------------------------------------------------------------------------------------


def training(model, type, device, batch, repeat, compiled):
    optimizer = model.optimizer(1e-4, True)
    tokens = torch.randint(0, model.wte.weight.shape[0], (2, batch, model.context), device=device)
    loss_of = torch.compile(model.loss) if compiled else model.loss

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=type == "bf16"):
            loss = loss_of(tokens[0], tokens[1])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    for _ in range(3):
        step().item()
    begin = time.perf_counter()
    for _ in range(repeat):
        step().item()
    return repeat * batch * model.context / (time.perf_counter() - begin)


@torch.no_grad()
def generation(model, type, device, n):
    if type == "bf16":
        model = model.to(torch.bfloat16)
    weight = model.wte.weight
    shape = (1, model.heads, model.context, weight.shape[1] // model.heads)
    caches = [(torch.zeros(shape, device=device, dtype=weight.dtype), torch.zeros(shape, device=device, dtype=weight.dtype))
              for _ in model.h]
    token = torch.zeros((1, 1), dtype=torch.long, device=device)
    for i in range(-8, n):
        if i == 0:
            begin = time.perf_counter()
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):  # cuDNN plans each length
            logits = model(token, caches, (i + 8) % model.context)
        token = torch.multinomial(F.softmax(logits[0].float(), -1), 1)
        token.item()
    return n / (time.perf_counter() - begin)


def bench(program, options):
    get = lambda name, usual: options[options.index(name) + 1] if name in options else usual
    layers, channels, context = int(get("--layers", 6)), int(get("--channels", 384)), int(get("--context", 256))
    batch, repeat, n = int(get("--batch", 8)), int(get("--repeat", 10)), int(get("--tokens", 200))
    type = get("--dtype", "fp32")
    torch.set_float32_matmul_precision("high" if get("--precision", "ieee") == "tf32" else "highest")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    make = lambda: GPT(50257, context, channels, channels // 64, layers).to(device)
    print(f"{sum(p.numel() for p in make().parameters()) / 1e6:.1f} M parameters, {type}, {device}, batches of {batch} x {context}")
    print("| | training, tokens/s | generation, tokens/s | memory of training, MB |\n|---|---|---|---|")
    for compiled in (False, True):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        try:
            speed = training(make(), type, device, batch, repeat, compiled)
        except Exception as e:  # torch.compile needs a C++ compiler on a CPU
            print(f"| torch.compile | {str(e).splitlines()[0][:60]} | | |")
            continue
        memory = torch.cuda.max_memory_allocated() >> 20 if device == "cuda" else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        memory = "" if device == "cpu" and compiled else memory  # of the process, the most so far
        tokens = "" if compiled else f"{generation(make(), type, device, n):.1f}"
        print(f"| PyTorch, {'compiled' if compiled else 'eager'} | {speed:.0f} | {tokens} | {memory} |", flush=True)
    line = subprocess.run([program, "bench", *options], check=True, capture_output=True, text=True).stdout
    speed, tokens, memory, resident = re.search(r"training (\d+) .*generation ([\d.]+) .*; (\d+) MB for training \((\d+)", line).groups()
    memory = resident if device == "cpu" else memory
    print(f"| gpt | {speed} | {tokens} | {memory} |")


if __name__ == "__main__":
    command, program, *rest = sys.argv[1:]
    if command in ("losses", "gradients"):
        sys.exit({"losses": losses, "gradients": gradients}[command](program, rest[0], rest[1:]))
    bench(program, rest)

"""Functions for torch.compile, with arguments: those of test_torch_compile.py.

FUNCTIONS has for each name a function and a function that makes its arguments from a torch.Generator. MODELS has
modules with their input; their gradients are compared too.
"""

import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("TORCH_DEVICE", "cpu")  # of the arguments and of the models: cpu or cuda
torch.set_default_device(DEVICE)

FUNCTIONS, MODELS = {}, {}
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def normal(*shape, dtype=torch.float32):
    return lambda g: torch.randn(*shape, generator=g, dtype=torch.float64, device="cpu").to(DEVICE, dtype)


def integers(low, high, *shape, dtype=torch.int64):
    return lambda g: torch.randint(low, high, shape, generator=g, device="cpu").to(DEVICE, dtype)


def add(name, f, *arguments):
    assert name not in FUNCTIONS
    FUNCTIONS[name] = f, lambda g: [a(g) for a in arguments]


X, Y, ROWS, INDEX = normal(37, 100), normal(37, 100), normal(64, 33), integers(0, 64, 50)

# --- elementwise functions, of all types
for t in FLOATS:
    name = str(t).rpartition(".")[2]
    add(f"polynomial_{name}", lambda x, y: x * y + x - 0.5, normal(1001, dtype=t), normal(1001, dtype=t))
    add(f"activations_{name}", lambda x: (torch.sigmoid(x), torch.tanh(x), F.gelu(x), F.silu(x), F.relu(x)),
        normal(1001, dtype=t))
for t in INTEGERS:
    name = str(t).rpartition(".")[2]
    add(f"arithmetic_{name}", lambda x, y: (x + y, x * y - 3, x // y, x % y, x & y, x ^ y, -x, x >> 1),
        integers(0, 100, 501, dtype=t), integers(1, 11, 501, dtype=t))
add("comparisons", lambda x, y: ((x > y) & (x < 1), (x == y) | (x >= 0), ~(x != y)), X, Y)
add("exponentials", lambda x: (x.exp(), x.exp2(), x.expm1(), x.abs().log(), x.abs().log2(), x.abs().log1p()), X)
add("trigonometry", lambda x: (x.sin(), x.cos(), x.tan(), x.atan(), torch.asin(x.clamp(-1, 1)), x.sinh(), x.acosh()), X)
add("special", lambda x: (x.erf(), x.erfc(), x.lgamma(), torch.special.i0(x), torch.special.erfcx(x), x.digamma()), X)
add("powers", lambda x, y: (x ** 3, x.abs() ** 0.3, x.abs() ** y, x.abs().rsqrt(), x.abs().sqrt(), 1 / x), X, Y)
add("rounding", lambda x: (x.round(), x.floor(), x.ceil(), x.trunc(), x.frac(), x.sign()), X)
add("conversions", lambda x: (x.int(), x.half(), x.bfloat16(), x.double(), x.to(torch.int8), x > 0, x.bool()), X)
add("where", lambda x, y: torch.where(x > 0, y, x * 2), X, Y)
add("nan", lambda x: (x.log().nan_to_num(7.0), x.sqrt().isnan(), (1 / (x - x)).isinf(), torch.fmax(x.log(), x)), X)
add("extrema", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), x.clamp(-0.5, 0.5), torch.fmin(x, y)), X, Y)
add("other_binary", lambda x, y: (torch.atan2(x, y), torch.hypot(x, y), torch.remainder(x, y), torch.fmod(x, y),
                                  torch.copysign(x, y), torch.nextafter(x, y), torch.ldexp(x, y.int())), X, Y)
add("frexp", lambda x: torch.frexp(x), X)
add("complex", lambda x, y: torch.view_as_real(torch.complex(x, y) * torch.complex(y, x)), X, Y)

# --- reductions and scans
for t in FLOATS:
    name = str(t).rpartition(".")[2]
    add(f"sum_{name}", lambda x: (x.sum(), x.sum(0), x.sum(1), x.mean(1)), normal(37, 100, dtype=t))
add("sum_large", lambda x: x.sum(), normal(300001))
add("sum_strided", lambda x: x.permute(2, 0, 1).sum((0, 2)), normal(13, 17, 19))
add("products", lambda x: (x.prod(1), x.cumprod(1)), normal(7, 20))
add("variance", lambda x: (x.var(1), x.std(0), torch.var_mean(x, 1)), X)
add("max_min", lambda x: (x.amax(1), x.amin(0), x.max(1), x.min(0), x.argmax(1), x.argmin(0), x.argmax()), X)
add("any_all", lambda x: ((x > 2).any(1), (x < 2).all(0), (x > 0).sum(1)), X)
add("norms", lambda x: (x.norm(), x.norm(dim=1), x.abs().sum(1), F.normalize(x)), X)
add("logsumexp", lambda x: (x.logsumexp(1), x.logcumsumexp(1)), X)
add("scans", lambda x: (x.cumsum(1), x.cumsum(0), x.cummax(1).values), X)
add("scan_large", lambda x: x.cumsum(0), normal(20000, dtype=torch.float64))
add("scan_integers", lambda x: (x > 3).cumsum(0), integers(0, 9, 3000))
add("sort", lambda x: x.sort(1), normal(5, 30))
add("sort_descending", lambda x: x.sort(dim=1, descending=True, stable=True), integers(0, 9, 4, 16))
add("median", lambda x: (x.topk(3, 1), x.median(1).values), X)

# --- views and indexing
add("transpose", lambda x: x.t().contiguous() + 1, X)
add("permute", lambda x: (x.permute(2, 0, 1) * 2).reshape(-1), normal(5, 6, 7))
add("concatenate", lambda x, y: (torch.cat([x, y * 2], 1), torch.stack([x, y], 1)), X, Y)
add("split", lambda x: [p * i for i, p in enumerate(x.split(30, 1))], X)
add("pad", lambda x: (F.pad(x, (1, 2, 3, 4)), F.pad(x[None], (1, 2), mode="reflect")), X)
add("slices", lambda x: (x[1::3, :-5] + 1, x[:, 7], x[-1]), X)
add("roll_flip", lambda x: (x.roll(3, 1), x.flip(0), x.tril(2), x.triu(-1), x.diagonal()), X)
add("repeat", lambda x: (x.repeat(2, 3), x.repeat_interleave(2, 1), x[:, None].expand(-1, 4, -1) + 0), X)
add("unfold", lambda x: x.unfold(1, 5, 3) * 2, X)
add("slice_assignment", lambda x, y: torch.slice_scatter(x, y[3:9], 0, 4, 10), X, Y)
add("index", lambda x, i: (x[i] * 2, x[:, i % 33], x.index_select(0, i)), ROWS, INDEX)
add("gather", lambda x, i: x.gather(0, i), ROWS, integers(0, 64, 20, 33))
add("index_put", lambda x, i, v: x.index_put((i,), v, accumulate=True), ROWS, INDEX, normal(50, 33))
add("scatter_add", lambda x, i, v: x.scatter_add(0, i, v), ROWS, integers(0, 64, 20, 33), normal(20, 33))
add("scatter_reduce", lambda x, i, v: x.scatter_reduce(0, i, v, "amax"), ROWS, integers(0, 64, 20, 33), normal(20, 33))
add("index_add_integers", lambda x, i, v: x.index_add(0, i, v), integers(0, 9, 64, 33), INDEX, integers(0, 9, 50, 33))
add("masked", lambda x: x.masked_fill(x > 0, 3.0), X)
add("embedding", lambda i, w: F.embedding(i, w).sum(1), integers(0, 64, 10, 5), ROWS)
add("one_hot", lambda i: F.one_hot(i, 64), INDEX)
add("bucketize", lambda x: torch.bucketize(x, torch.linspace(-2, 2, 17, device=x.device)), X)
add("searchsorted", lambda x: torch.searchsorted(torch.linspace(-2, 2, 65, device=x.device), x, right=True), X)

# --- neural networks
add("softmax", lambda x: (x.softmax(1), x.log_softmax(0)), X)
add("softmax_wide", lambda x: x.softmax(1), normal(3, 5000))
add("softmax_half", lambda x: x.softmax(1), normal(37, 100, dtype=torch.float16))
add("layer_norm", lambda x, w, b: F.layer_norm(x, (100,), w, b), X, normal(100), normal(100))
add("rms_norm", lambda x, w: F.rms_norm(x, (100,), w), X, normal(100))
add("group_norm", lambda x: F.group_norm(x, 3), normal(2, 6, 9, 9))
add("batch_norm", lambda x: F.batch_norm(x, None, None, training=True), normal(4, 6, 9, 9))
add("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), normal(2, 3, 21, 21))
add("average_pool", lambda x: (F.avg_pool2d(x, 3, 2), F.adaptive_avg_pool2d(x, 4)), normal(2, 3, 21, 21))
add("interpolate", lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, (13, 17), mode="bilinear")),
    normal(2, 3, 9, 9))
add("convolution", lambda x, w, b: F.relu(F.conv2d(x, w, b, padding=1)), normal(2, 3, 13, 13), normal(4, 3, 3, 3), normal(4))
add("matmul", lambda x, y: F.gelu(x @ y.t() + 1), X, Y)
add("addmm", lambda b, x, y: torch.addmm(b, x, y.t()).tanh(), normal(37), X, Y)
add("bmm", lambda x, y: torch.bmm(x, y).relu(), normal(3, 17, 20), normal(3, 20, 11))
add("einsum", lambda x, y: torch.einsum("bij,bkj->bik", x, y) * 2, normal(3, 17, 20), normal(3, 11, 20))
add("cross_entropy", lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1), ROWS, integers(0, 33, 64))
add("losses", lambda x, y: (F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y.sigmoid()),
                            F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), F.huber_loss(x, y)), X, Y)
# TorchInductor replaces attention by PyTorch's operator, unless something else happens to the scores or the result
add("attention", lambda q, k, v: (q @ k.transpose(-1, -2) / 4).tanh().softmax(-1) @ v, *[normal(2, 3, 25, 16)] * 3)
add("attention_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True).relu(),
    *[normal(2, 3, 25, 16)] * 3)
add("rotary", lambda x, c: torch.cat([x[..., :8] * c - x[..., 8:], x[..., 8:] * c + x[..., :8]], -1), normal(2, 5, 16), normal(8))
add("dropout_off", lambda x: F.dropout(x, 0.5, training=False) * 2, X)
add("quantize", lambda x: ((x * 10).round().clamp(-128, 127).to(torch.int8).float() / 10), X)
add("cosine_similarity", lambda x, y: F.cosine_similarity(x, y), X, Y)
add("cdist", lambda x, y: (x[:, None] - y[None]).pow(2).sum(-1).sqrt(), normal(9, 20), normal(11, 20))


# --- models


def model(name, shape, dtype=torch.float32):
    def register(make):
        MODELS[name] = make, normal(*shape, dtype=dtype)
        return make
    return register


@model("mlp", (16, 32))
def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10), nn.LogSoftmax(1))


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2)) / (c // self.heads) ** 0.5
        weights = weights.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, n, c))
        return x + self.mlp(self.norm2(x))


@model("transformer", (2, 12, 32))
def transformer():
    return nn.Sequential(Block(), Block(), nn.LayerNorm(32))


class Residual(nn.Module):
    """A block of a residual network."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(y))).mean((2, 3))


@model("residual", (3, 4, 11, 11))
def residual():
    return Residual()


class Recurrent(nn.Module):
    """A gated recurrent cell over some steps."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 48), nn.Linear(16, 48)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 16)
        for t in range(x.shape[1]):
            a, b = self.inner(x[:, t]).chunk(3, 1), self.outer(h).chunk(3, 1)
            reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
            h = update * h + (1 - update) * torch.tanh(a[2] + reset * b[2])
        return h


@model("recurrent", (5, 4, 8))
def recurrent():
    return Recurrent()

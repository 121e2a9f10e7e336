"""Callers of TorchInductor for record.py, on a GPU: training steps of models, operators, forms of flex attention."""
import functools

import torch
import torch.nn.functional as F

from cases import normal, train


def compiled(f, *args, **kwargs):
    train(torch.compile(f, dynamic=False), *args, **kwargs)
    torch._dynamo.reset()


def step(model, *args, **kwargs):
    """A training step under autocast."""
    def forward(*args, **kwargs):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            output = model(*args, **kwargs)
            output = output if torch.is_tensor(output) else output.loss
            return output.float().square().mean() if output.dim() else output
    compiled(forward, *args, **kwargs)


def image_model(name, batch=64):
    import timm
    with torch.device("cuda"):
        model = timm.create_model(name, num_classes=1000).to(memory_format=torch.channels_last)
    step(model, torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last))


def language_model(name, config, batch, length, **settings):
    import transformers
    settings = getattr(transformers, config)(**settings)
    with torch.device("cuda"):
        model = getattr(transformers, name)(settings)
    ids = torch.randint(0, settings.vocab_size, (batch, length), device="cuda")
    step(model, input_ids=ids, labels=ids)


def flex(score=None, mask=None, heads=16, kv_heads=None, length=4096, queries=None, width=128, batch=2):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    kv_heads, grad = kv_heads or heads, queries is None
    queries = queries or length
    q = normal(batch, heads, queries, width, grad=grad)
    k, v = (normal(batch, kv_heads, length, width, grad=grad) for _ in range(2))
    blocks = create_block_mask(mask, None, None, queries, length, device="cuda") if mask else None
    compiled(lambda q, k, v: flex_attention(q, k, v, score_mod=score, block_mask=blocks, enable_gqa=kv_heads != heads),
             q, k, v)


causal = lambda b, h, q, k: q >= k
LLAMA = dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=32,
             num_key_value_heads=8, vocab_size=32000, use_cache=False)
MODELS = {
    "resnet50": lambda: image_model("resnet50"), "vit": lambda: image_model("vit_base_patch16_224"),
    "convnext": lambda: image_model("convnext_tiny"),
    "bert": lambda: language_model("BertForMaskedLM", "BertConfig", 16, 512),
    "llama": lambda: language_model("LlamaForCausalLM", "LlamaConfig", 4, 2048, **LLAMA),
}
X = lambda *shape: normal(*(shape or (4096, 4096)), grad=False)
WIDE = lambda: normal(2048, 8192, dtype=torch.float32, grad=False)
IMAGES = lambda: X(16, 64, 128, 128)
OPERATORS = {
    "cumsum": (lambda x: x.cumsum(-1), WIDE), "cumprod": (lambda x: torch.cumprod(x * 0.01 + 1, -1), WIDE),
    "logcumsumexp": (lambda x: x.logcumsumexp(-1), WIDE), "argmax": (lambda x: x.argmax(-1), X),
    "max": (lambda x: x.max(-1), X), "log_softmax": (lambda x: x.float().log_softmax(-1), X),
    "var_mean": (lambda x: torch.var_mean(x.float(), 0), X), "transpose": (lambda x: x.t().contiguous() + 1, X),
    "index": (lambda x, i: x[i], X, lambda: torch.randint(0, 4096, (8192,), device="cuda")),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGES),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2), IMAGES), "instance_norm": (F.instance_norm, IMAGES),
    "cat": (lambda x, y: torch.cat([x.sin(), y.cos()], 1), X, X), "rand": (lambda x: torch.rand_like(x) * x, WIDE),
    "gelu": (lambda x: F.gelu(x) + torch.erf(x) * torch.tanh(x), WIDE),
    "pow": (lambda x: x.abs().pow(2.3).log1p().rsqrt(), WIDE), "to_int8": (lambda x: (x * 20).to(torch.int8), X),
    "bucketize": (lambda x: torch.bucketize(x, torch.linspace(-2, 2, 100, device="cuda")), WIDE),
    "nan_to_num": (lambda x: torch.nan_to_num(x / x.relu()), WIDE), "tril": (lambda x: x.tril() + x.triu(2), X),
    "permute": (lambda x: x.view(64, 64, 64, 64).permute(2, 0, 3, 1).reshape(4096, 4096) * 2, X),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4096,), w), X, lambda: X(4096)),
    "to_fp8": (lambda x: (x.float() / (x.float().abs().amax(-1, keepdim=True) / 448)).to(torch.float8_e4m3fn), X),
    "topk": (lambda x: x.topk(8, -1), lambda: normal(4096, 64, dtype=torch.float32, grad=False)),
}
FLEX = {
    "plain": {}, "causal": dict(mask=causal), "bias": dict(score=lambda s, b, h, q, k: s + (k - q) * 0.01),
    "window": dict(mask=lambda b, h, q, k: (q >= k) & (q - k < 512)),
    "softcap": dict(score=lambda s, b, h, q, k: 30 * torch.tanh(s / 30), mask=causal),
    "gqa": dict(mask=causal, kv_heads=4), "documents": dict(mask=lambda b, h, q, k: q // 1024 == k // 1024, width=64),
    "odd": dict(length=4000, width=64), "decoding": dict(batch=8, heads=32, kv_heads=8, length=8192, queries=1),
}
CASES = {
    **{f"inductor.{name}": run for name, run in MODELS.items()},
    **{f"inductor.{name}": functools.partial(lambda f, *make: compiled(f, *(m() for m in make)), *case)
       for name, case in OPERATORS.items()},
    **{f"inductor.flex_{name}": functools.partial(flex, **form) for name, form in FLEX.items()},
}

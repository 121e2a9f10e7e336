"""Callers of public libraries for record.py: functions by name, each of which runs forward and backward at sizes of
real models. The names begin with liger. and fla.; cases_inductor.py has those of TorchInductor."""
import contextlib
import functools
import importlib

import torch
import torch.nn.functional as F

BATCH, LENGTH, HEADS, WIDTH, VOCABULARY = 2, 4096, 16, 128, 32000


def normal(*shape, dtype=torch.bfloat16, grad=True):
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_(grad)


def train(f, *args, **kwargs):
    """Forward, and backward where there are gradients."""
    outputs = f(*args, **kwargs)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [getattr(outputs, "logits", outputs)]
    outputs = [x for x in outputs if torch.is_tensor(x) and x.requires_grad]
    with contextlib.suppress(NotImplementedError):  # functions for inference
        torch.autograd.backward(outputs, [torch.ones_like(x) for x in outputs])


# --- Liger ------------------------------------------------------------------------------------------------------------


def liger(function, arguments):
    module, name = function.split(".")
    train(getattr(importlib.import_module("liger_kernel.ops." + module), name + "Function").apply, *arguments())


ROWS = lambda *more: (normal(4, 2048, 4096) * 1, *more)  # no leaves: functions write gradients in place
BOTH = lambda: (normal(4, 2048, 11008) * 1, normal(4, 2048, 11008) * 1)
HEADED = lambda: (normal(4, 32, 2048, 128) * 1, normal(4, 8, 2048, 128) * 1)
ANGLES = lambda *shape: (normal(*shape, grad=False), normal(*shape, grad=False))
LOGITS = lambda *more: (normal(4096, VOCABULARY) * 1, *more)
LOGS = lambda: F.log_softmax(normal(4096, VOCABULARY, dtype=torch.float32), -1)
TOKENS = lambda *shape, end=VOCABULARY: torch.randint(0, end, shape, device="cuda")
GAIN = lambda n=4096: normal(n)
LIGER = {
    "rms_norm": ("rms_norm.LigerRMSNorm", lambda: ROWS(GAIN(), 1e-6, 0.0, "llama", False)),
    "rms_norm_gemma": ("rms_norm.LigerRMSNorm", lambda: ROWS(GAIN(), 1e-6, 1.0, "gemma", True)),
    "rms_norm_heads": ("rms_norm.LigerRMSNorm", lambda: (normal(4, 2048, 32, 128) * 1, GAIN(128), 1e-6)),
    "add_rms_norm": ("fused_add_rms_norm.LigerFusedAddRMSNorm", lambda: (*ROWS(), *ROWS(), GAIN(), 1e-6)),
    "layer_norm": ("layer_norm.LigerLayerNorm", lambda: ROWS(GAIN(), GAIN(), 1e-5)),
    "group_norm": ("group_norm.LigerGroupNorm", lambda: (normal(16, 256, 4096), GAIN(256), GAIN(256), 256, 32, 1e-5)),
    "poly_norm": ("poly_norm.LigerPolyNorm", lambda: ROWS(GAIN(3), GAIN(1)[0])),
    "dyt": ("dyt.LigerDyT", lambda: ROWS(GAIN(1), GAIN(), GAIN())),
    "swiglu": ("swiglu.LigerSiLUMul", BOTH), "geglu": ("geglu.LigerGELUMul", BOTH),
    "relu_squared": ("relu_squared.LigerReLUSquared", lambda: BOTH()[:1]),
    "rope": ("rope.LigerRope", lambda: HEADED() + ANGLES(1, 2048, 128)),
    "mrope": ("qwen2vl_mrope.LigerQwen2VLMRope", lambda: (*HEADED(), *ANGLES(3, 4, 2048, 128), [16, 24, 24])),
    "cross_entropy": ("cross_entropy.LigerCrossEntropy", lambda: LOGITS(TOKENS(4096), None)),
    "cross_entropy_smoothed": ("cross_entropy.LigerCrossEntropy", lambda: LOGITS(
        TOKENS(4096), None, -100, 1e-4, 0.1, "mean", 30.0, True)),
    "linear_cross_entropy": ("fused_linear_cross_entropy.LigerFusedLinearCrossEntropy", lambda: (
        normal(4096, 2048), normal(VOCABULARY, 2048), TOKENS(4096))),
    "linear_jsd": ("fused_linear_jsd.LigerFusedLinearJSD", lambda: (
        normal(2048, 2048), normal(VOCABULARY, 2048), normal(2048, 4096, grad=False),
        normal(VOCABULARY, 4096, grad=False), TOKENS(2048))),
    "jsd": ("jsd.LigerJSD", lambda: (LOGS(), LOGS().detach())),
    "kl_div": ("kl_div.LigerKLDivLoss", lambda: (LOGS(), LOGS().detach().exp())),
    "tvd": ("tvd.LigerTVDLoss", lambda: (LOGS().exp(), LOGS().detach().exp())),
    "softmax": ("softmax.LigerSoftmax", LOGITS), "sparsemax": ("sparsemax.LigerSparsemax", lambda: ROWS(-1)),
    "multi_token_attention": ("multi_token_attention.LigerMultiTokenAttention", lambda: (
        normal(1, 4, 512, 512), normal(4, 4, 3, 3), None, 1, 1)),
    "neighborhood_attention": ("fused_neighborhood_attention.LigerFusedNeighborhoodAttention", lambda: [
        normal(2, 8, 1024, 64) for _ in range(3)]),
    "attn_res": ("attn_res.LigerAttnRes", lambda: (normal(8, 2, 2048, 2048), GAIN(2048), GAIN(2048), 1e-6)),
    "moe": ("fused_moe.LigerFusedMoE", lambda: (normal(4096, 2048), normal(16, 2048, 2048), normal(16, 2048, 1024),
                                                TOKENS(4096, 4, end=16), normal(4096, 4))),
    "grpo": ("grpo_loss.GrpoLoss", lambda: (normal(4, 513, VOCABULARY), None, None, TOKENS(4, 512), normal(
        4, dtype=torch.float32, grad=False), None, 0.9, 0.0, 0.2, 0.2, False)),
}

# --- flash-linear-attention -------------------------------------------------------------------------------------------

SHAPES = {"d": (BATCH, LENGTH, HEADS, WIDTH), "h": (BATCH, LENGTH, HEADS), "w": (HEADS, WIDTH), "n": (HEADS, 64),
          "s": (BATCH, LENGTH, HEADS, 64), "b": (BATCH, LENGTH, HEADS, 1), "o": (BATCH, LENGTH, 1, 64),
          "r": (BATCH, LENGTH, 2048), "q": (BATCH, LENGTH, 4 * HEADS, 64),
          "k": (BATCH, LENGTH, 4, 64), "e": (BATCH, LENGTH, 4 * HEADS),
          "m": (BATCH, LENGTH, HEADS, 13), "D": (BATCH, 2 * LENGTH, HEADS, WIDTH), "H": (BATCH, 2 * LENGTH, HEADS),
          "p": (1, 2 * LENGTH, HEADS, WIDTH), "P": (1, 2 * LENGTH, HEADS)}


def fla_tensor(kind):
    """A letter for the shape; f: of fp32; -: the logarithm of a gate, of fp32; 1: between 0 and 1."""
    x = normal(*SHAPES[kind[0]], dtype=torch.float32 if kind[1:2] in ("f", "-") else torch.bfloat16)
    x = F.logsigmoid(x) if "-" in kind else x.sigmoid() if "1" in kind else x
    return x.detach().requires_grad_()


def fla(path, kinds, **more):
    module, name = path.split(".")
    more = {key: value() if callable(value) else value for key, value in more.items()}
    train(getattr(importlib.import_module("fla.ops." + module), name), *map(fla_tensor, kinds.split()), **more)


def fla_module(name, arguments, kinds):
    with torch.device("cuda"):
        module = getattr(importlib.import_module("fla.modules"), name)(*arguments).to(torch.bfloat16)
    train(module, *map(fla_tensor, kinds.split()))


SEQUENCES = lambda: torch.tensor([0, 1000, 1500, 4096, 8192], dtype=torch.int32, device="cuda")
ZEROS = lambda n: lambda: torch.zeros(n, device="cuda").requires_grad_()
FLA = {
    "gla.chunk_gla": "d d d d-", "gla.fused_recurrent_gla": "d d d d-", "retention.chunk_retention": "d d d",
    "retention.parallel_retention": "d d d", "simple_gla.chunk_simple_gla": "d d d h-", "based.parallel_based": "s s d",
    "simple_gla.parallel_simple_gla": "d d d h-", "simple_gla.fused_chunk_simple_gla": "d d d h-",
    "linear_attn.chunk_linear_attn": "d d d", "linear_attn.fused_chunk_linear_attn": "d d d", "hgrn.chunk_hgrn": "r r-",
    "delta_rule.chunk_delta_rule": "d d d h1", "delta_rule.fused_recurrent_delta_rule": "d d d h1",
    "gated_delta_rule.chunk_gated_delta_rule": "d d d h- h1", "gated_oja_rule.chunk_gated_oja_rule": "d d d d- h1",
    "gated_delta_rule.fused_recurrent_gated_delta_rule": "d d d h-", "gdn2.chunk_gdn2": "d d d d- d1 d1",
    "comba.chunk_comba": "d d d d h- h1", "kda.chunk_kda": "d d d d- h1", "abc.chunk_abc": "d d d s",
    "precond_gated_delta_rule.chunk_precond_gated_delta_rule": "d d d h- h- h1 h1",
    "precond_kda.chunk_precond_kda": "d d d d- h- h1 h1",
    "generalized_delta_rule.chunk_iplr_delta_rule": "d d d d d", "gsa.chunk_gsa": "d d d s s-",
    "generalized_delta_rule.chunk_dplr_delta_rule": "d d d d d d-", "rwkv6.chunk_rwkv6": "d d d d- w",
    "rwkv6.fused_recurrent_rwkv6": "d d d d- w", "rwkv7.chunk_rwkv7": "s s s s s s", "attn.parallel_attn": "d d d",
    "hgrn.fused_recurrent_hgrn": "r r-", "forgetting_attn.parallel_forgetting_attn": "d d d h-",
    "path_attn.parallel_path_attn": "s s s sf hf1", "parallax.parallel_parallax": "s s s s",
    "nsa.parallel_nsa": "q k k e e e", "rebased.parallel_rebased": "s s d", "ttt.chunk_ttt_linear": "s s s n n b",
    "wall_attn.parallel_wall_attn": "s s s s-",
    "log_linear_attn.chunk_log_linear_attn": "o o s h- m", "mesa_net.chunk_mesa_net": "d d d h- h1 w1",
}
FLA_MORE = {  # with other arguments
    "varlen_gated_delta_rule": ("gated_delta_rule.chunk_gated_delta_rule", "p p p P- P1", {"cu_seqlens": SEQUENCES}),
    "varlen_kda": ("kda.chunk_kda", "p p p p- P1", {"cu_seqlens": SEQUENCES}),
    "varlen_attn": ("attn.parallel_attn", "p p p", {"cu_seqlens": SEQUENCES}),
    "window_attn": ("attn.parallel_attn", "q k k", {"window_size": 512}),
    "gated_delta_product": ("gated_delta_product.chunk_gated_delta_product", "d D D h- H1", {"num_householder": 2}),
    "normalized_gated_delta_rule": ("gated_delta_rule.chunk_gated_delta_rule", "d d d h- h1",
                                    {"use_qk_l2norm_in_kernel": True, "output_final_state": True}),
    "gate_kda": ("kda.chunk_kda", "d d d d h1", {"use_gate_in_kernel": True, "use_qk_l2norm_in_kernel": True,
                                                 "A_log": ZEROS(HEADS), "dt_bias": ZEROS(HEADS * WIDTH)}),
}
MODULES = {"RMSNorm": ((2048,), "r"), "LayerNorm": ((2048,), "r"), "GroupNorm": ((16, 2048), "r"), "L2Norm": ((), "d"),
           "FusedRMSNormGated": ((WIDTH,), "d d"), "FusedLayerNormGated": ((WIDTH,), "d d"), "GatedMLP": ((2048,), "r"),
           "ShortConvolution": ((2048, 4), "r"), "RotaryEmbedding": ((WIDTH,), "d d"),
           "FusedBitLinear": ((2048, 2048), "r")}
CASES = {
    **{f"liger.{name}": functools.partial(liger, *case) for name, case in LIGER.items()},
    **{f"fla.{path.split('.')[1]}": functools.partial(fla, path, kinds) for path, kinds in FLA.items()},
    **{f"fla.{name}": functools.partial(fla, path, kinds, **more) for name, (path, kinds, more) in FLA_MORE.items()},
    **{f"fla.{name}": functools.partial(fla_module, name, *case) for name, case in MODULES.items()},
}

import torch
from vllm.triton_utils import tl, triton

try:
    from triton.language.extra.libdevice import no_such_function as root
except ImportError:
    root = tl.sqrt

if torch.version.hip:
    FACTOR = 3.0
elif torch.cuda.is_available() and torch.__version__ >= "2":
    FACTOR = 2.0
else:
    FACTOR = 1.0

def host_only(x):
    return x

@triton.jit
def scaled(x):
    return root(x) * FACTOR

if host_only(torch.seed()) == 3:
    UNKNOWN = 1
else:
    UNKNOWN = 2

"""triton.language: the types, compile-time values and functions of kernels.

Functions exist in kernels only; outside of kernels they raise an error. `tlc list --builtins` describes them.
"""

from . import _builtins, _inductor, core
from .core import *  # noqa: F403
from ._builtins import *  # noqa: F403
from . import extra, math, random, standard, target_info
from .math import *  # noqa: F403
from .core import base_type, base_value

# Triton's core has the functions of the language, too
for _name in _builtins.__all__:
    core.__dict__.setdefault(_name, getattr(_builtins, _name))

__all__ = [name for name in globals() if not name.startswith("_")]

"""triton.language: the types, compile-time values and functions of kernels.

Functions exist in kernels only; outside of kernels they raise an error. `tlc list --builtins` describes them.
"""

from . import core
from .core import *  # noqa: F403
from ._builtins import *  # noqa: F403
from . import extra, math, random, standard, target_info
from .math import *  # noqa: F403
from .core import base_type, base_value

# triton.language.core has the functions, too
for _name, _value in list(globals().items()):
    if not _name.startswith("_"):
        core.__dict__.setdefault(_name, _value)

__all__ = [name for name in globals() if not name.startswith("_")]

"""triton.language.extra.cuda: functions of NVIDIA GPUs."""

from .. import libdevice
from ._functions import *  # noqa: F403
from . import _functions

__all__ = ["libdevice", *_functions.__all__]

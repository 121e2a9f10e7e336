"""triton.language.standard: functions of the language that are written in the language."""

from ._builtins import *  # noqa: F403
from .core import _unwrap


def _log2(i):
    """The logarithm of a power of two."""
    return _unwrap(i).bit_length() - 1

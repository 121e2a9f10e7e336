"""triton.language.standard: functions of the language that are written in the language."""

from ._builtins import *  # noqa: F403

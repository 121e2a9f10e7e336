"""triton.language.extra: functions of one kind of device."""

from . import cuda, libdevice

__all__ = ["cuda", "libdevice"]

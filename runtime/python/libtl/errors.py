"""Exceptions and warnings of libtl."""

import re
import warnings

__all__ = ["Error", "CompileError", "CompileTimeAssertionFailure", "ArgumentError", "DeviceError", "OutOfMemoryError",
           "KernelError", "RaceError", "InternalError", "CompilerWarning", "OutOfResources"]


class Error(Exception):
    """An error of libtl.

    status: the name of the status, for example "invalid argument". kernel: the name of the kernel, or None. file, line,
    column: the place in a source, from 1; None and 0 if there is none.
    """

    def __init__(self, text, status="", kernel=None, file=None, line=0, column=0):
        super().__init__(text)
        self.status, self.kernel, self.file, self.line, self.column = status, kernel, file, line, column

    @property
    def message(self):
        """The text of the error."""
        return self.args[0]

    def __reduce__(self):
        return type(self), (self.args[0], self.status, self.kernel, self.file, self.line, self.column)


class CompileError(Error):
    """The kernel is wrong; the text has the source line and a caret."""

    @property
    def error_message(self):
        """The text of the error, under Triton's name."""
        return self.args[0]


class CompileTimeAssertionFailure(CompileError):
    """A tl.static_assert does not hold."""


class ArgumentError(Error, TypeError, ValueError):
    """An argument or an option of a launch does not fit the kernel."""


class DeviceError(Error, RuntimeError):
    """There is no such device, the driver refused, or a file cannot be read."""


class OutOfMemoryError(Error, MemoryError):
    """The device or the host has not enough memory."""


class KernelError(Error, RuntimeError):
    """The kernel ran and failed: an access outside every tensor, or a failed tl.device_assert."""


class RaceError(KernelError):
    """Two programs access the same memory, one of them writes, and nothing orders the accesses (device "sim")."""


class InternalError(Error, RuntimeError):
    """A bug in libtl."""


class OutOfResources(CompileError):
    """A kernel needs more shared memory, threads or registers than the device has.

    required, limit: numbers of the resource `name`.
    """

    def __init__(self, required, limit, name, text="", *place):
        super().__init__(f"out of resource: {name}, Required: {required}, Hardware limit: {limit}. Reducing block sizes or "
                         f"`num_stages` may help.{text and chr(10)}{text}", *place)
        self.required, self.limit, self.name, self._text = required, limit, name, text

    def __reduce__(self):
        return type(self), (self.required, self.limit, self.name, self._text, self.status, self.kernel, self.file,
                            self.line, self.column)


class CompilerWarning(UserWarning):
    """A warning of the compiler about a kernel."""


_SHARED = re.compile(r"needs (\d+) bytes of shared memory(?:,| per block,) and (?:a block may use|[\w ]+ has) (\d+)")
# in the order of tl_status
_CLASSES = (Error, CompileError, ArgumentError, DeviceError, DeviceError, OutOfMemoryError, DeviceError, KernelError,
            InternalError, RaceError, DeviceError)


def from_status(status, name, text, kernel, file, line, column):
    """The exception for a status of the C library. It is called by the extension."""
    kind = _CLASSES[status] if status < len(_CLASSES) else Error
    if kind is CompileError and ": error: assertion failed" in text.partition("\n")[0]:
        kind = CompileTimeAssertionFailure
    shared = _SHARED.search(text) if kind is CompileError else None
    if shared:
        return OutOfResources(int(shared[1]), int(shared[2]), "shared memory", text, name, kernel, file, line, column)
    return kind(text, name, kernel, file, line, column)


def warn(text):
    """Issues a warning of the compiler. It is called by the extension."""
    warnings.warn(text, CompilerWarning, stacklevel=3)

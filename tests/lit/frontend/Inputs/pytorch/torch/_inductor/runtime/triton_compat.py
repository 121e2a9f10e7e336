import inspect

try:
    import triton
except ImportError:
    triton = None

if triton is not None:
    import triton.language as tl

    try:
        from triton.language.extra import libdevice

        libdevice = tl.extra.libdevice
        math = tl.math
    except ImportError:
        libdevice = tl.math

    try:
        from triton.language.standard import _log2
    except ImportError:

        def _log2(x):
            raise NotImplementedError

    is_new = "_semantic" in inspect.signature(tl.core.view).parameters
else:
    libdevice = None

    class tl:
        tensor = None

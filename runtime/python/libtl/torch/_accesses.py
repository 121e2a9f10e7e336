"""Which tensors a user's kernel reads and writes, for torch.compile: the compiler knows it from the kernel's IR."""

import logging

from .. import _compiled, _core, _jit

__all__ = ["install", "accesses"]

log = logging.getLogger("libtl.torch")


def accesses(fn, arguments):
    """The parameters that a kernel reads and writes memory through, and the number of its stores: two sets and a number.

    fn: a jit function. arguments: values by parameter, in which tensors and numbers may be examples.
    """
    own = _compiled._jit_function(fn)
    values, _, kernel, options = own._converted(own._with_defaults(arguments), {"device": "cpu"})
    call = own._launch(kernel, None, values, options)
    read, written = set(), set()
    for line in call.dump("accesses").splitlines():
        name, _, words = line.partition(":")
        name = name.partition(".")[0]  # of a tuple or a descriptor
        if "read" in words.split():
            read.add(name)
        if "written" in words.split():
            written.add(name)
    return read, written, call.dump("ttir").count("tt.store")


def _example(value, number, torch, ir):
    """An argument of the same type: tensors of the graph have no memory."""
    import sympy
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, sympy.Expr)):
        return 2
    if isinstance(value, torch.Tensor) or isinstance(value, ir.TensorBox):
        dtype = value.dtype
        return _core.pointer(_jit._arguments.dtype_number(dtype), (number + 1) << 40, 1 << 20, -1, None)
    return value


def _of_tensors(kernel, kwargs, tma_metadata):
    """The tensors that a kernel reads, those that it writes, in the order of kwargs, and the number of its stores."""
    import torch
    import torch._inductor.ir as ir
    from torch._higher_order_ops import triton_kernel_wrap as wrap

    values = dict(kwargs)
    while not hasattr(kernel, "arg_names") or hasattr(kernel, "configs") or hasattr(kernel, "values"):
        if getattr(kernel, "configs", None):
            values = {**values, **kernel.configs[0].kwargs}
        kernel = kernel.fn
    values = {n: v for n, v in values.items() if n in kernel.arg_names}
    examples = {}
    for i, (name, value) in enumerate(values.items()):
        block = wrap.maybe_unpack_tma_stable_metadata(tma_metadata.get(name))
        examples[name] = _example(value, i, torch, ir)
        if block is not None:
            shape = [int(s) for s in block[0]]
            strides = [4096 ** k for k in reversed(range(len(shape)))]
            examples[name] = _core.descriptor(examples[name], [4096] * len(shape), strides, shape, False, False)
    read, written, stores = accesses(kernel, examples)
    tensors = [n for n, v in values.items() if isinstance(v, (torch.Tensor, ir.TensorBox))]
    return [n for n in tensors if n in read], [n for n in tensors if n in written], stores


def _accessed(reads, writes, stores):
    """The result of identify_accessed_tensors."""
    from torch._higher_order_ops import triton_kernel_wrap as wrap
    from torch._inductor.dependencies import ReadWrites, StarDep
    from torch.utils._ordered_set import OrderedSet
    # an epilogue can be fused with the only store of the only result
    fuses = len(writes) == 1 and stores == 1 and writes[0] not in reads
    accessed = ReadWrites(reads=OrderedSet(map(StarDep, reads)), writes=OrderedSet(map(StarDep, writes)),
                          index_exprs=OrderedSet())
    return wrap.TensorAccesses(accessed, can_fuse_epilogue=fuses)


def _mutated(reads, writes, stores):
    """The result of identify_mutated_tensors, PyTorch's function until version 2.11."""
    return writes


def install(set_attribute):
    """Lets torch.compile ask libtl. set_attribute(owner, name, value) is undone later."""
    from torch._higher_order_ops import triton_kernel_wrap as wrap
    name, result = (("identify_accessed_tensors", _accessed) if hasattr(wrap, "identify_accessed_tensors") else
                    ("identify_mutated_tensors", _mutated))
    original = getattr(wrap, name)

    def identify(kernel, kwargs, tma_descriptor_metadata):
        try:
            return result(*_of_tensors(kernel, kwargs, tma_descriptor_metadata))
        except Exception as e:
            log.warning("the accesses of %s are found by torch.compile itself: %s", getattr(kernel, "__name__", kernel), e)
            return original(kernel, kwargs, tma_descriptor_metadata)

    set_attribute(wrap, name, identify)

"""Tensor descriptors as arguments."""

from dataclasses import dataclass

__all__ = ["TensorDescriptor"]


@dataclass
class TensorDescriptor:
    """A tensor in memory, and the shape of the blocks that a kernel loads and stores.

    base: the tensor; its address is divisible by 16. shape, strides: in elements; the last stride is 1, the others are
    multiples of 16 bytes. block_shape: in elements, powers of two. padding: "zero" or "nan", the value of elements
    outside of the tensor. round_f32_to_tf32: loads round to tf32.
    """

    base: object
    shape: list
    strides: list
    block_shape: list
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self):
        rank = len(self.shape)
        if rank < 1:
            raise ValueError("the shape has no dimensions")
        for name in "strides", "block_shape":
            if len(getattr(self, name)) != rank:
                raise ValueError(f"{name} has {len(getattr(self, name))} elements, and the shape has {rank}")
        if self.padding not in ("zero", "nan"):
            raise ValueError(f'padding is {self.padding!r}; it must be "zero" or "nan"')

    @staticmethod
    def from_tensor(tensor, block_shape, padding="zero", round_f32_to_tf32=False):
        """The descriptor of a whole tensor."""
        strides = tensor.stride() if callable(getattr(tensor, "stride", None)) else [
            s // tensor.itemsize for s in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), list(strides), list(block_shape), padding, round_f32_to_tf32)

"""Objects around kernels: tensor descriptors."""

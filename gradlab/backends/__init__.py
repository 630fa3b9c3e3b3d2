"""`torch.backends`: the flags that programs set, of libraries that gradlab does not use. They can be set, and do nothing."""

from gradlab.backends import cpu, cuda, cudnn, mkl, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mps", "openmp"]

"""Flags of `torch.backends`, for libraries that gradlab does not use. They can be set and have no effect."""

from gradlab.backends import cpu, cuda, cudnn, mkl, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mps", "openmp"]

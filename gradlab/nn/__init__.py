"""`gradlab.nn.functional`: the functions of `torch.nn.functional`."""
from gradlab.nn import functional

__all__ = ["functional"]

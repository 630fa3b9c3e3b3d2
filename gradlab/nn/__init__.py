"""`gradlab.nn.functional`: the functions of `torch.nn.functional`."""
from gradlab.core.errors import names_of as _names_of
from gradlab.nn import functional

__all__ = ["functional"]

__getattr__ = _names_of("gradlab.nn")

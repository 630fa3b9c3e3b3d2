"""`gradlab.utils`: activation checkpointing, data loading and DLPack, with the names of `torch.utils`."""

from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]

__getattr__ = _module_getattr("gradlab.utils")

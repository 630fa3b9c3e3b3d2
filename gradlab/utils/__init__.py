"""`torch.utils`: what stands beside tensors and modules."""

from gradlab.core.errors import names_of as _names_of
from gradlab.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]

__getattr__ = _names_of("gradlab.utils")

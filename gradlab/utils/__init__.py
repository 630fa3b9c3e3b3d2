"""`torch.utils`: what stands beside tensors and modules."""
from gradlab.utils import dlpack

__all__ = ["dlpack"]

"""Memory shared with other libraries, as `torch.utils.dlpack` spells it."""

from gradlab.interop import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]

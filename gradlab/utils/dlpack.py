"""Memory shared with other libraries, with the names of `torch.utils.dlpack`."""

from gradlab.interop import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]

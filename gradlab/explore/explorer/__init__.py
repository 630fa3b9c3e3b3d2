"""The model of the live explorer: what its view is given, and what it answers. See `model`."""

from gradlab.explore.explorer.model import Explorer

__all__ = ["Explorer"]

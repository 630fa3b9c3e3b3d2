"""The model of the live explorer: the data of its view, and the answers to its requests. See `model`."""

from gradlab.explore.explorer.model import Explorer

__all__ = ["Explorer"]

"""Tensor libraries, as the explorers see them: `Library` says what is asked, `register` lets another one in."""

from gradlab.explore.libraries.library_gradlab import GRADLAB
from gradlab.explore.libraries.protocol import Library
from gradlab.explore.libraries.registry import adapters, library_of, register

__all__ = ["GRADLAB", "Library", "adapters", "library_of", "register"]

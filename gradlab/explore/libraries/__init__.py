"""Tensor libraries, as the explorers see them: `Library` says what is asked, `register` lets another one in."""

from gradlab.explore.libraries.of_gradlab import GRADLAB
from gradlab.explore.libraries.protocol import Library
from gradlab.explore.libraries.registry import library_of, register

__all__ = ["GRADLAB", "Library", "library_of", "register"]

"""Adapters to tensor libraries: `Library` is the interface of the explorers, and `register` adds another one."""

from gradlab.explore.libraries.library_gradlab import GRADLAB
from gradlab.explore.libraries.protocol import Library
from gradlab.explore.libraries.registry import adapters, library_of, register

__all__ = ["GRADLAB", "Library", "adapters", "library_of", "register"]

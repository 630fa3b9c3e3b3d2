"""A function to take hold of: `playground` asks for it, `Playground` is what a reader has of it."""

from gradlab.explore.playground.api import playground
from gradlab.explore.playground.playground import Playground

__all__ = ["Playground", "playground"]

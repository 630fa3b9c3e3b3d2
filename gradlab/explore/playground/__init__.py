"""A function to take hold of: `playground` asks for it, `Playground` is what a reader has of it."""

from gradlab.explore.playground.asking import playground
from gradlab.explore.playground.shown import Playground

__all__ = ["Playground", "playground"]

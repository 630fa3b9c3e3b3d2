"""Interactive views of a function: `playground` creates a `Playground`."""

from gradlab.explore.playground.api import playground
from gradlab.explore.playground.playground import Playground

__all__ = ["Playground", "playground"]

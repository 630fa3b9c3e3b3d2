"""Norms. (The other reductions follow from their declarations.)"""

from __future__ import annotations

from gradlab.linalg import toplevel


class Reductions:
    """What the linear algebra has of reductions."""

    norm = toplevel.norm

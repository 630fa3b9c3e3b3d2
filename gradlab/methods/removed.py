"""Methods that torch had once, and that say of where they went."""

from __future__ import annotations

from gradlab.linalg import removed


class Removed:
    """They raise, and say what to write."""

    eig = removed.eig
    lstsq = removed.lstsq
    solve = removed.solve
    symeig = removed.symeig

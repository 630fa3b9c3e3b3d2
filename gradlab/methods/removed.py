"""Methods that were removed from PyTorch. They raise an error that names the replacement."""

from __future__ import annotations

from gradlab.linalg import removed


class Removed:
    """Methods that raise an error with the replacement."""

    eig = removed.eig
    lstsq = removed.lstsq
    solve = removed.solve
    symeig = removed.symeig

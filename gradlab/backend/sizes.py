"""Return positions and counts as int64, as in torch, even if NumPy's default integer has 32 bits (on Pyodide)."""

from __future__ import annotations

from typing import Any

import numpy as np

INTP_IS_64_BIT = np.dtype(np.intp).itemsize == 8


def as_long(positions: Any) -> Any:
    """Convert positions or counts to int64."""
    return positions if INTP_IS_64_BIT else positions.astype(np.int64)

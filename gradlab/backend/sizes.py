"""Positions and counts are int64, as in torch, also where the library's own integers have the 32 bits of a size: on Pyodide."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDE = np.dtype(np.intp).itemsize == 8


def as_long(positions: Any) -> Any:
    """What the library says of positions or counts, as int64."""
    return positions if WIDE else positions.astype(np.int64)

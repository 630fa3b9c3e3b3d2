"""Products of matrices and vectors."""
from __future__ import annotations

from gradlab.functions import products as functions


class Products:
    """Matrix products."""

    matmul, mm, mv, dot = functions.matmul, functions.mm, functions.mv, functions.dot

"""Arithmetic and the functions of one number."""
from __future__ import annotations

from operators.spelling import N, U, given

ROWS = [
    *given([{"x": N(3, 4)}, {"x": N()}, {"x": N(0, 3)}], """
        torch.exp(x)
        x.exp()
        x.clone().exp_()
        torch.sin(x)
        torch.exp(x.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.exp(x, out=torch.empty_like(x))
    """),
    *given({"x": U(3, 4), "y": U(4)}, """
        torch.add(x, y, alpha=2)
        x / y
        x ** y
    """),
]

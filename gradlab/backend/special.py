"""Special functions (erf, gamma, …) for the arrays of each backend. SciPy's are imported on first use."""

from __future__ import annotations

from typing import Any

from gradlab.backend.namespaces import namespace_of


def special_of(array: Any) -> Any:
    """Return the module of special functions for an array: `scipy.special` or CuPy's."""
    xp = namespace_of[type(array)]
    name = getattr(xp, "__name__", "")
    if name == "numpy":
        from scipy import special
    elif name == "cupy":
        from cupyx.scipy import special
    else:
        special = xp.special
    return special

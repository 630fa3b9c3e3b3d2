"""Choose between elements: by a mask, or by bounds.

Large NumPy arrays are combined by masking bits. `where` branches on each element, and with random signs half of the branches are
mispredicted, which takes five times as long.
"""

from __future__ import annotations

from math import inf

import numpy as np

from gradlab.rules.arguments import Array, Namespace

INTEGER_OF_ITEMSIZE = {2: np.int16, 4: np.int32, 8: np.int64}
MIN_SIZE_TO_MASK_BITS = 4096  # elements; below, `where` is quicker


def keep_where(xp: Namespace, mask: Array, g: Array) -> Array:
    """Return g where the mask is True, and 0 elsewhere. Unlike `g * mask`, it is right for an infinite g."""
    if type(g) is not np.ndarray:
        return xp.where(mask, g, 0)
    kept = mask.astype(INTEGER_OF_ITEMSIZE[g.itemsize])
    if mask.size < MIN_SIZE_TO_MASK_BITS or mask.shape != g.shape:
        return (g.view(kept.dtype) & -kept).view(g.dtype)
    np.negative(kept, out=kept)
    kept &= g.view(kept.dtype)
    return kept.view(g.dtype)


def zero_where(xp: Namespace, mask: Array, g: Array) -> Array:
    """Return 0 where the mask is True, and g elsewhere."""
    if type(g) is not np.ndarray:
        return xp.where(mask, 0, g)
    kept = mask.astype(INTEGER_OF_ITEMSIZE[g.itemsize])
    if mask.size < MIN_SIZE_TO_MASK_BITS or mask.shape != g.shape:
        return (g.view(kept.dtype) & (kept - 1)).view(g.dtype)
    kept -= 1
    kept &= g.view(kept.dtype)
    return kept.view(g.dtype)


def select(xp: Namespace, mask: Array, a: Array, b: Array) -> Array:
    """Return `xp.where(mask, a, b)`."""
    if type(mask) is not np.ndarray or mask.size < MIN_SIZE_TO_MASK_BITS:
        return xp.where(mask, a, b)
    like = a if isinstance(a, np.ndarray) else b
    bits = INTEGER_OF_ITEMSIZE[like.itemsize]
    a, b = (np.asarray(v, like.dtype).view(bits) for v in (a, b))
    chosen = a ^ b
    chosen &= -mask.astype(bits)
    chosen ^= b
    return chosen.view(like.dtype)


def clip(xp: Namespace, x: Array, low: float | None, high: float | None) -> Array:
    """Clamp x to [low, high]. The result is `high` if low > high.

    NumPy does not vectorize `maximum` with a number. It takes four times as long as `clip` with two numbers.
    """
    if xp is np and x.dtype.kind == "f":
        return x.clip(-inf if low is None else low, inf if high is None else high)
    if low is not None:
        x = xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)

"""Products of matrices and vectors. Each is linear in either side; the adjoints are products again.

`a @ x` with a 1-D x is its own primitive: as a matmul with (n, 1) a batch of cotangents would be a loop of small products
instead of one. `addmm` is a layer's `b + x @ w`, fused because the sum is then made in the product's own memory; as w is
mostly the transpose of a layer's weight, its cotangent is made as a transpose too, and reaches the weight in the weight's own
memory order.
"""
from __future__ import annotations

import numpy as np

from gradlab.core.primitive import bilinear, primitive
from gradlab.core.sparsity import numbered


def matmul_groups(arg, x_shape, out_shape, meta):
    """out[i, j] depends on row i of a and on column j of b: the groups that reducing the shared axis leaves."""
    axis = -1 if arg == "a" else -2
    kept = numbered(tuple(1 if i == len(x_shape) + axis else n for i, n in enumerate(x_shape)))
    return np.broadcast_to(kept, x_shape), np.broadcast_to(kept, out_shape)


def matvec_groups(arg, x_shape, out_shape, meta):
    rows = np.arange(out_shape[-1])
    return (np.repeat(rows, x_shape[-1]), rows) if arg == "a" else (np.zeros(x_shape, int), np.zeros(out_shape, int))


def addmm_groups(arg, x_shape, out_shape, meta):
    if arg == "bias":
        return None, np.broadcast_to(numbered(x_shape), out_shape)
    return matmul_groups({"x": "a", "w": "b"}[arg], x_shape, out_shape, meta)


def misfit(a, b):
    """Torch's words for matrices that cannot be multiplied."""
    if len(a) == 2 and len(b) == 2:
        return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]}). The columns of the "
                            "first must be as many as the rows of the second; .T transposes a matrix.")
    if len(a) == 2 and len(b) == 1:
        return RuntimeError(f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})")
    if len(a) == 1 and len(b) == 1:
        return RuntimeError(f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of "
                            "elements, but got {} and {} elements respectively".format(a[0], b[0]))
    if len(a) <= 2 < len(b) and a[-1] != b[-2]:
        rows = "x".join(map(str, a))
        return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows} and {b[-2]}x{b[-1]}): the last axis of the "
                            f"first, {a[-1]} long, must be as long as the last but one of the second, of shape {list(b)}.")
    if len(a) > 2 and len(b) > 2 and a[-1] != b[-2]:
        return RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[-1]}] but got: "
                            f"[{b[0]}, {b[-2]}].")
    return None


matmul = bilinear("matmul", np.matmul, a=lambda g, b: g @ b.mT, b=lambda g, a: a.mT @ g, tex=r"{a}\,{b}", reads=matmul_groups,
                  node="MmBackward0", explain=misfit)
bmm = matmul.named("BmmBackward0")
matvec = bilinear("matvec", np.matmul, a=lambda g, x: g[..., None] * x, x=lambda g, a: g @ a, tex=r"{a}\,{x}",
                  jvp={"a": lambda t, x: t @ x, "x": lambda t, a: t @ a.mT}, reads=matvec_groups, node="MvBackward0",
                  explain=misfit)
dot = bilinear("dot", np.matmul, a=lambda g, b: g[..., None] * b, b=lambda g, a: g[..., None] * a, tex=r"{a} \cdot {b}",
               jvp={"a": lambda t, b: t @ b, "b": lambda t, a: t @ a}, reads="all", node="DotBackward0", explain=misfit)


def affine(xp, bias, x, w):
    out = x @ w
    out += bias
    return out


addmm = primitive("addmm", affine, reads=addmm_groups, tex=r"{bias} + {x}\,{w}", node="AddmmBackward0",
                  vjp={"bias": lambda g: g, "x": lambda g, w: g @ w.mT, "w": lambda g, x: (g.mT @ x).mT},
                  jvp={"bias": lambda t: t[..., None, :], "x": lambda t, w: t @ w, "w": lambda t, x: x @ t},
                  explain=lambda bias, x, w: misfit(x, w))

"""Products of matrices and vectors. Each is linear in both operands, and its adjoints are products again.

`a @ b` with a 1-D b is a primitive of its own. As a matmul with shape (n, 1), a batch of cotangents would take many small
products instead of one.

`addmm` is the `b + x @ w` of a linear layer. It is fused so that the bias is added in the memory of the product. w is usually the
transpose of a weight, so its cotangent is computed as a transpose too and has the memory order of the weight. `baddbmm` is the
same with a scalar factor for each of the two terms, for matrices and batches of matrices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradlab.core.errors import broadcast_mismatch
from gradlab.core.primitive import Primitive, bilinear, primitive
from gradlab.core.properties import Properties
from gradlab.core.sparsity import number_elements
from gradlab.rules.arguments import Array, Axes, Meta, Namespace, Shape
from gradlab.rules.shapes import cat


def matmul_groups(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: out[i, j] depends on row i of a and column j of b."""
    axis = -1 if arg == "a" else -2
    kept = number_elements(tuple(1 if i == len(x_shape) + axis else n for i, n in enumerate(x_shape)))
    return np.broadcast_to(kept, x_shape), np.broadcast_to(kept, out_shape)


def matvec_groups(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    rows = np.arange(out_shape[-1])
    return (np.repeat(rows, x_shape[-1]), rows) if arg == "a" else (np.zeros(x_shape, int), np.zeros(out_shape, int))


def addmm_groups(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    if arg == "bias":
        return None, np.broadcast_to(number_elements(x_shape), out_shape)
    return matmul_groups({"x": "a", "w": "b"}[arg], x_shape, out_shape, meta)


def shape_mismatch(a: Shape, b: Shape) -> RuntimeError | None:
    """Return PyTorch's error for matrices that cannot be multiplied; None if they can."""
    if len(a) == 2 and len(b) == 2:
        return RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]}). The number of "
            "columns of the first must equal the number of rows of the second; .T transposes a matrix."
        )
    if len(a) == 2 and len(b) == 1:
        return RuntimeError(f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})")
    if len(a) == 1 and len(b) == 1:
        return RuntimeError(
            f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of "
            "elements, but got {} and {} elements respectively".format(a[0], b[0])
        )
    if len(b) > 2 and a[-1] != b[-2]:
        if bad := broadcast_mismatch(a[:-2], b[:-2]):
            return bad
        count = math.prod(np.broadcast_shapes(a[:-2], b[:-2]))
        return RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {a[-1]}] but got: "
            f"[{count}, {b[-2]}]. The shapes are {list(a)} and {list(b)}: the last dimension of the first "
            "must equal the second to last of the second."
        )
    return None


matmul = bilinear(
    "matmul",
    np.matmul,
    a=lambda g, b: g @ b.mT,
    b=lambda g, a: a.mT @ g,
    tex=r"{a}\,{b}",
    reads=matmul_groups,
    node="MmBackward0",
    explain=shape_mismatch,
    properties=Properties(product="matrix", short_name="@"),
)
bmm = matmul.with_node("BmmBackward0")
matvec = bilinear(
    "matvec",
    np.matmul,
    a=lambda g, b: g[..., None] * b,
    b=lambda g, a: g @ a,
    tex=r"{a}\,{b}",
    jvp={"a": lambda t, b: t @ b, "b": lambda t, a: t @ a.mT},
    reads=matvec_groups,
    node="MvBackward0",
    explain=shape_mismatch,
    properties=Properties(product="matrix", short_name="@"),
)
dot = bilinear(
    "dot",
    np.matmul,
    a=lambda g, b: g[..., None] * b,
    b=lambda g, a: g[..., None] * a,
    tex=r"{a} \cdot {b}",
    jvp={"a": lambda t, b: t @ b, "b": lambda t, a: t @ a},
    reads="all",
    node="DotBackward0",
    explain=shape_mismatch,
    properties=Properties(product="matrix"),
)
vdot = dot.with_node("VdotBackward0")


def affine(xp: Namespace, bias: Array, x: Array, w: Array) -> Array:
    out = x @ w
    out += bias
    return out


def scaled_affine(xp: Namespace, bias: Array, x: Array, w: Array, *, beta: float, alpha: float) -> Array:
    """Compute beta · bias + alpha · x w. With beta = 0 the bias is ignored even if it contains NaN, as in BLAS."""
    out = x @ w
    if alpha != 1:
        out *= alpha
    if beta != 0:
        out += bias if beta == 1 else bias * beta
    return out


def insert_axes(t: Array, lead: Shape, bias_shape: Shape, out_shape: Shape) -> Array:
    """Reshape the tangent of an argument of lower rank, such as a bias: axes of length 1 between the batch axes and its own."""
    return t.reshape(lead + (1,) * (len(out_shape) - len(bias_shape)) + bias_shape)


def affine_mismatch(bias: Shape, x: Shape, w: Shape) -> RuntimeError | None:
    if x[-1] != w[-2]:
        return shape_mismatch(x, w)
    out = (*x[:-1], w[-1])
    for back, (n, m) in enumerate(zip(reversed(bias), reversed(out), strict=False), start=1):
        if n not in (1, m):
            return RuntimeError(
                f"The expanded size of the tensor ({m}) must match the existing size ({n}) at non-singleton "
                f"dimension {len(out) - back}.  Target sizes: {list(out)}.  Tensor sizes: {list(bias)}. The "
                "added tensor must broadcast to the shape of the product."
            )
    return None


addmm = primitive(
    "addmm",
    affine,
    reads=addmm_groups,
    tex=r"{bias} + {x}\,{w}",
    node="AddmmBackward0",
    vjp={"bias": lambda g: g, "x": lambda g, w: g @ w.mT, "w": lambda g, x: (g.mT @ x).mT},
    jvp={"bias": insert_axes, "x": lambda t, w: t @ w, "w": lambda t, x: x @ t},
    explain=affine_mismatch,
    promote="single",
    properties=Properties(product="matrix", addend=0, short_name="@"),
)
baddbmm = primitive(
    "baddbmm",
    scaled_affine,
    reads=addmm_groups,
    tex=r"{beta}\,{bias} + {alpha}\,{x}\,{w}",
    vjp={
        "bias": lambda g, beta: g * beta,
        "x": lambda g, w, alpha: (g * alpha) @ w.mT,
        "w": lambda g, x, alpha: x.mT @ (g * alpha),
    },
    jvp={
        "bias": lambda t, lead, bias_shape, out_shape, beta: insert_axes(t, lead, bias_shape, out_shape) * beta,
        "x": lambda t, w, alpha: (t * alpha) @ w,
        "w": lambda t, x, alpha: x @ (t * alpha),
    },
    explain=affine_mismatch,
    promote="single",
    properties=Properties(product="matrix", addend=0),
)
scaled_addmm = baddbmm.with_node("AddmmBackward0")


# ------------------------------------------------------------------------------------------------------- other products
def cross_forward(xp: Namespace, a: Array, b: Array, *, axis: Axes) -> Array:
    """Compute the vector product of two arrays of the same shape along one negative axis, given in a tuple."""
    x, y = xp.moveaxis(a, axis[0], 0), xp.moveaxis(b, axis[0], 0)
    return xp.stack([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], axis=axis[0])


cross: Primitive = primitive(
    "cross",
    cross_forward,
    reads="axes",
    node="LinalgCrossBackward0",
    tex=r"{a} \times {b}",
    formula=r"\bar{a} = b \times \bar{y},\quad \bar{b} = \bar{y} \times a",
    vjp={
        "a": lambda xp, g, b, axis: cross(xp.broadcast_to(b, g.shape), g, axis=axis),
        "b": lambda xp, g, a, axis: cross(g, xp.broadcast_to(a, g.shape), axis=axis),
    },
    jvp={
        "a": lambda xp, t, b, axis: cross(t, xp.broadcast_to(b, t.shape), axis=axis),
        "b": lambda xp, t, a, axis: cross(xp.broadcast_to(a, t.shape), t, axis=axis),
    },
    promote="single",
)

PADE_COEFFICIENTS = (
    64764752532480000,
    32382376266240000,
    7771770303897600,
    1187353796428800,
    129060195264000,
    10559470521600,
    670442572800,
    33522128640,
    1323241920,
    40840800,
    960960,
    16380,
    182,
    1,
)
PADE_RADIUS = 5.371920351148152


def matrix_exponential(xp: Namespace, x: Array) -> Array:
    """Compute e^x by scaling and squaring with the [13/13] Padé approximant.

    N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
    """
    one = xp.eye(x.shape[-1], dtype=x.dtype)
    norm = xp.abs(x).sum(axis=-2).max().item() if x.size else 0.0
    squarings = max(0, math.ceil(math.log2(norm / PADE_RADIUS))) if 0 < norm < math.inf else 0
    x = x * 2.0**-squarings
    c = [k / PADE_COEFFICIENTS[0] for k in PADE_COEFFICIENTS]
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x2 @ x4
    odd = x @ (x6 @ (c[13] * x6 + c[11] * x4 + c[9] * x2) + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * one)
    even = x6 @ (c[12] * x6 + c[10] * x4 + c[8] * x2) + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * one
    out = xp.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        out = out @ out
    return out


def matrix_exponential_tangent(xp: Namespace, x: Array, direction: Array) -> Array:
    """Compute the derivative of e^x along a direction: the upper right block of the exponential of [[x, direction], [0, x]].

    N. Higham, "Functions of Matrices" (2008), theorem 3.6.
    """
    n = x.shape[-1]
    x, starts = xp.broadcast_to(x, direction.shape), (0, n, 2 * n)
    upper = cat(x, direction, axis=-1, starts=starts)
    lower = cat(xp.zeros_like(direction), x, axis=-1, starts=starts)
    return matrix_exp(cat(upper, lower, axis=-2, starts=starts))[..., :n, n:]


def matrix_groups(arg: str, x_shape: Any, out_shape: Any, meta: Any) -> Any:
    """Sparsity: each matrix of a batch depends only on the matrix at the same position. `out_shape` ends with two axes."""
    return batch_groups(x_shape, 2, out_shape, 2)


def batch_groups(x_shape: Any, x_axes: int, out_shape: Any, out_axes: int) -> Any:
    """Return groups as in `sparsity.flow`, in which the last axes form one group for each position in the batch."""
    batch = x_shape[: len(x_shape) - x_axes]
    groups = number_elements(batch).reshape(batch + (1,) * x_axes)
    source = np.broadcast_to(number_elements(batch), out_shape[: len(out_shape) - out_axes])
    return np.broadcast_to(groups, x_shape), np.broadcast_to(source.reshape(source.shape + (1,) * out_axes), out_shape)


matrix_exp: Primitive = primitive(
    "matrix_exp",
    matrix_exponential,
    reads=matrix_groups,
    node="LinalgMatrixExpBackward0",
    tex="e^{{{x}}}",
    formula=r"\begin{bmatrix} \cdot & \bar{x} \\ 0 & \cdot \end{bmatrix} = \exp \begin{bmatrix} x^\top & \bar{y} \\ 0 & x^\top "
    r"\end{bmatrix}",
    vjp={"x": lambda xp, g, x: matrix_exponential_tangent(xp, x.mT, g)},
    jvp={"x": lambda xp, t, x: matrix_exponential_tangent(xp, x, t)},
    promote="single",
    properties=Properties(poles=True),
)

"""The code that computes a column of a Jacobian, or a mix of columns, by hand.

gradlab pushes a tangent forward through the recorded graph. PyTorch records no forward sweep; there vᵀJ is recorded as a
function of v, and since it is linear in v, its derivative weighted with u is Ju.
"""

from __future__ import annotations

import math

import numpy as np

from gradlab.explore.jacobian.code import (
    SPELLED_OUT,
    Labels,
    RowByHand,
    _index,
    _literal,
    _number,
    _one_line,
    as_code,
    spare_names,
)


def column_by_hand(hand: RowByHand, weights: int | np.ndarray) -> str:
    """Runnable code that leaves column `weights`, or the mix of columns with these weights, flat, in `column`."""
    gl, outputs, inputs = hand.alias, hand.outputs, hand.inputs
    zs, xs = ([as_code(name, other) for (name, _), other in zip(side, spare_names(len(side), letter), strict=True)]
              for side, letter in ((outputs, hand.spare), (inputs, "x")))
    labels = Labels(inputs)
    u, end = np.zeros(len(labels)), ""
    if isinstance(weights, (int, np.integer)):
        u[weights] = 1.0
        end = f"  # the column of {_one_line(labels[int(weights)])}"
    else:
        u[:] = weights
    named = zip([*zs, *xs], [*outputs, *inputs], strict=True)
    renamed = [f"{code} is {_one_line(given)}" for code, (given, _) in named if code != given]
    lines = [hand.remark, "# " + ", ".join(renamed) if renamed else "", hand.opening]
    names = ["u"] if len(xs) == 1 else [f"u{k}" for k in range(len(xs))]
    stops = np.cumsum([math.prod(shape) for _, shape in inputs])[:-1]
    for name, x, part, (_, shape) in zip(names, xs, np.split(u, stops), inputs, strict=True):
        if part.size <= SPELLED_OUT:
            lines.append(f"{name} = {gl}.tensor({_literal(part.reshape(shape))}, dtype={x}.dtype)")
        else:
            lines.append(f"{name} = {gl}.zeros_like({x})")
            lines += [f"{name}[{_index(int(i), shape, ', ')}] = {_number(float(part[i]))}"
                      for i in np.flatnonzero(part)]
    z, x, u_ = (", ".join(some) for some in (zs, xs, names))
    if gl == "gl":
        lines.append(f"parts = {gl}.autograd.jvp_of_graph([{z}], [{x}], [{u_}])")
    else:
        vs = ["v"] if len(zs) == 1 else [f"v{k}" for k in range(len(zs))]
        lines += [f"{v} = {gl}.zeros_like({y}, requires_grad=True)" for v, y in zip(vs, zs, strict=True)]
        lines += [f"rows = {gl}.autograd.grad([{z}], [{x}], [{', '.join(vs)}], create_graph=True)  # vᵀJ, recorded",
                  f"parts = {gl}.autograd.grad(rows, [{', '.join(vs)}], [{u_}])  # its derivative by v, along u"]
    lines.append("column = parts[0].flatten()" + end if len(zs) == 1
                 else f"column = {gl}.cat([part.flatten() for part in parts])" + end)
    return "\n".join(filter(None, lines))


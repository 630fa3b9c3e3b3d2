"""Random numbers as functions of the tensors that they are drawn from or into: their gradient is 0."""

from __future__ import annotations

from gradlab.core.primitive import elementwise
from gradlab.core.properties import Properties

draw = elementwise(
    "draw",
    lambda x, *, values: values,
    x=lambda xp, g: xp.zeros_like(g),
    tex=r"\mathrm{{draw}}({x})",
    formula=r"\bar{x} = 0",
    node="NormalBackward0",
    properties=Properties(flat=True, draws=True),
)
DRAW_OF_NODE = {
    name: draw.with_node(name)
    for name in (
        "NormalBackward0",
        "NormalBackward1",
        "NormalBackward2",
        "NormalBackward3",
        "UniformBackward0",
        "BernoulliBackward0",
        "BernoulliBackward1",
        "BernoulliBackward2",
        "RandomBackward0",
        "RandomBackward1",
        "RandomBackward2",
        "ExponentialBackward0",
        "GeometricBackward0",
        "CauchyBackward0",
        "LogNormalBackward0",
        "NotImplemented",
    )
}

"""Draws of random numbers as functions of what they are drawn from: their gradient is 0."""

from __future__ import annotations

from gradlab.core.primitive import elementwise

draw = elementwise(
    "draw",
    lambda x, *, values: values,
    x=lambda xp, g: xp.zeros_like(g),
    tex=r"\mathrm{{draw}}({x})",
    formula=r"\bar{x} = 0",
    node="NormalBackward0",
)
NODES = {
    name: draw.named(name)
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

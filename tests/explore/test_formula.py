"""Formulas match the rules: evaluated on a sample, each gives the numbers of its rule."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.formula import SYMBOLS, Formula, formula, traceable

TRACEABLE = [op for op in PRIMITIVES.values() if traceable(op)]
SHAPES = {
    "matmul": {"a": (3, 4), "b": (4, 2)},
    "matvec": {"a": (3, 4), "b": (4,)},
    "dot": {"a": (3,), "b": (3,)},
    "scores": {"query": (3, 4), "key": (2, 4)},
    "mixture": {"weights": (3, 4), "value": (4, 2)},
}
NUMBERS = {"exponent": 2.5, "other": 3.0, "base": 1.7, "scale": 0.5}


@pytest.mark.parametrize("op", TRACEABLE, ids=lambda op: op.name)
def test_the_formula_evaluates_to_the_rule(op):
    rng = np.random.default_rng(0)
    shapes = SHAPES.get(op.name, {})
    args = {a: rng.uniform(0.5, 1.5, shapes.get(a, (3,))) for a in op.args}
    if op.name == "where":
        args["condition"] = np.array([True, False, True])
    meta = {name: NUMBERS[name] for name in op.meta}
    out = op(*args.values(), **meta)
    g = rng.standard_normal(np.shape(out))
    for arg in op.rules:
        ran = op.cotangent(arg, g=g, out=out, xp=np, lead=(), **args, **meta)
        tree = op.cotangent(arg, g=Formula("g"), out=Formula("y"), xp=SYMBOLS, lead=(), **{a: Formula(a) for a in args}, **meta)
        np.testing.assert_allclose(tree.evaluate(args | {"g": g, "y": out}), ran, rtol=1e-12)


def test_notation_reads_as_a_textbook():
    assert formula("tanh").lines() == [r"y = \tanh x", r"\bar{x} = \bar{y}\,\left(1 - y\,y\right)"]
    assert formula("mul").lines() == [r"y = a\,b", r"\bar{a} = \bar{y}\,b", r"\bar{b} = \bar{y}\,a"]
    assert formula("matmul")["a"].text == r"\bar{y}\,b^{\top}"
    assert formula("relu")["x"].text == r"[y > 0]\,\bar{y}"


def test_a_node_shows_its_settings():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    assert formula((x**3).grad_fn).lines()[0] == "y = x^{3}"
    assert "softmax" in repr(formula(gl.softmax(x, 0).grad_fn))


def test_every_primitive_has_a_notation():
    for op in PRIMITIVES.values():
        assert formula(op)["out"]


def test_a_rule_that_needs_a_number_is_only_shown_for_a_node():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    assert set(formula("pow_scalar")) == {"out"}
    assert formula((x**3).grad_fn)["x"].text == r"\bar{y}\,3\,x^{2}"


def test_other_objects_are_errors():
    with pytest.raises(ValueError, match="primitive's name"):
        formula("cosine of the moon")

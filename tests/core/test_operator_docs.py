"""How a docstring gets its shared descriptions, and an in-place twin its own docstring."""

from __future__ import annotations

import inspect
import textwrap

import gradlab as gl
from gradlab.core.operator import PARAMETERS, described

DOC = """Adds.

    Parameters
    ----------
    {input}
    {dimension}
    {out}

    Notes
    -----
    .. math:: y_{ijk}
"""


def test_descriptions_are_put_in_whether_or_not_python_keeps_the_indentation():
    head, body = DOC.split("\n", 1)
    dedented = f"{head}\n{textwrap.dedent(body)}"  # as Python 3.13 has it
    assert inspect.cleandoc(described(DOC)) == described(dedented).strip()
    assert PARAMETERS["dimension"] in described(dedented)
    assert "y_{ijk}" in described(DOC)
    assert described(None) is None


def test_the_docstring_of_a_twin_is_that_of_its_function_in_place():
    doc = inspect.getdoc(gl.Tensor.scatter_add_)
    assert (
        "\n>>> x = gl.zeros(3)\n>>> x.scatter_add_(0, gl.tensor([0, 2, 0]), gl.tensor([1., 2., 3.]))\ntensor([4., 0., 2.])" in doc
    )
    assert "\nindex : Tensor\n" in doc
    assert "\nout : " not in doc


def test_a_twin_that_is_a_function_too_names_its_tensor():
    assert "\ninput : Tensor\n    The tensor that is written to: `x` in ``x.exp_(…)``." in gl.exp_.__doc__


def test_answers_are_numbers_in_the_example_of_a_twin():
    assert ">>> x.eq_(2)\ntensor([0., 1., 0.])" in gl.Tensor.eq_.__doc__
    assert ">>> x.logical_xor_(gl.tensor([1, 1, 0]))\ntensor([1, 0, 0])" in gl.Tensor.logical_xor_.__doc__


def test_the_twin_of_a_view_does_not_claim_to_write():
    assert gl.Tensor.transpose_.__doc__.startswith("`transpose`, of this very tensor.")
    x = gl.zeros(2, 3)
    assert x.transpose_(0, 1) is x
    assert x.shape == (3, 2)


def test_a_twin_takes_what_its_function_takes_but_out():
    for name in ("scatter", "tril", "squeeze", "masked_fill", "clamp", "eq"):
        of_function = inspect.signature(getattr(gl, name)).parameters
        assert list(inspect.signature(getattr(gl.Tensor, f"{name}_")).parameters) == [one for one in of_function if one != "out"]

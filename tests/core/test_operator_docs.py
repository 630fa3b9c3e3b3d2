"""Shared descriptions in docstrings, and the docstrings of in-place twins."""

from __future__ import annotations

import inspect
import textwrap

import gradlab as gl
from gradlab.core.operator import PARAMETERS, fill_placeholders

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


def test_descriptions_are_inserted_with_and_without_indentation():
    head, body = DOC.split("\n", 1)
    dedented = f"{head}\n{textwrap.dedent(body)}"  # as in Python 3.13
    assert inspect.cleandoc(fill_placeholders(DOC)) == fill_placeholders(dedented).strip()
    assert PARAMETERS["dimension"] in fill_placeholders(dedented)
    assert "y_{ijk}" in fill_placeholders(DOC)
    assert fill_placeholders(None) is None


def test_the_docstring_of_a_twin_follows_its_function():
    doc = inspect.getdoc(gl.Tensor.scatter_add_)
    assert (
        "\n>>> x = gl.zeros(3)\n>>> x.scatter_add_(0, gl.tensor([0, 2, 0]), gl.tensor([1., 2., 3.]))\ntensor([4., 0., 2.])" in doc
    )
    assert "\nindex : Tensor\n" in doc
    assert "\nout : " not in doc


def test_the_function_of_a_twin_describes_its_input():
    assert "\ninput : Tensor\n    Tensor to modify: `x` in ``x.exp_(…)``." in gl.exp_.__doc__


def test_examples_of_comparison_twins_show_numbers():
    assert ">>> x.eq_(2)\ntensor([0., 1., 0.])" in gl.Tensor.eq_.__doc__
    assert ">>> x.logical_xor_(gl.tensor([1, 1, 0]))\ntensor([1, 0, 0])" in gl.Tensor.logical_xor_.__doc__


def test_the_twin_of_a_view_does_not_claim_to_write():
    assert gl.Tensor.transpose_.__doc__.startswith("In-place version of `transpose`.")
    x = gl.zeros(2, 3)
    assert x.transpose_(0, 1) is x
    assert x.shape == (3, 2)


def test_a_twin_takes_the_arguments_of_its_function_except_out():
    for name in ("scatter", "tril", "squeeze", "masked_fill", "clamp", "eq"):
        of_function = inspect.signature(getattr(gl, name)).parameters
        assert list(inspect.signature(getattr(gl.Tensor, f"{name}_")).parameters) == [one for one in of_function if one != "out"]

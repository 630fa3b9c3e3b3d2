"""Docstrings of in-place twins in `nn.functional`, and errors of its functions."""

from __future__ import annotations

import inspect

import pytest

import gradlab as gl
import gradlab.nn.functional as F  # noqa: N812  (the usual name)
from gradlab.nn.functional.descriptions import DESCRIPTIONS, document_twin_of, with_descriptions

TWINS = ["celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_"]


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_documented_as_its_function_without_the_argument(name):
    function, twin = getattr(F, name[:-1]), getattr(F, name)
    parameters = list(inspect.signature(function).parameters)
    assert parameters[-1] == "inplace"
    assert list(inspect.signature(twin).parameters) == parameters[:-1]
    assert "inplace" in function.__doc__
    assert "inplace" not in twin.__doc__
    assert f"F.{name}(" in twin.__doc__
    assert inspect.getdoc(twin).count("\nRaises\n") == 1  # Python 3.13 removes the indentation
    assert "If `input` is a leaf that requires a gradient." in twin.__doc__ or "if `input` is a leaf" in twin.__doc__


def test_descriptions_are_inserted_if_the_compiler_has_removed_the_indentation():
    def function():
        """Return the input.

        Parameters
        ----------
        {floats}
        {inplace}

        Returns
        -------
        {same}
        """

    def twin():
        pass

    function.__doc__ = inspect.cleandoc(function.__doc__)  # as Python 3.13 and later do
    whole, shortened = with_descriptions(function).__doc__, document_twin_of(function)(twin).__doc__
    parameters = f"Parameters\n----------\n{DESCRIPTIONS['floats']}\n"
    returns = f"\nReturns\n-------\n{DESCRIPTIONS['same']}"
    assert whole == f"Return the input.\n\n{parameters}{DESCRIPTIONS['inplace']}\n{returns}"
    in_place = returns.replace("Same shape and dtype as `input`.", "`input`.")
    assert shortened == f"In-place version of `function`.\n\n{parameters}{in_place}"


@pytest.mark.parametrize("name", F.__all__ if hasattr(F, "__all__") else dir(F))
def test_all_shared_descriptions_are_inserted(name):
    doc = getattr(F, name).__doc__ or ""
    assert not [key for key in DESCRIPTIONS if f"\n    {{{key}}}" in doc]


@pytest.mark.parametrize("name", TWINS)
def test_a_leaf_that_requires_a_gradient_raises_as_documented(name):
    more = (0.0, 0.0) if name == "threshold_" else ()
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(F, name)(gl.ones(2, requires_grad=True), *more)


@pytest.mark.oracle
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_bools_have_no_average_as_in_torch(axes):
    torch = pytest.importorskip("torch")
    for lib, functional in ((gl, F), (torch, torch.nn.functional)):
        with pytest.raises((NotImplementedError, RuntimeError), match=f'"avg_pool{max(axes, 2)}d.*" not implemented for .Bool'):
            getattr(functional, f"avg_pool{axes}d")(lib.ones(1, *[4] * axes) > 0, 2)


@pytest.mark.parametrize("name", ["max_unpool1d", "max_unpool2d"])
def test_unpooling_raises_for_other_objects_than_tensors(name):
    x, at = gl.ones(1, 2, 2), gl.zeros(1, 2, 2, dtype=gl.int64)
    with pytest.raises(TypeError, match="argument 'indices' \\(position 2\\) must be Tensor, not int"):
        getattr(F, name)(x, 3, 2)
    with pytest.raises(TypeError, match="argument 'input' \\(position 1\\) must be Tensor, not int"):
        getattr(F, name)(3, at, 2)

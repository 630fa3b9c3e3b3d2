"""An operator's docstring, its in-place twin, and the errors of both, which follow from its declaration."""

from __future__ import annotations

import inspect

import pytest

import gradlab as gl
from gradlab.core.operator import OPERATORS, PARAMETERS, fill_placeholders

TWINS = [operator for operator in OPERATORS.values() if operator.twins]


@pytest.mark.parametrize("operator", TWINS, ids=lambda one: one.name)
def test_a_twin_takes_the_arguments_of_its_operator_except_out(operator):
    parameters = list(inspect.signature(operator.public_function()).parameters)
    twin = vars(gl.Tensor)[operator.twins[0]]
    assert list(inspect.signature(twin).parameters) == [name for name in parameters if name != "out"]
    assert "out : " not in twin.__doc__


@pytest.mark.parametrize("operator", TWINS, ids=lambda one: one.name)
def test_a_twin_does_not_write_to_a_leaf_that_requires_a_gradient(operator):
    twin = vars(gl.Tensor)[operator.twins[0]]
    example = twin.__doc__.partition(">>> x = ")[2].splitlines()
    leaf, (name, _, arguments) = example[0], example[1].removeprefix(">>> x.").partition("(")
    x = eval(leaf, {"gl": gl})  # from the docstring
    if x.is_floating_point():
        x.requires_grad_()
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            eval(f"x.{name}({arguments}", {"gl": gl, "x": x})


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_shared_description_is_indented_as_its_placeholder(indent):
    """Since Python 3.13 the compiler removes the indentation of a docstring."""
    first, second = PARAMETERS["input"].split("\n")
    assert fill_placeholders(f"Something.\n\n{indent}{{input}}\n") == f"Something.\n\n{indent}{first}\n{indent}{second}\n"
    assert fill_placeholders(None) is None


@pytest.mark.parametrize(
    "name", ["bincount", "corrcoef", "cov", "gradient", "histc", "histogram", "norm", "softmax", "sort", "std", "sum", "unique"]
)
def test_the_error_for_a_number_has_a_hint(name):
    more = {"softmax": {"dim": 0}}.get(name, {})
    with pytest.raises(
        TypeError, match=rf"{name}\(\): argument 'input' \(position 1\) must be Tensor, not int. Make it a tensor"
    ):
        getattr(gl, name)(3, **more)


def test_boundaries_must_be_a_tensor():
    with pytest.raises(TypeError, match=r"bucketize\(\): argument 'boundaries' \(position 2\) must be Tensor, not int"):
        gl.bucketize(gl.tensor([1.0]), 3)

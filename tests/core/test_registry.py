"""A name is declared once, except by the cell or the module of the user's that declared it before."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.core.errors import RuleError
from gradlab.core.operator import NAMES, OPERATORS
from gradlab.core.registry import PRIMITIVES

CELL = """
from gradlab.core.operator import composite, operator
from gradlab.core.primitive import elementwise

def {function}(x):
    return {factor} * x

{name} = operator(elementwise("{name}", {function}, x=lambda g: {factor} * g, tex="{{x}}"), "A multiple.", "[1.] -> [2.]")
"""


@pytest.fixture(autouse=True)
def as_before():
    tables = [(table, dict(table)) for table in (PRIMITIVES, OPERATORS, NAMES)]
    yield
    for table, before in tables:
        table.clear()
        table.update(before)


def run(module="__main__", name="multiple_of_mine", function="multiple", factor=2):
    """Run a cell of a notebook, or a module."""
    space = {"__name__": module}
    exec(CELL.format(name=name, function=function, factor=factor), space)
    return space[name]


@pytest.mark.parametrize("module", ["__main__", "mine"])
def test_a_cell_may_be_run_again(module):
    before = run(module)
    after = run(module, factor=3)
    assert PRIMITIVES["multiple_of_mine"] is after is not before
    assert OPERATORS["multiple_of_mine"].target is NAMES["multiple_of_mine"].target is after
    assert (before(gl.ones(1)).item(), after(gl.ones(1)).item()) == (2, 3)


@pytest.mark.parametrize(
    ("other", "taken_by"),
    [
        ({"module": "mine"}, "mine declares it, with the function multiple"),
        ({"function": "doubled"}, "__main__ declares it, with the function doubled"),
    ],
)
def test_the_name_of_another_primitive_is_refused(other, taken_by):
    before = run(**other)
    with pytest.raises(
        RuleError, match=f"There is already a primitive named 'multiple_of_mine': {taken_by}. Choose another name for "
    ):
        run()
    assert PRIMITIVES["multiple_of_mine"] is before


def test_the_name_of_one_of_gradlabs_is_refused():
    from gradlab.core.primitive import elementwise

    tanh = PRIMITIVES["tanh"]
    with pytest.raises(
        RuleError, match=r"elementary declares it, with the function tanh\. Choose another name for .*test_registry"
    ):
        elementwise("tanh", np.tanh, x=lambda g: g)
    assert PRIMITIVES["tanh"] is tanh


@pytest.mark.parametrize("name", ["tanh", "concat"])
def test_the_name_and_the_alias_of_another_operator_are_refused(name):
    from gradlab.core.operator import composite

    def function(input):
        """Nothing."""

    function.__name__ = name
    before = NAMES[name]
    with pytest.raises(ValueError, match=f"There is already an operator named '{name}': gradlab"):
        composite()(function)
    assert NAMES[name] is before

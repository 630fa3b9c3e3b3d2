"""Check that the stubs agree with the declarations and the modules."""

from __future__ import annotations

import ast
import importlib
import inspect

import pytest
import stubs

import gradlab
from gradlab.core.operator import OPERATORS, Operator


@pytest.mark.parametrize("path", stubs.STUBS)
def test_stubs_are_up_to_date(path):
    assert (stubs.PACKAGE / path).read_text() == stubs.STUBS[path](), "run `python tests/stubs.py`"


@pytest.mark.parametrize("path", stubs.STUBS)
def test_stubs_list_the_names_of_the_module(path):
    module = importlib.import_module("gradlab." + path.removesuffix(".pyi").replace("/", "."))
    tree = ast.parse((stubs.PACKAGE / path).read_text())
    listed = next(ast.literal_eval(node.value) for node in tree.body if getattr(node, "targets", [None])[0] is not None)
    assert sorted(module.__all__) == listed
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            inside = {n.name for n in node.body if isinstance(n, ast.FunctionDef)} | {
                n.targets[0].id for n in node.body if isinstance(n, ast.Assign)
            }
            assert inside == {name for name in vars(module.Declared) if not name.startswith("__")}
            assert all(vars(gradlab.Tensor)[name] is vars(module.Declared)[name] for name in inside)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda one: one.name)
def test_all_names_of_an_operator_refer_to_one_function(operator: Operator):
    function = operator.public_function()
    if operator.top and operator.is_primitive:
        assert {getattr(gradlab, name) for name in operator.names} == {function}
    if operator.method:
        assert {vars(gradlab.Tensor)[name] for name in operator.names} == {function}
    assert all(getattr(gradlab.special, name) is function for name in operator.special)
    assert all(getattr(gradlab, name) is vars(gradlab.Tensor)[name] for name in operator.twin_functions)
    assert function.__name__ == operator.name


@pytest.mark.parametrize("operator", stubs.declared_operators(), ids=lambda one: one.name)
def test_signatures_agree_with_the_stubs(operator: Operator):
    shown = str(inspect.signature(operator.public_function())).replace("'", "")
    operands = ", ".join(f"{name}: Tensor" for name in operator.target.public)
    assert shown == f"({operands}, *, out: Tensor | None = None) -> Tensor"
    assert f"def {operator.name}{shown}:" in stubs.functions()

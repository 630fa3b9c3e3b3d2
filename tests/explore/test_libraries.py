"""Adapters of other tensor libraries: how they are registered, and that explorers only need their methods."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.libraries import GRADLAB, Library, library_of, register, registry


class Value:
    """A number that records how it was computed: a complete small library."""

    shape, dtype, device, requires_grad, grad = (), "float", "cpu", True, None

    def __init__(self, data, made_by="", parents=()):
        self.data, self.made_by, self.parents = data, made_by, parents

    @property
    def is_leaf(self):
        return not self.parents

    def __mul__(self, other):
        return Value(self.data * other.data, "Times", (self, other))

    def __add__(self, other):
        return Value(self.data + other.data, "Plus", (self, other))


class OfValues(Library):
    name = usual = "values"
    made = 0

    def __init__(self):
        OfValues.made += 1

    def is_tensor(self, value):
        return issubclass(type(value), Value)

    def array(self, tensor):
        return np.asarray(tensor.data)

    def node(self, tensor):
        return tensor

    def inputs(self, node):
        return list(node.parents)

    def name_of(self, node):
        return node.made_by or "AccumulateGrad"

    def variable(self, node):
        return None if node.parents else node

    def shape(self, node):
        return ()

    def setting(self, node, name):
        return None

    def dtype_name(self, tensor):
        return "float"


@pytest.fixture
def values(monkeypatch):
    """Register the library without importing it."""
    monkeypatch.setattr(registry, "_MAKERS", dict(registry._MAKERS))
    monkeypatch.setattr(registry, "_ADAPTERS", dict(registry._ADAPTERS))
    monkeypatch.setattr(OfValues, "made", 0)
    register("values", OfValues)


@pytest.mark.usefixtures("values")
def test_a_library_is_used_once_its_module_is_imported(monkeypatch):
    x = Value(2.0)
    assert library_of(x) is None and OfValues.made == 0
    monkeypatch.setitem(sys.modules, "values", types.ModuleType("values"))
    library = library_of(x)
    assert isinstance(library, OfValues) and library_of(x) is library and OfValues.made == 1
    assert library_of(gl.ones(1)) is GRADLAB and library_of(2.0) is None


@pytest.mark.usefixtures("values")
def test_graphs_of_the_library_are_drawn(monkeypatch):
    monkeypatch.setitem(sys.modules, "values", types.ModuleType("values"))
    x, y = Value(2.0), Value(3.0)
    out = x * y + x
    text = gl.graph(out).text()
    assert "Times" in text and "Plus" in text and gl.graph(out).svg().count("Times") >= 1
    with pytest.raises(TypeError, match="tensors of one library"):
        gl.graph([out, gl.ones(1, requires_grad=True) * 2])


def test_only_functions_and_classes_can_be_registered():
    with pytest.raises(TypeError, match="expected a function or a class that makes a Library, got OfValues"):
        register("values", OfValues())


@pytest.mark.e2e
def test_no_library_is_imported():
    code = (
        "import sys, gradlab as gl; gl.graph(gl.ones(1, requires_grad=True) * 2).text(); "
        "from gradlab.explore.libraries import library_of; library_of(3); print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

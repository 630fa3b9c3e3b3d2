"""Attributes that users set on tensors and parameters, and read-only attributes, in gradlab and PyTorch."""

from __future__ import annotations

import copy
import pickle

import pytest


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.oracle)])
def t(request):
    """The library under test."""
    return pytest.importorskip(request.param)


def test_attributes_of_a_tensor(t):
    x = t.ones(2)
    x.mine = [3]
    x.add_(1).requires_grad_()
    assert x.mine == [3] and vars(x) == {"mine": [3]} and "mine" in dir(x) and "sum" in dir(x)
    for made in (x.clone(), x.detach(), x.data, x + 1, x.view(2)):
        assert not hasattr(made, "mine")
    twin = copy.deepcopy(x)
    assert twin.mine == [3] and twin.mine is not x.mine
    assert copy.copy(x).mine is x.mine and pickle.loads(pickle.dumps(x)).mine == [3]
    x.sum = lambda: "own"
    assert x.sum() == "own" and t.ones(2).sum() == 2
    del x.mine
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'mine'"):
        _ = x.mine
    with pytest.raises(AttributeError):
        del x.mine


def test_attributes_of_a_parameter(t):
    layer = t.nn.Linear(2, 2)
    layer.weight.no_weight_decay = True
    layer.double()
    assert layer.weight.no_weight_decay and not hasattr(layer.bias, "no_weight_decay")
    assert not hasattr(copy.deepcopy(layer).weight, "no_weight_decay")  # as in PyTorch
    twin = copy.copy(layer.weight)
    assert twin.no_weight_decay and isinstance(twin, t.nn.Parameter)
    assert pickle.loads(pickle.dumps(layer.weight)).no_weight_decay
    state = t.nn.Buffer(t.ones(2))
    state.tag = 1
    assert copy.deepcopy(state).tag == 1


@pytest.mark.parametrize(
    "name",
    [
        "shape",
        "is_leaf",
        "grad_fn",
        "dtype",
        "device",
        "ndim",
        "T",
        "_version",
        "is_cuda",
        "output_nr",
        "retains_grad",
        "layout",
        "is_sparse",
        "is_meta",
        "name",
        "itemsize",
        "_base",
    ],
)
def test_read_only_attributes(t, name):
    x = t.ones(2)
    with pytest.raises(AttributeError):
        setattr(x, name, 1)
    with pytest.raises(AttributeError):
        delattr(x, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("data", "Deleting tensor data is not allowed. Delete tensor instead!"),
        ("requires_grad", "requires_grad must be a bool"),
        ("_grad_fn", "Deletion of _grad_fn not allowed. Detach tensor instead!"),
        ("_backward_hooks", "Deletion of _backwards_hooks not allowed!"),
    ],
)
def test_attributes_that_cannot_be_deleted(t, name, message):
    x = t.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=message):
        delattr(x, name)
    assert x.requires_grad and x.data.sum() == 2


def test_requires_grad_is_a_bool(t):
    x = t.ones(2)
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1
    assert not x.requires_grad


def test_user_attributes_do_not_collide_with_internal_ones(t):
    """Names that a library might use internally."""
    x = t.nn.Parameter(t.ones(2))
    x.frozen, x.role, x.tangent = True, "decay", 3
    x.requires_grad_(False).requires_grad_()
    (x * 2).sum().backward()
    assert isinstance(x, t.nn.Parameter) and x.grad.tolist() == [2, 2] and "Parameter" in repr(x) and x.tangent == 3

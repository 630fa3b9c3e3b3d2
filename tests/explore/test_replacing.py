"""Functions and class methods are replaced for a while, and nothing of it stays."""

from __future__ import annotations

import warnings

import pytest

import gradlab as gl
from gradlab.explore.libraries.replacing import give_back, replace


class Base:
    @classmethod
    def apply(cls, x):
        return cls.__name__, x

    def method(self, x):
        return x


class Middle(Base):
    pass


class Last(Middle):
    pass


def doubling(original):
    def call(*args):
        return original(*args[:-1], 2 * args[-1])

    return call


def adding(original):
    def call(*args):
        return original(*args[:-1], args[-1] + 1)

    return call


def test_an_inherited_class_method_keeps_its_class_and_is_inherited_again():
    replace(Middle, "apply", doubling)
    try:
        assert (Base.apply(3), Middle.apply(3), Last.apply(3)) == (("Base", 3), ("Middle", 6), ("Last", 6))
        assert Middle().apply(3) == ("Middle", 6)
    finally:
        give_back(Middle, "apply", doubling)
    assert "apply" not in vars(Middle) and Last.apply(3) == ("Last", 3)


@pytest.mark.parametrize(("name", "call"), [("apply", lambda: Base.apply(3)[-1]), ("method", lambda: Base().method(3))])
def test_two_wrappers_are_removed_in_any_order(name, call):
    before = vars(Base)[name]
    for first, second in ((doubling, adding), (adding, doubling)):
        replace(Base, name, doubling)
        replace(Base, name, adding)
        assert call() == 8  # adding is called first
        give_back(Base, name, first)
        assert call() == (4 if first is doubling else 6)
        give_back(Base, name, second)
        assert vars(Base)[name] is before and call() == 3


@pytest.mark.torch
def test_checkpoints_of_subclasses_run_their_own_code_while_recorded():
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import CheckpointFunction

    class Counted(CheckpointFunction):
        calls = 0

        @staticmethod
        def forward(ctx, function, preserve, *args):
            Counted.calls += 1
            return CheckpointFunction.forward(ctx, function, preserve, *args)

    layer, x = torch.nn.Linear(3, 1), torch.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # none of the inputs requires grad
        with gl.tracing() as traced:
            assert not Counted.apply(layer, True, x).requires_grad
            Counted.apply(layer, True, x.requires_grad_()).sum().backward()
    assert Counted.calls == 2 and layer.weight.grad is not None and "apply" not in vars(CheckpointFunction)
    assert [cut.how for cut in traced.trace.cuts if cut.keys][:2] == ["checkpoint", "checkpoint"]

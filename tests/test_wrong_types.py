"""Check that every public function and method rejects arguments that are not tensors with a helpful error.

A TypeError names the function and the argument.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import gradlab as gl
from gradlab import autograd, func, linalg, special
from gradlab.nn import functional

SPACES = {"": gl, "linalg.": linalg, "nn.functional.": functional, "special.": special, "autograd.": autograd, "func.": func}
# Functions without tensor arguments.
WITHOUT_TENSORS = {"set_printoptions", "manual_seed", "playground", "demo", "watch", "load", "save", "seed"}
ALLOWED_ERRORS = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, KeyError, AssertionError)


def count_required(function: Any) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 0
    return sum(p.default is p.empty and p.kind in kinds for p in parameters)


def calls() -> Iterator[Any]:
    seen = set()
    for place, space in SPACES.items():
        for name in sorted(getattr(space, "__all__", [n for n in dir(space) if not n.startswith("_")])):
            function = getattr(space, name, None)
            if name in WITHOUT_TENSORS or not callable(function) or inspect.isclass(function) or inspect.ismodule(function):
                continue
            if id(function) not in seen:
                seen.add(id(function))
                yield pytest.param(function, max(count_required(function), 1), False, id=place + name)
    for name, function in vars(gl.Tensor).items():
        if not name.startswith("__") and inspect.isfunction(function) and id(function) not in seen:
            seen.add(id(function))
            yield pytest.param(function, count_required(function), True, id=f"Tensor.{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "count", "is_method"), list(calls()))
def test_wrong_types_raise_an_expected_error(function, count, is_method):
    x = gl.ones(3, 3)
    several = [(3,) * count, (x, *(3,) * (count - 1)), (x, x, *(3,) * (count - 2))[:count], ("a",) * count, (None,) * count]
    for given in several:
        given = (gl.ones(3, 3), *given[1:]) if is_method else given
        with (
            warnings.catch_warnings(),
            contextlib.suppress(*ALLOWED_ERRORS),
        ):  # an AttributeError would expose internal attributes
            warnings.simplefilter("ignore")
            function(*given)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gl.flatten(3), r"flatten\(\): argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: gl.exp_([1.0]), r"exp_\(\): argument 'input' \(position 1\) must be Tensor, not list"),
        (
            lambda: functional.mse_loss(gl.ones(2), 3.0),
            r"mse_loss\(\): argument 'target' \(position 2\) must be Tensor, not float",
        ),
        (lambda: functional.softmax([1.0, 2.0], 0), r"softmax\(\): argument 'input' \(position 1\) must be Tensor, not list"),
        (lambda: functional.cross_entropy(gl.ones(1, 2), [1]), r"'target' \(position 2\) must be Tensor, not list"),
        (lambda: gl.ones(2).is_set_to(3), r"is_set_to\(\): argument 'tensor' \(position 1\) must be Tensor, not int"),
        (lambda: gl.index_add(gl.ones(2), 0, 3, gl.ones(1)), r"index_add\(\): argument 'index' \(position 3\) must be Tensor"),
        (lambda: func.stack_module_state([gl.ones(2)]), "expected modules, got Tensor"),
    ],
)
def test_messages(call, words):
    with pytest.raises(TypeError, match=words):
        call()

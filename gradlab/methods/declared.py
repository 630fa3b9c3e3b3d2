"""Methods generated from the declarations of operators, with their in-place variants.

Some in-place variants are functions of the package, too: `gradlab.exp_`. The stub `declared.pyi`, which editors use to complete
`x.exp2(`, is written by `python tests/stubs.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gradlab.linalg.toplevel
import gradlab.linalg.toplevel_factors
import gradlab.nn.functional.activations
import gradlab.ops  # noqa: F401  (its modules declare operators, as do those above)
from gradlab.core import inplace
from gradlab.core.operator import OPERATORS, Operator
from gradlab.core.primitive import Primitive
from gradlab.core.tensor import Tensor
from gradlab.methods.writing import twin, twin_without_gradient


class Declared:
    """Methods generated from the declarations."""


def twin_of(operator: Operator) -> Callable[..., Any]:
    """Return the in-place variant of an operator, with its name and docstring."""
    target = operator.twin
    if isinstance(target, Primitive) and len(target.args) == 1 and not target.meta:

        def method(input: Tensor) -> Tensor:
            return inplace.in_place(target, input)
    elif isinstance(target, Primitive) and len(target.args) == 2 and not target.meta:

        def method(input: Tensor, other: Tensor) -> Tensor:  # type: ignore[misc]
            return inplace.in_place(target, input, other)
    else:
        method = target if target is not operator.target else (twin if operator.history else twin_without_gradient)(target)
        if method.__code__.co_flags & inspect.CO_VARARGS:  # use the signature of its function
            method.__signature__ = signature_without_out(operator.target)  # type: ignore[attr-defined]
    method.__doc__ = operator.twin_docstring()
    method.__name__ = method.__qualname__ = f"{operator.name}_"
    return method


def signature_without_out(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function without its parameter `out`."""
    whole = inspect.signature(function)
    return whole.replace(parameters=[one for one in whole.parameters.values() if one.name != "out"])


_TWINS = {operator.name: twin_of(operator) for operator in OPERATORS.values() if operator.inplace and not operator.shares}
_TWINS |= {operator.name: _TWINS[operator.shares] for operator in OPERATORS.values() if operator.shares}
__all__ = [name for operator in OPERATORS.values() for name in operator.twin_functions]

for _operator in OPERATORS.values():
    _members = dict.fromkeys(_operator.names, _operator.public_function()) if _operator.method else {}
    if _operator.inplace:
        _members |= dict.fromkeys(_operator.twins, _TWINS[_operator.name])
        globals().update(dict.fromkeys(_operator.twin_functions, _TWINS[_operator.name]))
    for _name, _member in _members.items():
        setattr(Declared, _name, _member)

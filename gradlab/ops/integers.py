"""What there is of whole numbers only. It has no derivative."""

from __future__ import annotations

from collections.abc import Callable

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.errors import forward_failed, not_implemented
from gradlab.core.operator import Operator, documented
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import tensors
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import Called

__all__ = [
    "gcd",
    "lcm",
]


def _of_integers(name: str, doc: str, result: str) -> Callable[..., Tensor]:
    called = Called(name)

    @takes_out
    def function(input: Tensor, other: Tensor) -> Tensor:
        a, b = tensors(called, input, other)
        if a.array.dtype.kind not in "ui":
            raise not_implemented(name, a.dtype)
        try:
            return constant(wrap(getattr(namespace_of[type(a.array)], name)(a.array, b.array)))
        except ValueError as error:
            raise forward_failed(called, error, (a.array, b.array))  # noqa: B904  (it decides whether the cause is shown)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = documented(
        doc,
        "input other out",
        "The shape that the operands broadcast to, of their common dtype. It has no history.",
        ["TypeError\n    If an operand is no tensor.", "NotImplementedError\n    If they hold no integers."],
        f"{name}(gl.tensor([12, 18]), gl.tensor([8, 27])) -> tensor({result})",
    )
    Operator(name, function, inplace="function")
    return function


gcd = _of_integers("gcd", "The greatest common divisor of each pair of integers.", "[4, 9]")
lcm = _of_integers("lcm", "The least common multiple of each pair of integers.", "[24, 54]")

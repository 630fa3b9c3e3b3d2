"""Operations on integers, which have no derivative: gcd and lcm."""

from __future__ import annotations

from collections.abc import Callable

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.errors import forward_failed, not_implemented
from gradlab.core.operator import Operator, build_docstring
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import agree_tensors
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import FunctionInfo

__all__ = [
    "gcd",
    "lcm",
]


def _integer_function(name: str, doc: str, result: str) -> Callable[..., Tensor]:
    info = FunctionInfo(name)

    @takes_out
    def function(input: Tensor, other: Tensor) -> Tensor:
        a, b = agree_tensors(info, input, other)
        if a.array.dtype.kind not in "ui":
            raise not_implemented(name, a.dtype)
        try:
            return constant(wrap(getattr(namespace_of[type(a.array)], name)(a.array, b.array)))
        except ValueError as error:
            raise forward_failed(info, error, (a.array, b.array))  # noqa: B904  (forward_failed sets the cause)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = build_docstring(
        doc,
        "input other out",
        "Broadcast shape of the operands, common dtype. It never requires a gradient.",
        ["TypeError\n    If an operand is not a Tensor.", "NotImplementedError\n    If the operands are not integers."],
        f"{name}(gl.tensor([12, 18]), gl.tensor([8, 27])) -> tensor({result})",
    )
    Operator(name, function, inplace="function")
    return function


gcd = _integer_function("gcd", "Compute the greatest common divisor of each pair of integers.", "[4, 9]")
lcm = _integer_function("lcm", "Compute the least common multiple of each pair of integers.", "[24, 54]")

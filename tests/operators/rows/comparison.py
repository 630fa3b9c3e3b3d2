"""Comparisons, logic, bits, closeness, where."""

from __future__ import annotations

import numpy as np
from operators.spelling import B, I, N, V, rows_for

inf, nan = np.inf, np.nan
EDGES = {"x": V([0, -0.0, 1, nan, nan, inf, -inf, inf, 1 + 1e-6]), "y": V([0, 0, 1, nan, 1, inf, -inf, -inf, 1])}
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal", "greater", "greater_equal")
LOGIC = "logical_and", "logical_or", "logical_xor"
BITS = "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"
KINDS = "isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit", "logical_not"

ROWS = [
    *rows_for(
        [{"x": N(3, 4), "y": N(4)}, {"x": N(), "y": N(2)}, {"x": N(0, 3), "y": N(3)}, EDGES],
        [*(f"torch.{name}(x, y)" for name in (*COMPARE, *LOGIC)), *(f"torch.{name}(x)" for name in KINDS)],
    ),
    *rows_for(
        [{"x": N(3, 4), "i": I(4), "b": B(3, 4)}],
        [
            *(f"x.{name}({y})" for name in COMPARE for y in ("0", "0.5", "i", "b")),
            *(f"i.{name}({y})" for name in COMPARE for y in ("1", "0.5", "True", "b", "i[:1]")),
            *(f"b.{name}({y})" for name in LOGIC for y in ("i", "x", "b")),
            *(
                f"{a}.{name}({y})"
                for name in BITS
                for a, y in (("i", "i"), ("b", "b"), ("i", "1"), ("b", "True"), ("i", "b"), ("x", "i"), ("i", "1.5"))
            ),
            *(f"torch.{name}(i, 'a')" for name in BITS),
            *(f"{a}.{name}()" for name in KINDS for a in "ib"),
            *(f"torch.{name}(2, i)" for name in BITS),
            *(f"torch.{name}(2, 3)" for name in BITS),
            *(f"torch.{name}(x, 'a')" for name in COMPARE),
            *(f"torch.{name}(2, x)" for name in COMPARE),
            *(f"torch.{name}(x, None)" for name in COMPARE[:2]),
            *(f"x.{name}(torch.ones(3))" for name in (*COMPARE[:2], *LOGIC[:1])),
            *(f"torch.{name}(x, 2)" for name in LOGIC),
            *(f"torch.{name}(2.0)" for name in KINDS),
            *(f"torch.{name}(x, x + 1, out=torch.empty(0, dtype=torch.bool))" for name in (*COMPARE, *LOGIC)),
            *(f"torch.{name}(x, x, out=torch.empty(3, 4, dtype=x.dtype))" for name in (*COMPARE[:3], *LOGIC)),
            *(f"torch.{name}(i, i, out=torch.empty(4, dtype=torch.int64))" for name in BITS),
            *(f"torch.{name}(x, out=torch.empty(0, dtype=torch.bool))" for name in KINDS[3:5] + KINDS[6:]),
            *(f"x.detach().clone().{name}_(0.5)" for name in COMPARE),
            *(f"i.clone().{name}_(1)" for name in (*COMPARE, *BITS)),
            *(f"b.clone().{name}_(b)" for name in (*COMPARE, *LOGIC, *BITS[:3])),
            *(f"x.detach().clone().{name}_(i)" for name in LOGIC),
        ],
    ),
    *rows_for(
        {"x": N(3, 4), "y": N(4)}, [f"(x * 2).{name}_({other})" for other in ("y.detach()", "0.5") for name in COMPARE[:6]]
    ),
    *rows_for(
        {"x": N(3, 4), "i": I(4), "b": B(3, 4)},
        """
        x == 0
        x != x
        x > 0.5
        0.5 > x
        x >= i
        x == 'a'
        x != 'a'
        x == None
        x < 'a'
        x > None
        (x > 0) & (x < 1)
        (x > 0) | b
        b ^ True
        True & b
        False | b
        i & 1
        1 & i
        3 | i
        i ^ 5
        5 ^ i
        i << 1
        1 << i.abs()
        i >> 1
        64 >> i.abs()
        i << -1
        i << 64
        i >> 70
        (~b)
        (~i)
        (~x)
        x & x
        x | 1
        x << 1
        b << 1
        i & 1.5
        i.to(torch.uint8) << 3
        i.to(torch.uint8) == -1
        i.to(torch.uint8) < 300
        i.to(torch.int32) & i
        torch.bitwise_not(i)
        torch.bitwise_not(x)
        b.bitwise_not()
        i.clone().bitwise_not_()
        b.clone().logical_not_()
        x.detach().clone().logical_not_()
        b.clone().bitwise_and_(i)
        z = b.clone(); z &= b; z
        z = b.clone(); z |= (x > 0); z
        z = b.clone(); z ^= True; z
        z = i.clone(); z <<= 2; z
        z = i.clone(); z >>= 1; z
        z = i.clone(); z &= 3; z
        x.eq_(1)
        (x * 2).eq_(torch.ones(2, 3, 4))
        torch.eq(input=x, other=x)
        torch.logical_and(input=x, other=b)
        torch.isclose(x, x)
        torch.isclose(x, x + 1e-9)
        torch.isclose(x, x + 1e-3, rtol=0, atol=1e-2)
        torch.isclose(x, x * 1.01, 0.1)
        x.isclose(other=x, equal_nan=True)
        torch.isclose(i, i + 1, atol=1)
        torch.isclose(i, i, rtol=0, atol=0)
        torch.isclose(b, b)
        torch.isclose(x, i)
        torch.isclose(x, x, rtol=-1)
        torch.isclose(x, x, atol=-1)
        torch.isclose(x, 1.0)
        torch.isclose(x, torch.ones(3, dtype=x.dtype))
        torch.allclose(x, x)
        torch.allclose(x, x + 1e-9)
        torch.allclose(x, x + 1)
        torch.allclose(x, x + 1e-3, atol=1e-2)
        x.allclose(x[:1])
        torch.allclose(i, i)
        torch.allclose(x, i)
        torch.allclose(x, 1.0)
        torch.equal(x, x)
        torch.equal(x, x + 1)
        torch.equal(x, x[:1])
        x.equal(i)
        torch.equal(i, i.to(torch.int32))
        torch.equal(x, 1.0)
        torch.isinf(i)
        x.isnan()
        torch.signbit(i)
        torch.signbit(-x)
    """,
    ),
    *rows_for(
        [EDGES, {"x": V([]), "y": V([])}],
        """
        torch.isclose(x, y)
        torch.isclose(x, y, equal_nan=True)
        torch.isclose(x, y, rtol=0, atol=0)
        torch.allclose(x, y)
        torch.allclose(x, y, equal_nan=True)
        torch.equal(x, y)
        torch.where(x > y, x, y)
        torch.where(x == y, x, 0.0)
        torch.where(x == y)
    """,
    ),
    *rows_for(
        [
            {"x": N(3, 4), "y": N(4), "b": B(3, 4), "i": I(4)},
            {"x": N(), "y": N(2), "b": B(), "i": I(2)},
            {"x": N(0, 3), "y": N(3), "b": B(1), "i": I(3)},
        ],
        """
        torch.where(b, x, y)
        torch.where(b, x, 2)
        torch.where(b, 2.5, y)
        torch.where(b, 1, 0)
        torch.where(b, 1.0, 0)
        torch.where(b, True, False)
        torch.where(b, i, 0)
        torch.where(b, i, 0.5)
        torch.where(b, x, i)
        torch.where(condition=b, input=x, other=y)
        x.where(b, y)
        x.where(b, 0)
        x.where(x > 0, y)
        torch.where(b)
        torch.where(x > 0)
        torch.where(i)
        torch.where(b, x.detach(), y.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.where(b, x, torch.tensor(1.0, dtype=torch.float64))
        torch.where(b, torch.tensor(3), y)
    """,
    ),
    *rows_for(
        {"x": N(3, 4), "b": B(3, 4), "i": I(4)},
        """
        torch.where(i, x, x)
        torch.where(x, x, x)
        torch.where(b, x)
        torch.where(True, x, x)
        torch.where([True], x, x)
        torch.where(b, 'a', x)
        torch.where(b, x, None)
        torch.where(b, x, torch.ones(3))
        torch.where(b, 'a', 'b')
    """,
    ),
]

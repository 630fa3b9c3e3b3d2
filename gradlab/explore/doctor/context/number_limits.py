"""The largest number and the precision of each floating point dtype, and where exponentials overflow."""

from __future__ import annotations

import math

from gradlab.explore.trace.values import Value

# The largest finite numbers (IEEE 754; bfloat16 has the exponents of float32).
LARGEST_NUMBERS = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}
SIGNIFICAND_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def largest_exponent(dtype: str, op: str) -> float:
    """Return the largest number of which an exponential is finite: exp, expm1, exp2, sinh or cosh, by the name of its node."""
    if dtype not in LARGEST_NUMBERS:
        return math.inf
    largest = LARGEST_NUMBERS[dtype]
    return math.log2(largest) if op == "Exp2" else math.log(largest) + (math.log(2) if op in ("Sinh", "Cosh") else 0.0)


def largest_sigmoid_input(dtype: str) -> float:
    """Return the number above which a sigmoid is 1.

    1 + exp(-x) is rounded to 1 if exp(-x) is below half a unit in its last place, 2 ** -bits. Of 16 bits, the sigmoid is computed
    in float32, and its result is rounded: half a unit in the last place below 1 is 2 ** -(bits + 1).
    """
    bits = SIGNIFICAND_BITS[dtype]
    return (bits + 1 if bits < SIGNIFICAND_BITS["float32"] else bits) * math.log(2)


def largest_finite(value: Value) -> float:
    """Return the largest finite element of a value, -inf if there is none."""
    if value.numbers is not None:
        return max((float(x) for x in value.numbers if math.isfinite(x)), default=-math.inf)
    return float(value.statistics.maximum)

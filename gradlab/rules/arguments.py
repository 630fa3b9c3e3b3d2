"""Type aliases for the arguments of rules, and a size limit that several rules share.

A rule is written once. It runs on NumPy and CuPy arrays and, when a derivative is itself differentiated, on Tensors (see
`traced`). No common type describes these, so `Array` and `Namespace` are aliases of Any.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
Namespace: TypeAlias = Any  # `xp`: numpy, cupy, or `traced`
Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = tuple[int, ...]  # negative, so that batch axes in front do not shift them
Meta: TypeAlias = dict[str, Any]  # the arguments of an operation other than its tensors

MIN_STEPWISE_SIZE = 256  # elements per step along an axis; from here on NumPy loops over the steps

"""Types of what the functions of rules are given, for readers and the type checker, and bounds that several of them go by.

A rule is written once and run on arrays of NumPy and of CuPy, and, where a derivative is differentiated, on Tensors (see
`traced`). No type says what these have in common, so `Array` and `Namespace` are names of Any.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
Namespace: TypeAlias = Any  # `xp`: numpy, cupy, or `traced`
Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = tuple[int, ...]  # negative, since batches of cotangents come in front
Meta: TypeAlias = dict[str, Any]  # what an operation is given besides its tensors

MANY = 256  # elements of a step along an axis, from which NumPy takes one step after the other

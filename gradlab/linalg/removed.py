"""Functions that were removed from PyTorch. They raise an error that names the replacement."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

REMOVED = """Raise an error: this function was removed from PyTorch. Use gradlab.linalg.{instead}.

Parameters
----------
*args, **options : optional
    Ignored.

Returns
-------
None
    Never returned.

Raises
------
RuntimeError
    Always.

Examples
--------
>>> import gradlab as gl
>>> A = gl.tensor([[4.0, 0.0], [0.0, 1.0]])
>>> gl.linalg.{example}
"""


def _removed_function(name: str, instead: str, example: str) -> Any:
    def function(*args: Any, **options: Any) -> NoReturn:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. Use gradlab.linalg.{instead}.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = REMOVED.format(instead=instead, example=example)
    return function


eig = _removed_function("eig", "eigh for a symmetric matrix", "eigh(A).eigenvalues\ntensor([1., 4.])")
symeig = _removed_function("symeig", "eigh", "eigh(A).eigenvalues\ntensor([1., 4.])")
solve = _removed_function(
    "solve", "solve(A, B), with the arguments in this order", "solve(A, gl.tensor([4.0, 1.0]))\ntensor([1., 1.])"
)
lstsq = _removed_function(
    "lstsq", "lstsq(A, B), with the arguments in this order", "lstsq(A, gl.tensor([[4.0], [1.0]])).rank\ntensor(2)"
)
matrix_rank = _removed_function("matrix_rank", "matrix_rank", "matrix_rank(A)\ntensor(2)")

"""Initialise parameters in place: `init.kaiming_uniform_(layer.weight)`. A seed gives the same numbers as in PyTorch.

Sources: Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming), Saxe et al. 2013 (orthogonal).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.init_by_fan import (
    _calculate_correct_fan,  # noqa: F401  (defined here in torch)
    _calculate_fan_in_and_fan_out,  # noqa: F401
    calculate_gain,
    kaiming_normal_,
    kaiming_uniform_,
    xavier_normal_,
    xavier_uniform_,
)
from gradlab.nn.init_plain import (
    constant_,
    dirac_,
    eye_,
    normal_,
    ones_,
    orthogonal_,
    sparse_,
    trunc_normal_,
    uniform_,
    zeros_,
)

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

OLDER = """Deprecated: use `{name}_`.

Parameters
----------
*args, **kwargs : optional
    As in `{name}_`.

Returns
-------
Tensor
    The tensor, which is overwritten.

Examples
--------
>>> import gradlab as gl
>>> gl.nn.init.{name}_.__name__
'{name}_'
"""


def older_name(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the deprecated version of a function, without the underscore."""
    name = function.__name__.rstrip("_")

    def older(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    older.__name__, older.__doc__ = name, OLDER.format(name=name)
    return older


uniform = older_name(uniform_)
normal = older_name(normal_)
constant = older_name(constant_)
eye = older_name(eye_)
dirac = older_name(dirac_)
xavier_uniform = older_name(xavier_uniform_)
xavier_normal = older_name(xavier_normal_)
kaiming_uniform = older_name(kaiming_uniform_)
kaiming_normal = older_name(kaiming_normal_)
orthogonal = older_name(orthogonal_)
sparse = older_name(sparse_)

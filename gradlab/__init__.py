"""gradlab: see a derivative. PyTorch's names for tensors and autograd, on NumPy and CuPy, and explorers for notebooks."""
from __future__ import annotations

import warnings as _warnings
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

# NumPy warns of 1/0 and log(0); torch computes inf and nan in silence, and so do we. Only for our own modules.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradlab\.")

from gradlab import autograd, cuda, nn
from gradlab.backend.namespaces import device
from gradlab.core.dtypes import (
    bool_ as bool,
)
from gradlab.core.dtypes import (
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)
from gradlab.core.errors import Size
from gradlab.core.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from gradlab.core.printing import set_printoptions
from gradlab.core.tensor import Tensor
from gradlab.creation import (
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from gradlab.functions import *
from gradlab.methods.tensor import Methods as _Methods
from gradlab.random import Generator, initial_seed, manual_seed, rand, rand_like, randint, randn, randn_like, randperm
from gradlab.rules import traced as _traced

__version__ = "0.1.0"

float, double, half, long, int, short = float32, float64, float16, int64, int32, int16
from math import e, inf, nan, pi

# What is loaded when it is first asked for: the explorers, and what Jupyter calls.
_LAZY = {
    "explain": "gradlab.explore.report", "formula": "gradlab.explore.formula", "graph": "gradlab.explore.graph",
    "jacobian": "gradlab.explore.jacobian",
    "load_ipython_extension": "gradlab.notebook.extension", "unload_ipython_extension": "gradlab.notebook.extension",
}

if _TYPE_CHECKING:
    from gradlab.explore.formula import formula
    from gradlab.explore.graph import graph
    from gradlab.explore.jacobian import jacobian
    from gradlab.explore.report import explain


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'gradlab' has no attribute {name!r}: it is not a name of torch's that gradlab has yet. "
                         "dir(gradlab) lists those there are.")


# What `import *` and Tab offer: torch's names. Of the modules, those that torch has too.
__all__ = [n for n, v in globals().items() if not n.startswith("_") and not isinstance(v, _ModuleType) and n != "annotations"]


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY, "autograd", "cuda", "nn", "random"])

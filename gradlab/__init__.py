"""Tensors and autograd with PyTorch's names, on NumPy and CuPy, with tools to inspect derivatives in notebooks."""

from __future__ import annotations

from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import gradlab.core.first_tensor as _first_tensor
import gradlab.diagnose.registration as _explaining
import gradlab.notebook.registration as _viewing
from gradlab import autograd, backends, cuda, linalg, nn, random, return_types, special
from gradlab.backend.namespaces import device
from gradlab.core.dtypes import bool_ as bool
from gradlab.core.dtypes import dtype, float16, float32, float64, int8, int16, int32, int64, uint8
from gradlab.core.errors import OutOfMemoryError, Size
from gradlab.core.inference import inference_mode, is_inference
from gradlab.core.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from gradlab.core.modes import enable_grad, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from gradlab.core.printing import set_printoptions
from gradlab.core.tensor import Tensor
from gradlab.interop import *
from gradlab.linalg.removed import *
from gradlab.linalg.toplevel import *
from gradlab.linalg.toplevel_factors import *
from gradlab.methods.declared import *
from gradlab.methods.tensor import Methods as _Methods
from gradlab.methods.twins import *
from gradlab.nn.functional.activations import hardshrink, prelu, rrelu, rrelu_, threshold, threshold_
from gradlab.nn.functional.average_pooling import adaptive_avg_pool1d, avg_pool1d
from gradlab.nn.functional.convolution import *
from gradlab.nn.functional.distances import cdist, cosine_similarity, pairwise_distance, pdist
from gradlab.nn.functional.max_pooling import adaptive_max_pool1d, max_pool1d, max_pool2d, max_pool3d
from gradlab.nn.functional.padding import constant_pad_nd
from gradlab.nn.functional.shuffles import channel_shuffle, pixel_shuffle, pixel_unshuffle
from gradlab.nn.functional.smooth_activations import celu, celu_, selu, selu_
from gradlab.ops import *
from gradlab.rules import traced as _traced
from gradlab.settings import *

__version__ = "0.1.0"

float, double, half, long, int, short = float32, float64, float16, int64, int32, int16
from math import e, inf, nan, pi

newaxis = None

# Names that are imported on first use: the explorers, the training modules, and the entry points of the Jupyter extension.
_LAZY = {
    **dict.fromkeys(("is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled"), "gradlab.diagnose.anomaly"),
    "load": "gradlab.saving",
    "save": "gradlab.saving",
    "check_against_torch": "gradlab.explore.against",
    "doctor": "gradlab.explore.doctor.front",
    "explain": "gradlab.explore.report",
    "formula": "gradlab.explore.formula",
    "graph": "gradlab.explore.graph",
    "graphs": "gradlab.explore.graph.side_by_side",
    "hessian": "gradlab.explore.jacobian",
    "jacobian": "gradlab.explore.jacobian",
    "func": "gradlab.func",
    "vmap": "gradlab.func",
    "optim": "gradlab.optim",
    "playground": "gradlab.explore.playground",
    "record_sites": "gradlab.diagnose.sites",
    "step_through": "gradlab.explore.steps",
    "tracing": "gradlab.explore.trace.tracing",
    "utils": "gradlab.utils",
    "watch": "gradlab.explore.watch",
    "load_ipython_extension": "gradlab.notebook.extension",
    "unload_ipython_extension": "gradlab.notebook.extension",
}

if _TYPE_CHECKING:
    from gradlab import optim, utils
    from gradlab.diagnose.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
    from gradlab.diagnose.sites import record_sites
    from gradlab.explore.against import check_against_torch
    from gradlab.explore.doctor.front import doctor
    from gradlab.explore.formula import formula
    from gradlab.explore.graph import graph
    from gradlab.explore.graph.side_by_side import graphs
    from gradlab.explore.jacobian import hessian, jacobian
    from gradlab.explore.playground import playground
    from gradlab.explore.report import explain
    from gradlab.explore.steps import step_through
    from gradlab.explore.trace.tracing import tracing
    from gradlab.explore.watch import watch
    from gradlab.func import vmap
    from gradlab.saving import load, save


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        from importlib import import_module

        module = import_module(_LAZY[name])
        return module if module.__name__ == f"gradlab.{name}" else getattr(module, name)
    from gradlab.core.errors import missing_attribute

    raise missing_attribute(name)


# The names that `import *` imports and completion offers: torch's, without modules.
__all__ = [n for n, v in globals().items() if not n.startswith("_") and not isinstance(v, _ModuleType) and n != "annotations"]


def __dir__() -> list[str]:
    return sorted([*__all__, *_LAZY, "autograd", "backends", "cuda", "linalg", "nn", "optim", "random", "utils"])

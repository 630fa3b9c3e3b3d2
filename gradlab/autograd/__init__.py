"""Automatic differentiation with the names of `torch.autograd`."""

from typing import Any as _Any

from gradlab.autograd import function, graph
from gradlab.autograd.function import Function
from gradlab.autograd.functions import backward, grad, jvp_of_graph
from gradlab.autograd.gradcheck import gradcheck, gradgradcheck
from gradlab.autograd.saved import SavedTensor
from gradlab.autograd.variable import Variable
from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.core.inference import inference_mode
from gradlab.core.modes import enable_grad, is_multithreading_enabled, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = [
    "Function",
    "SavedTensor",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "jvp_of_graph",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_LAZY = ("anomaly_mode", "forward_ad", "functional", "grad_mode")  # modules that are imported on first use
_LAZY_NAMES = {"detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode"}
_raise_missing = _module_getattr("gradlab.autograd")


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        from importlib import import_module

        return import_module(f"gradlab.autograd.{name}")
    if name in _LAZY_NAMES:
        return getattr(__getattr__(_LAZY_NAMES[name]), name)
    return _raise_missing(name)

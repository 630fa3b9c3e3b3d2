"""Gradient modes with the names of `torch.autograd.grad_mode`."""

from gradlab.core.inference import inference_mode
from gradlab.core.modes import enable_grad, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

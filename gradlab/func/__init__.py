"""Function transforms with the names of `torch.func`: derivatives of any order, `vmap`, and functional calls of modules."""

from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.func.batching import vmap
from gradlab.func.modules import (
    debug_unwrap,
    functional_call,
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from gradlab.func.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

__getattr__ = _module_getattr("gradlab.func")

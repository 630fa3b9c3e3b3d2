"""Functions that transform functions, as `torch.func` spells them: derivatives of any order, batches, modules as functions."""

from gradlab.core.errors import names_of as _names_of
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

__getattr__ = _names_of("gradlab.func")

"""Find and reset global state that a test should have restored."""

from __future__ import annotations

import gc
import sys

from gradlab.backend.bounds import debug
from gradlab.core.engine import running
from gradlab.core.first_tensor import FIRST_TENSOR
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS, observers


def active_observers():
    """Return the active observers, except the one that waits for the first gradlab tensor."""
    return [one for one in OBSERVERS if one is not FIRST_TENSOR]


def find_leftovers():
    """Return the names of settings that differ from their defaults."""
    tangents = sys.modules.get("gradlab.core.tangents")
    fine = {
        "grad mode": mode.grad is True,
        "inference mode": mode.inference is False,
        "forward mode": mode.forward is True,
        "observers": observers.active == observers.sweeps == (),
        "watched": not active_observers(),
        "a sweep": running.sweep is None,
        "a dual level": tangents is None or tangents.level_state.level is None,
        "sync debug": not debug.at_once,
        "the garbage collector": gc.isenabled(),
    }
    return [name for name, so in fine.items() if not so]


def find_torch_leftovers():
    """Return the names of PyTorch's settings and hooks that tracing left changed."""
    import torch
    from torch.nn.modules import module
    from torch.optim import optimizer
    from torch.overrides import _len_torch_function_stack

    from gradlab.explore.libraries.scaling_torch import SCALER

    fine = {
        "function modes": _len_torch_function_stack() == 0,
        "backward": not hasattr(torch.Tensor.backward, "__wrapped__"),
        "autograd.backward": not hasattr(torch.autograd.backward, "__wrapped__"),
        "compile": not hasattr(torch.compile, "__wrapped__"),
        "GradScaler": not any(hasattr(getattr(SCALER, name), "__wrapped__") for name in ("scale", "unscale_", "step")),
        "CheckpointFunction": "apply" not in vars(torch.utils.checkpoint.CheckpointFunction),
        "hooks on modules": not (module._global_forward_pre_hooks or module._global_forward_hooks),
        "hooks on optimizers": not (optimizer._global_optimizer_pre_hooks or optimizer._global_optimizer_post_hooks),
        "the compiler": torch.compiler.is_compiling() or torch._dynamo.eval_frame._stance.stance == "default",
    }
    return [name for name, so in fine.items() if not so]


def reset_torch_state():
    """Remove everything that tracing may have left in PyTorch."""
    import torch
    from torch.nn.modules import module
    from torch.optim import optimizer
    from torch.overrides import _len_torch_function_stack, _pop_mode

    while _len_torch_function_stack():
        _pop_mode()
    while hasattr(torch.Tensor.backward, "__wrapped__"):
        torch.Tensor.backward = torch.Tensor.backward.__wrapped__
    hooks = (module._global_forward_pre_hooks, module._global_forward_hooks, module._global_forward_hooks_always_called)
    for table in (*hooks, optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks):
        table.clear()
    torch.compiler.set_stance("default")


def script_state():
    """Return the interpreter state that running a script changes, for comparison."""
    from gradlab.diagnose.source_locations import cells

    main = sys.modules["__main__"]
    return list(sys.argv), list(sys.path), list(sys.meta_path), main, cells.current, cells.header, cells.called


def reset_state():
    """Reset all settings to their defaults."""
    gc.enable()
    mode.grad = mode.forward = True
    mode.inference = debug.at_once = False
    observers.active = observers.sweeps = ()
    running.sweep = None
    OBSERVERS[:] = [one for one in OBSERVERS if one is FIRST_TENSOR]
    if "gradlab.core.tangents" in sys.modules:
        sys.modules["gradlab.core.tangents"].level_state.level = None

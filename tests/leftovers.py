"""What a thread's state is when nothing is at work, and what of it is not so."""

from __future__ import annotations

import gc
import sys

from gradlab.backend.bounds import debug
from gradlab.core.engine import running
from gradlab.core.first_tensor import FIRST
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS, observers


def watching():
    """The observers at work, but for the one that waits for the first tensor of gradlab's own."""
    return [one for one in OBSERVERS if one is not FIRST]


def left_behind():
    """What is not as it was at the start."""
    tangents = sys.modules.get("gradlab.core.tangents")
    fine = {
        "grad mode": mode.grad is True,
        "inference mode": mode.inference is False,
        "forward mode": mode.forward is True,
        "observers": observers.active == observers.sweeps == (),
        "watched": not watching(),
        "a sweep": running.sweep is None,
        "a dual level": tangents is None or tangents.opened.level is None,
        "sync debug": not debug.at_once,
        "the garbage collector": gc.isenabled(),
    }
    return [name for name, so in fine.items() if not so]


def left_in_torch():
    """The same of what is set in PyTorch while it is watched."""
    import torch
    from torch.nn.modules import module
    from torch.optim import optimizer
    from torch.overrides import _len_torch_function_stack

    fine = {
        "function modes": _len_torch_function_stack() == 0,
        "backward": not hasattr(torch.Tensor.backward, "__wrapped__"),
        "autograd.backward": not hasattr(torch.autograd.backward, "__wrapped__"),
        "compile": not hasattr(torch.compile, "__wrapped__"),
        "hooks on modules": not (module._global_forward_pre_hooks or module._global_forward_hooks),
        "hooks on optimizers": not (optimizer._global_optimizer_pre_hooks or optimizer._global_optimizer_post_hooks),
        "the compiler": torch.compiler.is_compiling() or torch._dynamo.eval_frame._stance.stance == "default",
    }
    return [name for name, so in fine.items() if not so]


def clear_torch():
    """Make it so."""
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


def surroundings():
    """What a script that is looked at changes of Python's: compare it with what it was."""
    from gradlab.diagnose.source_locations import cells

    main = sys.modules["__main__"]
    return list(sys.argv), list(sys.path), list(sys.meta_path), main, cells.current, cells.header, cells.called


def clear():
    """Make it so."""
    gc.enable()
    mode.grad = mode.forward = True
    mode.inference = debug.at_once = False
    observers.active = observers.sweeps = ()
    running.sweep = None
    OBSERVERS[:] = [one for one in OBSERVERS if one is FIRST]
    if "gradlab.core.tangents" in sys.modules:
        sys.modules["gradlab.core.tangents"].opened.level = None

"""Hooks of modules, and calls that run them.

For a module without hooks, `Module.__call__` checks one attribute and calls `forward`. A full backward hook needs the gradients
of the module's inputs and outputs. They pass through identity nodes that run the hook. Several tensors are packed into one tensor
and share a node, which receives its gradient when those of all tensors are complete.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradlab.core.modes import mode
from gradlab.core.node import RemovableHandle
from gradlab.core.observers import OBSERVERS, notify_module_enter, notify_module_exit
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.joins import cat
from gradlab.ops.splits import split
from gradlab.rules import shapes

BACKWARD_HOOK = shapes.reshape.with_node("BackwardHookFunctionBackward")


class Hooks:
    """The hooks of one module by number, in the order of registration, and the numbers of those with options."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.before_backward: dict[int, Callable[..., Any]] = {}
        self.after_backward: dict[int, Callable[..., Any]] = {}
        self.with_kwargs: set[int] = set()
        self.always: set[int] = set()


def register_hook(
    module: Any, kind: str, hook: Callable[..., Any], prepend: bool, with_kwargs: bool = False, always: bool = False
) -> RemovableHandle:
    """Add a hook to a module, and return the handle that removes it."""
    if module._hooks is None:
        object.__setattr__(module, "_hooks", Hooks())
    hooks = module._hooks
    of_kind = getattr(hooks, kind)
    handle = RemovableHandle(of_kind, hook)
    if with_kwargs:
        hooks.with_kwargs.add(handle.id)
    if always:
        hooks.always.add(handle.id)
    if prepend:
        others = {n: other for n, other in of_kind.items() if n != handle.id}
        of_kind.clear()
        of_kind.update({handle.id: hook, **others})
    return handle


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `module(*args, **kwargs)` with its hooks, and notify observers."""
    if not OBSERVERS:
        return call_with_hooks(module, args, kwargs)
    notify_module_enter(module)
    try:
        return module.forward(*args, **kwargs) if module._hooks is None else call_with_hooks(module, args, kwargs)
    finally:
        notify_module_exit(module)


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `module(*args, **kwargs)` with its hooks."""
    hooks, ran, result = module._hooks, set(), None
    try:
        for number, hook in list(hooks.before.items()):
            if number in hooks.with_kwargs:
                changed = hook(module, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        backward = Backward(module, hooks) if hooks.after_backward or hooks.before_backward else None
        if backward is not None:
            args = backward.wrap_inputs(args)
        result = module.forward(*args, **kwargs)
        for number, hook in list(hooks.after.items()):
            ran.add(number)
            changed = hook(module, args, kwargs, result) if number in hooks.with_kwargs else hook(module, args, result)
            if changed is not None:
                result = changed
        if backward is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=3,
                )
            result = backward.wrap_outputs(result)
        return result
    except Exception:
        for number in hooks.always - ran:
            try:
                if number in hooks.with_kwargs:
                    hooks.after[number](module, args, kwargs, result)
                else:
                    hooks.after[number](module, args, result)
            except Exception as error:  # noqa: BLE001  (the first error is the one to raise)
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=3,
                )
        raise


def pass_through_node(values: tuple[Any, ...], react: Callable[[tuple[Any, ...]], Any]) -> tuple[tuple[Any, ...], bool]:
    """Pass the tensors among the values through one node, which calls `react` with their gradients.

    The gradients are at the positions of their tensors, and `react` may return others. Return the new values, and whether `react`
    can be called at all.
    """
    at = [n for n, x in enumerate(values) if isinstance(x, Tensor) and x.node is not None]
    if not at or not mode.grad:
        return values, False
    sources = [values[n] for n in at]
    sizes = [x.array.size for x in sources]
    whole = sources[0] if len(at) == 1 else cat([x.reshape(-1) for x in sources])
    through = BACKWARD_HOOK.record(whole, shape=whole.array.shape)

    def hook(gradient: Tensor) -> Tensor | None:
        parts = (
            [gradient]
            if len(at) == 1
            else [part.reshape(x.array.shape) for part, x in zip(split(gradient, sizes), sources, strict=True)]
        )
        placed = [
            constant(x.array * 0) if isinstance(x, Tensor) else None for x in values
        ]  # zeros for tensors without a gradient
        for n, part in zip(at, parts, strict=True):
            placed[n] = part
        new = react(tuple(placed))
        if new is None:
            return None
        chosen = [constant(part.array * 0) if new[n] is None else new[n] for n, part in zip(at, parts, strict=True)]
        return chosen[0] if len(at) == 1 else cat([x.reshape(-1) for x in chosen])

    through.register_hook(hook)
    results = (
        [through]
        if len(at) == 1
        else [part.reshape(x.array.shape) for part, x in zip(split(through, sizes), sources, strict=True)]
    )
    passed_on = list(values)
    for n, result in zip(at, results, strict=True):
        passed_on[n] = result
    return tuple(passed_on), True


class Backward:
    """The full backward hooks of one call."""

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self.module = module
        self.before, self.after = list(hooks.before_backward.values()), list(hooks.after_backward.values())
        self.of_outputs: tuple[Any, ...] | None = None
        self.inputs, self.awaits_inputs = 0, False

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call `on_input_gradients` in the backward pass."""
        self.inputs = len(args)
        args, self.awaits_inputs = pass_through_node(args, self.on_input_gradients)
        return args

    def wrap_outputs(self, result: Any) -> Any:
        """Call `on_output_gradients` in the backward pass."""
        if isinstance(result, tuple):
            values, _ = pass_through_node(tuple(result), self.on_output_gradients)
            return values if type(result) is tuple else type(result)(*values)
        return pass_through_node((result,), self.on_output_gradients)[0][0]

    def on_output_gradients(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
        changed = False
        for hook in self.before:
            new = hook(self.module, gradients)
            if new is not None:
                new = new if isinstance(new, tuple) else (new,)
                if len(new) != len(gradients):
                    raise RuntimeError(
                        f"Backward pre hook returned an invalid number of grad_output, got {len(new)}, but "
                        f"expected {len(gradients)}"
                    )
                gradients, changed = new, True
        self.of_outputs = gradients
        if not self.awaits_inputs:
            if self.after:
                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                    "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                    "#torch.nn.Module.register_full_backward_hook for more details.",
                    stacklevel=5,
                )
            for hook in self.after:
                new = hook(self.module, (None,) * self.inputs, gradients)
                if new is not None and not (isinstance(new, tuple) and all(x is None for x in new)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or "
                        "None for all gradients."
                    )
        return gradients if changed else None

    def on_input_gradients(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self.of_outputs is None:  # they came by a path around the outputs
            return None
        changed = False
        for hook in self.after:
            new = hook(self.module, gradients, self.of_outputs)
            if new is not None:
                new = new if isinstance(new, tuple) else (new,)
                if len(new) != len(gradients):
                    raise RuntimeError(
                        f"Backward hook returned an invalid number of grad_input, got {len(new)}, but expected {len(gradients)}"
                    )
                gradients, changed = new, True
        self.of_outputs = None
        return gradients if changed else None

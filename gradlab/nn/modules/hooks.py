"""What a user attached to a module, and how it is run.

A module without hooks has none of this: `Module.__call__` looks at one attribute and calls `forward`. A full backward hook
hangs on the gradients of the module's inputs and outputs: they go through `Passing` nodes, and each notes what reaches it.
Several tensors go through one node, packed into one, so that it is reached when the gradients of all of them are complete.
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

PASSING = shapes.reshape.with_node("BackwardHookFunctionBackward")


class Hooks:
    """The hooks of one module, in the order of registration; `options` by number: "kwargs", "always"."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.before_backward: dict[int, Callable[..., Any]] = {}
        self.after_backward: dict[int, Callable[..., Any]] = {}
        self.with_kwargs: set[int] = set()
        self.always: set[int] = set()


def registered(
    module: Any, kind: str, hook: Callable[..., Any], prepend: bool, with_kwargs: bool = False, always: bool = False
) -> RemovableHandle:
    """Add a hook to a module's, and return what takes it away."""
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
    """`module(*args, **kwargs)`, with its hooks, and watched."""
    if not OBSERVERS:
        return hooked(module, args, kwargs)
    notify_module_enter(module)
    try:
        return module.forward(*args, **kwargs) if module._hooks is None else hooked(module, args, kwargs)
    finally:
        notify_module_exit(module)


def hooked(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module(*args, **kwargs)`, with its hooks."""
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
            args = backward.around_inputs(args)
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
            result = backward.around_outputs(result)
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


def passed(values: tuple[Any, ...], react: Callable[[tuple[Any, ...]], Any]) -> tuple[tuple[Any, ...], bool]:
    """The values again, the tensors among them through one node: `react` is called with the gradients that reach it, in
    the places of their tensors, and may return others. Whether any gradient will."""
    at = [n for n, x in enumerate(values) if isinstance(x, Tensor) and x.node is not None]
    if not at or not mode.grad:
        return values, False
    sources = [values[n] for n in at]
    sizes = [x.array.size for x in sources]
    whole = sources[0] if len(at) == 1 else cat([x.reshape(-1) for x in sources])
    through = PASSING.record(whole, shape=whole.array.shape)

    def hook(gradient: Tensor) -> Tensor | None:
        parts = (
            [gradient]
            if len(at) == 1
            else [part.reshape(x.array.shape) for part, x in zip(split(gradient, sizes), sources, strict=True)]
        )
        placed = [constant(x.array * 0) if isinstance(x, Tensor) else None for x in values]  # zeros where none is wanted
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

    def around_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Have the gradients of the inputs reported."""
        self.inputs = len(args)
        args, self.awaits_inputs = passed(args, self.reached_inputs)
        return args

    def around_outputs(self, result: Any) -> Any:
        """Have the gradients of the outputs reported."""
        if isinstance(result, tuple):
            values, _ = passed(tuple(result), self.reached_outputs)
            return values if type(result) is tuple else type(result)(*values)
        return passed((result,), self.reached_outputs)[0][0]

    def reached_outputs(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
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

    def reached_inputs(self, gradients: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self.of_outputs is None:  # they came by a way around the outputs
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

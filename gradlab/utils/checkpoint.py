"""Activation checkpointing: save only the inputs of a part of the model, and recompute its saved tensors in the backward pass.

`checkpoint(f, x, use_reentrant=False)` runs `f(x)` under hooks on saved tensors that replace the k-th saved tensor by the number
k. When the backward pass unpacks the first of them, `f(x)` runs again, from the same state of the random generator, under hooks
that collect the saved tensors. It stops after the last one. Both runs must save the same tensors, which is checked.

The graph is the one recorded by the first run, so `autograd.grad`, `inputs=` and `create_graph` work as for any graph. A nested
checkpoint saves its inputs through the hooks of the outer one, so they are recomputed, too.

The reentrant variant is a custom Function. Its backward runs `f` again with a graph and calls `backward` on it.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from gradlab.autograd.saved import saved_tensors_hooks
from gradlab.backend.streams import get_states, restore_states
from gradlab.core.engine import running
from gradlab.core.errors import module_getattr
from gradlab.core.modes import enable_grad, mode
from gradlab.core.observers import Observer, observing
from gradlab.core.saved import restore, save
from gradlab.core.storage import own_storage
from gradlab.core.tensor import Tensor, constant
from gradlab.random import fork_rng
from gradlab.utils.reentrant import CheckpointFunction

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

__getattr__ = module_getattr("gradlab.utils.checkpoint")


class CheckpointError(RuntimeError):
    """Error raised if the second run of a checkpointed function does not save the same tensors as the first."""


class _Defaults(threading.local):
    early_stop: bool | None = None
    debug: bool | None = None


_defaults = _Defaults()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Set whether checkpoints created in the block stop their second run once all saved tensors are recomputed.

    Parameters
    ----------
    enable : bool
        Whether to stop early.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = gl.ones(2, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     checkpoint(gl.sin, x, use_reentrant=False).sum().backward()
    >>> bool((x.grad == x.cos()).all())
    True
    """
    before, _defaults.early_stop = _defaults.early_stop, enable
    try:
        yield
    finally:
        _defaults.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Set whether errors of checkpoints created in the block list all operations.

    Parameters
    ----------
    enabled : bool or None
        Whether to list operations. None uses the argument `debug` of each checkpoint.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> x = gl.ones(2, requires_grad=True)
    >>> with set_checkpoint_debug_enabled(True):
    ...     checkpoint(gl.sin, x, use_reentrant=False).sum().backward()
    >>> bool((x.grad == x.cos()).all())
    True
    """
    before, _defaults.debug = _defaults.debug, enabled
    try:
        yield
    finally:
        _defaults.debug = before


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two null contexts, for the first and for the second run.

    Returns
    -------
    tuple of two context managers

    Examples
    --------
    >>> from gradlab.utils.checkpoint import noop_context_fn
    >>> len(noop_context_fn())
    2
    """
    return nullcontext(), nullcontext()


CHECKS: dict[str, Callable[[Tensor], Any]] = {
    "default": lambda x: {"shape": x.shape, "dtype": x.dtype, "device": x.device},
    "none": lambda x: None,
}
TIP = (
    "\nThe function must do the same both times: values it reads besides its arguments must not change in between, and random "
    "numbers must come from gradlab's default generator. Pass debug=True to see the operations of both runs."
)


class _Stop(BaseException):
    """Raised once all saved tensors are recomputed. (A BaseException, so that `except Exception` in the function ignores it.)"""


class _Log(Observer):
    """Observer that lists all operations."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        from gradlab.diagnose.sites import site_here
        from gradlab.diagnose.source_locations import location_of

        place = location_of(site_here(2))
        shapes = ", ".join(str(list(x.array.shape)) for x in args if isinstance(x, Tensor))
        self.lines.append(f"{op.name}({shapes}) -> {list(result.array.shape)}{f'    {place.where}' if place else ''}")


class _Number:
    """Placeholder of the k-th saved tensor in a node."""

    __slots__ = ("__weakref__", "k")

    def __init__(self, k: int) -> None:
        self.k = k


class _Run:
    """One call of `checkpoint`: how to run it again, and metadata of the tensors that it saved."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        preserve: bool,
        describe: Callable[[Tensor], Any],
        early_stop: bool,
        context: AbstractContextManager[Any],
        debug: bool,
    ) -> None:
        self.function, self.kwargs, self.describe, self.early_stop, self.context = function, kwargs, describe, early_stop, context
        self.state = get_states() if preserve else None
        self.others = [None if isinstance(x, Tensor) else x for x in args]
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.tensors = save([args[i] for i in self.places])
        self.numbers: list[weakref.ref[_Number]] = []
        self.described: list[Any] = []
        self.again: dict[int, tuple[Tensor, int]] = {}  # tensors of the second run, with their versions
        self.counted, self.finished, self.beyond = 0, False, False
        self.sweep: weakref.ref[Any] | None = None  # the sweep that has unpacked the tensors `handed`
        self.handed: set[int] = set()
        self.logs = (_Log(), _Log()) if debug else None

    def name(self) -> str:
        """Return the name used in errors."""
        return "checkpoint"

    def pack(self, x: Tensor) -> _Number:
        """Replace a saved tensor by its number (the pack hook of the first run)."""
        number = _Number(len(self.numbers))
        self.numbers.append(weakref.ref(number))
        self.described.append(self.describe(x))
        return number

    def unpack(self, number: _Number) -> Tensor:
        """Return a saved tensor. Run the function again if it is not available."""
        sweep = running.sweep
        if sweep is None or self.sweep is None or self.sweep() is not sweep:
            self.sweep, self.handed = None if sweep is None else weakref.ref(sweep), set()
        if number.k in self.handed:
            raise CheckpointError(
                "gradlab.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are "
                "calling ctx.saved_tensors in backward, make sure to do so only once."
            )
        if number.k not in self.again:
            self.run_again()
        self.handed.add(number.k)
        x, version = self.again.pop(number.k)
        if x.storage.version != version:
            raise CheckpointError(
                "one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: tensor number {number.k} that the checkpointed function saved, of shape "
                f"{list(x.array.shape)}. Write to a copy (x = x + 1 rather than x += 1)."
            )
        return x

    def note(self, x: Tensor) -> Tensor:
        """Collect a saved tensor (the pack hook of the second run)."""
        k, self.counted = self.counted, self.counted + 1
        if k >= len(self.numbers):
            if not self.finished:  # a backward inside the function, which continues afterwards
                self.beyond = True
            elif not self.beyond:
                raise CheckpointError(
                    self.with_operations(
                        "trying to save more tensors during recomputation than during the original forward pass."
                    )
                )
            return x
        if self.numbers[k]() is not None:
            kept = x
            if x.node is not None:  # otherwise the same object is returned
                kept = constant(x.array)
                kept.storage = own_storage(x)
            self.again[k] = kept, kept.storage.version
        if self.early_stop and self.counted == len(self.numbers):
            raise _Stop
        return x

    def run_again(self) -> None:
        """Run the function for the second time."""
        args = list(self.others)
        for i, x in zip(self.places, restore(self, self.tensors), strict=True):
            args[i] = x
        self.counted, self.again = 0, {}
        with ExitStack() as stack:
            stack.enter_context(fork_rng(enabled=self.state is not None))
            if self.state is not None:
                restore_states(self.state)
            stack.enter_context(enable_grad())
            if self.logs:
                self.logs[1].lines.clear()
                stack.enter_context(observing(self.logs[1]))
            stack.enter_context(saved_tensors_hooks(self.note, lambda x: x))
            stack.enter_context(self.context)
            with suppress(_Stop):
                self.function(*args, **self.kwargs)
        self.check()

    def check(self) -> None:
        """Compare the tensors saved by both runs."""
        if self.beyond:
            return
        if self.counted != len(self.numbers):
            raise CheckpointError(
                self.with_operations(
                    "A different number of tensors was saved during the original forward and recomputation.\n"
                    f"Number of tensors saved during forward: {len(self.numbers)}\n"
                    f"Number of tensors saved during recomputation: {self.counted}."
                )
            )
        differing = [(k, self.described[k], self.describe(x)) for k, (x, _) in self.again.items()]
        if differing := [(k, first, second) for k, first, second in differing if first != second]:
            raise CheckpointError(
                self.with_operations(
                    "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                    + "\n".join(
                        f"tensor at position {k}:\nsaved metadata: {first}\nrecomputed metadata: {second}"
                        for k, first, second in differing
                    )
                )
            )

    def with_operations(self, message: str) -> str:
        """Return the message of an error, with the operations of both runs if `debug`."""
        self.again = {}
        message = f"gradlab.utils.checkpoint: {message}"
        if not self.logs:
            return message + TIP
        first, second = ("\n".join(f"  {line}" for line in log.lines) or "  none" for log in self.logs)
        return (
            f"{message}\nOperations executed during the original forward:\n{first}\nOperations executed during "
            f"recomputation:\n{second}"
        )


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function and save only its inputs. The backward pass runs it again to recompute the tensors its operations save.

    Parameters
    ----------
    function : callable
        The function. It must do the same when called again with the same arguments.
    *args, **kwargs : optional
        Arguments of the function.
    use_reentrant : bool
        False is recommended. True runs the function without recording, and records it in the backward pass: at least one of
        `args` must require a gradient, and only `backward()` without `inputs` is supported. If omitted, True with a warning, as
        in PyTorch.
    context_fn : callable
        Function that returns two context managers, for the first and for the second run.
    determinism_check : {"default", "none"}
        Compare the shapes, dtypes and devices of the tensors that both runs save.
    debug : bool
        List the operations of both runs in errors.
    early_stop : bool
        Stop the second run once all saved tensors are recomputed.
    preserve_rng_state : bool
        Draw the same random numbers in the second run (default: True).

    Returns
    -------
    Tensor or Any
        Result of the function.

    Raises
    ------
    CheckpointError
        In the backward pass, if the second run does not save the same tensors as the first.

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab.utils.checkpoint import checkpoint
    >>> x = gl.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
    >>> bool((x.grad == x.exp().cos() * x.exp()).all())
    True
    """
    if use_reentrant is None:
        warnings.warn(missing_argument_warning("checkpoint"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    first, second = context_fn()
    if not mode.grad:
        return function(*args, **kwargs)
    if _defaults.early_stop is not None:
        early_stop = _defaults.early_stop
    if _defaults.debug is not None:
        debug = _defaults.debug
    run = _Run(function, args, kwargs, preserve, CHECKS[determinism_check], early_stop, second, debug)
    with saved_tensors_hooks(run.pack, run.unpack), observing(run.logs[0]) if run.logs else nullcontext(), first:
        result = function(*args, **kwargs)
        run.finished = True
        return result
    raise RuntimeError(
        "gradlab.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised "
        "during the checkpointed forward. This is not supported because checkpoint cannot return a value for a "
        "failed forward."
    )


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Run a Sequential, or a list of functions, in segments, and checkpoint all but the last.

    Parameters
    ----------
    functions : Sequential or list of callable
        Functions to run one after the other.
    segments : int
        Number of segments.
    input : Tensor
        Argument of the first function.
    use_reentrant : bool
        As in `checkpoint`.
    **kwargs : optional
        `preserve_rng_state`, as in `checkpoint`.

    Returns
    -------
    Tensor
        Result of the last function.

    Raises
    ------
    TypeError, ValueError
        If another keyword is given.

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab import nn
    >>> from gradlab.utils.checkpoint import checkpoint_sequential
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> checkpoint_sequential(net, 2, gl.ones(4, 2), use_reentrant=False).shape == (4, 1)
    True
    """
    if use_reentrant is None:
        warnings.warn(missing_argument_warning("checkpoint_sequential"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children() if hasattr(functions, "children") else functions)

    def chain(part: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for function in part:
                x = function(x)
            return x

        return run

    length = len(functions) // segments
    last = length * (segments - 1)
    for start in range(0, last, length or 1):
        input = checkpoint(
            chain(functions[start : start + length]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return chain(functions[last:])(input)


def missing_argument_warning(name: str) -> str:
    """Return PyTorch's warning for a call without `use_reentrant`."""
    where, what = ("", "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception.")
    if name != "checkpoint":
        where, what = f".{name}", "In version 2.9 we will raise an exception if use_reentrant is not passed."
    return (
        f"gradlab.utils.checkpoint{where}: the use_reentrant parameter should be passed explicitly. {what} "
        "use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass "
        "use_reentrant=True. Refer to docs for more details on the differences between the two variants."
    )

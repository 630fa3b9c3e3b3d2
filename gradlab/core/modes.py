"""Grad mode per thread, which determines if operations are recorded: `no_grad`, `enable_grad` and `set_grad_enabled`.

Each is a context manager and a decorator. In a decorated generator or coroutine, the mode applies only to its own steps: the
caller's mode is restored whenever it yields or waits.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Mode(threading.local):
    """The modes of a thread. A thread-local takes 30 ns longer to read than a global."""

    grad = True
    forward = True  # compute tangents inside a level of forward mode
    inference = False
    multithreading = True  # has no effect: a sweep runs in the thread that starts it


mode = Mode()


def is_grad_enabled() -> bool:
    """Return True if operations on tensors that require a gradient are recorded in this thread.

    Returns
    -------
    bool

    Examples
    --------
    >>> import gradlab as gl
    >>> with gl.no_grad(): gl.is_grad_enabled()
    False
    """
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Return True if this thread is in inference mode.

    Returns
    -------
    bool

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_inference_mode_enabled()
    False
    """
    return mode.inference


def is_multithreading_enabled() -> bool:
    """Return the last setting of `set_multithreading_enabled`.

    It has no effect: the backward pass always runs in the thread that starts it.

    Returns
    -------
    bool

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.autograd.is_multithreading_enabled()
    True
    """
    return mode.multithreading


class DecoratorContextManager:
    """Base class of context managers that are also decorators."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        raise NotImplementedError

    def new_context(self) -> DecoratorContextManager:
        """Return a new context of the same kind. Each call of a decorated function enters its own."""
        return type(self)()

    clone = new_context

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
        if inspect.isgeneratorfunction(function):
            wrapper: Any = self._around_generator(function)
        elif inspect.isasyncgenfunction(function):
            wrapper = self._around_async_generator(function)
        elif inspect.iscoroutinefunction(function):
            wrapper = self._around_coroutine(function)
        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self.new_context():
                    return function(*args, **kwargs)

        return wrapper  # type: ignore[no-any-return]

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, value = generator.send, None
            while True:
                try:
                    with self.new_context():
                        result = step(value)
                except StopIteration as end:
                    return end.value
                try:
                    step, value = generator.send, (yield result)
                except GeneratorExit:
                    with self.new_context():
                        generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001  (thrown into the generator)
                    step, value = generator.throw, error

        return wrapper

    def _around_coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await _CoroutineInMode(function(*args, **kwargs), self)

        return wrapper

    def _around_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, value = generator.asend, None
            while True:
                try:
                    result = await _CoroutineInMode(step(value), self)
                except StopAsyncIteration:
                    return
                try:
                    step, value = generator.asend, (yield result)
                except GeneratorExit:
                    await _CoroutineInMode(generator.aclose(), self)
                    raise
                except BaseException as error:  # noqa: BLE001  (thrown into the generator)
                    step, value = generator.athrow, error

        return wrapper


class _CoroutineInMode:
    """Awaitable that runs a coroutine with the mode set only during the coroutine's own steps, not while it waits."""

    def __init__(self, coroutine: Any, decorating: DecoratorContextManager) -> None:
        self.coroutine, self.decorating = coroutine, decorating

    def __await__(self) -> Any:
        step, value = self.coroutine.send, None
        while True:
            try:
                with self.decorating.new_context():
                    result = step(value)
            except StopIteration as end:
                return end.value
            try:
                step, value = self.coroutine.send, (yield result)
            except BaseException as error:  # noqa: BLE001  (cancellation and other errors are thrown into the coroutine)
                step, value = self.coroutine.throw, error


class _GradMode(DecoratorContextManager):
    """Base class of contexts that set `mode.grad` on entry and restore it on exit."""

    wanted: bool

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> Any:
        self.before.append(mode.grad)
        mode.grad = self.wanted

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        mode.grad = self.before[-1]  # before any call, which an interrupt can follow
        del self.before[-1]


class no_grad(_GradMode):  # noqa: N801  (torch's name)
    """Context manager and decorator that disables recording: results do not require a gradient.

    Parameters
    ----------
    function : callable, optional
        The function to decorate. `@no_grad` and `@no_grad()` are equivalent.

    Returns
    -------
    context manager
        It can also decorate a function.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.ones(2, requires_grad=True)
    >>> with gl.no_grad(): y = x * 2
    >>> y.requires_grad
    False
    """

    wanted = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        instance = super().__new__(cls)
        if function is None:
            return instance
        instance.__init__()  # type: ignore[misc]
        return instance(function)  # `@no_grad` without parentheses


class enable_grad(no_grad):  # noqa: N801  (torch's name)
    """Context manager and decorator that enables recording, also inside `no_grad`.

    Parameters
    ----------
    function : callable, optional
        The function to decorate.

    Returns
    -------
    context manager
        It can also decorate a function.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.ones(2, requires_grad=True)
    >>> with gl.no_grad(), gl.enable_grad(): y = x * 2
    >>> y.requires_grad
    True
    """

    wanted = True


class set_grad_enabled(_GradMode):  # noqa: N801  (torch's name)
    """Enable or disable recording immediately, or inside a context or decorated function.

    Parameters
    ----------
    mode : bool
        Whether operations are recorded.

    Returns
    -------
    context manager
        It can also decorate a function.

    Raises
    ------
    TypeError
        If `mode` is not a bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> with gl.set_grad_enabled(False): print((x * 2).requires_grad)
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.wanted = require_bool("set_grad_enabled", "enabled", mode)
        self.outer = globals()["mode"].grad
        globals()["mode"].grad = self.wanted

    def __enter__(self) -> Any:
        self.before.append(self.outer)
        mode.grad = self.wanted

    def __call__(self, function: F) -> F:
        mode.grad = self.outer  # as a decorator it acts only inside the function
        return super().__call__(function)

    def new_context(self) -> DecoratorContextManager:
        return enable_grad_if(self.wanted)

    def clone(self) -> DecoratorContextManager:
        return type(self)(self.wanted)

    def __str__(self) -> str:
        return f"gradlab.autograd.grad_mode.set_grad_enabled(mode={self.wanted})"

    __repr__ = __str__


def enable_grad_if(on: bool) -> no_grad:
    """Return `enable_grad()` or `no_grad()`. Unlike `set_grad_enabled`, it has no effect before it is entered."""
    context: no_grad = enable_grad() if on else no_grad()
    return context


class set_multithreading_enabled(DecoratorContextManager):  # noqa: N801  (torch's name)
    """Accept PyTorch's setting. It has no effect: the backward pass always runs in the thread that starts it.

    Parameters
    ----------
    mode : bool
        The value that `is_multithreading_enabled` returns.

    Returns
    -------
    context manager

    Raises
    ------
    TypeError
        If `mode` is not a bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> with gl.autograd.set_multithreading_enabled(False): gl.autograd.is_multithreading_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.outer = globals()["mode"].multithreading
        globals()["mode"].multithreading = self.wanted = require_bool("set_multithreading_enabled", "mode", mode)

    def __enter__(self) -> Any:
        mode.multithreading = self.wanted

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        mode.multithreading = self.outer

    def new_context(self) -> DecoratorContextManager:
        return type(self)(self.wanted)


def require_bool(function: str, argument: str, value: Any) -> bool:
    """Return the value as a bool. Raise a TypeError if it is not one."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{function}(): argument '{argument}' (position 1) must be bool, not {type(value).__name__}")
    return bool(value)

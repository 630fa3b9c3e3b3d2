"""Whether operations are recorded, per thread: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`.

Each is a context manager and a decorator. A decorated generator or coroutine keeps the mode to its own steps: the caller's mode
is back whenever it hands out a value or waits.
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
    """Per thread; 30 ns dearer to read than a global, and right."""

    grad = True
    forward = True  # whether tangents are computed while a level of forward mode is open
    inference = False
    multithreading = True  # remembered for those who ask; a sweep runs in the thread that starts it


mode = Mode()


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require gradients are being recorded in this thread.

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
    """Whether this thread is in inference mode.

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
    """What `set_multithreading_enabled` was told last. Sweeps run in the thread that starts them either way.

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


class Decorating:
    """A context manager that is a decorator too."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        raise NotImplementedError

    def fresh(self) -> Decorating:
        """Another of the same kind: each call of what is decorated enters one of its own."""
        return type(self)()

    clone = fresh

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
                with self.fresh():
                    return function(*args, **kwargs)

        return wrapper  # type: ignore[no-any-return]

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, value = generator.send, None
            while True:
                try:
                    with self.fresh():
                        result = step(value)
                except StopIteration as end:
                    return end.value
                try:
                    step, value = generator.send, (yield result)
                except GeneratorExit:
                    with self.fresh():
                        generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001  (handed into the generator, as `throw` does)
                    step, value = generator.throw, error

        return wrapper

    def _around_coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await _Steps(function(*args, **kwargs), self)

        return wrapper

    def _around_async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, value = generator.asend, None
            while True:
                try:
                    result = await _Steps(step(value), self)
                except StopAsyncIteration:
                    return
                try:
                    step, value = generator.asend, (yield result)
                except GeneratorExit:
                    await _Steps(generator.aclose(), self)
                    raise
                except BaseException as error:  # noqa: BLE001  (handed into the generator, as `athrow` does)
                    step, value = generator.athrow, error

        return wrapper


class _Steps:
    """Awaits a coroutine with the mode set only while the coroutine itself runs, not while it waits."""

    def __init__(self, coroutine: Any, decorating: Decorating) -> None:
        self.coroutine, self.decorating = coroutine, decorating

    def __await__(self) -> Any:
        step, value = self.coroutine.send, None
        while True:
            try:
                with self.decorating.fresh():
                    result = step(value)
            except StopIteration as end:
                return end.value
            try:
                step, value = self.coroutine.send, (yield result)
            except BaseException as error:  # noqa: BLE001  (cancellation and the like, handed into the coroutine)
                step, value = self.coroutine.throw, error


class _GradMode(Decorating):
    """Shared by the three: enter sets `mode.grad`, leave restores it."""

    wanted: bool

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> Any:
        self.before.append(mode.grad)
        mode.grad = self.wanted

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        mode.grad = self.before[-1]  # before any call: an interrupt comes after one
        del self.before[-1]


class no_grad(_GradMode):  # noqa: N801  (torch's name)
    """Operations inside are not recorded: their results do not require a gradient.

    Parameters
    ----------
    function : callable, optional
        What is decorated: `@no_grad` and `@no_grad()` are the same.

    Returns
    -------
    context manager
        And decorator.

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
    """Operations inside are recorded, also within `no_grad`.

    Parameters
    ----------
    function : callable, optional
        What is decorated.

    Returns
    -------
    context manager
        And decorator.

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
    """Set recording on or off at once; as a context manager or decorator, for its extent.

    Parameters
    ----------
    mode : bool
        Whether operations are recorded.

    Returns
    -------
    context manager
        And decorator.

    Raises
    ------
    TypeError
        If `mode` is no bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> with gl.set_grad_enabled(False): print((x * 2).requires_grad)
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.wanted = flag("set_grad_enabled", "enabled", mode)
        self.outer = globals()["mode"].grad
        globals()["mode"].grad = self.wanted

    def __enter__(self) -> Any:
        self.before.append(self.outer)
        mode.grad = self.wanted

    def __call__(self, function: F) -> F:
        mode.grad = self.outer  # as a decorator it acts inside the function alone
        return super().__call__(function)

    def fresh(self) -> Decorating:
        return recorded_if(self.wanted)

    def clone(self) -> Decorating:
        return type(self)(self.wanted)

    def __str__(self) -> str:
        return f"gradlab.autograd.grad_mode.set_grad_enabled(mode={self.wanted})"

    __repr__ = __str__


def recorded_if(on: bool) -> no_grad:
    """A context in which operations are recorded or not; unlike `set_grad_enabled` it does nothing before it is entered."""
    context: no_grad = enable_grad() if on else no_grad()
    return context


class set_multithreading_enabled(Decorating):  # noqa: N801  (torch's name)
    """Accepted for torch's sake: gradlab's sweeps run in the thread that starts them, whatever is set.

    Parameters
    ----------
    mode : bool
        What is wished.

    Returns
    -------
    context manager

    Raises
    ------
    TypeError
        If `mode` is no bool.

    Examples
    --------
    >>> import gradlab as gl
    >>> with gl.autograd.set_multithreading_enabled(False): gl.autograd.is_multithreading_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.outer = globals()["mode"].multithreading
        globals()["mode"].multithreading = self.wanted = flag("set_multithreading_enabled", "mode", mode)

    def __enter__(self) -> Any:
        mode.multithreading = self.wanted

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        mode.multithreading = self.outer

    def fresh(self) -> Decorating:
        return type(self)(self.wanted)


def flag(function: str, argument: str, value: Any) -> bool:
    """The value, if it is a bool."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{function}(): argument '{argument}' (position 1) must be bool, not {type(value).__name__}")
    return bool(value)

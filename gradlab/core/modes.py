"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, per thread.

Each is a context manager and a decorator. A decorated generator keeps the mode to its own steps: the caller's mode is
back whenever the generator hands out a value.
"""
from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Mode(threading.local):
    """Per thread; 30 ns dearer to read than a global, and right."""

    grad = True


mode = Mode()


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require gradients are being recorded in this thread."""
    return mode.grad


class _GradMode:
    """Shared by the three: enter sets `mode.grad`, leave restores it, calling decorates."""

    wanted: bool

    def __init__(self) -> None:
        self.before: list[bool] = []

    def __enter__(self) -> _GradMode:
        self.before.append(mode.grad)
        mode.grad = self.wanted
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        mode.grad = self.before.pop()

    def fresh(self) -> _GradMode:
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            wrapper: Any = self._around_generator(function)
        elif inspect.iscoroutinefunction(function):
            wrapper = self._around_coroutine(function)
        else:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self.fresh():
                    return function(*args, **kwargs)
        return wrapper

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


class _Steps:
    """Awaits a coroutine with the mode set only while the coroutine itself runs, not while it waits."""

    def __init__(self, coroutine: Any, grad_mode: _GradMode) -> None:
        self.coroutine, self.grad_mode = coroutine, grad_mode

    def __await__(self) -> Any:
        step, value = self.coroutine.send, None
        while True:
            try:
                with self.grad_mode.fresh():
                    result = step(value)
            except StopIteration as end:
                return end.value
            try:
                step, value = self.coroutine.send, (yield result)
            except BaseException as error:  # noqa: BLE001  (cancellation and the like, handed into the coroutine)
                step, value = self.coroutine.throw, error


class no_grad(_GradMode):  # noqa: N801  (torch's name)
    """Operations inside are not recorded: their results have `requires_grad=False`."""

    wanted = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(function)                                         # `@no_grad` without parentheses


class enable_grad(no_grad):  # noqa: N801  (torch's name)
    """Operations inside are recorded, also within `no_grad`."""

    wanted = True


class set_grad_enabled(_GradMode):  # noqa: N801  (torch's name)
    """Set recording on or off at once; as a context manager or decorator, for its extent."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.wanted = bool(mode)
        self.outer = globals()["mode"].grad
        globals()["mode"].grad = self.wanted

    def __enter__(self) -> set_grad_enabled:
        self.before.append(self.outer)
        mode.grad = self.wanted
        return self

    def __call__(self, function: F) -> F:
        mode.grad = self.outer                                        # as a decorator it acts inside the function alone
        return super().__call__(function)

    def fresh(self) -> _GradMode:
        return enable_grad() if self.wanted else no_grad()

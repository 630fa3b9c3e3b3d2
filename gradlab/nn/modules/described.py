"""What layers share: the text that `repr` shows, and parameters before they are initialised."""

from __future__ import annotations

from types import FunctionType
from typing import Any, ClassVar

from gradlab.nn.modules.module import Module
from gradlab.nn.modules.shared import with_shared_texts
from gradlab.nn.parameter import Parameter
from gradlab.ops.creation import empty


class Described(Module):
    """A module whose `extra_repr` is a format string over its attributes.

    A layer here that takes its constructor from the family that it belongs to has it under its own name, so that Python's
    message about a missing argument names the layer; and what its docstring shares with others is put in.
    """

    shown: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__module__.startswith("gradlab.nn."):
            return
        with_shared_texts(cls)
        taken = cls.__init__
        if "__init__" not in vars(cls) and isinstance(taken, FunctionType):
            own = FunctionType(taken.__code__, taken.__globals__, taken.__name__, taken.__defaults__, taken.__closure__)
            own.__qualname__, own.__kwdefaults__ = f"{cls.__qualname__}.__init__", taken.__kwdefaults__
            own.__annotations__, own.__module__ = taken.__annotations__, cls.__module__
            cls.__init__ = own  # type: ignore[method-assign]

    def extra_repr(self) -> str:
        return self.shown.format(**vars(self))


class Plain(Described):
    """A module without settings."""

    def __init__(self) -> None:
        super().__init__()


class InPlace(Described):
    """A module that overwrites its input if told so, which `repr` then says."""

    inplace: bool

    def extra_repr(self) -> str:
        shown = super().extra_repr()
        return shown if not self.inplace else f"{shown}, inplace=True" if shown else "inplace=True"


def unset(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter of this shape, to be initialised."""
    return Parameter(empty(shape, device=device, dtype=dtype))


def sizes(value: Any, n: int) -> tuple[Any, ...]:
    """One value for each of n axes."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n

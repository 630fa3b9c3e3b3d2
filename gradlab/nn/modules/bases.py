"""Base classes of layers, which define `repr`, and helpers of their constructors."""

from __future__ import annotations

from types import FunctionType
from typing import Any, ClassVar

from gradlab.nn.modules.module import Module
from gradlab.nn.modules.shared import with_shared_texts
from gradlab.nn.parameter import Parameter
from gradlab.ops.creation import empty


class ReprModule(Module):
    """A module whose `extra_repr` formats its attributes with `repr_format`.

    A layer that inherits the constructor of its family gets a copy with its own name, so that Python's message about a missing
    argument names the layer. Shared texts are inserted into its docstring.
    """

    repr_format: ClassVar[str] = ""

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
        return self.repr_format.format(**vars(self))


class ModuleWithoutSettings(ReprModule):
    """A module without settings."""

    def __init__(self) -> None:
        super().__init__()


class InPlaceModule(ReprModule):
    """A module that can overwrite its input. `repr` shows it."""

    inplace: bool

    def extra_repr(self) -> str:
        shown = super().extra_repr()
        return shown if not self.inplace else f"{shown}, inplace=True" if shown else "inplace=True"


def empty_parameter(*shape: int, device: Any = None, dtype: Any = None) -> Parameter:
    """Return an uninitialised parameter of this shape."""
    return Parameter(empty(shape, device=device, dtype=dtype))


def sizes(value: Any, n: int) -> tuple[Any, ...]:
    """Return one value for each of n axes."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n

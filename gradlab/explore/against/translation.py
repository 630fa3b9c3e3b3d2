"""Translate a user's function to the other library: `torch.sin` to `gradlab.sin`, and vice versa.

The user's objects are not changed. The function is copied with its own globals, in which the modules, functions, dtypes and
tensors of one library are replaced with those of the other when they are looked up. Functions that it calls are copied in the
same way. Names in class bodies are not translated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

INNER = ("", ".nn.functional", ".linalg", ".special", ".fft", ".autograd")  # modules that may contain a function of a library


class Translation:
    """A translation of objects of the library `source` to the library `target`.

    Parameters
    ----------
    source : module
        The module torch or gradlab.
    target : str
        The name of the other library.
    tensor : callable
        A function that converts a tensor of the source to one of the target.
    """

    def __init__(self, source: ModuleType, target: str, tensor: Callable[[Any], Any]) -> None:
        self.source, self.target, self._tensor = source.__name__, target, tensor
        self._source = source
        self._made: dict[int, tuple[Any, Any]] = {}  # by id, with the original, which is kept alive

    def __call__(self, value: Any) -> Any:
        """Return `value` in the other library, or `value` itself if it belongs to neither."""
        known = self._made.get(id(value))
        if known is None:
            self._made[id(value)] = (value, None)  # a function that calls itself
            known = self._made[id(value)] = (value, self._translate(value))
        return known[1] if known[1] is not None else value

    def _translate(self, value: Any) -> Any:
        kind = type(value)
        if kind is FunctionType:
            return self._function(value) if not self._theirs(value) else self._counterpart(value)
        if kind is ModuleType:
            return self._module(value)
        if kind is MethodType and type(value.__func__) is FunctionType:
            return MethodType(self(value.__func__), value.__self__)
        if kind is functools.partial:
            args = tuple(map(self, value.args))
            return functools.partial(self(value.func), *args, **{key: self(item) for key, item in value.keywords.items()})
        if kind is BuiltinFunctionType or (isinstance(value, type) and self._theirs(value)):
            return self._counterpart(value)
        return self._tensor(value) if self._theirs(kind) and hasattr(value, "requires_grad") else self._of_kind(value, kind)

    def _of_kind(self, value: Any, kind: type) -> Any:
        """Translate a dtype or a device, which prints as `torch.float32`."""
        if not self._theirs(kind):
            return value
        text = str(value)
        name = text.rpartition(".")[2]
        counterpart = getattr(import_module(self.target), name, None) if text == f"{self.source}.{name}" else None
        return value if counterpart is None else counterpart

    def _theirs(self, value: Any) -> bool:
        module = getattr(value, "__module__", None) or ""
        return module.partition(".")[0] == self.source

    def _module(self, value: ModuleType) -> Any:
        first, dot, rest = value.__name__.partition(".")
        if first != self.source:
            return value
        try:
            return import_module(f"{self.target}{dot}{rest}")
        except ImportError:  # a lookup in it raises the error
            return value

    def _counterpart(self, value: Any) -> Any:
        """Return the function or class of the other library with the same name."""
        name = getattr(value, "__name__", "")
        module = str(getattr(value, "__module__", None) or "").partition(".")[2]
        for inner in dict.fromkeys((*INNER, f".{module}" if module else "")):
            theirs: Any = self._source
            for step in inner.split(".")[1:]:
                theirs = getattr(theirs, step, None)
            if getattr(theirs, name, None) is not value:
                continue
            try:
                ours = import_module(f"{self.target}{inner}")
            except ImportError:
                continue
            if hasattr(ours, name):
                return getattr(ours, name)
        return value

    def _function(self, value: FunctionType) -> FunctionType:
        cells = None
        if value.__closure__ is not None:
            cells = tuple(CellType(self(cell.cell_contents)) if _has_value(cell) else CellType() for cell in value.__closure__)
        defaults = None if value.__defaults__ is None else tuple(map(self, value.__defaults__))
        copy = FunctionType(value.__code__, Space(value.__globals__, self), value.__name__, defaults, cells)
        if value.__kwdefaults__:
            copy.__kwdefaults__ = {key: self(item) for key, item in value.__kwdefaults__.items()}
        return copy


class Space(dict[str, Any]):
    """A copy of a module's globals that translates values when they are looked up."""

    def __init__(self, globals_: dict[str, Any], translation: Translation) -> None:
        super().__init__(globals_)
        self._translation = translation

    def __getitem__(self, name: str) -> Any:
        return self._translation(super().__getitem__(name))


def _has_value(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True

"""Temporary replacement of other libraries' functions, by several of our wrappers at once and in any order."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from gradlab.explore.libraries.unseen_frames import without_ours

Make = Callable[[Any], Any]  # maps a function to its wrapper


class _Function:
    """A function or class method, perhaps inherited, of a module or a class, and the wrappers around it. The wrapper of a class
    method gets the class as its first argument."""

    def __init__(self, owner: Any, name: str) -> None:
        found = inspect.getattr_static(owner, name, None)
        of_class = isinstance(found, classmethod)
        self.owner, self.name, self.original = owner, name, found.__func__ if of_class else getattr(owner, name)
        self.own = vars(owner).get(name)  # None if it is inherited
        self.makers: list[Make] = []
        self.composed = self.original

        @wraps(self.original)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return self.composed(*args, **kwargs)
            except BaseException as error:
                without_ours(error)
                raise

        self.call: Any = classmethod(call) if of_class else call
        self.is_installed = False

    @property
    def is_current(self) -> bool:
        """True if the attribute is our function."""
        return vars(self.owner).get(self.name) is self.call

    def install(self) -> None:
        setattr(self.owner, self.name, self.call)
        self.is_installed = True

    def remove(self) -> None:
        if self.own is None:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.own)

    def compose(self) -> None:
        composed = self.original
        for make in self.makers:
            composed = make(composed)
        self.composed = composed


_functions: dict[tuple[int, str], _Function] = {}
_turn = threading.RLock()


def replace(owner: Any, name: str, make: Make) -> None:
    """Make calls of `owner.name` go through the wrapper that `make` returns. Does nothing if they already do."""
    with _turn:
        function = _functions.get((id(owner), name))
        if function is None or not (function.makers or function.is_current):
            function = _functions[id(owner), name] = _Function(owner, name)
        if make not in function.makers:
            function.makers.append(make)
            function.compose()
        if not function.is_installed:  # last, so that `give_back` can undo it after an interrupt
            function.install()


def give_back(owner: Any, name: str, make: Make) -> None:
    """Undo `replace`. Wrappers that others have added meanwhile stay. Call it again if it was interrupted."""
    with _turn:
        function = _functions.get((id(owner), name))
        if function is None:
            return
        if make in function.makers:
            function.makers.remove(make)
        function.compose()
        if not function.makers and function.is_current:
            function.remove()
            del _functions[id(owner), name]

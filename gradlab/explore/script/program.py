"""A script or a module as `python script.py …` and `python -m module …` run it: found, read, compiled, and its surroundings
set for a while.

What Python sets for a script is set here: `__main__` and its names, `sys.argv`, the first entry of `sys.path`. When the script is
over everything is as it was, and the modules that it imported from beside it are forgotten: another script may have others of
the same names.
"""

from __future__ import annotations

import builtins
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from gradlab.core.scopes import scope_guard
from gradlab.diagnose.source_locations import cells


class NotAScriptError(ValueError):
    """What was named cannot be run, and why."""


@dataclass(frozen=True)
class Program:
    """What is run.

    Attributes
    ----------
    called : str
        As it was given: "train.py".
    filename : str
        The absolute path, as tracebacks show it.
    source : str
    arguments : tuple of str
        What follows the script on the command line.
    first : str
        The folder that modules are looked for in first.
    spec : ModuleSpec or None
        Of `-m module`.
    """

    called: str
    filename: str
    source: str
    arguments: tuple[str, ...]
    first: str
    spec: ModuleSpec | None = None

    @property
    def name(self) -> str:
        """The file without its folders."""
        return os.path.basename(self.filename)

    def compiled(self) -> CodeType:
        """Its code. Raises what Python raises of a text that is no Python."""
        return compile(self.source, self.filename, "exec", dont_inherit=True)


def script(path: str, arguments: Sequence[str] = ()) -> Program:
    """The script in a file.

    Raises
    ------
    NotAScriptError
        If there is none, or it is a folder, a notebook, no text.
    """
    file = Path(path)
    if file.is_dir():
        raise NotAScriptError(f"{path} is a folder. Name the script in it: gradlab doctor {file / 'train.py'}")
    if file.suffix == ".ipynb":
        raise NotAScriptError(
            f"{path} is a notebook, and this runs scripts. Open it, run %load_ext gradlab, and write %%doctor above a cell."
        )
    if not file.exists():
        raise NotAScriptError(f"there is no file {path}.{_advice(path)}")
    try:
        source = importlib.util.decode_source(file.read_bytes())
    except OSError as error:
        raise NotAScriptError(f"{path} could not be read: {error.strerror}.") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise NotAScriptError(f"{path} is no Python source: {error}.") from error
    if "\0" in source:
        raise NotAScriptError(f"{path} is no Python source: it has null bytes in it.")
    filename = os.path.abspath(path)
    return Program(path, filename, source, tuple(arguments), os.path.dirname(os.path.realpath(filename)))


def _advice(path: str) -> str:
    """What may have been meant by a path where nothing is."""
    if Path(f"{path}.py").is_file():
        return f" There is {path}.py."
    if path.replace(".", "").isidentifier() and not path.endswith(".py"):
        return f" If it is a module, write gradlab doctor -m {path}"
    return ""


def module(name: str, arguments: Sequence[str] = ()) -> Program:
    """The script that a module is, or a package by its `__main__`. Imports the packages around it, as Python does.

    Raises
    ------
    NotAScriptError
        If there is none, or it is not written in Python.
    """
    here = os.getcwd()
    with _looking_first(here):
        try:
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations is not None:
                spec = importlib.util.find_spec(f"{name}.__main__")
        except (ImportError, ValueError) as error:
            raise NotAScriptError(f"there is no module {name}: {error}.") from error
    if spec is None:
        raise NotAScriptError(f"there is no module {name} to be run, from {here} or installed.")
    loader: Any = spec.loader
    source = loader.get_source(spec.name) if hasattr(loader, "get_source") else None
    if source is None or spec.origin is None:
        raise NotAScriptError(f"{name} is not written in Python, and cannot be run.")
    return Program(spec.origin, spec.origin, source, tuple(arguments), here, spec)


@contextmanager
def running(program: Program) -> Iterator[ModuleType]:
    """Set what Python sets for a script, and what a cell's lines are known by; yields the module `__main__`."""
    main = ModuleType("__main__")
    names = {"__builtins__": builtins, "__file__": program.filename, "__cached__": None, "__spec__": program.spec}
    vars(main).update(names, __loader__=SourceFileLoader("__main__", program.filename))
    if program.spec is not None:
        vars(main).update(__loader__=program.spec.loader, __package__=program.spec.parent, __cached__=program.spec.cached)
    lines = program.source.splitlines(keepends=True)
    before = sys.argv, sys.modules.get("__main__"), cells.current, cells.header, cells.called, set(sys.modules)

    def begin() -> ModuleType:
        sys.argv = [program.called, *program.arguments]
        sys.modules["__main__"] = main
        # It is this text that runs, whatever becomes of the file meanwhile.
        linecache.cache[program.filename] = (len(program.source), None, lines, program.filename)
        cells.current, cells.called = program.filename, program.name
        cells.header = lines[0].rstrip("\n") if lines else ""
        return main

    def end() -> None:
        sys.argv, first, cells.current, cells.header, cells.called, known = before
        if first is not None:
            sys.modules["__main__"] = first
        linecache.cache.pop(program.filename, None)
        for name in [name for name in sys.modules if name not in known and _lies_in(sys.modules[name], program.first)]:
            del sys.modules[name]

    with _looking_first(program.first), scope_guard(begin, end) as module:
        yield module


@contextmanager
def _looking_first(folder: str) -> Iterator[None]:
    """Look for modules in a folder first, in place of where this command lies."""
    before = sys.path[:]

    def begin() -> None:
        if not sys.flags.safe_path:
            sys.path[:1] = [folder]

    def end() -> None:
        sys.path[:] = before

    with scope_guard(begin, end):
        yield


def _lies_in(module: Any, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and "site-packages" not in file and file.startswith(folder + os.sep)

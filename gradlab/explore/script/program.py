"""Find and read a script or a module, and set up the environment in which Python would run it.

`script_environment` sets what Python sets for a script: `__main__` and its names, `sys.argv`, the first entry of `sys.path`.
Afterwards all of it is restored, and modules that the script imported from its own folder are removed from `sys.modules`: the
next script may have others with these names.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
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
    """Error for a path or a name that cannot be run."""


@dataclass(frozen=True)
class Program:
    """A script or a module, with its arguments.

    Attributes
    ----------
    path : str
        The path as it was given: "train.py".
    filename : str
        The absolute path, as in tracebacks.
    source : str
    arguments : tuple of str
        The arguments after the script on the command line.
    import_folder : str
        The first folder in which modules are looked for.
    spec : ModuleSpec or None
        The module of `-m MODULE`.
    """

    path: str
    filename: str
    source: str
    arguments: tuple[str, ...]
    import_folder: str
    spec: ModuleSpec | None = None

    @property
    def name(self) -> str:
        """The name of the file without its folders."""
        return os.path.basename(self.filename)

    def compile_source(self) -> CodeType:
        """Compile the source. Raises the errors of Python if it is not valid."""
        return compile(self.source, self.filename, "exec", dont_inherit=True)


def read_script(path: str, arguments: Sequence[str] = ()) -> Program:
    """Read a script from a file.

    Raises
    ------
    NotAScriptError
        If the file does not exist, or is a folder, a notebook, or not a text.
    """
    file = Path(path)
    if file.is_dir():
        raise NotAScriptError(f"{path} is a folder. Name the script in it: gradlab doctor {file / 'train.py'}")
    if file.suffix == ".ipynb":
        raise NotAScriptError(
            f"{path} is a notebook, not a script. Open it, run %load_ext gradlab, and write %%doctor above a cell."
        )
    if not file.exists():
        raise NotAScriptError(f"there is no file {path}.{_suggestion(path)}")
    try:
        source = importlib.util.decode_source(file.read_bytes())
    except OSError as error:
        raise NotAScriptError(f"{path} could not be read: {error.strerror}.") from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise NotAScriptError(f"{path} is not Python source: {error}.") from error
    if "\0" in source:
        raise NotAScriptError(f"{path} is not Python source: it contains null bytes.")
    filename = os.path.abspath(path)
    return Program(path, filename, source, tuple(arguments), os.path.dirname(os.path.realpath(filename)))


def _suggestion(path: str) -> str:
    """Return a sentence that suggests a file or a module, for a path that does not exist, or ""."""
    if Path(f"{path}.py").is_file():
        return f" There is {path}.py."
    if path.replace(".", "").isidentifier() and not path.endswith(".py"):
        return f" If it is a module, write gradlab doctor -m {path}"
    return ""


def read_module(name: str, arguments: Sequence[str] = ()) -> Program:
    """Read a module, or the `__main__` of a package. Imports the packages that contain it, as Python does.

    Raises
    ------
    NotAScriptError
        If the module does not exist or is not written in Python.
    """
    here = os.getcwd()
    with _import_first_from(here):
        try:
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations is not None:
                spec = importlib.util.find_spec(f"{name}.__main__")
        except (ImportError, ValueError) as error:
            raise NotAScriptError(f"there is no module {name}: {error}.") from error
    if spec is None:
        raise NotAScriptError(f"there is no module {name} to run, neither in {here} nor installed.")
    loader: Any = spec.loader
    source = loader.get_source(spec.name) if hasattr(loader, "get_source") else None
    if source is None or spec.origin is None:
        raise NotAScriptError(f"{name} is not written in Python and cannot be run.")
    return Program(spec.origin, spec.origin, source, tuple(arguments), here, spec)


@contextmanager
def script_environment(program: Program) -> Iterator[ModuleType]:
    """Set what Python sets for a script, in a `with` block, and make its lines known to `source_locations`.

    Yields
    ------
    ModuleType
        The module `__main__`.
    """
    main = ModuleType("__main__")
    names = {"__builtins__": builtins, "__file__": program.filename, "__cached__": None, "__spec__": program.spec}
    vars(main).update(names, __loader__=SourceFileLoader("__main__", program.filename))
    if program.spec is not None:
        vars(main).update(__loader__=program.spec.loader, __package__=program.spec.parent, __cached__=program.spec.cached)
    lines = io.StringIO(program.source).readlines()  # splitlines() also splits at form feeds
    before = sys.argv, sys.modules.get("__main__"), cells.current, cells.header, cells.called, set(sys.modules)

    def begin() -> ModuleType:
        sys.argv = [program.path, *program.arguments]
        sys.modules["__main__"] = main
        # The file may change while the script runs.
        linecache.cache[program.filename] = (len(program.source), None, lines, program.filename)
        cells.current, cells.called = program.filename, program.name
        cells.header = lines[0].rstrip("\n") if lines else ""
        return main

    def end() -> None:
        sys.argv, own_main, cells.current, cells.header, cells.called, known = before
        if own_main is not None:
            sys.modules["__main__"] = own_main
        linecache.cache.pop(program.filename, None)
        new = [(name, one) for name, one in list(sys.modules.items()) if name not in known]
        for name in [name for name, one in new if _is_from(program.import_folder, one)]:
            del sys.modules[name]

    with _import_first_from(program.import_folder), scope_guard(begin, end) as module:
        yield module


@contextmanager
def _import_first_from(folder: str) -> Iterator[None]:
    """Put a folder in the place of the first entry of `sys.path`, in a `with` block."""
    before = sys.path[:]

    def begin() -> None:
        if not sys.flags.safe_path:
            sys.path[:1] = [folder]

    def end() -> None:
        sys.path[:] = before

    with scope_guard(begin, end):
        yield


def _is_from(folder: str, module: Any) -> bool:
    """Return whether a module was imported from a folder, and is not an installed one."""
    if not folder:
        return False
    file, spec = getattr(module, "__file__", None), getattr(module, "__spec__", None)
    paths: list[Any] = [file]
    if file is None and isinstance(spec, ModuleSpec):  # a namespace package has only folders
        paths = list(spec.submodule_search_locations or [])
    return any(isinstance(path, str) and "site-packages" not in path and path.startswith(folder + os.sep) for path in paths)

"""What a function is, in digests: by them a run that goes on in another process knows that it is the same work.

A function is its code, its constants, its defaults, the values of its closure and of the globals that it names, and the
same again for every function among these. Arrays and tensors count by their bytes. What lies in the standard library or in
an installed package counts by its name and the package's version; a module of the user's by the bytes of its source and by
what the function takes from it. Any other object is taken apart by the protocol by which it says what it is made of
(`__reduce_ex__`, of which nothing is ever called or written), and, where a class of the user's says this itself, by its
attributes too: what an object leaves out of its pickle may still be what it computes with. What cannot be taken apart, an open
file say, is refused by the name under which the function reaches it; the user can name such work by `key=` instead.

Digests do not see what a function looks up by a computed name, reads from files or draws at random. For these the values
of the output and of the derivative are compared as well (see `checkpoint`).

Pickles do not do as well. Of the 69 tests of this 29 fail with cloudpickle's bytes and 35 with joblib.hash, 12 and 13 if only
objects are left to these: what `__getstate__` drops, attributes of arrays' subclasses and modules' sources do not count: changed
work goes on in silence. Equal arrays in other memory, tensors and cached functions differ or are refused: the same work does not.
"""

from __future__ import annotations

import builtins
import contextlib
import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from gradlab.explore.libraries import library_of

ATOMS = (type(None), bool, int, float, complex, str, bytes, bytearray, type(Ellipsis), type(NotImplemented))
# What a class says of itself that does not matter, or is made anew in each process.
PASSED_OVER = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__qualname__",
        "__firstlineno__",
        "__static_attributes__",
        "__slotnames__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "_abc_impl",
        "__abstractmethods__",
    }
)
OF_A_MAP = frozenset({"_mmap", "filename", "offset", "mode"})  # what np.memmap itself notes: where the values came from
STANDARD = os.path.dirname(os.__file__), sysconfig.get_path("platstdlib")
CACHED = type(functools.lru_cache(lambda: None))
REDUCERS = ("__reduce__", "__reduce_ex__", "__getstate__")
DESCRIPTORS = ("wrapper_descriptor", "method_descriptor", "member_descriptor", "getset_descriptor", "classmethod_descriptor")


class FingerprintPart(NamedTuple):
    """One thing that must be the same when a run goes on: its digest, and what it looks like in an error message."""

    digest: str
    said: str


class CannotFingerprintError(TypeError):
    """Something that two processes cannot compare; the text names it."""


def parts_of(function: Any, name: str) -> dict[str, FingerprintPart]:
    """What `function`, called `name` in messages, is made of: {"the closure variable w of f": Part, …}.

    Raises
    ------
    CannotDigestError
        For what cannot be compared between processes.
    """
    return _Taking().apart(function, name)


def part_of(value: Any, what: str) -> FingerprintPart:
    """The digest of one value, which messages call `what`."""
    taking = _Taking()
    return taking.part(value, what)


def code_digest(code: CodeType) -> bytes:
    """A code object without its constants, file and line numbers; with those of the code inside it."""
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    inner = [code_digest(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return _hash("code", code.co_code, repr((shape, names)).encode(), code.co_exceptiontable, *inner)


def _hash(kind: str, *pieces: bytes) -> bytes:
    """One digest of several pieces; their lengths keep them apart."""
    hasher = hashlib.blake2b(kind.encode(), digest_size=16)
    for piece in pieces:
        hasher.update(len(piece).to_bytes(8, "little"))
        hasher.update(piece)
    return hasher.digest()


def array_digest(array: np.ndarray) -> bytes:
    """The type, shape and bytes of an array of numbers."""
    flat = np.ascontiguousarray(array).reshape(-1)
    kind = repr(array.dtype) if array.dtype.names else array.dtype.str
    hasher = hashlib.blake2b(f"array {kind} {array.shape} ".encode(), digest_size=16)
    if flat.size:
        hasher.update(flat.view(np.uint8).data)
    return hasher.digest()


class _Taking:
    """Takes values apart. Remembers the digests of those that it has met, and which it is in the midst of."""

    def __init__(self) -> None:
        self.met: dict[int, tuple[Any, bytes]] = {}  # the value too, so that its id stays its own
        self.within: dict[int, int] = {}
        self.versions: dict[str, str] = {"Python": ".".join(map(str, sys.version_info[:3]))}
        self.functions: dict[int, tuple[str, FunctionType]] = {}
        self.label = ""

    # ------------------------------------------------------------------------------------------------- functions, part by part
    def apart(self, function: Any, name: str) -> dict[str, FingerprintPart]:
        parts: dict[str, FingerprintPart] = {}
        if isinstance(function, MethodType):
            parts[f"{name}'s object"] = self.part(function.__self__, f"{name}'s object")
            function = function.__func__
        if not isinstance(function, FunctionType) or _library(function.__globals__.get("__name__")):
            parts[f"the function {name}"] = self.part(function, f"the function {name}")
        else:
            self._reference(function, name)
        queue = list(self.functions.values())
        while queue:
            called, one = queue.pop(0)
            before = len(self.functions)
            parts[f"{called}'s code"] = FingerprintPart(code_digest(one.__code__).hex(), "code")
            for what, value in (*_held_by(one, called), *_named_by(one, called)):
                if isinstance(value, FunctionType) and not _library(value.__globals__.get("__name__")):
                    self._reference(value, value.__name__)
                    parts[what] = FingerprintPart(_hash("function", self.functions[id(value)][0].encode()).hex(), "a function")
                else:
                    parts[what] = self.part(value, what, _attributes(one.__code__))
            queue += list(self.functions.values())[before:]
        for library, version in sorted(self.versions.items()):
            parts[f"the version of {library}"] = FingerprintPart(version, version)
        return parts

    def _reference(self, function: FunctionType, name: str) -> None:
        """Have `function` taken apart under a name of its own."""
        if id(function) in self.functions:
            return
        taken = [called for called, _ in self.functions.values()]
        called, k = name, 1
        while called in taken:
            k += 1
            called = f"{name} ({k})"
        self.functions[id(function)] = (called, function)

    def part(self, value: Any, what: str, attributes: frozenset[str] = frozenset()) -> FingerprintPart:
        self.label = what
        try:
            digest = self._named(value, attributes)
        except RecursionError:
            raise self._refusal(value, "it is nested too deeply") from None
        except CannotFingerprintError:
            raise
        except Exception as error:  # of the user's code: properties, `__reduce__`
            raise self._refusal(value, f"{type(error).__name__}: {error}") from error
        return FingerprintPart(digest.hex(), _said(value))

    def _refusal(self, value: Any, why: object = "") -> CannotFingerprintError:
        kind = type(value).__name__
        article = "an" if kind[:1].lower() in "aeiou" else "a"
        inside = f"holds {article} {kind}" if len(self.within) > 1 else f"is {article} {kind}"
        because = f" ({why})" if why else ""
        return CannotFingerprintError(f"{self.label} {inside}, which cannot be compared between processes{because}")

    # ------------------------------------------------------------------------------------------------------------- values
    def digest(self, value: Any) -> bytes:
        kind = type(value)
        if kind in ATOMS:
            return _hash(kind.__name__, (hex(value) if kind is int else repr(value)).encode("utf-8", "surrogatepass"))
        key = id(value)
        if key in self.met:
            return self.met[key][1]
        if key in self.within:
            return _hash("again", str(self.within[key]).encode())
        self.within[key] = len(self.within)
        try:
            digest = self._composed(value)
        finally:
            del self.within[key]
        self.met[key] = (value, digest)
        return digest

    def _all(self, kind: str, values: Any) -> bytes:
        return _hash(kind, *map(self.digest, values))

    def _composed(self, value: Any) -> bytes:
        kind = type(value)
        if kind in (tuple, list):
            return self._all(kind.__name__, value)
        if kind in (dict, MappingProxyType):
            return self._all("dict", [part for item in value.items() for part in item])
        if kind in (set, frozenset):
            return _hash(kind.__name__, *sorted(map(self.digest, value)))
        if kind in (slice, range):
            return self._all(kind.__name__, (value.start, value.stop, value.step))
        if kind in (np.ndarray, np.memmap) or (issubclass(kind, np.generic) and self._by_name(kind) is not None):
            array, own = self._array(np.asarray(value)), self._own(value, OF_A_MAP) if kind is np.memmap else []
            return _hash("map", array, *own) if own else array
        library = library_of(value)
        if library is not None:
            self._version(type(value).__module__)
            return self._tensor(library, value)
        if kind is CodeType:
            return _hash("code", code_digest(value), self._all("constants", _constants(value)))
        named = self._by_name(value)
        if named is not None:
            return named
        if kind is FunctionType:
            parts = [*_held_by(value, ""), *_named_by(value, "")]
            if _library(value.__globals__.get("__name__")):  # made by a package's decorator: its globals go by the version
                self._version(value.__globals__["__name__"])
                parts = [*_held_by(value, "")]
            names = _attributes(value.__code__)
            return _hash(
                "function",
                code_digest(value.__code__),
                *(_hash(what, self._named(part, names)) for what, part in parts),
            )
        if kind is MethodType:
            return self._all("method", (value.__func__, value.__self__))
        if kind in (staticmethod, classmethod):
            return self._all(kind.__name__, (value.__func__,))
        if kind is property:
            return self._all("property", (value.fget, value.fset, value.fdel))
        if kind is functools.cached_property:
            return self._all("cached_property", (value.func,))
        if issubclass(kind, type):
            return self._class(value)
        if issubclass(kind, ModuleType):
            return self._module(value, frozenset())
        return self._reduced(value)

    def _array(self, array: np.ndarray) -> bytes:
        if array.dtype.hasobject:
            if array.dtype.kind != "O":
                raise self._refusal(array, "a structured array with objects in it")
            return _hash(f"objects {array.shape}", *map(self.digest, array.reshape(-1).tolist()))
        return array_digest(array)

    def _tensor(self, library: Any, tensor: Any) -> bytes:
        try:
            array = library.array(tensor)
        except Exception as error:  # sparse or quantized tensors of torch
            raise self._refusal(tensor, error) from error
        said = f"tensor {library.name} {library.dtype_name(tensor)} {tensor.requires_grad}"
        return _hash(said, array_digest(array), *self._own(tensor))

    def _class(self, cls: type) -> bytes:
        own = [(name, value) for name, value in vars(cls).items() if name not in PASSED_OVER]
        values = [
            _hash(name, type(value).__name__.encode() if _made_by(cls, value) else self.digest(value)) for name, value in own
        ]
        above = [] if type(cls) is type else [self.digest(type(cls))]
        return _hash(f"class {cls.__qualname__}", *map(self.digest, cls.__bases__), *above, *values)

    def _named(self, value: Any, attributes: frozenset[str]) -> bytes:
        """A value that code names; `attributes` are the names that the same code could take from it if it is a module."""
        return self._module(value, attributes) if isinstance(value, ModuleType) else self.digest(value)

    def _module(self, module: ModuleType, attributes: frozenset[str]) -> bytes:
        """A module of a package by its version; one of the user's by its source, and by what is taken from it by name."""
        if _library(module.__name__):
            self._version(module.__name__)
            return _hash("module", module.__name__.encode())
        file = getattr(module, "__file__", None)
        try:
            source = Path(file).read_bytes() if file else b""
        except OSError:
            source = b""
        taken = sorted(attributes & vars(module).keys())
        if not source and not taken:
            raise self._refusal(module, "it has no source")
        key = id(module)
        if key in self.within:
            return _hash("again", str(self.within[key]).encode())
        self.within[key] = len(self.within)
        try:
            return _hash("module", source, *(_hash(name, self._named(vars(module)[name], attributes)) for name in taken))
        finally:
            del self.within[key]

    def _by_name(self, value: Any) -> bytes | None:
        """What an installed package or the standard library keeps under a name: the name, and the package's version."""
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        return self._found(value, name) if isinstance(name, str) else None

    def _found(self, value: Any, name: str) -> bytes | None:
        for module in (getattr(value, "__module__", None), type(value).__module__):
            if isinstance(module, str) and _library(module) and _reached(sys.modules.get(module), name) is value:
                self._version(module)
                return _hash("name", module.encode(), name.encode())
        if isinstance(value, (FunctionType, type)) or "." in name:
            return None
        for module in sorted(sys.modules):  # a function in C does not always know where it lives: scipy.special's
            if _library(module) and vars(sys.modules[module]).get(name) is value:
                self._version(module)
                return _hash("name", module.encode(), name.encode())
        return None

    def _reduced(self, value: Any) -> bytes:
        """Any other object, by what it says that it is made of."""
        kind = type(value)
        if kind is CACHED:  # pickled by its name alone
            return self._all("cached", (value.__wrapped__, value.cache_parameters(), vars(value)))
        try:
            reduce = copyreg.dispatch_table.get(kind)
            reduced = reduce(value) if reduce else kind.__reduce_ex__(value, 4)  # type: ignore[call-arg]
        except Exception as error:
            raise self._refusal(value) from error
        if isinstance(reduced, str):
            named = self._found(value, reduced)
            if named is None:
                raise self._refusal(value)
            return named
        function, arguments, state, items, pairs, setter = (*reduced, None, None, None, None)[:6]
        parts = [function, arguments, state, list(items or ()), list(pairs or ()), setter]
        return _hash("object", self._all("parts", parts), *(self._own(value) if self._leaves_out(kind) else ()))

    def _own(self, value: Any, beside: frozenset[str] = frozenset()) -> list[bytes]:
        """The class of an object, if it is the user's, and the attributes, whatever it says that it is made of."""
        kind, attributes = type(value), []
        for base in kind.__mro__:
            if self._by_name(base) is None:
                slots = vars(base).get("__slots__", ())
                attributes += [
                    f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
                    for name in ([slots] if isinstance(slots, str) else slots)
                ]
        held = {}
        for name in attributes:
            with contextlib.suppress(AttributeError):  # never set
                held[name] = object.__getattribute__(value, name)
        with contextlib.suppress(AttributeError):
            held |= object.__getattribute__(value, "__dict__")
        held = {name: one for name, one in held.items() if name not in beside | {"__dict__", "__weakref__"}}
        return [self.digest(kind)] * (self._by_name(kind) is None) + ([self.digest(held)] if held else [])

    def _leaves_out(self, kind: type) -> bool:
        """Whether objects of a class may hold more than they say that they are made of.

        The default says all. A package's own way is trusted, and goes by its version. What C says, of an array's subclass, leaves
        the attributes out.
        """
        ways = [vars(base)[name] for base in kind.__mro__[:-1] for name in REDUCERS if name in vars(base)]
        looked_up: Any = kind.__getattribute__
        if not ways and kind not in copyreg.dispatch_table and looked_up is object.__getattribute__:
            return False
        return self._by_name(kind) is None or not any(isinstance(way, FunctionType) for way in ways)

    def _version(self, module: str) -> None:
        top = module.partition(".")[0]
        if top not in sys.stdlib_module_names:
            self.versions.setdefault(top, version_of(top))


def _made_by(cls: type, value: Any) -> bool:
    """Whether a class made this descriptor itself, for a slot or `__dict__`."""
    return type(value).__name__ in DESCRIPTORS and getattr(value, "__objclass__", cls) is cls


# ------------------------------------------------------------------------------------------------------ what functions hold
def _held_by(function: FunctionType, called: str) -> Iterator[tuple[str, Any]]:
    """What the function has itself beside its code, under the words that name it."""
    code = function.__code__
    for i, constant in enumerate(_constants(code)):
        yield f"{called}'s constant no. {i + 1}", constant
    for i, default in enumerate(function.__defaults__ or ()):
        yield f"the default of {called}'s argument {_defaulted(function, i)}", default
    for name, default in (function.__kwdefaults__ or {}).items():
        yield f"the default of {called}'s argument {name}", default
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{called}'s closure variable {name}", cell.cell_contents
        except ValueError:  # an empty cell: a call would fail
            yield f"{called}'s closure variable {name}", None
    for name, value in vars(function).items():
        yield f"{called}.{name}", value


def _named_by(function: FunctionType, called: str) -> Iterator[tuple[str, Any]]:
    """The globals and builtins that the function's code loads."""
    for name in _globals(function.__code__):
        if name in function.__globals__:
            yield f"the global {name} in {called}", function.__globals__[name]
        elif hasattr(builtins, name):
            yield f"the builtin {name} in {called}", getattr(builtins, name)
    for name in _imports(function):
        if (module := _to_import(name)) is not None:
            yield f"the module {name} in {called}", module


def _defaulted(function: FunctionType, i: int) -> str:
    code = function.__code__
    return code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) + i]


def _constants(code: CodeType) -> list[Any]:
    """The constants of the code and of the code inside it, in order."""
    constants: list[Any] = []
    for constant in code.co_consts:
        constants += _constants(constant) if isinstance(constant, CodeType) else [constant]
    return constants


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _globals(code: CodeType) -> list[str]:
    """The global names that the code loads."""
    return list(
        dict.fromkeys(
            step.argval
            for one in _codes(code)
            for step in dis.get_instructions(one)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
        )
    )


def _imports(function: FunctionType) -> list[str]:
    """The modules that the function's code imports when it runs, packages before what is in them."""
    modules: dict[str, None] = {}
    for code in _codes(function.__code__):
        steps = list(dis.get_instructions(code))
        for level, _, step in zip(steps, steps[1:], steps[2:], strict=False):
            if step.opname == "IMPORT_NAME":
                name, up = step.argval, level.argval if isinstance(level.argval, int) else 0
                with contextlib.suppress(ImportError, TypeError):  # no package to be relative to: a call would fail
                    name = importlib.util.resolve_name("." * up + name, function.__globals__.get("__package__"))
                    parts = name.split(".")
                    modules |= {".".join(parts[:k]): None for k in range(1, len(parts) + 1)}
    return list(modules)


def _to_import(name: str) -> ModuleType | None:
    """The module that an import statement will find; None for what is installed and not loaded, and what cannot be."""
    if name not in sys.modules:
        try:
            spec = importlib.util.find_spec(name)
            if spec is None or _installed(name, spec.origin or ""):
                return None
            importlib.import_module(name)
        except Exception:  # noqa: BLE001  (the function's own affair, if it gets there)
            return None
    return sys.modules[name]


def _attributes(code: CodeType) -> frozenset[str]:
    """Every name that the code could take from a module."""
    return frozenset(name for one in _codes(code) for name in one.co_names)


# ----------------------------------------------------------------------------------------------------------------- packages
@functools.cache
def _library(module: str | None) -> bool:
    """Whether a module belongs to the standard library or to an installed package (gradlab counts as installed)."""
    if not module:
        return False
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or getattr(sys.modules.get(module), "__file__", None) or ""
    return _installed(top, file)


def _installed(module: str, file: str) -> bool:
    """Whether a module, from this file, is not the user's: a file of the user's may have the name of a standard module."""
    top = module.partition(".")[0]
    if top == "gradlab":
        return True
    if top in sys.stdlib_module_names:
        return not os.path.isabs(file) or Path(file).is_relative_to(STANDARD[0]) or Path(file).is_relative_to(STANDARD[1])
    return bool({"site-packages", "dist-packages"} & set(Path(file).parts))


@functools.cache
def version_of(top: str) -> str:
    """The version of a package."""
    import importlib.metadata

    try:
        return str(getattr(sys.modules.get(top), "__version__", None) or importlib.metadata.version(top))
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _reached(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _said(value: Any) -> str:
    """What a value looks like in a message: short, and without its numbers where there are many."""
    library = library_of(value)
    if library is not None:
        return f"a {library.name} tensor of shape {tuple(value.shape)}, {library.dtype_name(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}, {value.dtype}"
    if type(value) in ATOMS or isinstance(value, np.generic):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else f"of type {type(value).__name__}"

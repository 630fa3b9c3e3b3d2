"""Fingerprints of functions: digests by which a run that resumes in another process recognises the same work.

A function consists of its code, constants, defaults, closure values and the globals that it names, and likewise for every
function among these. Arrays and tensors count by their bytes. Objects of the standard library or an installed package count by
their name and the package's version; a module of the user's by the bytes of its source and by what the function uses of it. Any
other object is decomposed by the pickle protocol (`__reduce_ex__`; none of its results are called or written). If a user's class
overrides the protocol, its attributes count, too: the object may compute with values that its pickle omits. An object that cannot
be decomposed, such as an open file, is refused with the name by which the function reaches it. The user can then identify the
work by `key=`.

Digests do not see names computed at run time, files that are read, and random numbers. Therefore, the values of the output and of
the derivative are compared as well (see `checkpoint`).

Pickles are not sufficient. Of the 69 tests of this module, 29 fail with cloudpickle's bytes and 35 with joblib.hash, and 12 and
13 if only objects are left to these. They ignore what `__getstate__` drops, attributes of array subclasses and the sources of
modules, so changed work would continue silently. Equal arrays in other memory, tensors and cached functions differ or are
refused, so unchanged work would not continue.
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

ATOMIC_TYPES = (type(None), bool, int, float, complex, str, bytes, bytearray, type(Ellipsis), type(NotImplemented))
# Attributes of a class that do not matter, or that differ in each process.
IGNORED_ATTRIBUTES = frozenset(
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
# Attributes of np.memmap itself: the origin of the values.
MEMMAP_ATTRIBUTES = frozenset({"_mmap", "filename", "offset", "mode"})
STANDARD = os.path.dirname(os.__file__), sysconfig.get_path("platstdlib")
CACHED = type(functools.lru_cache(lambda: None))
REDUCERS = ("__reduce__", "__reduce_ex__", "__getstate__")
DESCRIPTORS = ("wrapper_descriptor", "method_descriptor", "member_descriptor", "getset_descriptor", "classmethod_descriptor")


class FingerprintPart(NamedTuple):
    """A value that must not change between runs: its digest, and its description in error messages."""

    digest: str
    said: str


class CannotFingerprintError(TypeError):
    """Raised for values that cannot be compared between processes. The message names the value."""


def parts_of(function: Any, name: str) -> dict[str, FingerprintPart]:
    """Return the parts of `function`, called `name` in messages: {"the closure variable w of f": FingerprintPart, …}.

    Raises
    ------
    CannotFingerprintError
        If a part cannot be compared between processes.
    """
    return _Decomposer().apart(function, name)


def part_of(value: Any, what: str) -> FingerprintPart:
    """Return the digest of one value, which messages call `what`."""
    taking = _Decomposer()
    return taking.part(value, what)


def code_digest(code: CodeType) -> bytes:
    """Return the digest of a code object without constants, file and line numbers, but with nested code."""
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    inner = [code_digest(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return _hash("code", code.co_code, repr((shape, names)).encode(), code.co_exceptiontable, *inner)


def _hash(kind: str, *pieces: bytes) -> bytes:
    """Return one digest of several pieces. Their lengths delimit them."""
    hasher = hashlib.blake2b(kind.encode(), digest_size=16)
    for piece in pieces:
        hasher.update(len(piece).to_bytes(8, "little"))
        hasher.update(piece)
    return hasher.digest()


def array_digest(array: np.ndarray) -> bytes:
    """Return the digest of a numeric array: its type, shape and bytes."""
    flat = np.ascontiguousarray(array).reshape(-1)
    kind = repr(array.dtype) if array.dtype.names else array.dtype.str
    hasher = hashlib.blake2b(f"array {kind} {array.shape} ".encode(), digest_size=16)
    if flat.size:
        hasher.update(flat.view(np.uint8).data)
    return hasher.digest()


class _Decomposer:
    """Decomposes values. Remembers the digests of values it has seen, and which values it is in the middle of."""

    def __init__(self) -> None:
        self.met: dict[int, tuple[Any, bytes]] = {}  # the value is kept so that its id is not reused
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
            for what, value in (*_values_of(one, called), *_globals_of(one, called)):
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
        """Queue `function` for decomposition under its own name."""
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
            digest = self._named_value(value, attributes)
        except RecursionError:
            raise self._refusal(value, "it is nested too deeply") from None
        except CannotFingerprintError:
            raise
        except Exception as error:  # raised by the user's code: properties, `__reduce__`
            raise self._refusal(value, f"{type(error).__name__}: {error}") from error
        return FingerprintPart(digest.hex(), _describe(value))

    def _refusal(self, value: Any, why: object = "") -> CannotFingerprintError:
        kind = type(value).__name__
        article = "an" if kind[:1].lower() in "aeiou" else "a"
        inside = f"holds {article} {kind}" if len(self.within) > 1 else f"is {article} {kind}"
        because = f" ({why})" if why else ""
        return CannotFingerprintError(f"{self.label} {inside}, which cannot be compared between processes{because}")

    # ------------------------------------------------------------------------------------------------------------- values
    def digest(self, value: Any) -> bytes:
        kind = type(value)
        if kind in ATOMIC_TYPES:
            return _hash(kind.__name__, (hex(value) if kind is int else repr(value)).encode("utf-8", "surrogatepass"))
        key = id(value)
        if key in self.met:
            return self.met[key][1]
        if key in self.within:
            return _hash("again", str(self.within[key]).encode())
        self.within[key] = len(self.within)
        try:
            digest = self._composite(value)
        finally:
            del self.within[key]
        self.met[key] = (value, digest)
        return digest

    def _all(self, kind: str, values: Any) -> bytes:
        return _hash(kind, *map(self.digest, values))

    def _composite(self, value: Any) -> bytes:
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
            array, own = self._array(np.asarray(value)), self._own(value, MEMMAP_ATTRIBUTES) if kind is np.memmap else []
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
            parts = [*_values_of(value, ""), *_globals_of(value, "")]
            if _library(value.__globals__.get("__name__")):  # made by a package's decorator: the version covers its globals
                self._version(value.__globals__["__name__"])
                parts = [*_values_of(value, "")]
            names = _attributes(value.__code__)
            return _hash(
                "function",
                code_digest(value.__code__),
                *(_hash(what, self._named_value(part, names)) for what, part in parts),
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
        return self._by_protocol(value)

    def _array(self, array: np.ndarray) -> bytes:
        if array.dtype.hasobject:
            if array.dtype.kind != "O":
                raise self._refusal(array, "a structured array with objects in it")
            return _hash(f"objects {array.shape}", *map(self.digest, array.reshape(-1).tolist()))
        return array_digest(array)

    def _tensor(self, library: Any, tensor: Any) -> bytes:
        try:
            array = library.array(tensor)
        except Exception as error:  # sparse or quantized tensors of PyTorch
            raise self._refusal(tensor, error) from error
        said = f"tensor {library.name} {library.dtype_name(tensor)} {tensor.requires_grad}"
        return _hash(said, array_digest(array), *self._own(tensor))

    def _class(self, cls: type) -> bytes:
        own = [(name, value) for name, value in vars(cls).items() if name not in IGNORED_ATTRIBUTES]
        values = [
            _hash(name, type(value).__name__.encode() if _made_by(cls, value) else self.digest(value)) for name, value in own
        ]
        above = [] if type(cls) is type else [self.digest(type(cls))]
        return _hash(f"class {cls.__qualname__}", *map(self.digest, cls.__bases__), *above, *values)

    def _named_value(self, value: Any, attributes: frozenset[str]) -> bytes:
        """Return the digest of a value named by code. `attributes`: names that the code may read from it if it is a module."""
        return self._module(value, attributes) if isinstance(value, ModuleType) else self.digest(value)

    def _module(self, module: ModuleType, attributes: frozenset[str]) -> bytes:
        """Return the digest of a module: of a package the version; of the user's the source and the attributes that are used."""
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
            return _hash("module", source, *(_hash(name, self._named_value(vars(module)[name], attributes)) for name in taken))
        finally:
            del self.within[key]

    def _by_name(self, value: Any) -> bytes | None:
        """Return the name and version of an object of an installed package or the standard library; None if it has no name
        there."""
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        return self._look_up(value, name) if isinstance(name, str) else None

    def _look_up(self, value: Any, name: str) -> bytes | None:
        for module in (getattr(value, "__module__", None), type(value).__module__):
            if isinstance(module, str) and _library(module) and _follow_path(sys.modules.get(module), name) is value:
                self._version(module)
                return _hash("name", module.encode(), name.encode())
        if isinstance(value, (FunctionType, type)) or "." in name:
            return None
        for module in sorted(sys.modules):  # a C function does not always know its module, for example in scipy.special
            if _library(module) and vars(sys.modules[module]).get(name) is value:
                self._version(module)
                return _hash("name", module.encode(), name.encode())
        return None

    def _by_protocol(self, value: Any) -> bytes:
        """Return the digest of any other object, from its pickle protocol."""
        kind = type(value)
        if kind is CACHED:  # would be pickled by name alone
            return self._all("cached", (value.__wrapped__, value.cache_parameters(), vars(value)))
        try:
            reduce = copyreg.dispatch_table.get(kind)
            reduced = reduce(value) if reduce else kind.__reduce_ex__(value, 4)  # type: ignore[call-arg]
        except Exception as error:
            raise self._refusal(value) from error
        if isinstance(reduced, str):
            named = self._look_up(value, reduced)
            if named is None:
                raise self._refusal(value)
            return named
        function, arguments, state, items, pairs, setter = (*reduced, None, None, None, None)[:6]
        parts = [function, arguments, state, list(items or ()), list(pairs or ()), setter]
        return _hash("object", self._all("parts", parts), *(self._own(value) if self._leaves_out(kind) else ()))

    def _own(self, value: Any, beside: frozenset[str] = frozenset()) -> list[bytes]:
        """Return digests of an object's class, if it is the user's, and of its attributes, whatever its pickle contains."""
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
        """Return whether objects of a class may hold more than their pickle contains.

        The default protocol includes everything. A package's own protocol is trusted, and its version counts. A protocol in C,
        such as that of an array subclass, omits the attributes.
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
    """Return whether a class made this descriptor itself, for a slot or `__dict__`."""
    return type(value).__name__ in DESCRIPTORS and getattr(value, "__objclass__", cls) is cls


# ------------------------------------------------------------------------------------------------------ what functions hold
def _values_of(function: FunctionType, called: str) -> Iterator[tuple[str, Any]]:
    """Yield the values that a function holds besides its code, with their descriptions."""
    code = function.__code__
    for i, constant in enumerate(_constants(code)):
        yield f"{called}'s constant no. {i + 1}", constant
    for i, default in enumerate(function.__defaults__ or ()):
        yield f"the default of {called}'s argument {_argument_with_default(function, i)}", default
    for name, default in (function.__kwdefaults__ or {}).items():
        yield f"the default of {called}'s argument {name}", default
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{called}'s closure variable {name}", cell.cell_contents
        except ValueError:  # an empty cell: calling the function would fail
            yield f"{called}'s closure variable {name}", None
    for name, value in vars(function).items():
        yield f"{called}.{name}", value


def _globals_of(function: FunctionType, called: str) -> Iterator[tuple[str, Any]]:
    """Yield the globals and builtins that the function's code loads."""
    for name in _globals(function.__code__):
        if name in function.__globals__:
            yield f"the global {name} in {called}", function.__globals__[name]
        elif hasattr(builtins, name):
            yield f"the builtin {name} in {called}", getattr(builtins, name)
    for name in _imports(function):
        if (module := _to_import(name)) is not None:
            yield f"the module {name} in {called}", module


def _argument_with_default(function: FunctionType, i: int) -> str:
    code = function.__code__
    return code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) + i]


def _constants(code: CodeType) -> list[Any]:
    """Return the constants of the code and its nested code, in order."""
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
    """Return the global names that the code loads."""
    return list(
        dict.fromkeys(
            step.argval
            for one in _codes(code)
            for step in dis.get_instructions(one)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
        )
    )


def _imports(function: FunctionType) -> list[str]:
    """Return the modules that the function's code imports when it runs, packages before their members."""
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
    """Return the module that an import statement will find; None if it is an installed one that is not loaded, or not found."""
    if name not in sys.modules:
        try:
            spec = importlib.util.find_spec(name)
            if spec is None or _is_installed(name, spec.origin or ""):
                return None
            importlib.import_module(name)
        except Exception:  # noqa: BLE001  (it fails in the function, too, if it gets there)
            return None
    return sys.modules[name]


def _attributes(code: CodeType) -> frozenset[str]:
    """Return every name that the code could read from a module."""
    return frozenset(name for one in _codes(code) for name in one.co_names)


# ----------------------------------------------------------------------------------------------------------------- packages
@functools.cache
def _library(module: str | None) -> bool:
    """Return whether a module belongs to the standard library or an installed package (gradlab counts as installed)."""
    if not module:
        return False
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or getattr(sys.modules.get(module), "__file__", None) or ""
    return _is_installed(top, file)


def _is_installed(module: str, file: str) -> bool:
    """Return whether a module from this file is not the user's: a user's file may have the name of a standard module."""
    top = module.partition(".")[0]
    if top == "gradlab":
        return True
    if top in sys.stdlib_module_names:
        return not os.path.isabs(file) or Path(file).is_relative_to(STANDARD[0]) or Path(file).is_relative_to(STANDARD[1])
    return bool({"site-packages", "dist-packages"} & set(Path(file).parts))


@functools.cache
def version_of(top: str) -> str:
    """Return the version of a package."""
    import importlib.metadata

    try:
        return str(getattr(sys.modules.get(top), "__version__", None) or importlib.metadata.version(top))
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _follow_path(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _describe(value: Any) -> str:
    """Return a short description of a value for messages, without numbers if there are many."""
    library = library_of(value)
    if library is not None:
        return f"a {library.name} tensor of shape {tuple(value.shape)}, {library.dtype_name(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}, {value.dtype}"
    if type(value) in ATOMIC_TYPES or isinstance(value, np.generic):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else f"of type {type(value).__name__}"

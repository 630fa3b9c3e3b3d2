"""Notes on operations, recorded while they run. `reading` builds a trace from them when it is needed.

A note is stored on the node, so it lives as long as the graph. It holds no tensor, but a few numbers or a weak reference to the
array, which the recorder may keep alive for some time.
"""

from __future__ import annotations

import linecache
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from itertools import count, islice
from types import CodeType
from typing import Any, NamedTuple

from gradlab.diagnose.sites import own_site
from gradlab.diagnose.source_locations import cells

times = count()  # numbers cuts and sweeps in the order of the program
MAX_FRAMES = 20
OFFSET = type.__dict__["__weakrefoffset__"].__get__  # a metaclass may override it
FILLS = sys.version_info < (3, 13)  # whether a function's frame keeps the dictionary of its local variables
METHODS = ("__call__", "forward")  # methods of objects that compute like modules
NOTE = "gradlab"  # the key of the note in the dictionary of a node, if the nodes have one, as torch's metadata


class RecordedArray:
    """A tensor's array: the numbers if there are few, else a weak reference, with the owner and the version that show whether it
    was overwritten. `form` describes it if it is not an ordinary dense tensor."""

    __slots__ = ("array", "dtype", "form", "numbers", "owner", "shape", "version")

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, numbers: Any, array: Any, owner: Any, version: int, form: str = ""
    ) -> None:
        self.shape, self.dtype, self.numbers, self.form = shape, dtype, numbers, form
        self.array: weakref.ref[Any] | None = array
        self.owner, self.version = owner, version


class RecordedOperand:
    """An argument that gets no gradient: its position, values, tensor, and why it has no history."""

    __slots__ = ("argument", "kept", "losses", "number", "tensor")

    def __init__(self, argument: int, kept: RecordedArray | None, number: Any, tensor: Any, losses: tuple[Any, ...]) -> None:
        self.argument, self.kept, self.number, self.losses = argument, kept, number, losses
        self.tensor: weakref.ref[Any] | None = tensor


class RecordedCut:
    """A tensor that was cut off from its history: how and where, the operation that computed it, its values, and its leaves.

    `cell` is the site in the running cell. `old` is True if a sweep ran between the computation of the tensor and its cut.
    `aside` is True if the operation has other outputs with a history, as topk. `within` is the site in an installed package that
    the user's `site` called, and `by_them` is True if that package changes the grad mode itself. `time` orders cuts and sweeps.
    """

    __slots__ = ("aside", "by_them", "cell", "how", "kept", "leaves", "old", "operation", "shape", "site", "time", "within")

    def __init__(
        self,
        how: str,
        site: Any,
        operation: str,
        shape: tuple[int, ...],
        kept: RecordedArray | None,
        leaves: Any,
        cell: Any = None,
        *,
        old: bool = False,
    ) -> None:
        self.how, self.operation, self.shape, self.kept, self.cell = how, operation, shape, kept, cell
        self.site, self.within, self.by_them = own_site(site)
        self.old, self.aside, self.time = old, False, next(times)
        self.leaves: list[weakref.ref[Any]] = leaves  # nodes


class RecordedCall:
    """A call of a module."""

    __slots__ = ("depth", "graded", "kind", "module", "outer", "site", "training")
    depth: int

    def __init__(self, module: Any, outer: RecordedCall | None, site: Any, graded: bool) -> None:
        self.module, self.outer, self.site, self.graded = weakref.ref(module), outer, site, graded
        self.kind = type(module).__name__
        self.training = bool(getattr(module, "training", True))
        self.depth = 0 if outer is None else outer.depth + 1


class RecordedWhole:
    """A call of a framework's function that is shown as one operation: its name as in the framework, such as
    "binary_crossentropy"; the name of its operation for `operations.lookup`; its arguments that get no gradient; whether it is
    a layer, which may be an activation itself; and whether the activation after it is an operation of its own."""

    __slots__ = ("given", "is_layer", "keeps_activation", "name", "operation")

    def __init__(
        self,
        name: str,
        operation: str,
        given: tuple[RecordedOperand, ...] = (),
        *,
        is_layer: bool = False,
        keeps_activation: bool = False,
    ) -> None:
        self.name, self.operation, self.given = name, operation, given
        self.is_layer, self.keeps_activation = is_layer, keeps_activation


class Note:
    """The record of an operation.

    Attributes
    ----------
    site, cell : pair of a code object and an offset, or None
        The innermost frame of the user, and the frame of the cell.
    call : RecordedCall or None
    made : RecordedArray or None
        The result.
    given : sequence of RecordedOperand
    inner : bool
        True if it is an internal step of an operation that the user called, which gives the site.
    part_of : pair of a str and an int, or None
        The function for a whole layer that it is part of, and the index of the call.
    methods : tuple of pairs of a weak reference and a code object
        The objects and methods that were running, innermost first; inside a module, only those that the module called.
    whole : RecordedWhole or None
        The innermost call of a framework's function that the operation is part of.
    """

    __slots__ = ("call", "cell", "given", "inner", "made", "methods", "part_of", "site", "whole")

    def __init__(
        self,
        site: Any,
        cell: Any,
        call: RecordedCall | None,
        made: RecordedArray | None,
        given: Any,
        inner: bool = False,
        part_of: tuple[str, int] | None = None,
        methods: tuple[tuple[weakref.ref[Any], CodeType], ...] = (),
        whole: RecordedWhole | None = None,
    ) -> None:
        self.site, self.cell, self.call, self.made, self.given, self.inner = site, cell, call, made, given, inner
        self.part_of, self.methods, self.whole = part_of, methods, whole

    @property
    def operands(self) -> tuple[RecordedOperand, ...]:
        """The arguments that get no gradient, of the operation and of the call that it is a part of."""
        return (*(() if self.inner else self.given), *(() if self.whole is None else self.whole.given))

    def as_whole(self) -> Note:
        """Return the note of the call that this operation is the last part of."""
        given = () if self.whole is None else self.whole.given
        return Note(self.site, self.cell, self.call, self.made, given, False, self.part_of, self.methods, self.whole)


class RecordedFailure(NamedTuple):
    """A call of a function that raised: the id of the error, the function, weak references to the tensor arguments with their
    shapes and dtypes, and the site of the call."""

    error: int
    function: str
    given: list[tuple[weakref.ref[Any], tuple[int, ...] | None, str]]
    site: Any


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """The raw data of an `Event`."""

    kind: str
    site: Any
    leaves: tuple[int, ...] = ()  # keys
    optimizer: str = ""
    rates: tuple[float, ...] = ()
    maximizes: bool = False
    held: tuple[int, ...] = ()
    whose: int = 0  # the key of the optimizer
    cell: Any = None  # the site in the running cell
    checked: bool = True  # for a step, whether leaves with a zero gradient are left out
    scale: float = 0.0  # of a GradScaler


def line_of(site: Any) -> int | None:
    """Return the line of a site."""
    code, offset = site[:2]
    return next(islice(code.co_positions(), offset // 2, None), (None,))[0]


def cell_site() -> Any:
    """Return the site in the running cell that led here; None outside cells."""
    current = cells.current
    frame: Any = sys._getframe(1)
    if current is None:
        return None
    while frame is not None and frame.f_code.co_filename != current:
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def around(frame: Any, site: Any, call: RecordedCall | None) -> tuple[Any, tuple[tuple[weakref.ref[Any], CodeType], ...]]:
    """Return the site in the running cell (outside cells, the frame's own site) and the running methods that may compute like a
    module, innermost first, as their first argument and code. Methods outside the current module call are left out."""
    current, cell, outer = cells.current, site, frame
    if current is not None and frame is not None and frame.f_code.co_filename != current:
        while outer is not None and outer.f_code.co_filename != current:
            outer = outer.f_back
        cell = None if outer is None else (outer.f_code, outer.f_lasti)
    caller = None if call is None or call.site is None else call.site[0]
    methods: tuple[tuple[weakref.ref[Any], CodeType], ...] = ()
    for _ in range(MAX_FRAMES):
        if frame is None or (code := frame.f_code) is caller or not code.co_flags & CO_OPTIMIZED:
            break
        if code.co_name in METHODS and code.co_argcount:
            names = frame.f_locals
            one = names.get(code.co_varnames[0])
            if FILLS and sys.gettrace() is None:
                names.clear()
            if call is not None and one is call.module():
                break
            if OFFSET(type(one)):
                methods += ((weakref.ref(one), code),)
        frame = frame.f_back
    return cell, methods


def is_outermost(frame: Any, current: str | None) -> bool:
    """Return True for the frame of a module, or of top-level lines of the running cell."""
    code = frame.f_code
    return code.co_name == "<module>" or (code.co_filename == current and not code.co_flags & CO_OPTIMIZED)


def locals_of(frame: Any) -> dict[str, Any]:
    """Return the variables of a running function, or of a cell. Before Python 3.13 a function's frame keeps the returned
    dictionary, which would keep the user's tensors alive, so it is cleared. If the program is traced, it is not, as it may be
    written back."""
    space = frame.f_locals
    names = dict(space)
    if FILLS and frame.f_code.co_flags & CO_OPTIMIZED and sys.gettrace() is None:
        space.clear()
    return names


class Frame(NamedTuple):
    """A running function of the user: its position and its variables."""

    code: CodeType
    offset: int
    names: dict[str, Any]
    globals: dict[str, Any]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the function's arguments; none for a module or a cell."""
        code = self.code
        count = code.co_argcount + code.co_kwonlyargcount if code.co_flags & CO_OPTIMIZED else 0
        return code.co_varnames[:count]


def users_frames(frame: Any, is_other: Callable[[str], bool]) -> list[Frame]:
    """Return the running functions of the user from a frame outwards, innermost first. Files for which `is_other` is True are
    left out."""
    frames: list[Frame] = []
    while frame is not None and len(frames) < MAX_FRAMES:
        if not is_other(frame.f_code.co_filename):
            frames.append(Frame(frame.f_code, frame.f_lasti, locals_of(frame), frame.f_globals))
            if is_outermost(frame, cells.current):
                break
        frame = frame.f_back
    return frames


def cell_source() -> tuple[str, ...]:
    """Return the lines of the running cell, the first as the user wrote it; none outside a cell."""
    if cells.current is None:
        return ()
    return (cells.header, *(line.rstrip("\n") for line in linecache.getlines(cells.current)[1:]))

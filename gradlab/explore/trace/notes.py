"""What is noted of an operation while it runs: a few references, made what a reader sees (`reading`) when somebody looks.

A note lies on the node itself, so that it lives as long as the graph does, and holds no tensor: numbers where they are few, else
a weak reference to the array, which the recorder may keep alive for a while.
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

times = count()  # of cuts and sweeps, in the order of the program
FRAMES = 20  # functions that are looked at
OFFSET = type.__dict__["__weakrefoffset__"].__get__  # whatever the metaclass does
FILLS = sys.version_info < (3, 13)  # whether a function's frame keeps the dictionary of its names
METHODS = ("__call__", "forward")  # by which an object computes as a module does
NOTE = "gradlab"  # where a library's nodes have a dictionary, as torch's metadata: the note's key in it


class KeptArray:
    """A tensor's array as it was: its few numbers, or a weak reference and what tells whether it was overwritten since. `form` is
    what it was if it was not an ordinary dense tensor."""

    __slots__ = ("array", "dtype", "form", "numbers", "owner", "shape", "version")

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, numbers: Any, array: Any, owner: Any, version: int, form: str = ""
    ) -> None:
        self.shape, self.dtype, self.numbers, self.form = shape, dtype, numbers, form
        self.array: weakref.ref[Any] | None = array
        self.owner, self.version = owner, version


class Given:
    """An argument that no gradient goes to: which it is, what it held, which tensor it is, and why it has no history."""

    __slots__ = ("argument", "kept", "losses", "number", "tensor")

    def __init__(self, argument: int, kept: KeptArray | None, number: Any, tensor: Any, losses: tuple[Any, ...]) -> None:
        self.argument, self.kept, self.number, self.losses = argument, kept, number, losses
        self.tensor: weakref.ref[Any] | None = tensor


class Severed:
    """A tensor that was cut off from its history: how and where, what made it, what it held, and the leaves behind it. `cell` is
    the site in the cell that ran; `old` whether a sweep came between the making of the tensor and its cut; `aside` whether the
    operation also made what has a history, as topk does; `within` the site in an installed package that the user's own, `site`,
    called, and `by_them` whether that package switches the grad mode itself; `time` tells its place among cuts and sweeps."""

    __slots__ = ("aside", "by_them", "cell", "how", "kept", "leaves", "old", "operation", "shape", "site", "time", "within")

    def __init__(
        self,
        how: str,
        site: Any,
        operation: str,
        shape: tuple[int, ...],
        kept: KeptArray | None,
        leaves: Any,
        cell: Any = None,
        *,
        old: bool = False,
    ) -> None:
        self.how, self.operation, self.shape, self.kept, self.cell = how, operation, shape, kept, cell
        self.site, self.within, self.by_them = own_site(site)
        self.old, self.aside, self.time = old, False, next(times)
        self.leaves: list[weakref.ref[Any]] = leaves  # nodes


class Called:
    """A call of a module."""

    __slots__ = ("depth", "graded", "kind", "module", "outer", "site", "training")
    depth: int

    def __init__(self, module: Any, outer: Called | None, site: Any, graded: bool) -> None:
        self.module, self.outer, self.site, self.graded = weakref.ref(module), outer, site, graded
        self.kind = type(module).__name__
        self.training = bool(getattr(module, "training", True))
        self.depth = 0 if outer is None else outer.depth + 1


class Note:
    """What was seen of an operation.

    Attributes
    ----------
    site, cell : pair of a code object and an offset, or None
        The user's innermost frame, and that of the cell.
    call : Called or None
    made : KeptArray or None
        What it made.
    given : sequence of Given
    inner : bool
        Whether another operation that the user called made it on its way: then it has that one's site.
    part_of : pair of a str and an int, or None
        The function that computes a whole layer, of which it is a part, and which call of it.
    methods : tuple of pairs of a weak reference and a code object
        The methods that ran around it, innermost first, and their objects; in a module those that it called.
    """

    __slots__ = ("call", "cell", "given", "inner", "made", "methods", "part_of", "site")

    def __init__(
        self,
        site: Any,
        cell: Any,
        call: Called | None,
        made: KeptArray | None,
        given: Any,
        inner: bool = False,
        part_of: tuple[str, int] | None = None,
        methods: tuple[tuple[weakref.ref[Any], CodeType], ...] = (),
    ) -> None:
        self.site, self.cell, self.call, self.made, self.given, self.inner = site, cell, call, made, given, inner
        self.part_of, self.methods = part_of, methods


class Failed(NamedTuple):
    """A call of a function that raised: the identity of the error, the function, weak references to the tensors that it was given
    with their shapes and dtypes, and the site of the call."""

    error: int
    function: str
    given: list[tuple[weakref.ref[Any], tuple[int, ...] | None, str]]
    site: Any


@dataclass(frozen=True, slots=True)
class Happening:
    """What an `Event` is made of."""

    kind: str
    site: Any
    leaves: tuple[int, ...] = ()  # identities
    optimizer: str = ""
    rates: tuple[float, ...] = ()
    maximizes: bool = False
    held: tuple[int, ...] = ()
    whose: int = 0  # the optimizer's identity
    cell: Any = None  # the site in the cell that ran
    checked: bool = True  # of a step, whether leaves with a gradient of 0 are left out


def line_of(site: Any) -> int | None:
    """The line of a site."""
    code, offset = site[:2]
    return next(islice(code.co_positions(), offset // 2, None), (None,))[0]


def cell_site() -> Any:
    """The line of the cell that runs which led here; None outside of cells."""
    current = cells.current
    frame: Any = sys._getframe(1)
    if current is None:
        return None
    while frame is not None and frame.f_code.co_filename != current:
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def around(frame: Any, site: Any, call: Called | None) -> tuple[Any, tuple[tuple[weakref.ref[Any], CodeType], ...]]:
    """Return what led to a user's frame: the site in the cell that runs (the frame's own outside of cells), and of the methods
    that run there and may compute as a module does, innermost first, the first argument and the code. Those around the module
    that is being called are left out."""
    current, cell, outer = cells.current, site, frame
    if current is not None and frame is not None and frame.f_code.co_filename != current:
        while outer is not None and outer.f_code.co_filename != current:
            outer = outer.f_back
        cell = None if outer is None else (outer.f_code, outer.f_lasti)
    caller = None if call is None or call.site is None else call.site[0]
    methods: tuple[tuple[weakref.ref[Any], CodeType], ...] = ()
    for _ in range(FRAMES):
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
    """Whether a frame is a module's, or that of the running cell's own lines."""
    code = frame.f_code
    return code.co_name == "<module>" or (code.co_filename == current and not code.co_flags & CO_OPTIMIZED)


def locals_of(frame: Any) -> dict[str, Any]:
    """The names of a running function, or of a cell. Before Python 3.13 a function's frame keeps what it was last asked for, and
    would keep the user's tensors alive: it is emptied again, unless somebody traces the program and may write it back."""
    space = frame.f_locals
    names = dict(space)
    if FILLS and frame.f_code.co_flags & CO_OPTIMIZED and sys.gettrace() is None:
        space.clear()
    return names


class Frame(NamedTuple):
    """A running function of the user's, while somebody looks: where it is, and its names."""

    code: CodeType
    offset: int
    names: dict[str, Any]
    globals: dict[str, Any]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of what the function was given; none of a module or a cell."""
        code = self.code
        count = code.co_argcount + code.co_kwonlyargcount if code.co_flags & CO_OPTIMIZED else 0
        return code.co_varnames[:count]


def users_frames(frame: Any, is_other: Callable[[str], bool]) -> list[Frame]:
    """The user's functions that run from a frame outwards, innermost first; those of files that are another's are left out."""
    frames: list[Frame] = []
    while frame is not None and len(frames) < FRAMES:
        if not is_other(frame.f_code.co_filename):
            frames.append(Frame(frame.f_code, frame.f_lasti, locals_of(frame), frame.f_globals))
            if is_outermost(frame, cells.current):
                break
        frame = frame.f_back
    return frames


def cell_source() -> tuple[str, ...]:
    """The lines of the cell that runs, the first as the user wrote it; none outside of one."""
    if cells.current is None:
        return ()
    return (cells.header, *(line.rstrip("\n") for line in linecache.getlines(cells.current)[1:]))

"""Where operations were recorded, where memory was written to, and where history was lost: what errors and pictures can say then.

A *site* is a pair (code object, offset of an instruction) of the nearest frame outside gradlab, or a triple whose third part
names the cut-off tensors that the operation was given. It is two references, taken while the operation runs; the line and the
very sub-expression are looked up (`diagnose.source_locations`) only when somebody wants to see them.

What is noted is kept where it belongs, in slots that are empty while nobody watches: `Node.site`, `Storage.writes` and
`Tensor.lost`. So it lives as long as the graph does, also after the block in which it was recorded, and holds no tensor: a
`Loss` is handed on from tensor to tensor, never chained, and refers weakly to the node that was cut off.
"""

from __future__ import annotations

import linecache
import os
import site as installed
import sysconfig
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from sys import _getframe
from typing import Any, NamedTuple

from gradlab.core.modes import mode
from gradlab.core.observers import observers, observing
from gradlab.core.storage import NUMBER, tick
from gradlab.diagnose.faults import Faults, Watcher
from gradlab.diagnose.source_locations import CELL

HOME = (str(Path(__file__).parent.parent) + "/", "<gradlab")  # our modules, and the code that we generate
BELOW = (HOME[0] + "core/", HOME[0] + "diagnose/faults", "<gradlab")  # below the functions that a user knows
OPTIMIZERS = HOME[0] + "optim/"
OURS: set[str] = set()  # file names known to start so
USERS: dict[str, bool] = {}  # what is known of other files
MODES = frozenset(("no_grad", "inference_mode", "set_grad_enabled", "decorate_context"))  # the last is torch's, of a decorator
KEPT = 64  # writes to one storage that are remembered
MOST = 3  # losses that a tensor remembers

Site = tuple[Any, ...]


class Write(NamedTuple):
    """One write to a storage: when (a tick), where, by which function of gradlab's, and what kind of tensor it went through."""

    tick: int
    version: int  # of the storage, after it
    began: int  # the tick when the recording began that noted it
    site: Site | None
    function: str  # "add_"
    entry: str  # the method of ours that the user called: "step" of an optimizer
    leaf: bool  # a leaf that requires grad
    graded: bool  # in grad mode
    lost: tuple[Loss, ...]  # of a tensor that shares the memory without the history


class Loss(NamedTuple):
    """How and where a tensor came to have no history, although …"""

    how: str  # "detach", "data", "no_grad", "constant" (nothing required grad), "integers" …
    site: Site | None
    what: str  # what did require grad: "the result of ExpBackward0"
    shape: tuple[int, ...]
    node: Any = None  # a weak reference to its node
    after: Any = None  # of a "constant": the last Loss that left no tensor behind, as item()
    severed: Any = None  # what a trace notes of the tensor that was cut off


class Freed(NamedTuple):
    """In place of what a node had saved: the sweep that freed it."""

    tick: int
    site: Site | None


def site_here(depth: int = 1) -> Site | None:
    """The nearest frame outside gradlab, from `depth` frames above the caller on; None where Python itself called us."""
    frame: Any = _getframe(depth)
    while (name := frame.f_code.co_filename) in OURS or is_ours(name):
        frame = frame.f_back
        if frame is None:
            return None
    return frame.f_code, frame.f_lasti


def is_ours(filename: str) -> bool:
    if filename.startswith(HOME):
        OURS.add(filename)
        return True
    return False


@cache
def _libraries() -> tuple[str, ...]:
    """The folders of Python's own modules and of installed ones."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {*(sysconfig.get_path(name) for name in names), installed.getusersitepackages()}
    folders.add(os.path.dirname(os.__file__))  # on Pyodide a zip file, of which sysconfig does not know
    return tuple(str(Path(folder)) + "/" for folder in folders if folder is not None)  # nor is there a folder of the user's


def is_users(filename: str) -> bool:
    """Whether a file is neither gradlab's nor installed nor Python's own."""
    if filename.startswith("<"):
        return not is_ours(filename) and (bool(CELL.match(filename)) or bool(linecache.getlines(filename)))
    known = USERS.get(filename)
    if known is None:
        within = "/site-packages/" in filename or "/dist-packages/" in filename
        known = USERS[filename] = not (is_ours(filename) or within or filename.startswith(_libraries()))
    return known


class Own(NamedTuple):
    """Where something happened, as far as it concerns the user."""

    site: Site | None  # in the user's own code
    within: Site | None  # in the installed package that it was called from there; None where the user wrote it
    by_them: bool  # whether a function of that package switches the grad mode itself


def own_site(site: Site | None) -> Own:
    """The nearest frame of the user's own code behind a site of this moment; the site itself where there is none."""
    if site is None or is_users(site[0].co_filename):
        return Own(site, None, False)
    frame: Any = _getframe(1)
    while frame is not None and frame.f_code is not site[0]:
        frame = frame.f_back
    by_them = False
    while frame is not None and not is_users(frame.f_code.co_filename):
        by_them |= not MODES.isdisjoint((*frame.f_code.co_names, frame.f_code.co_name))
        frame = frame.f_back
    return Own(site, None, False) if frame is None else Own((frame.f_code, frame.f_lasti), site, by_them)


class Sites(Watcher):
    """Notes the site of every operation, write and cut of a thread."""

    def __init__(self) -> None:
        self.began = tick()
        self.lossy = False  # whether anything has been cut off yet
        self.away: Loss | None = None  # the last value that left as a number or an array
        self.faults = Faults("noted where operations stand in the source")

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        """Note where a node was recorded, or why there is none."""
        frame: Any = _getframe(2)
        while (code := frame.f_code).co_filename in OURS or is_ours(code.co_filename):
            frame = frame.f_back
            if frame is None:
                return
        self.noted((code, frame.f_lasti), op, result, args)

    def noted(self, site: Site, op: Any, result: Any, args: tuple[Any, ...]) -> None:
        """The same, from where the site is known."""
        node = result.node
        if node is None:
            result.lost = self._without(op, args, site)
            self.lossy = True
            return
        if self.lossy:
            lost = [getattr(x, "lost", ()) for x in args if x is not None and x.node is None and x.storage is not NUMBER]
            for losses in [one for one in lost if one and one[0].node is not None]:
                site = (*site[:2], (*(site[2] if len(site) > 2 else ()), *losses)[:MOST])
        node.site = site

    def _without(self, op: Any, args: tuple[Any, ...], site: Site | None) -> tuple[Loss, ...]:
        """Why the result of an operation has no history: by itself, or as its arguments have none."""
        losses: list[Loss] = []
        for x in args:
            if x is None:
                continue
            if x.node is not None:
                how = "inference_mode" if mode.inference else "no_grad"
                return (self.loss(x, how, site, args),)
            losses += [loss for loss in getattr(x, "lost", ()) if loss not in losses]
        cuts = [loss for loss in losses if loss.how != "constant"]
        if cuts or losses:
            return tuple((cuts or losses)[:MOST])
        kind = next((str(x.dtype) for x in args if x is not None and x.array.dtype.kind != "f"), "")
        return (Loss("constant", site, kind, args[0].array.shape if args and args[0] is not None else (), None, self.away),)

    def loss(self, source: Any, how: str, site: Site | None, all_of: Sequence[Any] = ()) -> Loss:
        """The tensor `source`, which has a history, is cut off from it; `all_of` are the arguments of one operation, with it."""
        own = own_site(site)
        if how in ("no_grad", "inference_mode") and not own.by_them:
            site = own.site  # where the user may have switched it
        return Loss(how, site, wording(source.node), source.array.shape, weakref.ref(source.node))

    def after_write(self, tensor: Any) -> None:
        """Note where memory was written to."""
        frame: Any = _getframe(1)
        function = entry = ""
        while frame is not None and (name := frame.f_code.co_filename).startswith(HOME):
            entry = "step" if name.startswith(OPTIMIZERS) else frame.f_code.co_name
            if not function and not name.startswith(BELOW):
                function = entry
            frame = frame.f_back
        site = None if frame is None else (frame.f_code, frame.f_lasti)
        storage = tensor.storage
        writes = getattr(storage, "writes", None)
        if writes is None:
            storage.writes = writes = deque(maxlen=KEPT)
        leaf = tensor.node is not None and tensor.node.op is None
        writes.append(
            Write(
                storage.written, storage.version, self.began, site, function, entry, leaf, mode.grad, getattr(tensor, "lost", ())
            )
        )

    def on_rebase(self, node: Any) -> None:
        """Note where a node was recorded for a write."""
        if (site := site_here(2)) is not None:
            node.site = site

    def on_detach(self, result: Any, source: Any, how: str) -> None:
        """Note where a tensor was made without the history of its source."""
        lost = getattr(source, "lost", ())
        if source.node is not None:
            lost = (self.loss(source, how, site_here(2)),)
        if lost:
            result.lost, self.lossy = lost, True

    def on_index(self, result: Any, indices: Sequence[Any]) -> None:
        """Hand on why the numbers of the elements that were picked have no history, if the elements have none either."""
        for index in indices:
            if result.node is None and (lost := getattr(index, "lost", ())):
                result.lost, self.lossy = lost, True

    def on_cast(self, result: Any, source: Any) -> None:
        """Hand on why a promoted tensor has no history."""
        if lost := getattr(source, "lost", ()):
            result.lost = lost

    def on_leave_autograd(self, source: Any, how: str) -> None:
        """Note where the values of a tensor went on as Python numbers or as a NumPy array."""
        lost = getattr(source, "lost", ())
        if source.node is not None:
            self.away = self.loss(source, how, site_here(2))
        elif lost and lost[0].node is not None:
            self.away = lost[0]._replace(how=f"{lost[0].how}, then {how}")

    def sweep_origin(self) -> Freed:
        """Note where a reverse sweep was started."""
        return Freed(tick(), site_here(2))


def wording(node: Any) -> str:
    """What an error calls the tensor of a node: "the result of ExpBackward0", "a leaf"."""
    return "a leaf" if node.op is None else f"the result of {node.title}"


def present() -> Sites | None:
    """What records this thread's sites already."""
    return next((observer for observer in observers.active if isinstance(observer, Sites)), None)


@contextmanager
def recording() -> Iterator[Sites]:
    """Record the sites of this thread inside the block; within another such block, nothing more."""
    sites = present()
    if sites is not None:
        yield sites
        return
    with observing(Sites()) as sites:
        yield sites


@contextmanager
def record_sites() -> Iterator[None]:
    """Note for every operation in the block where it stands in the source: a context manager and a decorator.

    An error about a gradient then names the lines it comes from (which operation saved a tensor, what wrote to it, where the
    history was lost, which call freed the graph), and `gradlab.graph` shows them; also after the block, as long as the graph
    lives. A `%%grad` cell does it by itself. It concerns this thread, and costs about 1 µs an operation. Without it nothing
    is noted.

    Returns
    -------
    context manager
        And decorator.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0], requires_grad=True)
    >>> with gl.record_sites():
    ...     y = x.exp()
    ...     y += 1
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError as error:
    ...         print("y += 1" in str(error))
    True
    """
    with recording():
        yield

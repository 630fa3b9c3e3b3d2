"""Record source sites of operations, of writes to memory, and of lost history, for errors and pictures.

A *site* is a pair (code object, instruction offset) of the nearest frame outside gradlab, or a triple whose third item lists the
losses of the operands without history. It is only two references, taken while the operation runs. The line and the exact
sub-expression are looked up (`diagnose.source_locations`) when they are shown.

Records are stored in slots that are empty while nothing is recorded: `Node.site`, `Storage.writes` and `Tensor.lost`. They live
as long as the graph, even after the block in which they were recorded, and hold no tensor. A `Loss` is copied from tensor to
tensor, not chained, and has a weak reference to the node that was cut off.
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
from gradlab.core.storage import NUMBER_STORAGE, tick
from gradlab.diagnose.faults import Faults, Watcher
from gradlab.diagnose.source_locations import CELL_FILE

GRADLAB_PREFIXES = (str(Path(__file__).parent.parent) + "/", "<gradlab")  # gradlab's modules, and generated code
# Modules below the public functions.
INTERNAL_PREFIXES = (GRADLAB_PREFIXES[0] + "core/", GRADLAB_PREFIXES[0] + "diagnose/faults", "<gradlab")
OPTIMIZER_FOLDER = GRADLAB_PREFIXES[0] + "optim/"
GRADLAB_FILES: set[str] = set()  # cache of file names with one of `GRADLAB_PREFIXES`
IS_USER_FILE: dict[str, bool] = {}  # cache for other file names
# The last is the wrapper of PyTorch's decorators.
GRAD_MODE_NAMES = frozenset(("no_grad", "inference_mode", "set_grad_enabled", "decorate_context"))
MAX_WRITES = 64  # stored per storage
MAX_LOSSES = 3  # stored per tensor

Site = tuple[Any, ...]


class Write(NamedTuple):
    """One write to a storage: when (a tick), where, by which function of gradlab, and through which kind of tensor."""

    tick: int
    version: int  # of the storage, after the write
    began: int  # the tick at which this recording began
    site: Site | None
    function: str  # "add_"
    entry: str  # the method that the user called: "step" for an optimizer
    leaf: bool  # the tensor is a leaf that requires grad
    graded: bool  # grad mode was enabled
    lost: tuple[Loss, ...]  # losses of a tensor that shares memory without history


class Loss(NamedTuple):
    """The loss of a tensor's history: how, where and of which tensor."""

    how: str  # "detach", "data", "no_grad", "constant" (nothing required grad), "integers" …
    site: Site | None
    what: str  # the tensor that required grad: "the result of ExpBackward0"
    shape: tuple[int, ...]
    node: Any = None  # a weak reference to its node
    after: Any = None  # for "constant": the last Loss by item(), numpy() or the like, if any
    severed: Any = None  # a trace's record of the tensor that was cut off


class Freed(NamedTuple):
    """The sweep that freed a node, stored in place of its saved tensors."""

    tick: int
    site: Site | None


def site_here(depth: int = 1) -> Site | None:
    """Return the site of the nearest frame outside gradlab, starting `depth` frames up. None if Python itself is the caller."""
    frame: Any = _getframe(depth)
    while (name := frame.f_code.co_filename) in GRADLAB_FILES or is_gradlab_file(name):
        frame = frame.f_back
        if frame is None:
            return None
    return frame.f_code, frame.f_lasti


def is_gradlab_file(filename: str) -> bool:
    if filename.startswith(GRADLAB_PREFIXES):
        GRADLAB_FILES.add(filename)
        return True
    return False


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {*(sysconfig.get_path(name) for name in names), installed.getusersitepackages()}
    folders.add(os.path.dirname(os.__file__))  # on Pyodide a zip file, which sysconfig does not know
    return tuple(str(Path(folder)) + "/" for folder in folders if folder is not None)  # Pyodide has no user site


def is_user_file(filename: str) -> bool:
    """Return True if a file belongs neither to gradlab nor to an installed package nor to the standard library."""
    if filename.startswith("<"):
        return not is_gradlab_file(filename) and (bool(CELL_FILE.match(filename)) or bool(linecache.getlines(filename)))
    known = IS_USER_FILE.get(filename)
    if known is None:
        within = "/site-packages/" in filename or "/dist-packages/" in filename
        known = IS_USER_FILE[filename] = not (is_gradlab_file(filename) or within or filename.startswith(_libraries()))
    return known


class OwnSite(NamedTuple):
    """Site of an event in the user's own code."""

    site: Site | None  # in the user's own code
    within: Site | None  # in the installed package that the user called; None if the user's code did it
    switches_mode: bool  # True if a function of that package switches the grad mode


def own_site(site: Site | None) -> OwnSite:
    """Return the nearest frame of the user's own code behind a current site, or the site itself if there is none."""
    if site is None or is_user_file(site[0].co_filename):
        return OwnSite(site, None, False)
    frame: Any = _getframe(1)
    while frame is not None and frame.f_code is not site[0]:
        frame = frame.f_back
    switches_mode = False
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        switches_mode |= not GRAD_MODE_NAMES.isdisjoint((*frame.f_code.co_names, frame.f_code.co_name))
        frame = frame.f_back
    return OwnSite(site, None, False) if frame is None else OwnSite((frame.f_code, frame.f_lasti), site, switches_mode)


class Sites(Watcher):
    """Observer that records the site of each operation, write and cut in a thread."""

    def __init__(self) -> None:
        self.began = tick()
        self.lossy = False  # True once something was cut off
        self.last_export: Loss | None = None  # the last value that became a number or an array
        self.faults = Faults("recorded the source lines of operations")

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        """Store where a node was recorded, or why there is none."""
        frame: Any = _getframe(2)
        while (code := frame.f_code).co_filename in GRADLAB_FILES or is_gradlab_file(code.co_filename):
            frame = frame.f_back
            if frame is None:
                return
        self.note_operation((code, frame.f_lasti), op, result, args)

    def note_operation(self, site: Site, op: Any, result: Any, args: tuple[Any, ...]) -> None:
        """Store the site of a node, or why there is no node."""
        node = result.node
        if node is None:
            result.lost = self._find_losses(op, args, site)
            self.lossy = True
            return
        if self.lossy:
            lost = [getattr(x, "lost", ()) for x in args if x is not None and x.node is None and x.storage is not NUMBER_STORAGE]
            for losses in [one for one in lost if one and one[0].node is not None]:
                site = (*site[:2], (*(site[2] if len(site) > 2 else ()), *losses)[:MAX_LOSSES])
        node.site = site

    def _find_losses(self, op: Any, args: tuple[Any, ...], site: Site | None) -> tuple[Loss, ...]:
        """Return why the result of an operation has no history: because of the operation, or because of its arguments."""
        losses: list[Loss] = []
        for x in args:
            if x is None:
                continue
            if x.node is not None:
                how = "inference_mode" if mode.inference else "no_grad"
                return (self.make_loss(x, how, site, args),)
            losses += [loss for loss in getattr(x, "lost", ()) if loss not in losses]
        cuts = [loss for loss in losses if loss.how != "constant"]
        if cuts or losses:
            return tuple((cuts or losses)[:MAX_LOSSES])
        kind = next((str(x.dtype) for x in args if x is not None and x.array.dtype.kind != "f"), "")
        return (
            Loss("constant", site, kind, args[0].array.shape if args and args[0] is not None else (), None, self.last_export),
        )

    def make_loss(self, source: Any, how: str, site: Site | None, all_of: Sequence[Any] = ()) -> Loss:
        """Return the record of `source` losing its history. `all_of` are the arguments of the operation, including `source`."""
        own = own_site(site)
        if how in ("no_grad", "inference_mode") and not own.switches_mode:
            site = own.site  # where the user may have switched the grad mode
        return Loss(how, site, name_of_tensor(source.node), source.array.shape, weakref.ref(source.node))

    def on_after_write(self, tensor: Any) -> None:
        """Store where memory was written to."""
        frame: Any = _getframe(1)
        function = entry = ""
        while frame is not None and (name := frame.f_code.co_filename).startswith(GRADLAB_PREFIXES):
            entry = "step" if name.startswith(OPTIMIZER_FOLDER) else frame.f_code.co_name
            if not function and not name.startswith(INTERNAL_PREFIXES):
                function = entry
            frame = frame.f_back
        site = None if frame is None else (frame.f_code, frame.f_lasti)
        storage = tensor.storage
        writes = getattr(storage, "writes", None)
        if writes is None:
            storage.writes = writes = deque(maxlen=MAX_WRITES)
        leaf = tensor.node is not None and tensor.node.op is None
        writes.append(
            Write(
                storage.written, storage.version, self.began, site, function, entry, leaf, mode.grad, getattr(tensor, "lost", ())
            )
        )

    def on_rebase(self, node: Any) -> None:
        """Store where a node was recorded for a write."""
        if (site := site_here(2)) is not None:
            node.site = site

    def on_detach(self, result: Any, source: Any, how: str) -> None:
        """Store where a tensor was created without the history of its source."""
        lost = getattr(source, "lost", ())
        if source.node is not None:
            lost = (self.make_loss(source, how, site_here(2)),)
        if lost:
            result.lost, self.lossy = lost, True

    def on_index(self, result: Any, indices: Sequence[Any]) -> None:
        """Copy the losses of the indices to the result, if the result has no history."""
        for index in indices:
            if result.node is None and (lost := getattr(index, "lost", ())):
                result.lost, self.lossy = lost, True

    def on_cast(self, result: Any, source: Any) -> None:
        """Copy the losses of a tensor to its promoted copy."""
        if lost := getattr(source, "lost", ()):
            result.lost = lost

    def on_leave_autograd(self, source: Any, how: str) -> None:
        """Store where the values of a tensor became Python numbers or a NumPy array."""
        lost = getattr(source, "lost", ())
        if source.node is not None:
            self.last_export = self.make_loss(source, how, site_here(2))
        elif lost and lost[0].node is not None:
            self.last_export = lost[0]._replace(how=f"{lost[0].how}, then {how}")

    def sweep_origin(self) -> Freed:
        """Return where a reverse sweep was started."""
        return Freed(tick(), site_here(2))


def name_of_tensor(node: Any) -> str:
    """Return the name of a node's tensor for errors: "the result of ExpBackward0", "a leaf"."""
    return "a leaf" if node.op is None else f"the result of {node.title}"


def active_recorder() -> Sites | None:
    """Return the observer that records sites in this thread, or None."""
    return next((observer for observer in observers.active if isinstance(observer, Sites)), None)


@contextmanager
def recording() -> Iterator[Sites]:
    """Record the sites of this thread inside the block, unless they are already being recorded."""
    sites = active_recorder()
    if sites is not None:
        yield sites
        return
    with observing(Sites()) as sites:
        yield sites


@contextmanager
def record_sites() -> Iterator[None]:
    """Context manager and decorator that records the source line of each operation.

    Errors about gradients then name the lines that caused them: which operation saved a tensor, which line modified it, where
    the history was lost, which call freed the graph. `gradlab.graph` shows the lines too. The records remain after the block, as
    long as the graph exists. A `%%grad` cell records lines by itself. Recording affects only the current thread and costs about
    1 µs per operation.

    Returns
    -------
    context manager
        It can also be used as a decorator.

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

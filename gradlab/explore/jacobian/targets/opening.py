"""From what a user gives as `out` to the target that it is."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from gradlab.explore.jacobian.plan import Plan
from gradlab.explore.jacobian.targets.in_memory import ArrayTarget
from gradlab.explore.jacobian.targets.target import Target

CHUNK_BYTES = 64e6  # of a zarr array that is made; what is larger is split across the blocks
MARK: dict[str, Any] = {
    "made by": "gradlab"
}  # of what was made here: what resume=True may write into though there is no record yet
INSTALL = "pip install 'gradlab[distributed]'"


class Unmade:
    """A place where nothing is yet; what is made there, the plan decides."""

    travels = False
    takes = "any"

    def __init__(self, where: Any) -> None:
        self.where = where

    def make(self, plan: Plan, dtype: np.dtype) -> Target:
        """A zarr group for a plan of colours, a zarr array for others."""
        import zarr

        from gradlab.explore.jacobian.targets.zarr_array import ZarrArray
        from gradlab.explore.jacobian.targets.zarr_parts import ZarrParts
        from gradlab.explore.jacobian.targets.zarr_store import compressor

        if plan.colours is not None:
            return ZarrParts(zarr.create_group(store=self.where, attributes=MARK))
        return ZarrArray(
            zarr.create_array(
                store=self.where,
                shape=plan.shape,
                dtype=dtype,
                chunks=chunks_of(plan, dtype),
                compressors=compressor(),
                attributes=MARK,
            )
        )


def chunks_of(plan: Plan, dtype: np.dtype) -> tuple[int, int]:
    """Chunks that go with the blocks of a plan, split across them where they are large."""
    along = plan.chunk * (plan.rows_a_sample if plan.kind == "samples" else 1)
    axis = int(plan.kind == "columns")
    along = max(1, min(along, plan.shape[axis]))
    across = max(1, min(plan.shape[1 - axis], int(CHUNK_BYTES // (along * dtype.itemsize))))
    return (across, along) if axis else (along, across)


def opened(out: Any, *, resume: bool) -> Target | Unmade:
    """The target that was given, or a place for one.

    Raises
    ------
    TypeError
        For what is no target.
    FileExistsError
        For a place that something is at, and that nobody asked to go on with.
    ImportError
        If it takes zarr, and there is none.
    """
    if isinstance(out, np.ndarray):
        return ArrayTarget(out)
    zarr = sys.modules.get("zarr")
    if zarr is None and isinstance(out, (str, os.PathLike)):
        zarr = _zarr()
    if zarr is not None and (isinstance(out, (zarr.Array, zarr.Group, zarr.abc.store.Store, str, os.PathLike))):
        return _of_zarr(zarr, out, resume)
    raise TypeError(
        "out= takes a NumPy array or np.memmap that the Jacobian is written into, a zarr array or group, or a path that zarr "
        f"makes one at; got {type(out).__name__}"
    )


def _of_zarr(zarr: Any, out: Any, resume: bool) -> Target | Unmade:
    from gradlab.explore.jacobian.targets.zarr_array import ZarrArray
    from gradlab.explore.jacobian.targets.zarr_parts import ZarrParts

    if isinstance(out, (zarr.Array, zarr.Group)):
        return ZarrArray(out) if isinstance(out, zarr.Array) else ZarrParts(out)
    out = os.fspath(out).removeprefix("file://") if isinstance(out, (str, os.PathLike)) else out  # zarr's own store is atomic
    if isinstance(out, str) and os.path.lexists(out) and not os.path.isdir(out):
        raise _taken(out)
    try:
        node = zarr.open(store=out, mode="r+")
    except FileNotFoundError:
        if isinstance(out, str) and os.path.isdir(out) and os.listdir(out):
            raise _taken(out) from None
        return Unmade(out)
    target = ZarrArray(node) if isinstance(node, zarr.Array) else ZarrParts(node)
    place = target.place()
    ours = place is not None and (place.read() is not None or MARK.items() <= dict(node.attrs).items())
    if not resume or not ours:
        raise _taken(out)
    return target


def _taken(out: Any) -> FileExistsError:
    return FileExistsError(
        f"out={out!r}: something is there already, and nothing was overwritten. Give another place; resume=True to go on with a "
        "Jacobian that was begun there; or a zarr array or group that you have opened, which is written over"
    )


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError(f"out= with a path writes it by zarr, which is not installed: {INSTALL}") from None
    return zarr

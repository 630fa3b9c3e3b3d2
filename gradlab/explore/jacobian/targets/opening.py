"""Convert a user's `out` to a target."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from gradlab.explore.jacobian.plan import Plan
from gradlab.explore.jacobian.targets.in_memory import ArrayTarget
from gradlab.explore.jacobian.targets.target import Target

CHUNK_BYTES = 64e6  # maximum size of the chunks of a new zarr array; larger ones are split across the blocks
MARK: dict[str, Any] = {
    "made by": "gradlab"
}  # marks targets that gradlab created: resume=True may write to them without a record
INSTALL = "pip install 'gradlab[distributed]'"


class Unmade:
    """A place where nothing exists yet. The plan determines the kind of target."""

    travels = False
    takes = "any"

    def __init__(self, where: Any) -> None:
        self.where = where

    def make(self, plan: Plan, dtype: np.dtype) -> Target:
        """Create a zarr group for a plan with colours, else a zarr array."""
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
    """Return chunks that match the blocks of a plan, split across them if they are large."""
    along = plan.chunk * (plan.rows_a_sample if plan.kind == "samples" else 1)
    axis = int(plan.kind == "columns")
    along = max(1, min(along, plan.shape[axis]))
    across = max(1, min(plan.shape[1 - axis], int(CHUNK_BYTES // (along * dtype.itemsize))))
    return (across, along) if axis else (along, across)


def open_target(out: Any, *, resume: bool) -> Target | Unmade:
    """Return the given target, or a place for one.

    Raises
    ------
    TypeError
        If `out` is not a target.
    FileExistsError
        If something exists at the place, and `resume` is not set.
    ImportError
        If zarr is required but not installed.
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
    out = os.fspath(out).removeprefix("file://") if isinstance(out, (str, os.PathLike)) else out  # zarr's store writes atomically
    if isinstance(out, str) and os.path.lexists(out) and not os.path.isdir(out):
        raise _exists_error(out)
    try:
        node = zarr.open(store=out, mode="r+")
    except FileNotFoundError:
        if isinstance(out, str) and os.path.isdir(out) and os.listdir(out):
            raise _exists_error(out) from None
        return Unmade(out)
    target = ZarrArray(node) if isinstance(node, zarr.Array) else ZarrParts(node)
    place = target.place()
    ours = place is not None and (place.read() is not None or MARK.items() <= dict(node.attrs).items())
    if not resume or not ours:
        raise _exists_error(out)
    return target


def _exists_error(out: Any) -> FileExistsError:
    return FileExistsError(
        f"out={out!r}: this place exists already, and nothing was overwritten. Give another place; or resume=True to continue a "
        "Jacobian that was started there; or a zarr array or group that you have opened, to overwrite it"
    )


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError(f"out= with a path requires zarr, which is not installed: {INSTALL}") from None
    return zarr

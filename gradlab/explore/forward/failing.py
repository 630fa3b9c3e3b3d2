"""Find the call that ended a run, where no function on tensors raised: an assertion of the program's, a check of a layer's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from gradlab.diagnose.sites import is_gradlab_file
from gradlab.explore.forward.run import Made, Run, describe_given
from gradlab.explore.graph.spans import brief
from gradlab.explore.trace.lines import Lines

WORD = re.compile(r"[^\W\d]\w*")


def add_failed_call(run: Run, error: BaseException) -> None:
    """Add the call that raised an error to a run, as its last node, unless it is there."""
    if any(node.failed for node in run.nodes):
        return
    frames = _frames(error)
    last = max((i for i, (frame, _) in enumerate(frames) if not _is_librarys(frame)), default=-1)
    site = (frames[last][0].f_code, frames[last][1]) if last >= 0 else None
    inner = [frame for frame, _ in frames[last + 1 :] if frame.f_code.co_name == "forward"]
    failed = next((call for call in reversed(run.modules) if call.failed), None)
    if inner and failed is not None:  # a layer of the library refused its input
        code = inner[-1].f_code
        tensors = _tensors(run, inner[-1], code.co_varnames[1 : code.co_argcount])
        label, function = failed.path.rpartition(".")[2], failed.kind
        run.module = failed
    elif site is not None:
        place = Lines().line(site)
        statement = "" if place is None else place.statement
        tensors = _tensors(run, frames[last][0], WORD.findall(statement))
        label, function = brief(statement) or type(error).__name__, type(error).__name__
        run.module = failed
    else:
        return
    given = [(run.library.shape_of(one), run.library.dtype_name(one)) for one in tensors]
    run.failed(Made("call", label, function, site=site, detail=describe_given(given)), tensors)


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append((at.tb_frame, at.tb_lasti))
        at = at.tb_next
    return frames


def _is_librarys(frame: FrameType) -> bool:
    """Whether a frame is gradlab's or PyTorch's."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == "torch" or is_gradlab_file(frame.f_code.co_filename)


def _tensors(run: Run, frame: FrameType, names: Sequence[str]) -> list[Any]:
    """The tensors that some names are bound to in a running function, each once."""
    space = frame.f_locals
    found = [space[name] for name in names if name in space and run.library.is_tensor(space[name])]
    return list({id(one): one for one in found}.values())

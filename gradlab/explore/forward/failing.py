"""Find the call that ended a run: a layer that refused its input, a function on tensors, or a line of the program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

from gradlab.diagnose.sites import is_gradlab_file
from gradlab.explore.forward.arguments import tensors_in
from gradlab.explore.forward.labels import label_of
from gradlab.explore.forward.run import Run, RunNode, describe_tensors, has_raised
from gradlab.explore.graph.spans import brief
from gradlab.explore.module_paths import is_model
from gradlab.explore.trace.lines import Lines

WORD = re.compile(r"[^\W\d]\w*")


class FailedCall(NamedTuple):
    """A call that raised: the module if it was a layer of the library, else None; the name of the function, or the line; the
    tensor arguments; the site of the call in the user's code; and whether it is a line of the program outside any module."""

    module: Any
    label: str
    tensors: list[Any]
    site: Any
    outside: bool = False


def find_failed_call(error: BaseException, library: Any) -> FailedCall | None:
    """Return the call that raised an error, from the traceback; None if none of the frames is known."""
    frames = _frames(error)
    last = max((i for i, (frame, _) in enumerate(frames) if not _is_librarys(frame)), default=-1)
    site = (frames[last][0].f_code, frames[last][1]) if last >= 0 else None
    inner = [frame for frame, _ in frames[last + 1 :]]
    for frame in reversed(inner):
        module = _first_argument(frame)
        if frame.f_code.co_name == "forward" and is_model(module):
            return FailedCall(module, type(module).__name__, _arguments(frame, library), site)
    if site is None:
        return None
    if inner and (tensors := _arguments(inner[0], library)):
        function = inner[0].f_code.co_name.removesuffix("_operator")
        return FailedCall(None, label_of(function, (), {}), tensors, site)
    place = Lines().line(site)
    statement = "" if place is None else place.statement
    tensors = _tensors_named(frames[last][0], WORD.findall(statement), library)
    outside = not any(one.f_code.co_name == "forward" and is_model(_first_argument(one)) for one, _ in frames)
    return FailedCall(None, brief(statement) or type(error).__name__, tensors, site, outside)


def add_failed_call(run: Run, error: BaseException) -> None:
    """Add the call that raised an error to a run, as its last node, unless it is there."""
    run.unmark_caught(error)
    if any(node.failed for node in run.nodes):
        return
    found = find_failed_call(error, run.library)
    if found is None:
        return
    failed = [call for call in run.modules if call.failed and has_raised(call, error)]
    run.module = failed[-1] if failed else None
    label = found.label
    if found.module is not None and failed and failed[-1].module is found.module:
        label = failed[-1].path.rpartition(".")[2]
    held = [] if found.module is None else [one for _, one in found.module.named_parameters(recurse=False)]
    detail = describe_tensors(run.library, [*found.tensors, *held])
    node = RunNode("call", label, found.label, site=found.site, detail=detail)
    used = {source for one in run.nodes for source in one.sources}
    inner = [at for at, one in enumerate(run.nodes) if one.kind == "call" and one.module is run.module and at not in used]
    used = {source for at in inner for source in run.nodes[at].sources}
    run.on_failed_call(node, [*found.tensors, *(one for one in held if run.maker_of(one) not in used)], error)
    if found.module is not None:  # tensors that the layer computed from its parameters
        node.sources += [at for at in inner if at not in node.sources]


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append((at.tb_frame, at.tb_lasti))
        at = at.tb_next
    return frames


def _is_librarys(frame: FrameType) -> bool:
    """Return True if a frame belongs to gradlab or PyTorch."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == "torch" or is_gradlab_file(frame.f_code.co_filename)


def _first_argument(frame: FrameType) -> Any:
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _arguments(frame: FrameType, library: Any) -> list[Any]:
    """Return the tensors among the arguments of a running function."""
    code = frame.f_code
    return _tensors_named(frame, code.co_varnames[: code.co_argcount], library)


def _tensors_named(frame: FrameType, names: Sequence[str], library: Any) -> list[Any]:
    """Return the tensors of some variables of a running function, also those in containers, each once."""
    space = frame.f_locals
    found = [one for name in names if name in space for one in tensors_in(space[name], library.is_tensor)]
    return list({id(one): one for one in found}.values())

"""`doctor`: what was found in the last `%%grad` cell, or is found in the graph of a tensor."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradlab.explore.doctor.case import Case
from gradlab.explore.doctor.examine import examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.history import Past, remembered
from gradlab.explore.libraries import library_of
from gradlab.explore.names import names_in, with_held
from gradlab.explore.report import Subject, differentiate
from gradlab.explore.sources import sources_of
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.recorder import Recorder

NOTHING = "No %%grad cell has run yet, and `gl.doctor(loss)` was not given anything to look at."


@dataclass
class Clinic:
    """Looks at one cell after the other, and remembers what the next one needs of it: no tensor, and less than 1 MB."""

    past: Past = field(default_factory=Past)
    last: Diagnosis = field(default_factory=lambda: Diagnosis(unseen=(NOTHING,)))

    def look(
        self,
        recorder: Recorder,
        namespace: Mapping[str, Any],
        *,
        trace: Trace | None = None,
        value: Any = None,
        error: BaseException | None = None,
    ) -> Diagnosis:
        """What is found in a cell that has ended.

        Parameters
        ----------
        recorder : Recorder
            What saw the cell.
        namespace : mapping of str to object
            The user's names now.
        trace : Trace, optional
            Of its last sweep, if somebody has made it already.
        value : Tensor, optional
            What was to be differentiated, where nobody did.
        error : BaseException, optional
            With which the cell failed.
        """
        try:
            recorder.settle_journal()
            root = ""
            if trace is None:
                trace, root = _seen(recorder, value)
            case = Case(trace, with_held(namespace), error, self.past, root=root)
            self.last = examine(case)
            remembered(self.past, case)
        except Exception as failed:  # noqa: BLE001  (the user's cell must not fail by what is said about it)
            self.last = Diagnosis(unseen=(f"The cell could not be looked at: {type(failed).__name__}: {failed}.",))
        return self.last

    def forget(self) -> None:
        """Begin anew."""
        self.past, self.last = Past(), Diagnosis(unseen=(NOTHING,))


HOUSE = Clinic()  # of the notebook


def _seen(recorder: Recorder, value: Any) -> tuple[Trace, str]:
    """What was seen of a cell, and the name of what had no history where that was asked for."""
    if recorder.last is not None and recorder.last.error is None:
        return recorder.trace(), ""
    library = library_of(value) if recorder.last is None else None
    if library is not None and value.requires_grad:
        recorder.see(library, value)
        return recorder.trace(), ""
    if library is not None:
        trace = recorder.attempt(recorder.losses_of(library, value), library)
        return trace, next((name for name, other in recorder.namespace().items() if other is value), "") or "the result"
    trace = recorder.attempt()
    if recorder.refused:
        output = recorder.refused[-1][1]()
        name = next((name for name, other in recorder.namespace().items() if other is output and name[:1] != "_"), "")
        return trace, name or "the result"
    return trace, ""


def doctor(out: Any = None, *, params: Any = None) -> Diagnosis:
    """Say what is wrong with the gradients of the last `%%grad` cell, or of a tensor, and where it comes from.

    Parameters
    ----------
    out : Tensor, optional
        What is differentiated, of any shape: a tensor of gradlab's or PyTorch's. It is looked at by a sweep of our own, which
        writes no `.grad`. Lines are known of graphs that were recorded under `record_sites()` or in a `%%grad` cell.
        Default: what was found in the last `%%grad` cell, one that failed among them.
    params : iterable of Tensor, or a module, optional
        What is meant to learn. Default: what the optimizers of the namespace hold; without an optimizer every leaf.

    Returns
    -------
    Diagnosis
        Its `findings` are Problems, its `remarks` Notes, the worthiest first; `unseen` says what could not be looked at. It
        reads as text.

    Raises
    ------
    TypeError
        If `out` is no tensor, or `params` neither tensors nor a module.

    Examples
    --------
    >>> gl.doctor()                               # after a %%grad cell
    >>> gl.doctor(loss, params=model).findings
    """
    if out is None and params is None:
        return HOUSE.last
    library = library_of(out)
    if library is None:
        raise TypeError(
            f"doctor(out) takes a tensor that was computed from others, and got {type(out).__name__}: {out!r:.80}. "
            "doctor() alone tells of the last %%grad cell."
        )
    meant = None if params is None else frozenset(_keys(params))
    frame = sys._getframe(1)
    space = {**frame.f_globals, **frame.f_locals}
    trace: Trace | None
    try:
        names = names_in(space, first=frame.f_locals)
        recorder = Recorder(lambda: space)
        if not out.requires_grad:
            recorder.meet_libraries()
            recorder.close()
            trace, root = _seen(recorder, out)
        else:
            root = ""
            subject = Subject(library, library.node(out), tuple(out.shape), "", out)
            trace = differentiate(subject, sources_of(library, [subject.root], names), None, names, recorder)
        return examine(Case(trace, space, meant=meant, root=root))
    except Exception as failed:  # noqa: BLE001  (it never raises for what it looks at)
        return Diagnosis(unseen=(f"This could not be looked at: {type(failed).__name__}: {failed}.",))


def _keys(params: Any) -> list[int]:
    """What tells some tensors, or a module's parameters, from others."""
    given: Any = params.parameters() if callable(getattr(params, "parameters", None)) else params
    given = [given] if library_of(given) is not None else given.values() if isinstance(given, Mapping) else given
    found = list(given) if isinstance(given, Iterable) else [given]
    for one in found:
        if library_of(one) is None:
            raise TypeError(f"params must be tensors or a module, and got {type(one).__name__}: {one!r:.80}.")
    return [id(one) for one in found]

"""What an error that ended the cell tells of a gradient: numbers and arrays that have no `backward`, tensors that NumPy may not
have, inference tensors that a gradient needs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gradlab.explore.doctor.case import Case, cell_line
from gradlab.explore.doctor.cut_history import kind_of, on
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.trace.data import Cut


def refusals(case: Case) -> Iterable[Finding]:
    """Findings on the error with which the cell ended."""
    error = case.error
    if error is None:
        return
    line = case.scene.line if case.scene is not None else None
    said = str(error)
    if isinstance(error, AttributeError) and error.name == "backward":
        number = isinstance(error.obj, (int, float, complex)) and not isinstance(error.obj, np.generic)
        ended = _left(case, "item" if number else "numpy")
        what = type(error.obj).__name__
        kind = "item" if number else "numpy"
        if isinstance(error.obj, (int, float, complex, np.ndarray, np.generic)):
            where = f": `{ended.place.source}`{on(ended.place)} took the values out" if ended is not None and ended.place else ""
            yield Finding(
                kind,
                f"What backward() is called on{_at(line)} is a {what}, and no tensor: it has no history{where}.",
                (cell_line(ended.place) if ended is not None else None) or line,
                fix="Go on with the tensors themselves; take numbers out only to print or to keep them.",
                evidence={"type": what},
                worth=9.0,
                lines=() if line is None else (line,),
            )
    elif "Can't call numpy() on Tensor that requires grad" in said:
        text = case.scene.place.text if case.scene is not None else ""
        yield Finding(
            "numpy",
            f"{f'`{text}`{_at(line)}' if text else 'It'} hands a tensor that requires a gradient to NumPy, which cannot "
            "differentiate it.",
            line,
            fix="Use the library's own functions in place of NumPy's: `.detach().numpy()` is for plots, and cuts the history.",
            worth=9.0,
        )
    elif "nference tensor" in said:
        cut = next((cut for cut in (case.trace.cuts if case.trace else ()) if cut.how == "inference_mode"), None)
        where = f"`{cut.place.source}`{on(cut.place)}" if cut is not None and cut.place is not None else "A tensor"
        yield Finding(
            "no_grad",
            f"{where} was made in inference_mode(), and{_at(line)} it enters a computation that is to be differentiated, "
            "which is not allowed.",
            (cell_line(cut.place) if cut is not None else None) or line,
            fix="Make it outside of inference_mode(): under no_grad() if nothing of it is to learn, else without either.",
            worth=9.0,
            lines=() if line is None else (line,),
        )


def _left(case: Case, kind: str) -> Cut | None:
    return next((cut for cut in reversed(case.trace.cuts if case.trace else ()) if kind_of(cut.how) == kind and cut.keys), None)


def _at(line: int | None) -> str:
    return "" if line is None else f" on line {line}"

"""Several watched trainings of one cell: what `%%watch -o NAME` keeps of them, and how they are shown below one another."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, overload

import numpy as np

from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.drawing import INK, MAX_BYTES, Drawing, Pictured, tidy
from gradlab.explore.markup import NO_MATH, count, escape_html
from gradlab.explore.watch.card import card, words
from gradlab.explore.watch.history import columns_of, frame_maker, stacked
from gradlab.explore.watch.picture import WIDE, drawing, written
from gradlab.explore.watch.snapshot import snapshot
from gradlab.explore.watch.watching import Watch

OPEN = 3  # trainings that are shown without being unfolded
MOST = 12  # trainings of a cell that are watched
GAP = 26.0
HEADING = 24.0


class Runs(Mapping[str, Watch], Pictured):
    """The trainings of a cell, by what tells them apart, in the order in which they began.

    Parameters
    ----------
    runs : mapping of str to Watch
    unwatched : int
        How many more trainings there were, of which nothing is known.

    Attributes
    ----------
    findings : dict of str to Diagnosis
        What is found in each.

    Examples
    --------
    >>> runs["act=Sigmoid"].findings  # doctest: +SKIP
    >>> runs[-1].compare(runs[0])  # doctest: +SKIP
    """

    def __init__(self, runs: Mapping[str, Watch], unwatched: int = 0) -> None:
        self._runs, self.unwatched = dict(runs), unwatched

    def __getitem__(self, key: str | int) -> Watch:
        """The training of a label, or at a place.

        Raises
        ------
        KeyError
            If no training has this label or this place.
        """
        runs = dict(enumerate(self._runs.values())) | dict(enumerate(self._runs.values(), start=-len(self._runs)))
        found = runs.get(key) if isinstance(key, int) else self._runs.get(key) if isinstance(key, str) else None
        if found is None:
            raise KeyError(f"there is no training {key!r}; there are {', '.join(map(repr, self._runs))}.")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def findings(self) -> dict[str, Any]:
        return {label: watch.findings for label, watch in self._runs.items()}

    @overload
    def history(self, frame: None = None) -> dict[str, dict[str, np.ndarray]]: ...
    @overload
    def history(self, frame: str) -> Any: ...
    def history(self, frame: str | None = None) -> Any:
        """Return the numbers of each training, or one DataFrame of all.

        Parameters
        ----------
        frame : {"pandas", "polars"}, optional
            Return a DataFrame of this library, which must be installed.

        Returns
        -------
        dict of str to dict of str to ndarray, or DataFrame
            The history of each training by its label, as `Watch.history` returns it. In a DataFrame the column "run" has the
            label, and a number is NaN where a training does not have its column.

        Raises
        ------
        ValueError
            If `frame` is not one of these names.
        ImportError
            If the library is not installed.
        """
        make = frame_maker(frame)
        histories = {label: columns_of(watch) for label, watch in self._runs.items()}
        return histories if frame is None else make(stacked(histories))

    @property
    def diagnosis(self) -> Diagnosis:
        """What is found in all of them; each finding with the label of its training, if there are several."""
        each = {label if len(self) > 1 else "": watch.findings for label, watch in self._runs.items()}
        found = [replace(one, model=label) for label, said in each.items() for one in (*said.findings, *said.remarks)]
        unseen = list(dict.fromkeys(sentence for said in each.values() for sentence in said.unseen))
        return Diagnosis().with_parts(found, unseen, each.values())

    @property
    def unwatched_text(self) -> str:
        """A sentence about the trainings that were not watched; "" if all were."""
        if not self.unwatched:
            return ""
        were = "was" if self.unwatched == 1 else "were"
        return f"{count(self.unwatched, 'more training')} of this cell {were} not watched: {MOST} are at most."

    def drawing(self) -> Drawing:
        """Return the pictures of the trainings, one below another."""
        return _joined({label: drawing(watch) for label, watch in self._runs.items()})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        runs = {label: snapshot(watch) for label, watch in self._runs.items()}
        drawings = {label: drawing(watch) for label, watch in self._runs.items()}
        cards = [
            _folded(label, runs[label], card(runs[label], picture.html()), len(runs) <= OPEN or k == len(runs) - 1)
            for k, (label, picture) in enumerate(drawings.items())
        ]
        rest = f'<div style="opacity:.72">{escape_html(self.unwatched_text)}</div>' if self.unwatched else ""
        bundle = {"text/html": f"<div {NO_MATH}>{''.join(cards)}{rest}</div>", "text/plain": self._text(runs)}
        bitmap = _joined(drawings).bitmap(MAX_BYTES)
        return bundle if bitmap is None else {**bundle, "image/png": base64.b64encode(bitmap).decode()}

    def __repr__(self) -> str:
        return self._text({label: snapshot(watch) for label, watch in self._runs.items()})

    def _text(self, runs: Mapping[str, dict[str, Any]]) -> str:
        parts = [f"{label}\n{'─' * len(label)}\n{words(data)}" for label, data in runs.items()]
        return "\n\n".join([*parts, *([self.unwatched_text] if self.unwatched else [])])


def _folded(label: str, data: dict[str, Any], inside: str, shown: bool) -> str:
    """One training below its heading, which says how it went where the card is folded."""
    said = "" if shown else "".join(text for text, _ in data["head"])
    problems = sum(one["severity"] == "problem" for one in data["findings"])
    more = f" · ■ {count(problems, 'problem')}" if problems else ""
    return (
        f'<details{" open" if shown else ""} style="margin:6px 0"><summary style="cursor:pointer;padding:2px 0">'
        f"<b>{escape_html(label)}</b>"
        f'<span style="opacity:.72;font-size:12px"> &nbsp;{escape_html(said)}</span>{more}</summary>{inside}</details>'
    )


def _joined(drawings: Mapping[str, Drawing]) -> Drawing:
    """The pictures below one another, each with its label."""
    parts, y = [], 0.0
    for label, picture in drawings.items():
        parts.append(written(0, y + 14, label, fill=INK, weight=600, size=13))
        parts.append(f'<g transform="translate(0 {tidy(y + HEADING)})">{picture.body}</g>')
        y += HEADING + picture.height + GAP
    return Drawing(
        "".join(parts), WIDE, max(y - GAP, 1.0), "", "\n".join(f"{label}: {picture.alt}" for label, picture in drawings.items())
    )

"""Several watched trainings of one cell: the result of `%%watch -o NAME`, and its display."""

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
from gradlab.explore.watch.history import columns_of, frame_maker, stack_runs
from gradlab.explore.watch.picture import WIDE, drawing, text_svg
from gradlab.explore.watch.snapshot import snapshot
from gradlab.explore.watch.watching import Watch

MAX_OPEN = 3  # up to this number, all trainings are shown unfolded
MAX_RUNS = 12  # maximum number of watched trainings in a cell
GAP = 26.0
HEADING = 24.0


class Runs(Mapping[str, Watch], Pictured):
    """The trainings of a cell, by the labels that distinguish them, in the order of their start.

    Parameters
    ----------
    runs : mapping of str to Watch
    unwatched : int
        Number of further trainings, which were not watched.

    Attributes
    ----------
    findings : dict of str to Diagnosis
        The findings on each training.

    Examples
    --------
    >>> runs["act=Sigmoid"].findings  # doctest: +SKIP
    >>> runs[-1].compare(runs[0])  # doctest: +SKIP
    """

    def __init__(self, runs: Mapping[str, Watch], unwatched: int = 0) -> None:
        self._runs, self.unwatched = dict(runs), unwatched

    def __getitem__(self, key: str | int) -> Watch:
        """Return the training with a label or an index.

        Raises
        ------
        KeyError
            If no training has this label or index.
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
            The history of each training by its label, as returned by `Watch.history`. A DataFrame has the labels in the column
            "run", and NaN for columns that a training does not have.

        Raises
        ------
        ValueError
            If `frame` is not one of these names.
        ImportError
            If the library is not installed.
        """
        make = frame_maker(frame)
        histories = {label: columns_of(watch) for label, watch in self._runs.items()}
        return histories if frame is None else make(stack_runs(histories))

    @property
    def diagnosis(self) -> Diagnosis:
        """The findings on all trainings, with the label of the training if there are several."""
        each = {label if len(self) > 1 else "": watch.findings for label, watch in self._runs.items()}
        found = [replace(one, model=label) for label, own in each.items() for one in (*own.findings, *own.remarks)]
        unseen = list(dict.fromkeys(sentence for own in each.values() for sentence in own.unseen))
        return Diagnosis().with_parts(found, unseen, each.values())

    @property
    def unwatched_text(self) -> str:
        """A sentence about the trainings that were not watched; "" if all were."""
        if not self.unwatched:
            return ""
        were = "was" if self.unwatched == 1 else "were"
        return f"{count(self.unwatched, 'more training')} of this cell {were} not watched: the maximum is {MAX_RUNS}."

    def drawing(self) -> Drawing:
        """Return the pictures of the trainings, one below another."""
        return _stack({label: drawing(watch) for label, watch in self._runs.items()})

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        runs = {label: snapshot(watch) for label, watch in self._runs.items()}
        drawings = {label: drawing(watch) for label, watch in self._runs.items()}
        cards = [
            _fold(label, runs[label], card(runs[label], picture.html()), len(runs) <= MAX_OPEN or k == len(runs) - 1)
            for k, (label, picture) in enumerate(drawings.items())
        ]
        rest = f'<div style="opacity:.72">{escape_html(self.unwatched_text)}</div>' if self.unwatched else ""
        bundle = {"text/html": f"<div {NO_MATH}>{''.join(cards)}{rest}</div>", "text/plain": self._text(runs)}
        bitmap = _stack(drawings).bitmap(MAX_BYTES)
        return bundle if bitmap is None else {**bundle, "image/png": base64.b64encode(bitmap).decode()}

    def __repr__(self) -> str:
        return self._text({label: snapshot(watch) for label, watch in self._runs.items()})

    def _text(self, runs: Mapping[str, dict[str, Any]]) -> str:
        parts = [f"{label}\n{'─' * len(label)}\n{words(data)}" for label, data in runs.items()]
        return "\n\n".join([*parts, *([self.unwatched_text] if self.unwatched else [])])


def _fold(label: str, data: dict[str, Any], inside: str, shown: bool) -> str:
    """Return one training with a heading, which describes the result while the card is folded."""
    summary = "" if shown else "".join(text for text, _ in data["head"])
    problems = sum(one["severity"] == "problem" for one in data["findings"])
    more = f" · ■ {count(problems, 'problem')}" if problems else ""
    return (
        f'<details{" open" if shown else ""} style="margin:6px 0"><summary style="cursor:pointer;padding:2px 0">'
        f"<b>{escape_html(label)}</b>"
        f'<span style="opacity:.72;font-size:12px"> &nbsp;{escape_html(summary)}</span>{more}</summary>{inside}</details>'
    )


def _stack(drawings: Mapping[str, Drawing]) -> Drawing:
    """Return the pictures one below another, each with its label."""
    parts, y = [], 0.0
    for label, picture in drawings.items():
        parts.append(text_svg(0, y + 14, label, fill=INK, weight=600, size=13))
        parts.append(f'<g transform="translate(0 {tidy(y + HEADING)})">{picture.body}</g>')
        y += HEADING + picture.height + GAP
    return Drawing(
        "".join(parts), WIDE, max(y - GAP, 1.0), "", "\n".join(f"{label}: {picture.alt}" for label, picture in drawings.items())
    )

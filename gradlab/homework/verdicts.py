"""Verdicts of checks: findings in words, with the largest difference and where it is, but without the answer.

A verdict prints as text, and as HTML in a notebook.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from gradlab.core.tensor import Tensor
from gradlab.homework.excerpts import abbreviate

MAX_SHAPES_TEXT = 100  # characters of a list of shapes


@dataclass(frozen=True)
class CheckItem:
    """One item of a check, and its result."""

    what: str  # "three outputs, two inputs"
    good: bool
    words: str  # "exact", "shape (2, 3), expected (3, 2)"
    hint: str = ""  # shown as "Look next at: …"
    points: float = 0  # earned if `good`
    case: str = ""  # code that returns the inputs: "f, x = case(1, 2)"


@dataclass
class Verdict:
    """The result of one exercise.

    Parameters
    ----------
    number : int
        The number of the exercise.
    title : str
        The title of the exercise.
    worth : float
        The points of the exercise.
    findings : list of CheckItem, optional
        The items that were checked, in order.
    drawn : bool, default False
        Whether it is for grading: `case(…)` then returns a similar case with other shapes and numbers.

    Examples
    --------
    >>> from gradlab.homework import Verdict
    >>> Verdict(1, "The gradient", 10).headline()
    'Exercise 1, The gradient: 0 of 10 points'
    """

    number: int
    title: str
    worth: float
    findings: list[CheckItem] = field(default_factory=list)
    drawn: bool = False

    @property
    def points(self) -> float:
        """The points earned, at most `worth`."""
        earned = sum(finding.points for finding in self.findings if finding.good)
        return int(earned) if earned == int(earned) else earned

    @property
    def has_passed(self) -> bool:
        """True if all points were earned; for an exercise without points, if all findings are good."""
        return self.points == self.worth and (self.worth > 0 or all(finding.good for finding in self.findings))

    def headline(self) -> str:
        """Return the first line: "Exercise 1, The Jacobian by rows: 15 of 25 points".

        Returns
        -------
        str
        """
        return f"Exercise {self.number}, {self.title}: {self.points:g} of {self.worth:g} points"

    def __str__(self) -> str:
        lines = [self.headline()]
        for finding in self.findings:
            lines.append(f"  {'ok ' if finding.good else 'NO '} {finding.what}: {indent_after_first(finding.words)}")
            if finding.hint:
                lines.append(f"      Look next at: {indent_after_first(finding.hint)}")
            if finding.case and not finding.good:
                lines.append(f"      {self._try()}: {finding.case}")
        return "\n".join(lines)

    def _try(self) -> str:
        return "Try one like it, in other shapes and numbers" if self.drawn else "Try it"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for finding in self.findings:
            mark, colour = ("✓", GOOD) if finding.good else ("✗", BAD)
            hint = (
                f'<div style="margin:2px 0 4px 0;opacity:.85"><b>Look next at:</b> {format_html(finding.hint)}</div>'
                if finding.hint
                else ""
            )
            if finding.case and not finding.good:
                hint += (
                    f'<div style="margin:2px 0 4px 0;opacity:.85"><b>{self._try()}:</b> <code>{escape(finding.case)}</code></div>'
                )
            rows.append(
                f'<div style="display:flex;gap:.6em;margin:3px 0"><span style="color:{colour};font-weight:bold" '
                f'aria-label="{"passed" if finding.good else "not passed"}">{mark}</span><div style="{WHOLE}">'
                f"{format_html(finding.what)}: {format_html(finding.words)}{hint}</div></div>"
            )
        edge = GOOD if self.has_passed else BAD
        return (
            f'<div class="gradlab-check" style="{FRAME.format(edge=edge)}">'
            f'<div style="font-weight:bold;margin-bottom:4px">{escape(self.headline())}</div>'
            f"{''.join(rows)}</div>"
        )


@dataclass(frozen=True)
class PassedAgain:
    """One line for an exercise that had passed and passes again."""

    verdict: Verdict

    def __str__(self) -> str:
        return self._words().replace("`", "")

    __repr__ = __str__

    def _words(self) -> str:
        it, many = self.verdict, len(self.verdict.findings)
        return (
            f"Exercise {it.number}, {it.title}: passed, as before ({many} of {many} checks). "
            f"`%check {it.number} --all` shows {'them' if many > 1 else 'it'}."
        )

    def _repr_html_(self) -> str:
        return f'<div class="gradlab-check" style="{FRAME.format(edge=GOOD)}">{format_html(self._words())}</div>'


HEADLINE = re.compile(r"Exercise (\d+), (.*): [\d.e+]+ of [\d.e+]+ points$")


def headline(text: str) -> tuple[int, str] | None:
    """Return the number and the title of an exercise from its verdict's text, or None if it is not a verdict."""
    match = HEADLINE.match(text.partition("\n")[0])
    return (int(match[1]), match[2]) if match else None


GOOD, BAD = "#2e9e5b", "#d9534f"  # at least 3:1 on white and on JupyterLab's dark ground
FRAME = "border-left:4px solid {edge};padding:4px 0 4px 12px;max-width:52em;line-height:1.45"
WHOLE = "min-width:0;white-space:pre-wrap;overflow-wrap:anywhere"  # for texts with long words and several lines


def indent_after_first(text: str) -> str:
    """Indent the lines after the first, to align with a verdict's findings."""
    return text.replace("\n", "\n      ")


def format_html(text: str) -> str:
    """Escape a text as HTML, with `code` in <code>."""
    parts = escape(text).split("`")
    return "".join(
        f"<code>{part}</code>" if i % 2 and i < len(parts) - 1 else ("`" if i % 2 else "") + part for i, part in enumerate(parts)
    )


# ------------------------------------------------------------------------------------------------------ comparing arrays
def as_array(value: Any) -> np.ndarray | None:
    """Convert a tensor, an array, a number or lists of these to a NumPy array. Return None for anything else."""
    if isinstance(value, Tensor):
        value = np.asarray(value.detach().cpu().array)
    if isinstance(value, (list, tuple)):
        parts = [as_array(part) for part in value]
        if not parts or any(part is None or part.shape != parts[0].shape for part in parts):  # type: ignore[union-attr]
            return None
        return np.stack(parts)  # type: ignore[arg-type]
    if isinstance(value, (int, float, np.ndarray, np.generic)) and not isinstance(value, bool):
        array = np.asarray(value)
        return array if array.dtype.kind in "fiu" else None
    return None


def compare_arrays(got: Any, expected: np.ndarray, tolerance: float) -> tuple[bool, str]:
    """Compare a tensor or array with `expected`, to within `tolerance` of the largest entry.

    Return whether it agrees, and words: exact, close, or how far off and where.
    """
    if got is None:
        return False, "the function returned None. Does it end with `return`?"
    if isinstance(got, (list, tuple)):
        return False, f"a tensor was expected, got {describe(got)}{_advise_one_tensor(got)}"
    array = as_array(got)
    if array is None:
        return False, f"a tensor of real numbers was expected, got {describe(got)}"
    if array.shape != expected.shape:
        return False, f"shape {array.shape}, expected {expected.shape}"
    if array.size == 0 or np.array_equal(array, expected):
        return True, "exact"
    if not np.isfinite(array).all():
        return False, f"{int((~np.isfinite(array)).sum())} of {array.size} entries are not finite"
    off = np.abs(array.astype(np.float64) - expected)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    words = f"largest difference {off.max():.2g}"
    if off.max() <= tolerance * max(1.0, float(np.abs(expected).max())):
        return True, f"close ({words})"
    wrong = int((off > tolerance * max(1.0, float(np.abs(expected).max()))).sum())
    at = f", at [{', '.join(map(str, worst))}]" if array.ndim else ""
    return False, f"{wrong} of {array.size} entries are off; {words}{at}"


def _advise_one_tensor(parts: list[Any] | tuple[Any, ...]) -> str:
    """Return how to make one tensor of these parts."""
    tensors = bool(parts) and all(isinstance(part, Tensor) for part in parts)
    if tensors and isinstance(parts, tuple) and len(parts) == 1:
        return ": use its first element, `[0]`"
    if tensors and len({part.array.shape for part in parts}) == 1:
        return ": combine them with `gl.stack`"
    if tensors:
        return f" of shapes {abbreviate(', '.join(str(part.array.shape) for part in parts), MAX_SHAPES_TEXT)}"
    return ": convert it with `gl.tensor`" if as_array(parts) is not None else ""


class Other:
    """A returned value that is not numbers, text or lists of these."""

    def __init__(self, words: str) -> None:
        self.words = words


def describe(value: Any) -> str:
    """Return the kind of a value, in words."""
    if isinstance(value, Other):
        return value.words
    if isinstance(value, (list, tuple)):
        kind = "tensor" if value and all(isinstance(part, Tensor) for part in value) else "thing"
        what = f" {kind}{'s' * (len(value) != 1)}" if kind == "tensor" else ""
        return f"a {type(value).__name__} of {len(value)}{what}"
    if isinstance(value, (Tensor, np.ndarray)):
        dtype = value.array.dtype if isinstance(value, Tensor) else value.dtype
        return f"{'a tensor' if isinstance(value, Tensor) else 'an array'} of {dtype.name}"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"

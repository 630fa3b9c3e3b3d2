"""Compare gradients worked out by hand with those of backward: each is exact, close, or off by some amount.

The answer is not shown, so that the cell can be run until every line is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from gradlab.homework.excerpts import abbreviate
from gradlab.homework.verdicts import BAD, GOOD, WHOLE, as_array, compare_arrays, format_html

TOLERANCE = 1e-3  # of the largest entry: numbers written by hand have three digits
OPEN = "still open"
SIGN = "flex:none;width:1em;text-align:center;font-weight:bold"
NAME = "flex:none;align-self:flex-start;min-width:3em;max-width:40%;overflow-wrap:anywhere"  # of a gradient


@dataclass(frozen=True)
class Comparison:
    """The result of each comparison."""

    rows: tuple[tuple[str, bool | None, str], ...]  # name, whether it is right (None: still open), words

    @property
    def right(self) -> bool:
        """True if every gradient is right."""
        return all(good is True for _, good, _ in self.rows)

    def headline(self) -> str:
        """Return the first line: "3 of 6 are right"."""
        return f"{sum(good is True for _, good, _ in self.rows)} of {len(self.rows)} are right"

    def __str__(self) -> str:
        wide = max(len(name) for name, _, _ in self.rows)
        signs = {True: "ok ", False: "NO ", None: "   "}
        return "\n".join([f"{self.headline()}:", *(f"  {signs[good]} {name:{wide}}  {words}" for name, good, words in self.rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colours = {True: GOOD, False: BAD, None: "#888"}
        signs = {True: ("✓", "right"), False: ("✗", "not right"), None: ("·", "open")}
        rows = "".join(
            f'<div style="display:flex;gap:.6em;margin:3px 0"><span style="color:{colours[good]};{SIGN}" '
            f'aria-label="{signs[good][1]}">{signs[good][0]}</span>'
            f'<code style="{NAME}">{escape(name)}</code><div style="{WHOLE}">{format_html(words)}</div></div>'
            for name, good, words in self.rows
        )
        edge = GOOD if self.right else BAD if any(good is False for _, good, _ in self.rows) else "#888"
        return (
            f'<div class="gradlab-compared" style="border-left:4px solid {edge};padding:4px 0 4px 12px;max-width:52em;'
            f'line-height:1.45"><div style="font-weight:bold;margin-bottom:4px">{escape(self.headline())}</div>{rows}</div>'
        )


def compare(
    yours: Mapping[str, Any], right: Mapping[str, Any], *, replies: Mapping[str, Mapping[Any, str]] | None = None
) -> Comparison:
    """Compare gradients by name: each is exact, close, or off by some amount. The right values are not shown.

    Parameters
    ----------
    yours : mapping of str to Tensor, array_like or ...
        Gradients worked out by hand; `...` or None for one that is still open.
    right : mapping of str to Tensor or array_like
        The reference values, under the same names.
    replies : mapping of str to mapping, optional
        Replies to known mistakes: {"d": {(-0.125, 0.125): "the 2 is missing"}}.

    Returns
    -------
    Comparison
        A table in a notebook.

    Raises
    ------
    ValueError
        If the names differ, or a reference is not numeric.

    Examples
    --------
    >>> from gradlab.homework import compare
    >>> print(compare({"dx": 2.0, "dy": 1.0}, {"dx": 2.0, "dy": 3.0}))  # doctest: +SKIP
    """
    if not right or set(yours) != set(right):
        raise ValueError(f"the two mappings must have the same names, got {_names(yours)} and {_names(right)}.")
    return Comparison(tuple((name, *_of_one(name, yours[name], right[name], (replies or {}).get(name, {}))) for name in right))


def _of_one(name: str, said: Any, actual: Any, replies: Mapping[Any, str]) -> tuple[bool | None, str]:
    expected = as_array(actual)
    if expected is None:
        raise ValueError(f"the reference for {name} must be numeric, got {abbreviate(repr(actual), 80)}.")
    if said is None or said is Ellipsis:
        return None, OPEN
    array = as_array(said)
    if array is None and isinstance(said, (list, tuple)) and any(one is None or one is Ellipsis for one in said):
        return None, OPEN
    good, words = compare_arrays(said if array is None else array, expected.astype(np.float64), TOLERANCE)
    if good or array is None:
        return good, words
    if array.shape == expected.shape == () and np.isfinite(array):
        words = f"off by {abs(array.item() - expected.item()):.2g}"
    for key, reply in replies.items():
        known = np.asarray(key, dtype=np.float64)
        if known.size == array.size and np.allclose(known.reshape(-1), array.reshape(-1), rtol=0, atol=TOLERANCE):
            return False, f"{words}: {reply}"
    return False, words


def _names(mapping: Mapping[str, Any]) -> str:
    return ", ".join(map(str, mapping)) or "none"

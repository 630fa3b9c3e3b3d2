"""Replies to guesses in a lesson: nothing before there is a guess, then the result, and a remark on a known misconception."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from gradlab.explore.views import open_view
from gradlab.homework import predictions
from gradlab.homework.questions import (
    ROUNDING_OF_ZERO,
    Misfit,
    format_value,
    in_rows,
    is_open,
    is_same_word,
    plain,
    read,
    wrong_count_message,
)
from gradlab.homework.verdicts import BAD, GOOD, as_array, format_html

ASK = "Say first what you expect, in the cell above; then run this one."
FOLDED = "What comes out"  # summary of a folded answer


@dataclass(frozen=True)
class Revealed:
    """The reply to a guess."""

    right: bool | None  # None: no guess yet, or none that can be compared
    words: str
    rows: tuple[str, ...] = ()  # replies to single rows

    def __str__(self) -> str:
        return "\n".join([self.words, *(f"  - {row}" for row in self.rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        edge = "#888" if self.right is None else GOOD if self.right else BAD
        rows = "".join(f"<li>{format_html(row)}</li>" for row in self.rows)
        rows = f'<ul style="margin:4px 0 0">{rows}</ul>' if rows else ""
        return (
            f'<div class="gradlab-reveal" style="border-left:4px solid {escape(edge)};padding:4px 0 4px 12px;max-width:52em;'
            f'line-height:1.45;overflow-wrap:anywhere">{format_html(self.words)}{rows}</div>'
        )


@dataclass(frozen=True, repr=False, eq=False)
class Followed(Revealed):
    """A reply with an object to display below it, or a folded one."""

    then: Any = None
    folded: bool = False

    def _ipython_display_(self, **_: Any) -> None:
        open_view("revealed", self)


def reveal(
    guess: Any,
    actual: Any,
    of: Callable[[np.ndarray], Any] | None = None,
    *,
    count: int | None = None,
    replies: Mapping[Any, Any] | None = None,
    rows: Iterable[Any] | None = None,
    then: Any = None,
) -> Revealed:
    """Compare a guess with the result, and show both.

    Without a guess (`...` or None), or if it has the wrong number of numbers, the reply only says what is expected.

    Parameters
    ----------
    guess, actual : Tensor, array_like, str or bool
        Numbers must agree to 1e-3 of the largest (to 1e-2 if that is below 0.1). Words are compared regardless of case. Text
        that consists of numbers is converted to numbers.
    of : callable, optional
        Applied to the guess (an array) before the comparison, for questions with several right answers: weights v are
        compared by v @ J.
    count : int, optional
        How many numbers a guess has. By default as many as `actual`.
    replies : mapping, optional
        Replies to wrong guesses: {(2, 3): "that is row 0"}. With `rows`, by row: {"x * 2": "..."}, or {"x * 2": {"False":
        "..."}} if it depends on the guess.
    rows : iterable of str, optional
        The rows of a table: `guess` and `actual` have a word for each.
    then : optional
        An object to display below once there is a guess, or a function that returns it.

    Returns
    -------
    Revealed
        Displayed in a notebook.

    Examples
    --------
    >>> from gradlab.homework import guess, reveal
    >>> guess.rows = (2, 3)
    >>> reveal(guess.rows, (2, 3))  # doctest: +SKIP
    """
    labels = rows if rows is None else tuple(map(str, rows))
    verdict = _compare(guess, actual, of, count, replies, labels)
    if verdict.right is not None:
        predictions.guess.note_comparison(guess, verdict.right)
    folded = verdict.right is None and is_open(guess) and predictions.settings.reading
    if verdict.right is None and not folded:
        return verdict
    if folded:
        verdict = _answer(actual, of, labels)
    if then is None and not folded:
        return verdict
    called = isinstance(then, (FunctionType, MethodType, BuiltinFunctionType))
    return Followed(verdict.right, verdict.words, verdict.rows, then() if called else then, folded)


def _compare(
    guess: Any,
    actual: Any,
    of: Callable[[np.ndarray], Any] | None,
    count: int | None,
    replies: Mapping[Any, Any] | None,
    rows: tuple[str, ...] | None,
) -> Revealed:
    if isinstance(guess, Misfit):
        return Revealed(None, guess.words)
    if rows is not None:
        return _of_rows(guess, actual, rows, replies or {})
    if is_open(guess):
        return Revealed(None, ASK)
    said, known = read(guess), None if isinstance(actual, (str, bool)) else as_array(actual)
    if known is None:
        right = is_same_word(guess, actual)
        return _single_reply(right, guess, actual, "You said", _reply(str(guess).strip().lower(), None, replies))
    wanted = count if count is not None else known.size
    if said is None or said.size != wanted or not np.isfinite(said).all():
        return Revealed(None, wrong_count_message(guess, said, wanted, _reply(str(guess).strip().lower(), said, replies)))
    value = said if of is None else as_array(of(said.reshape(-1)))
    assert value is not None
    right = _close(value, known)
    if of is None:
        return _single_reply(right, plain(guess), actual, "You said", _reply("", said, replies))
    if right:
        return Revealed(True, f"It gives `{format_value(actual)}`.")
    return _single_reply(False, value, actual, "Yours gives", _reply("", said, replies))


def _of_rows(guess: Any, actual: Any, rows: tuple[str, ...], replies: Mapping[Any, Any]) -> Revealed:
    """Compare a guess for a table."""
    known = in_rows(actual, rows)
    if known is None:
        raise ValueError(
            f"`actual` must have a word for each of {len(rows)} rows ({', '.join(rows)}), got {format_value(actual)}."
        )
    said = None if guess is None or guess is Ellipsis else in_rows(guess, rows)
    if said is None and (guess is None or guess is Ellipsis):
        return Revealed(None, ASK)
    if said is None:
        return Revealed(None, f"You wrote `{format_value(guess)}`. The answer is a word for each of {len(rows)} rows.")
    missing = [row for row, word in zip(rows, said, strict=True) if is_open(word)]
    if len(missing) == len(rows):
        return Revealed(None, ASK)
    if missing:
        left = ", ".join(f"`{row}`" for row in missing)
        return Revealed(None, f"Enter your guess for {left} in the cell above first, then run this one.")
    wrong = []
    for row, word, fact in zip(rows, said, known, strict=True):
        if not is_same_word(word, fact):
            reply = _row_reply(replies, row, word)
            wrong.append(
                f"`{row}`: you said `{format_value(word)}`{': ' + reply if reply else ''}; it is `{format_value(fact)}`."
            )
    if not wrong:
        return Revealed(True, "All rows are as you said." if len(rows) > 1 else "As you said.")
    whole = _reply_to_all(replies, said)
    right = len(rows) - len(wrong)
    words = f"{right} of {len(rows)} rows are as you said{': ' + whole if whole else ''}."
    return Revealed(False, words, tuple(wrong))


def _row_reply(replies: Mapping[Any, Any], row: str, word: Any) -> str:
    reply = replies.get(row, "")
    if isinstance(reply, Mapping):
        reply = next((words for key, words in reply.items() if is_same_word(word, key)), "")
    return str(reply)


def _reply_to_all(replies: Mapping[Any, Any], said: list[Any]) -> str:
    for key, words in replies.items():
        alike = isinstance(key, tuple) and len(key) == len(said)
        if alike and all(is_same_word(one, other) for one, other in zip(said, key, strict=True)):
            return str(words)
    return ""


def _answer(actual: Any, of: Callable[[np.ndarray], Any] | None, rows: tuple[str, ...] | None) -> Revealed:
    """Return the answer, for a notebook that is only read."""
    if rows is None:
        return Revealed(None, f"{'It is' if of is None else 'The target is'} `{format_value(actual)}`.")
    facts = zip(rows, in_rows(actual, rows) or (), strict=False)
    return Revealed(None, "It is:", tuple(f"`{row}`: `{format_value(fact)}`" for row, fact in facts))


def _single_reply(right: bool, said: Any, actual: Any, verb: str, reply: str) -> Revealed:
    if right:
        return Revealed(True, f"As you said: `{format_value(actual)}`.")
    return Revealed(False, f"{verb} `{format_value(said)}`{': ' + reply if reply else ''}; it is `{format_value(actual)}`.")


def _reply(word: str, said: np.ndarray | None, replies: Mapping[Any, Any] | None) -> str:
    for key, words in (replies or {}).items():
        if isinstance(key, str):
            if key.lower() == word:
                return str(words)
        elif said is not None and (numbers := read(key)) is not None and _close(said, numbers):
            return str(words)
    return ""


def _close(said: np.ndarray, known: np.ndarray) -> bool:
    """Return whether numbers agree to three digits of the largest, or to two digits and 1e-3 if it is small.

    Numbers below 1e-5 count as rounded zeros.
    """
    if said.size != known.size:
        return False
    largest = float(np.abs(known).max(initial=0))
    within = max(1e-3 * largest, min(1e-3, 1e-2 * largest)) if largest > ROUNDING_OF_ZERO else 1e-3
    return bool(np.allclose(said.reshape(-1), known.reshape(-1), rtol=0, atol=within))

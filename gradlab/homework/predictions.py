"""Answer first, then see: a lesson's questions.

A question is an attribute of `guess`, which is `...` until the reader sets it: so each has a guess of its own, cells may be
run in any order, and nothing is shown for the guess at another question. `reveal(guess.row, actual)` shows what came out only
after the reader has said what he expects. A guess is what a reader types: a tensor, a list, "1, 2", integers, a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from gradlab.homework.verdicts import BAD, GOOD, as_array, marked

ASK = "Say first what you expect: write it in place of the dots above, run that cell, then this one."
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
COUNTED = ("no number", "one number", "two numbers", "three numbers", "four numbers")


class Guesses:
    """The guesses of a notebook, by question."""

    def __getattr__(self, question: str) -> Any:
        if question.startswith("_"):  # what Python and IPython ask of any object
            raise AttributeError(question)
        return ...

    def __repr__(self) -> str:
        return ", ".join(f"{question}: {said!r}" for question, said in vars(self).items()) or "no guesses yet"


guess = Guesses()


@dataclass(frozen=True)
class Revealed:
    """What a lesson answers to a guess."""

    right: bool | None  # None: there is no guess yet, or none that can be compared
    words: str

    def __str__(self) -> str:
        return self.words

    __repr__ = __str__

    def _repr_html_(self) -> str:
        edge = "#888" if self.right is None else GOOD if self.right else BAD
        return (
            f'<div class="gradlab-reveal" style="border-left:4px solid {escape(edge)};padding:4px 0 4px 12px;max-width:52em;'
            f'line-height:1.45">{marked(self.words)}</div>'
        )


def reveal(
    guess: Any,
    actual: Any,
    of: Callable[[np.ndarray], Any] | None = None,
    *,
    count: int | None = None,
    replies: Mapping[Any, str] | None = None,
) -> Revealed:
    """Compare a guess with what is so, and say both; without a guess (`...` or None), or with one that has another number of
    numbers, say only what is wanted.

    Parameters
    ----------
    guess, actual : Tensor, array_like, str or bool
        Numbers agree to 1e-3 of the largest; words regardless of case. Text that consists of numbers is numbers.
    of : callable, optional
        What is made of the guess (an array) before it is compared, where more than one guess is right: weights are judged by v
        @ J.
    count : int, optional
        How many numbers a guess has, where `of` is given; else as many as `actual`.
    replies : mapping, optional
        What to say to a wrong guess: {(2, 3): "that is row 0"}.
    """
    if _is_open(guess):
        return Revealed(None, ASK)
    said, known = _read(guess), None if isinstance(actual, (str, bool)) else as_array(actual)
    if known is None:
        right = str(guess).strip().lower() == str(actual).strip().lower()
        return _told(right, guess, actual, "You said", _reply(str(guess).strip().lower(), None, replies))
    wanted = count if count is not None else known.size
    if said is None or said.size != wanted or not np.isfinite(said).all():
        what = f"{_counted(said.size)}" if said is not None else f"`{_shown(guess)}`"
        reply = _reply("", said, replies)
        return Revealed(
            None,
            f"You wrote {what}{': ' + reply if reply else ''}. The question is for {_counted(wanted)}: write "
            f"{_example(wanted)}, with your own.",
        )
    made = said if of is None else as_array(of(said.reshape(-1)))
    assert made is not None
    right = made.size == known.size and bool(
        np.allclose(made.reshape(-1), known.reshape(-1), rtol=0, atol=1e-3 * max(1.0, float(np.abs(known).max(initial=0))))
    )
    if of is None:
        return _told(right, said, actual, "You said", _reply("", said, replies))
    if right:
        return Revealed(True, f"It gives `{_shown(actual)}`.")
    return _told(False, made, actual, "Yours gives", _reply("", said, replies))


def _told(right: bool, said: Any, actual: Any, verb: str, reply: str) -> Revealed:
    if right:
        return Revealed(True, f"As you said: `{_shown(actual)}`.")
    return Revealed(False, f"{verb} `{_shown(said)}`{': ' + reply if reply else ''}; it is `{_shown(actual)}`.")


def _is_open(guess: Any) -> bool:
    return (
        guess is None
        or guess is Ellipsis
        or (isinstance(guess, (list, tuple)) and any(one is None or one is Ellipsis for one in guess))
    )


def _read(guess: Any) -> np.ndarray | None:
    """A guess as numbers, if it is some."""
    if isinstance(guess, str):
        found, rest = NUMBER.findall(guess), re.sub(r"[\[\](){},;\s]", "", NUMBER.sub("", guess))
        return np.array([float(one) for one in found]) if found and not rest else None
    if isinstance(guess, (list, tuple)) and any(isinstance(one, str) for one in guess):
        parts = [part for one in guess if (part := _read(one)) is not None]
        return np.concatenate([np.ravel(part) for part in parts]) if len(parts) == len(guess) else None
    array = as_array(guess)
    return None if array is None else array.astype(np.float64)


def _reply(word: str, said: np.ndarray | None, replies: Mapping[Any, str] | None) -> str:
    for key, words in (replies or {}).items():
        if isinstance(key, str):
            if key.lower() == word:
                return words
        elif said is not None and said.size == np.size(key) and np.allclose(said.reshape(-1), np.ravel(key), rtol=0, atol=1e-3):
            return words
    return ""


def _counted(count: int) -> str:
    return COUNTED[count] if count < len(COUNTED) else f"{count} numbers"


def _example(count: int) -> str:
    return "`5`" if count == 1 else f"`[{', '.join(str(5 + i) for i in range(count))}]`"


def _shown(value: Any) -> str:
    array = None if isinstance(value, (str, bool)) else as_array(value)
    if array is None:
        return str(value)[:80]
    return np.array2string(array, separator=", ", precision=4, suppress_small=True).replace("\n", " ")

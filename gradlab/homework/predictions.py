"""Answer first, then see: a lesson's questions.

`reveal(guess, actual)` shows what came out only after the reader has said what he expects.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from gradlab.homework.verdicts import BAD, GOOD, as_array, marked

ASK = "Say first what you expect: write it in place of the dots of `guess = ...`, run that cell, then this one."


@dataclass(frozen=True)
class Revealed:
    """What a lesson answers to a guess."""

    right: bool | None                                    # None: there was no guess yet
    words: str

    def __str__(self) -> str:
        return self.words

    __repr__ = __str__

    def _repr_html_(self) -> str:
        edge = "#888" if self.right is None else GOOD if self.right else BAD
        return (f'<div class="gradlab-reveal" style="border-left:4px solid {escape(edge)};padding:4px 0 4px 12px;max-width:52em;'
                f'line-height:1.45">{marked(self.words)}</div>')


def reveal(guess: Any, actual: Any, of: Callable[[Any], Any] | None = None) -> Revealed:
    """Compare a guess with what is so, and say both; without a guess (`...` or None) say only that one is wanted.

    Parameters
    ----------
    guess, actual : Tensor, array_like, str or bool
        Numbers agree to 1e-3 of the largest; words regardless of case.
    of : callable, optional
        What is made of the guess before it is compared, where more than one guess is right: weights are judged by v @ J.
    """
    if guess is None or guess is Ellipsis or (isinstance(guess, (list, tuple)) and any(one in (None, Ellipsis) for one in guess)):
        return Revealed(None, ASK)
    guess = guess if of is None else of(guess)
    if isinstance(actual, (str, bool)) or isinstance(guess, (str, bool)):
        right = str(guess).strip().lower() == str(actual).strip().lower()
    else:
        said, known = as_array(guess), as_array(actual)
        assert known is not None
        right = said is not None and said.size == known.size and bool(
            np.allclose(said.reshape(-1), known.reshape(-1), rtol=0, atol=1e-3 * max(1.0, float(np.abs(known).max(initial=0)))))
    verb = "You said" if of is None else "Yours gives"
    words = f"As you said: `{_shown(actual)}`." if right and of is None else f"It gives `{_shown(actual)}`." if right else (
        f"{verb} `{_shown(guess)}`; it is `{_shown(actual)}`.")
    return Revealed(right, words)


def _shown(value: Any) -> str:
    array = None if isinstance(value, (str, bool)) else as_array(value)
    if array is None:
        return str(value)
    return np.array2string(array, separator=", ", precision=4, suppress_small=True).replace("\n", " ")

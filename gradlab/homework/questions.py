"""A question of a lesson: what may be answered, and how what a reader types or presses is read.

An answer is numbers, words, one of several words, or one of them for each row of a table. Text and integers are read as
numbers, words regardless of case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.core.tensor import Tensor
from gradlab.homework.excerpts import abbreviate
from gradlab.homework.verdicts import as_array, marked

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
COUNTED = ("no number", "one number", "two numbers", "three numbers", "four numbers")
NOTHING = 1e-5  # numbers up to here are the rounding of a zero
LONGEST = 80  # characters of a guess that are repeated to its reader


class Misfit:
    """A guess that is none of a question's choices: kept, so that it can be said what is wrong with it."""

    def __init__(self, said: Any, words: str) -> None:
        self.said, self.words = said, words

    def __repr__(self) -> str:
        return repr(self.said)


@dataclass(frozen=True)
class Question:
    """What `ask` asks for."""

    key: str
    numbers: int | None = None
    choices: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    def taken(self, said: Any) -> Any:
        """The guess as it is kept: choices as they are written in the question, the rest as it is."""
        if not self.choices or said is None or said is Ellipsis:
            return said
        said = said.said if isinstance(said, Misfit) else said
        if not self.rows:
            choice = self._choice(said)
            return Misfit(said, f"You wrote `{shown(said)}`. {self.wanted()}") if choice is None else choice
        parts = in_rows(said, self.rows)
        if parts is None:
            return Misfit(said, f"You wrote `{shown(said)}`. {self.wanted()}")
        for part, row in zip(parts, self.rows, strict=True):
            if not is_open(part) and self._choice(part) is None:
                return Misfit(said, f"You wrote `{shown(part)}` for `{row}`. {self.wanted()}")
        return [... if is_open(part) else self._choice(part) for part in parts]

    def problem(self, guess: Any) -> str:
        """What is to be mended before a guess can be compared; "" if nothing is, or there is none."""
        if isinstance(guess, Misfit):
            return guess.words
        if self.rows and isinstance(guess, list) and is_open(guess):
            missing = sum(is_open(part) for part in guess)
            return "" if missing == len(self.rows) else f"{missing} of {len(self.rows)} rows are left."
        if is_open(guess) or self.numbers is None:
            return ""
        said = read(guess)
        if said is not None and said.size == self.numbers and np.isfinite(said).all():
            return ""
        return miscounted(guess, said, self.numbers)

    def typed(self, text: str) -> Any:
        """A guess from a field: numbers if it is some, else a word; `...` for an empty one."""
        return plain(text.strip()) or ...

    def wanted(self) -> str:
        """What an answer is."""
        if self.rows:
            return f"The question is for {one_of(self.choices)} for each of {len(self.rows)} rows."
        if self.choices:
            return f"The question is for {one_of(self.choices)}."
        if self.numbers is not None:
            return f"The question is for {counted(self.numbers)}."
        return "The question is for a word or a number."

    def typing(self) -> str:
        """What to type where there are no buttons: `guess.path = "Mul"`."""
        if self.rows:
            return f"guess.{self.key} = [{', '.join('...' for _ in self.rows)}]"
        return f"guess.{self.key} = ..."

    def said(self) -> str:
        """The question as text."""
        lines = [f"Your guess: write `{self.typing()}`, with your own in place of the dots, and run it. {self.wanted()}"]
        return "\n".join([*lines, *(f"    {row}" for row in self.rows)])

    def folded(self, noted: str = "") -> dict[str, str]:
        """The question as a bundle of text that unfolds, for where it cannot be answered."""
        rows = "".join(f"<li>{marked(f'`{row}`')}</li>" for row in self.rows)
        return {
            "text/plain": self.said(),
            "text/html": (
                f'<details class="gradlab-ask"><summary>Your guess</summary><p>{marked(self.wanted())}</p>'
                f"{f'<ul>{rows}</ul>' if rows else ''}{f'<p>{marked(noted)}</p>' if noted else ''}</details>"
            ),
        }

    def _choice(self, said: Any) -> str | None:
        return next((choice for choice in self.choices if is_same_word(said, choice)), None)


def question(key: str, numbers: Any, choices: Iterable[Any] | None, rows: Iterable[Any] | None) -> Question:
    """The question that `ask` was called for.

    Raises
    ------
    TypeError, ValueError
        Where it is none.
    """
    if not isinstance(key, str) or not key.isidentifier() or key.startswith("_"):
        raise ValueError(f"a question is named as a variable is, as in ask('two_rows'); {key!r} is no such name.")
    for name, offered in (("choices", choices), ("rows", rows)):
        if isinstance(offered, str):
            raise TypeError(f"{name} are several words, {name}=({offered!r}, ...), and this is one: {offered!r}.")
    if numbers is not None and (isinstance(numbers, bool) or not isinstance(numbers, int) or numbers < 1):
        raise ValueError(f"numbers is how many an answer has, 1 or more, and this is {numbers!r}.")
    words = tuple(map(str, choices)) if choices is not None else ()
    labels = tuple(map(str, rows)) if rows is not None else ()
    if choices is not None and len({word.strip().lower() for word in words}) < max(2, len(words)):
        raise ValueError(f"choices are two words or more, each another one, and these are {words!r}.")
    if numbers is not None and words:
        raise ValueError("a question asks for numbers or for one of its choices: give numbers= or choices=, not both.")
    if rows is not None and (not labels or not words or len(set(labels)) < len(labels)):
        raise ValueError(
            f"rows are the rows of a table of choices, each another one: give them with choices=, and these are {labels!r}."
        )
    return Question(key, numbers, words, labels)


def is_open(guess: Any) -> bool:
    """Whether there is no guess, or only a part of one."""
    return (
        guess is None
        or guess is Ellipsis
        or (isinstance(guess, (list, tuple)) and any(one is None or one is Ellipsis for one in guess))
    )


def read(guess: Any) -> np.ndarray | None:
    """A guess as numbers, if it is some."""
    if isinstance(guess, str):
        numbers, rest = NUMBER.findall(guess), re.sub(r"[\[\](){},;\s]", "", NUMBER.sub("", guess))
        return np.array([float(one) for one in numbers]) if numbers and not rest else None
    if isinstance(guess, (list, tuple)) and any(isinstance(one, str) for one in guess):
        parts = [part for one in guess if (part := read(one)) is not None]
        return np.concatenate([np.ravel(part) for part in parts]) if len(parts) == len(guess) else None
    array = as_array(guess)
    return None if array is None else array.astype(np.float64)


def plain(guess: Any) -> Any:
    """A guess as a number or a list of numbers, if it is some; else as text."""
    said = read(guess)
    if said is None or not np.isfinite(said).all():
        return str(guess)
    numbers = [int(one) if one == int(one) else float(one) for one in said.reshape(-1)]
    return numbers[0] if len(numbers) == 1 else numbers


def in_rows(guess: Any, rows: tuple[str, ...]) -> list[Any] | None:
    """A guess for each row, if it has as many: a list, text with commas, or {row: word}."""
    if isinstance(guess, dict):
        return [guess.get(row, ...) for row in rows] if set(guess) <= set(rows) else None
    if isinstance(guess, str):
        guess = [part.strip() for part in guess.strip("[](){} ").split(",")]
    elif isinstance(guess, (Tensor, np.ndarray)):
        guess = np.ravel(np.asarray(guess.detach().cpu().array if isinstance(guess, Tensor) else guess)).tolist()
    return list(guess) if isinstance(guess, (list, tuple)) and len(guess) == len(rows) else None


def is_same_word(said: Any, actual: Any) -> bool:
    """Whether two words, or two numbers, are the same."""
    one, other = (str(word).strip().strip("'\"").lower() for word in (said, actual))
    if one == other:
        return True
    if isinstance(said, bool) or isinstance(actual, bool):
        return False
    first, second = read(said), read(actual)
    if first is None or second is None or first.size != second.size:
        return False
    return bool(np.allclose(first.reshape(-1), second.reshape(-1), rtol=1e-3, atol=1e-12))  # 1e-8 is another choice than 1e-4


def miscounted(guess: Any, said: np.ndarray | None, wanted: int, reply: str = "") -> str:
    """What to say to a guess that has another number of numbers, or none."""
    what = counted(said.size) if said is not None else f"`{shown(guess)}`"
    return (
        f"You wrote {what}{': ' + reply if reply else ''}. The question is for {counted(wanted)}: write {_example(wanted)}, "
        "with your own."
    )


def counted(count: int) -> str:
    """ "two numbers"."""
    return COUNTED[count] if count < len(COUNTED) else f"{count} numbers"


def one_of(words: tuple[str, ...]) -> str:
    """ "`Mul`, `Add` or `Pow`"."""
    return f"{', '.join(f'`{word}`' for word in words[:-1])} or `{words[-1]}`"


def shown(value: Any) -> str:
    """A guess or an answer, as it is repeated."""
    array = None if isinstance(value, (str, bool)) else as_array(value)
    if array is None:
        return abbreviate(str(value), LONGEST)
    largest = float(np.abs(array).max(initial=0))
    if NOTHING < largest < 1e-3:
        text = np.array2string(array, separator=", ", formatter={"float_kind": lambda one: f"{one:.3g}"})
    else:
        array = np.where(np.abs(array) < 5e-5, np.zeros_like(array), array)  # what is rounded to 0 has no sign
        text = np.array2string(array, separator=", ", precision=4, suppress_small=True)
    return re.sub(r"\s+(?=[],])|(?<=\[)\s+", "", " ".join(text.split()))  # without the blanks that align columns


def _example(count: int) -> str:
    return "`5`" if count == 1 else f"`[{', '.join(str(5 + i) for i in range(count))}]`"

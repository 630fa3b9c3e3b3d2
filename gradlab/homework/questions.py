"""A question of a lesson: which answers it allows, and how typed text and pressed buttons are interpreted.

An answer is numbers, a word, one of several choices, or a choice for each row of a table. Text is converted to numbers where
possible, and words are compared regardless of case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.core.tensor import Tensor
from gradlab.homework.excerpts import abbreviate
from gradlab.homework.verdicts import as_array, format_html

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
COUNTS_IN_WORDS = ("no number", "one number", "two numbers", "three numbers", "four numbers")
ROUNDING_OF_ZERO = 1e-5  # up to this size, a number is a rounded zero
MAX_QUOTED = 80  # characters of a guess that a reply quotes


class Misfit:
    """A guess that is not one of a question's choices, with an explanation."""

    def __init__(self, said: Any, words: str) -> None:
        self.said, self.words = said, words

    def __repr__(self) -> str:
        return repr(self.said)


@dataclass(frozen=True)
class Question:
    """A question, as declared by `ask`."""

    key: str
    numbers: int | None = None
    choices: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    def normalize(self, said: Any) -> Any:
        """Return a guess with its choices spelled as in the question, or a `Misfit`."""
        if not self.choices or said is None or said is Ellipsis:
            return said
        said = said.said if isinstance(said, Misfit) else said
        if not self.rows:
            choice = self._choice(said)
            return Misfit(said, f"You wrote `{format_value(said)}`. {self.expected_answer()}") if choice is None else choice
        parts = in_rows(said, self.rows)
        if parts is None:
            return Misfit(said, f"You wrote `{format_value(said)}`. {self.expected_answer()}")
        for part, row in zip(parts, self.rows, strict=True):
            if not is_open(part) and self._choice(part) is None:
                return Misfit(said, f"You wrote `{format_value(part)}` for `{row}`. {self.expected_answer()}")
        return [... if is_open(part) else self._choice(part) for part in parts]

    def problem(self, guess: Any) -> str:
        """Return why a guess cannot be compared yet; "" if it can, or if there is none."""
        if isinstance(guess, Misfit):
            return guess.words
        if self.rows and isinstance(guess, list) and is_open(guess):
            missing = sum(is_open(part) for part in guess)
            return "" if missing == len(self.rows) else f"{missing} of {len(self.rows)} rows are not answered yet."
        if is_open(guess) or self.numbers is None:
            return ""
        said = read(guess)
        if said is not None and said.size == self.numbers and np.isfinite(said).all():
            return ""
        return wrong_count_message(guess, said, self.numbers)

    def parse_text(self, text: str) -> Any:
        """Convert the text of a field to numbers or a word; to `...` if it is empty."""
        return plain(text.strip()) or ...

    def expected_answer(self) -> str:
        """Return a sentence that says what kind of answer is expected."""
        if self.rows:
            return f"Answer {one_of(self.choices)} for each of {len(self.rows)} rows."
        if self.choices:
            return f"Answer {one_of(self.choices)}."
        if self.numbers is not None:
            return f"The answer is {format_count(self.numbers)}."
        return "The answer is a word or a number."

    def typing(self) -> str:
        """Return the code to type where there are no buttons: `guess.path = "Mul"`."""
        if self.rows:
            return f"guess.{self.key} = [{', '.join('...' for _ in self.rows)}]"
        return f"guess.{self.key} = ..."

    def as_text(self) -> str:
        """Return the question as text."""
        lines = [f"Your guess: replace the dots in `{self.typing()}` and run it. {self.expected_answer()}"]
        return "\n".join([*lines, *(f"    {row}" for row in self.rows)])

    def as_folded_text(self, noted: str = "") -> dict[str, str]:
        """Return the question as a MIME bundle of folded text, for where it cannot be answered."""
        rows = "".join(f"<li>{format_html(f'`{row}`')}</li>" for row in self.rows)
        return {
            "text/plain": self.as_text(),
            "text/html": (
                f'<details class="gradlab-ask"><summary>Your guess</summary><p>{format_html(self.expected_answer())}</p>'
                f"{f'<ul>{rows}</ul>' if rows else ''}{f'<p>{format_html(noted)}</p>' if noted else ''}</details>"
            ),
        }

    def _choice(self, said: Any) -> str | None:
        return next((choice for choice in self.choices if is_same_word(said, choice)), None)


def question(key: str, numbers: Any, choices: Iterable[Any] | None, rows: Iterable[Any] | None) -> Question:
    """Create the question for the arguments of `ask`.

    Raises
    ------
    TypeError, ValueError
        If the arguments do not define a question.
    """
    if not isinstance(key, str) or not key.isidentifier() or key.startswith("_"):
        raise ValueError(
            f"the name of a question must be an identifier without a leading underscore, such as 'two_rows', got {key!r}."
        )
    for name, offered in (("choices", choices), ("rows", rows)):
        if isinstance(offered, str):
            raise TypeError(f"{name} must be several words, {name}=({offered!r}, ...), got one: {offered!r}.")
    if numbers is not None and (isinstance(numbers, bool) or not isinstance(numbers, int) or numbers < 1):
        raise ValueError(f"numbers must be how many numbers an answer has, 1 or more, got {numbers!r}.")
    words = tuple(map(str, choices)) if choices is not None else ()
    labels = tuple(map(str, rows)) if rows is not None else ()
    if choices is not None and len({word.strip().lower() for word in words}) < max(2, len(words)):
        raise ValueError(f"choices must be two or more different words, got {words!r}.")
    if numbers is not None and words:
        raise ValueError("a question has numbers= or choices=, not both.")
    if rows is not None and (not labels or not words or len(set(labels)) < len(labels)):
        raise ValueError(f"rows must be different labels and need choices=, got {labels!r}.")
    return Question(key, numbers, words, labels)


def is_open(guess: Any) -> bool:
    """Return whether a guess is missing or incomplete."""
    return (
        guess is None
        or guess is Ellipsis
        or (isinstance(guess, (list, tuple)) and any(one is None or one is Ellipsis for one in guess))
    )


def read(guess: Any) -> np.ndarray | None:
    """Convert a guess to numbers, or return None."""
    if isinstance(guess, str):
        numbers, rest = NUMBER.findall(guess), re.sub(r"[\[\](){},;\s]", "", NUMBER.sub("", guess))
        return np.array([float(one) for one in numbers]) if numbers and not rest else None
    if isinstance(guess, (list, tuple)) and any(isinstance(one, str) for one in guess):
        parts = [part for one in guess if (part := read(one)) is not None]
        return np.concatenate([np.ravel(part) for part in parts]) if len(parts) == len(guess) else None
    array = as_array(guess)
    return None if array is None else array.astype(np.float64)


def plain(guess: Any) -> Any:
    """Convert a guess to a number or a list of numbers, else to text."""
    said = read(guess)
    if said is None or not np.isfinite(said).all():
        return str(guess)
    numbers = [int(one) if one == int(one) else float(one) for one in said.reshape(-1)]
    return numbers[0] if len(numbers) == 1 else numbers


def in_rows(guess: Any, rows: tuple[str, ...]) -> list[Any] | None:
    """Return a guess for each row, or None if their number differs: from a list, text with commas, or {row: word}."""
    if isinstance(guess, dict):
        return [guess.get(row, ...) for row in rows] if set(guess) <= set(rows) else None
    if isinstance(guess, str):
        guess = [part.strip() for part in guess.strip("[](){} ").split(",")]
    elif isinstance(guess, (Tensor, np.ndarray)):
        guess = np.ravel(np.asarray(guess.detach().cpu().array if isinstance(guess, Tensor) else guess)).tolist()
    return list(guess) if isinstance(guess, (list, tuple)) and len(guess) == len(rows) else None


def is_same_word(said: Any, actual: Any) -> bool:
    """Return whether two words, or two numbers, are equal."""
    one, other = (str(word).strip().strip("'\"").lower() for word in (said, actual))
    if one == other:
        return True
    if isinstance(said, bool) or isinstance(actual, bool):
        return False
    first, second = read(said), read(actual)
    if first is None or second is None or first.size != second.size:
        return False
    return bool(np.allclose(first.reshape(-1), second.reshape(-1), rtol=1e-3, atol=1e-12))  # 1e-8 and 1e-4 differ


def wrong_count_message(guess: Any, said: np.ndarray | None, wanted: int, reply: str = "") -> str:
    """Return the reply to a guess with the wrong number of numbers, or with none."""
    what = format_count(said.size) if said is not None else f"`{format_value(guess)}`"
    because = f": {reply}" if reply else ""
    return f"You wrote {what}{because}. The answer is {format_count(wanted)}: write, for example, {_example(wanted)}."


def format_count(count: int) -> str:
    """Return a count in words: "two numbers"."""
    return COUNTS_IN_WORDS[count] if count < len(COUNTS_IN_WORDS) else f"{count} numbers"


def one_of(words: tuple[str, ...]) -> str:
    """Return choices in words: "`Mul`, `Add` or `Pow`"."""
    return f"{', '.join(f'`{word}`' for word in words[:-1])} or `{words[-1]}`"


def format_value(value: Any) -> str:
    """Format a guess or an answer for a reply."""
    array = None if isinstance(value, (str, bool)) else as_array(value)
    if array is None:
        return abbreviate(str(value), MAX_QUOTED)
    largest = float(np.abs(array).max(initial=0))
    if ROUNDING_OF_ZERO < largest < 1e-3:
        text = np.array2string(array, separator=", ", formatter={"float_kind": lambda one: f"{one:.3g}"})
    else:
        array = np.where(np.abs(array) < 5e-5, np.zeros_like(array), array)  # no sign on a rounded 0
        text = np.array2string(array, separator=", ", precision=4, suppress_small=True)
    return re.sub(r"\s+(?=[],])|(?<=\[)\s+", "", " ".join(text.split()))  # remove the spaces that align columns


def _example(count: int) -> str:
    return "`5`" if count == 1 else f"`[{', '.join(str(5 + i) for i in range(count))}]`"

"""Answer first, then see: a lesson's questions, and the guesses of its reader.

`ask("two_rows", numbers=2)` asks: in a notebook with a field or with buttons, elsewhere by saying what to type. What is answered
is an attribute of `guess`, `...` until then, and typing `guess.two_rows = [3, 5]` does the same. So each question has a guess of
its own, cells may be run in any order, and nothing is shown for the guess at another question.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Any, Protocol

from gradlab.explore.views import opened
from gradlab.homework.questions import Question, is_open, plain, question, shown

NEXT = "Now run the next cell."
READING, FILE = "GRADLAB_READING", "GRADLAB_GUESSES"  # variables of the environment
NOTEBOOK = "JPY_SESSION_NAME"  # where Jupyter says which notebook a kernel is of


@dataclass
class Settings:
    """Who reads: `gradlab.homework.predictions.settings`.

    Attributes
    ----------
    reading : bool
        The notebook is run to be read, not to be answered: questions and answers are folded text. Set by GRADLAB_READING=1.
    file : Path or None
        Where each guess is written down, a line of JSON each, for a teacher's summary; None, the default: nowhere. Set by
        GRADLAB_GUESSES=PATH.
    """

    reading: bool
    file: Path | None


settings = Settings(
    reading=os.environ.get(READING, "") not in ("", "0"), file=Path(os.environ[FILE]) if os.environ.get(FILE) else None
)


class QuestionView(Protocol):
    """Where a question is asked."""

    def refresh(self) -> None:
        """The guess has changed."""

    def close(self) -> None:
        """The question is asked elsewhere now."""


class Guesses:
    """The guesses of a notebook, by question."""

    _kept: dict[str, Any]
    _asked: dict[str, Question]
    _views: dict[str, QuestionView]
    _told: dict[str, str]
    _solved: dict[str, str]
    _read_last: str

    def __init__(self) -> None:
        for name, value in (("_kept", {}), ("_asked", {}), ("_views", {}), ("_told", {}), ("_solved", {}), ("_read_last", "")):
            object.__setattr__(self, name, value)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):  # what Python and IPython ask of any object
            raise AttributeError(key)
        object.__setattr__(self, "_read_last", key)
        return self._kept.get(key, ...)

    def __setattr__(self, key: str, said: Any) -> None:
        if said is None or said is Ellipsis:
            self._kept.pop(key, None)
        else:
            self._kept[key] = self._asked[key].taken(said) if key in self._asked else said
        if (view := self._views.get(key)) is not None:
            view.refresh()

    def __delattr__(self, key: str) -> None:
        setattr(self, key, ...)

    def __dir__(self) -> list[str]:
        return sorted(self._asked.keys() | self._kept.keys())

    def __repr__(self) -> str:
        return ", ".join(f"{key}: {said!r}" for key, said in self._kept.items()) or "no guesses yet"

    def asked(self, question: Question) -> None:
        """A question is asked. A guess at another one of this name is dropped."""
        key = question.key
        if key in self._asked and self._asked[key] != question:
            self._kept.pop(key, None)
            self._solved.pop(key, None)
        self._asked[key] = question
        if key in self._kept:
            self._kept[key] = question.taken(self._kept[key])

    def seen_by(self, key: str, view: QuestionView) -> None:
        """From now on `view` shows the guess, and no other one does."""
        if (before := self._views.pop(key, None)) is not None:
            before.close()
        self._views[key] = view

    def is_solved(self, key: str) -> bool:
        """Whether the guess at a question has been compared, and was right."""
        return key in self._kept and self._solved.get(key) == shown(self._kept[key])

    def note_comparison(self, said: Any, right: bool) -> None:
        """Note whether a guess was right: for the view of its question, and in the teacher's file if there is one."""
        key = self._read_last
        if self._kept.get(key) is not said:
            return
        if right:
            self._solved[key] = shown(said)
        else:
            self._solved.pop(key, None)
        if (view := self._views.get(key)) is not None:
            view.refresh()
        if settings.file is not None and self._told.get(key) != shown(said):  # once, until it changes
            self._told[key] = shown(said)
            _write_down(settings.file, key, shown(said), right)


guess = Guesses()


def ask(key: str, *, numbers: int | None = None, choices: Iterable[Any] | None = None, rows: Iterable[Any] | None = None) -> None:
    """Ask for a guess, and show it where there is one: a cell that asks may be run again.

    Parameters
    ----------
    key : str
        The guess becomes `guess.KEY`.
    numbers : int, optional
        How many numbers an answer has. Without it, and without choices, it is a word or a number.
    choices : iterable of str, optional
        The words to choose from.
    rows : iterable of str, optional
        With `choices`: one is chosen for each row, and the guess is a list of words.

    Returns
    -------
    None

    Examples
    --------
    >>> from gradlab.homework import ask, guess
    >>> ask("slope", choices=("rises", "falls"))  # doctest: +SKIP
    >>> guess.slope = "rises"
    """
    asked = question(key, numbers, choices, rows)
    guess.asked(asked)
    opened("question", asked, guesses=guess, reading=settings.reading)


def state(guesses: Guesses, asked: Question) -> dict[str, Any]:
    """What a view of a question shows: the guess, and what is to be said of it."""
    said = guesses._kept.get(asked.key, ...)
    problem = asked.problem(said)
    chosen: list[str] = []
    if asked.choices and not problem.startswith("You wrote"):
        chosen = ["" if is_open(one) else str(one) for one in (said if asked.rows and isinstance(said, list) else [said])]
    text, noted, said_of_it = "", "", ""
    if not is_open(said):
        clear = said if asked.choices else plain(said)
        text = "" if asked.choices else ", ".join(map(str, clear)) if isinstance(clear, list) else str(clear)
        noted = f"all {len(asked.rows)} rows" if asked.rows else str(clear)
    if noted and not problem:
        said_of_it = f"Answered: {noted}. That is right." if guesses.is_solved(asked.key) else f"Noted: {noted}. {NEXT}"
    return {
        "chosen": chosen,
        "text": text,
        "problem": problem,
        "noted": said_of_it,
    }


def _write_down(path: Path, key: str, said: str, right: bool) -> None:
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "student": _user(),
        "notebook": Path(os.environ.get(NOTEBOOK, "")).stem,
        "question": key,
        "guess": said,
        "right": right,
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _user() -> str:
    try:
        return os.environ.get("JUPYTERHUB_USER") or getuser()
    except (OSError, KeyError):  # a number without a name
        return ""

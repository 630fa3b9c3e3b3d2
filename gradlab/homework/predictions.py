"""A lesson's questions, and the reader's guesses: the answer is shown only after a guess.

`ask("two_rows", numbers=2)` shows a field or buttons in a notebook, and elsewhere the code to type. The guess is an attribute of
`guess`, which is `...` at first; `guess.two_rows = [3, 5]` sets it, too. Each question has a guess of its own, so cells can be
run in any order.
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

from gradlab.explore.views import open_view
from gradlab.homework.questions import Question, format_value, is_open, plain, question

NEXT = "Now run the next cell."
READING, FILE = "GRADLAB_READING", "GRADLAB_GUESSES"  # environment variables
NOTEBOOK = "JPY_SESSION_NAME"  # where Jupyter stores the notebook of a kernel


@dataclass
class Settings:
    """Settings of questions: `gradlab.homework.predictions.settings`.

    Attributes
    ----------
    reading : bool
        Show questions and answers as folded text, for a notebook that is only read. Set by GRADLAB_READING=1.
    file : Path or None
        Where guesses are logged for a teacher's summary, a line of JSON each. None, the default: nowhere. Set by
        GRADLAB_GUESSES=PATH.
    """

    reading: bool
    file: Path | None


settings = Settings(
    reading=os.environ.get(READING, "") not in ("", "0"), file=Path(os.environ[FILE]) if os.environ.get(FILE) else None
)


class QuestionView(Protocol):
    """A view that shows a question."""

    def refresh(self) -> None:
        """Update the view after a change of the guess."""

    def close(self) -> None:
        """Close the view: another one shows the question."""


class Guesses:
    """The guesses of a notebook, by question."""

    _guesses: dict[str, Any]
    _asked: dict[str, Question]
    _views: dict[str, QuestionView]
    _logged: dict[str, str]
    _solved: dict[str, str]
    _read_last: str

    def __init__(self) -> None:
        for name, value in (
            ("_guesses", {}),
            ("_asked", {}),
            ("_views", {}),
            ("_logged", {}),
            ("_solved", {}),
            ("_read_last", ""),
        ):
            object.__setattr__(self, name, value)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):  # looked up by Python and IPython on any object
            raise AttributeError(key)
        object.__setattr__(self, "_read_last", key)
        return self._guesses.get(key, ...)

    def __setattr__(self, key: str, said: Any) -> None:
        if said is None or said is Ellipsis:
            self._guesses.pop(key, None)
        else:
            self._guesses[key] = self._asked[key].normalize(said) if key in self._asked else said
        if (view := self._views.get(key)) is not None:
            view.refresh()

    def __delattr__(self, key: str) -> None:
        setattr(self, key, ...)

    def __dir__(self) -> list[str]:
        return sorted(self._asked.keys() | self._guesses.keys())

    def __repr__(self) -> str:
        return ", ".join(f"{key}: {said!r}" for key, said in self._guesses.items()) or "no guesses yet"

    def register(self, question: Question) -> None:
        """Add a question. The guess for a different question of this name is dropped."""
        key = question.key
        if key in self._asked and self._asked[key] != question:
            self._guesses.pop(key, None)
            self._solved.pop(key, None)
        self._asked[key] = question
        if key in self._guesses:
            self._guesses[key] = question.normalize(self._guesses[key])

    def set_view(self, key: str, view: QuestionView) -> None:
        """Set the view of a question, and close the previous one."""
        if (before := self._views.pop(key, None)) is not None:
            before.close()
        self._views[key] = view

    def is_solved(self, key: str) -> bool:
        """Return whether the guess for a question was compared and was right."""
        return key in self._guesses and self._solved.get(key) == format_value(self._guesses[key])

    def note_comparison(self, said: Any, right: bool) -> None:
        """Record whether a guess was right, for the question's view and in the teacher's file."""
        key = self._read_last
        if self._guesses.get(key) is not said:
            return
        if right:
            self._solved[key] = format_value(said)
        else:
            self._solved.pop(key, None)
        if (view := self._views.get(key)) is not None:
            view.refresh()
        if settings.file is not None and self._logged.get(key) != format_value(said):  # once, until it changes
            self._logged[key] = format_value(said)
            _write_down(settings.file, key, format_value(said), right)


guess = Guesses()


def ask(key: str, *, numbers: int | None = None, choices: Iterable[Any] | None = None, rows: Iterable[Any] | None = None) -> None:
    """Ask for a guess. If there is one already, show it.

    Parameters
    ----------
    key : str
        The guess becomes `guess.KEY`.
    numbers : int, optional
        How many numbers an answer has. Without `numbers` and `choices`, it is a word or a number.
    choices : iterable of str, optional
        The words to choose from.
    rows : iterable of str, optional
        With `choices`: the reader chooses one for each row, and the guess is a list of words.

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
    guess.register(asked)
    open_view("question", asked, guesses=guess, reading=settings.reading)


def state(guesses: Guesses, asked: Question) -> dict[str, Any]:
    """Return the state of a question's view: the guess, and the remark on it."""
    said = guesses._guesses.get(asked.key, ...)
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

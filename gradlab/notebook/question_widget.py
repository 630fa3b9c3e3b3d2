"""The live view of a lesson's question: choices as buttons, a table of them, or a field.

A view sends {"ask": "said", "chosen": [...]} after a button, or {"ask": "said", "text": "3, 5"} after typing. With "ask": "look",
while the user types, nothing is stored, and the answer says what is wrong so far. The guess is stored as `guess.KEY`, and all
views show its value, whoever set it.
"""

from __future__ import annotations

import uuid
from typing import Any

import traitlets

from gradlab.homework.excerpts import abbreviate
from gradlab.homework.predictions import Guesses, state
from gradlab.homework.questions import Question
from gradlab.notebook.bundle import script, styles
from gradlab.notebook.live_view import LiveView, as_twin


class QuestionWidget(LiveView):
    """A live view of a question, made by `ask`."""

    _esm = script("question/view.js")
    _css = styles("kit/kit.css", "question/question.css")

    about = traitlets.Dict().tag(sync=True)  # the question; never changes
    state = traitlets.Dict().tag(sync=True)  # the guess, and the remark on it
    token = traitlets.Unicode().tag(sync=True)  # identifies this widget's views
    timeout = traitlets.Float(10.0).tag(sync=True)  # seconds after which a view says that the kernel does not answer

    def __init__(self, asked: Question, guesses: Guesses, **traits: Any) -> None:
        self._asked, self._guesses = asked, guesses
        self._still: Any = None  # display handle of the folded text
        about = {"key": asked.key, "numbers": asked.numbers, "choices": list(asked.choices), "rows": list(asked.rows)}
        super().__init__(
            about={**about, "wanted": asked.expected_answer(), "typing": asked.typing()},
            state=state(guesses, asked),
            token=uuid.uuid4().hex,
            **traits,
        )
        self._listen()

    def refresh(self) -> None:
        """Show the guess as it is now."""
        self.state = state(self._guesses, self._asked)
        if self._still is not None:
            self._still.update(self._static(), raw=True)

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view. Errors are part of the answer, and shown in the view."""
        message = message if isinstance(message, dict) else {}
        ask, answer = str(message.get("ask")), {}
        try:
            if ask == "said":
                self._take(message)
            elif ask == "look":
                answer = {"problem": self._asked.problem(self._asked.parse_text(str(message.get("text", ""))))}
            elif ask != "gone":
                raise ValueError(f"unknown question {ask!r}")
        except Exception as error:  # noqa: BLE001  (no caller could report it to the user)
            answer = {"error": f"{type(error).__name__}: {error}"}
        finally:
            self.send({"answer": str(message.get("id", "")), "ask": ask, **answer})

    def _take(self, message: dict[str, Any]) -> None:
        """Set the guess, or a part of it, from a message."""
        asked = self._asked
        if asked.choices:
            chosen, offered = message.get("chosen"), ["", *asked.choices]
            if (
                not isinstance(chosen, list)
                or len(chosen) != max(1, len(asked.rows))
                or any(one not in offered for one in chosen)
            ):
                raise ValueError(f"a choice is not in the list: {abbreviate(repr(chosen), 80)}")
            said = [one or ... for one in chosen]
            setattr(self._guesses, asked.key, (said if any(chosen) else ...) if asked.rows else said[0])
            return
        setattr(self._guesses, asked.key, asked.parse_text(str(message.get("text", ""))))

    def _text(self) -> str:
        return self._asked.as_text()

    def _ipython_display_(self, **_: Any) -> None:
        """Display the folded text, and the live view as a second output below it."""
        from IPython.display import display

        self._still = display(self._static(), raw=True, display_id=True)
        self._show()

    def _static(self) -> dict[str, str]:
        return as_twin(self._asked.as_folded_text(self.state["noted"]))

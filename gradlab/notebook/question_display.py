"""Display a lesson's questions and answers: live, as text, or folded in a notebook that is only read.

A question is displayed twice: as folded text, for saved notebooks, and as the live view right below, which hides the text.
"""

from __future__ import annotations

from html import escape
from typing import Any

from IPython import get_ipython
from IPython.display import display
from IPython.utils.capture import capture_output

from gradlab.homework.predictions import Guesses, state
from gradlab.homework.questions import Question
from gradlab.homework.reveals import FOLDED, Followed

PICTURES = ("image/png", "image/jpeg")


def put(asked: Question, *, guesses: Guesses, reading: bool) -> None:
    """Display a question: live in a notebook, else as text with the code to type."""
    if reading and get_ipython() is not None:
        display(asked.as_folded_text(), raw=True)
        return
    try:
        if getattr(get_ipython(), "kernel", None) is None:
            raise ImportError("no notebook")
        from gradlab.notebook.question_widget import QuestionWidget
    except ImportError:
        now = state(guesses, asked)
        lines = ("" if guesses.is_solved(asked.key) else asked.as_text(), now["problem"], now["noted"])
        print("\n".join(filter(None, lines)))  # noqa: T201  (there is nothing but text)
        return
    widget = QuestionWidget(asked, guesses)
    guesses.set_view(asked.key, widget)
    display(widget)


def show(shown: Followed) -> None:
    """Display an answer and the object that follows it, or both folded."""
    if not shown.folded:
        display({"text/plain": str(shown), "text/html": shown._repr_html_()}, raw=True)
        if shown.then is not None:
            display(shown.then)
        return
    with capture_output() as caught:
        if shown.then is not None:
            display(shown.then)
    below = "".join(_as_html(output.data) for output in caught.outputs)
    text = "\n".join([str(shown), *(str(output.data.get("text/plain", "")) for output in caught.outputs)])
    display(
        {
            "text/plain": text,
            "text/html": f"<details><summary>{FOLDED}</summary>{shown._repr_html_()}{below}</details>",
        },
        raw=True,
    )


def _as_html(data: dict[str, Any]) -> str:
    """Return a captured output as HTML."""
    if "text/html" in data:
        return str(data["text/html"])
    if "text/latex" in data:
        return f"<div>{escape(str(data['text/latex']))}</div>"  # typeset where it is displayed
    for kind in PICTURES:
        if kind in data:
            return f'<img alt="{escape(str(data.get("text/plain", "")))}" src="data:{kind};base64,{data[kind]}">'
    if "image/svg+xml" in data:
        return str(data["image/svg+xml"])
    if any(kind.startswith("application/vnd.jupyter.widget") for kind in data):
        return ""  # its static twin is above it
    return f"<pre>{escape(str(data.get('text/plain', '')))}</pre>"

"""The live view of a function: the widget around `explore.playground.view_model.PlaygroundViewModel`, and the page that works
without a kernel.

A view sends {"ask": ..., "id": ...}, and the answer is {"answer": the id, ...}, with the picture's numbers as binary buffers. It
requests the next frame after the last one has arrived (static/kit/kernel.js). Messages may arrive in any thread; the model has a
lock. Errors are part of the answer and shown in the view.

The static view is a separate output above the widget, updated after a pause in the messages. The style sheet hides it while the
live view is right below. So a saved notebook has it.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import traitlets

from gradlab.explore.drawing import escape
from gradlab.explore.markup import say, to_text
from gradlab.explore.playground import Playground
from gradlab.explore.report.page import page
from gradlab.explore.saved_page import saved_page
from gradlab.notebook.bundle import script, styles
from gradlab.notebook.live_view import LiveView, as_twin

SHEETS = "kit/kit.css", "playground/playground.css"


class PlaygroundWidget(LiveView):
    """A live view of a function, made by `Playground.widget()`."""

    _esm = script("playground/view.js")
    _css = styles(*SHEETS)

    about = traitlets.Dict().tag(sync=True)  # the inputs and their ranges; never changes
    token = traitlets.Unicode().tag(sync=True)  # identifies this widget's views
    timeout = traitlets.Float(10.0).tag(sync=True)  # seconds after which a view says that the kernel does not answer

    def __init__(self, shown: Playground, **traits: Any) -> None:
        self._shown = shown
        self._picture: Any = None  # the display handle of the static view
        super().__init__(about=shown.lab.about(), token=uuid.uuid4().hex, **traits)
        self._listen()

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view. Errors are part of the answer, and shown in the view."""
        message = message if isinstance(message, dict) else {}
        ask = str(message.get("ask"))
        frame: dict[str, Any] = {}
        arrays: list[np.ndarray] = []
        try:
            if ask not in ("keep", "gone"):
                frame = pack_arrays(self._shown.lab.answer(ask, message), arrays)
        except Exception as error:  # noqa: BLE001  (no caller could report it to the user)
            frame = {"error": f"{type(error).__name__}: {error}"}
        except KeyboardInterrupt:
            frame = {"error": "interrupted"}
        finally:
            names = [[str(k), "f8"] for k in range(len(arrays))]
            self.send(
                {**frame, "answer": str(message.get("id", "")), "ask": ask, "arrays": names},
                [array.tobytes() for array in arrays],
            )
        if ask in ("keep", "gone") and self._picture is not None:
            self._picture.update(self._static(), raw=True)

    def _text(self) -> str:
        return f"live view of {self._shown.lab.heading}"

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static view, and the live one as a second output below it."""
        from IPython.display import display

        self._picture = display(self._static(), raw=True, display_id=True)
        self._show()

    def _static(self) -> dict[str, str]:
        return as_twin(self._shown.bundle())


def pack_arrays(data: Any, arrays: list[np.ndarray]) -> Any:
    """Convert data for JSON: arrays become {"array": number}, and non-finite numbers None.

    The arrays are appended to a list as little-endian float64.
    """
    if isinstance(data, dict):
        return {key: pack_arrays(value, arrays) for key, value in data.items()}
    if isinstance(data, np.ndarray):
        arrays.append(np.ascontiguousarray(data, "<f8"))
        return {"array": len(arrays) - 1}
    if isinstance(data, (list, tuple)):
        return [pack_arrays(value, arrays) for value in data]
    return None if isinstance(data, float) and not np.isfinite(data) else data


def page_of(shown: Playground, live: bool) -> str:
    """Return a standalone page: with sliders that work without a kernel, or static."""
    heading = shown.lab.heading
    contains = say(
        "This page contains the function's formula or name, its values on a grid, and the code shown. It loads nothing."
    )
    if not live:
        return page(say("Playground of ", heading), shown.html(), contains)
    body = (
        f'<div id="view"><noscript>{escape(shown.sentence)}</noscript></div><div class="note">{escape(to_text(contains))}</div>'
    )
    css = ".note{opacity:.72;font-size:12px;padding:8px 2px}" + styles(*SHEETS)
    code = script("playground/page.js") + '$playground$page.open("view", "data");\n'
    return saved_page(f"Playground of {heading}", body, css, data={"data": shown.record()}, code=code)

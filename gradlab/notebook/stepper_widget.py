"""The live view of the steps of a sweep: the widget around `explore.steps.StepThrough`.

Python has the steps, and JavaScript (static/stepper) shows them. The view sends messages only for another start: the answer to
{"ask": "start", "numbers": […], "id": …} has all new steps, or an error. The widget holds the graph until it is closed or its
last view is gone; the steps, which are plain data, stay in the notebook. The static form is a separate output above it, hidden by
the style sheet while the live view is right below it.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

import traitlets

from gradlab.explore.steps import StepThrough
from gradlab.notebook.bundle import script, styles
from gradlab.notebook.live_view import LiveView, as_twin


class StepperWidget(LiveView):
    """A live view of the steps, made by `StepThrough.widget()`. `close()` releases the graph."""

    _esm = script("stepper/view.js")
    _css = styles("kit/kit.css", "stepper/stepper.css")

    about = traitlets.Dict().tag(sync=True)  # the steps; see explore/steps/view
    token = traitlets.Unicode().tag(sync=True)  # identifies this widget's views
    ended = traitlets.Bool(False).tag(sync=True)  # the graph was released
    timeout = traitlets.Float(10.0).tag(sync=True)  # seconds after which a view says that the kernel does not answer

    def __init__(self, walk: StepThrough, **traits: Any) -> None:
        self._walk: StepThrough | None = walk
        self._still: Any = None  # the display handle of the static twin
        self._called = walk.called
        super().__init__(about=walk.view(), token=uuid.uuid4().hex, **traits)
        self._listen()

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view. Errors are part of the answer, and shown in the widget."""
        message = message if isinstance(message, dict) else {}
        ask = str(message.get("ask"))
        answer: dict[str, Any] = {}
        try:
            if ask == "gone":
                self._release()
            elif self._walk is None:
                raise RuntimeError("the graph is gone; run the cell again")
            elif ask == "start":
                answer = {"data": self._again(message.get("numbers"))}
            else:
                raise ValueError(f"unknown question {ask!r}")
        except Exception as error:  # noqa: BLE001  (no caller could report it to the user)
            answer = {"error": f"{type(error).__name__}: {error}"}
        except KeyboardInterrupt:
            answer = {"error": "interrupted"}
        finally:
            self.send({"answer": str(message.get("id", "")), "ask": ask, **answer})
        if "data" in answer:
            self._refresh()

    def _again(self, numbers: Any) -> dict[str, Any]:
        assert self._walk is not None
        if not isinstance(numbers, list) or not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in numbers):
            raise TypeError(f"a start must be a list of numbers, got {numbers!r:.80}")
        self._walk = self._walk.again(self._walk.start_of(numbers))
        return self._walk.view()

    def _text(self) -> str:
        return f"live view of backward from {self._called}"

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static form, and the live view as a second output below it."""
        from IPython.display import display

        if self._walk is not None:
            self._still = display(self._static(), raw=True, display_id=True)
        self._show()

    def _static(self) -> dict[str, str]:
        return as_twin(self._walk._repr_mimebundle_()) if self._walk is not None else {}

    def _refresh(self) -> None:
        """Update the static form with the steps from the new start."""
        if self._still is not None and self._walk is not None:
            with contextlib.suppress(Exception):  # an error in drawing must not fail the answer
                self._still.update(self._static(), raw=True)

    def _release(self) -> None:
        if self._walk is not None:
            self._walk.close()
        self._walk = None
        self.ended = True

    def close(self) -> None:
        """Release the graph and remove the live view; the static form stays."""
        self._release()
        super().close()

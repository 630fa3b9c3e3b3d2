"""The live explorer of a graph: the widget around `explore.explorer.Explorer`.

Python has the model and draws; JavaScript (static/explorer) lets one choose, search and colour. The widget's state, which a
notebook may save, is the trace as plain data and its first pictures: with it the view opens. What it asks besides, by messages
as the Jacobian's view does (see static/kit/kernel.js), is a picture with other folds open, and all that is known of one node.

The widget holds the graph until it is closed or its last view is gone. As an output of its own above the live view stands the
static picture, which the style sheet hides while the live view is there; so a saved, exported or reopened notebook has it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import traitlets

from gradlab.explore.explorer import Explorer
from gradlab.notebook.bundle import script, styles
from gradlab.notebook.live_view import LiveView, as_twin


class GraphWidget(LiveView):
    """A live view of a graph, made by `Graph.widget()`, `%graph -i` and `%%grad -i`.

    Parameters
    ----------
    explorer : Explorer
    twin : mapping of str to str, optional
        What is displayed above it, and remains without a kernel, by MIME type. Default: the picture of the graph.

    `close()` lets the graph go and gives the static picture back.
    """

    _esm = script("explorer/view.js")
    _css = styles("kit/kit.css", "stepper/stepper.css", "explorer/explorer.css")

    about = traitlets.Dict().tag(sync=True)  # the trace; never changes
    token = traitlets.Unicode().tag(sync=True)  # tells this widget's views apart from another's
    ended = traitlets.Bool(False).tag(sync=True)  # the graph was let go
    timeout = traitlets.Float(10.0).tag(sync=True)  # seconds after which a view says that the kernel does not answer

    def __init__(self, explorer: Explorer, *, twin: Mapping[str, str] | None = None, **traits: Any) -> None:
        self._explorer = explorer
        self._twin = twin
        self._called = repr(explorer.graph)
        super().__init__(about=explorer.about(), token=uuid.uuid4().hex, **traits)
        self._listen()

    def _heard(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view. An exception is shown in the widget; the view is answered in any case."""
        message = message if isinstance(message, dict) else {}
        ask = str(message.get("ask"))
        frame: dict[str, Any] = {}
        try:
            if ask == "gone":
                self._let_go()
            else:
                frame = self._explorer.answer(ask, message)
        except Exception as error:  # noqa: BLE001  (a callback has nobody above it who could tell the user)
            frame = {"error": f"{type(error).__name__}: {error}"}
        except KeyboardInterrupt:
            frame = {"error": "interrupted"}
        finally:
            self.send({"answer": str(message.get("id", "")), "ask": ask, **frame})

    # ------------------------------------------------------------------------------------------ display and end
    def _said(self) -> str:
        return f"live view of {self._called}"

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static picture, and the live view as a second output below it."""
        from IPython.display import display

        display(self._static(), raw=True)
        self._show()

    def _static(self) -> dict[str, str]:
        return as_twin(self._twin if self._twin is not None else self._explorer.graph.drawing().bundle())

    def _let_go(self) -> None:
        self._explorer.close()  # what was recorded stays, and answers
        self.ended = True

    def close(self) -> None:
        """Let the graph go, and remove the live view: the static picture stays."""
        self._let_go()
        super().close()

"""The live explorer of a graph: the widget around `explore.explorer.Explorer`.

Python has the model and draws; JavaScript (static/explorer) handles selection, search and colours. The widget's state, which a
notebook may save, is the trace as plain data and the first pictures. The view requests, with messages like those of the
Jacobian's view (see static/kit/kernel.js), pictures with other folds open, and the details of a node.

The widget holds the graph until it is closed or its last view is gone. The static picture is a separate output above the live
view, hidden by the style sheet while the live view exists. So a saved, exported or reopened notebook has the picture.
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
        The static output above the view, by MIME type. Default: the picture of the graph.

    `close()` releases the graph and gives the static picture back.
    """

    _esm = script("explorer/view.js")
    _css = styles("kit/kit.css", "stepper/stepper.css", "explorer/explorer.css")

    about = traitlets.Dict().tag(sync=True)  # the trace; never changes
    token = traitlets.Unicode().tag(sync=True)  # identifies this widget's views
    ended = traitlets.Bool(False).tag(sync=True)  # the graph was released
    timeout = traitlets.Float(10.0).tag(sync=True)  # seconds after which a view says that the kernel does not answer

    def __init__(self, explorer: Explorer, *, twin: Mapping[str, str] | None = None, **traits: Any) -> None:
        self._explorer = explorer
        self._twin = twin
        self._called = repr(explorer.graph)
        super().__init__(about=explorer.about(), token=uuid.uuid4().hex, **traits)
        self._listen()

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view. Errors are part of the answer, and shown in the widget."""
        message = message if isinstance(message, dict) else {}
        ask = str(message.get("ask"))
        frame: dict[str, Any] = {}
        try:
            if ask == "gone":
                self._release()
            else:
                frame = self._explorer.answer(ask, message)
        except Exception as error:  # noqa: BLE001  (no caller could report it to the user)
            frame = {"error": f"{type(error).__name__}: {error}"}
        except KeyboardInterrupt:
            frame = {"error": "interrupted"}
        finally:
            self.send({"answer": str(message.get("id", "")), "ask": ask, **frame})

    # ------------------------------------------------------------------------------------------ display and end
    def _text(self) -> str:
        return f"live view of {self._called}"

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static picture, and the live view as a second output below it."""
        from IPython.display import display

        display(self._static(), raw=True)
        self._show()

    def _static(self) -> dict[str, str]:
        return as_twin(self._twin if self._twin is not None else self._explorer.graph.drawing().bundle())

    def _release(self) -> None:
        self._explorer.close()  # the recorded data remains available
        self.ended = True

    def close(self) -> None:
        """Release the graph, and remove the live view: the static picture stays."""
        self._release()
        super().close()

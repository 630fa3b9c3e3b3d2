"""The live view of a Jacobian: the widget around `explore.jacobian.view_model.JacobianViewModel`.

Python computes, JavaScript (static/jacobian) draws and reports clicks. A view sends {"ask": ..., "id": ...}, and the answer is
{"answer": the id, ...}, with numbers as little-endian binary buffers. It requests the next frame only after the last one has
arrived, so a fast slider cannot flood a slow backward. Errors are part of the answer and shown in the view. The widget's state,
which a notebook may save, has only names and shapes.

The widget holds the Jacobian, and with it the graph, until it is closed or its last view is gone. The static
picture of the Jacobian is a separate output above it: complete from the start for a small one, else updated as rows are filled.
The style sheet hides it while the live view is right below it. So a saved,
exported or reopened notebook has the picture.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

import traitlets

from gradlab import clock
from gradlab.explore.jacobian import Jacobian
from gradlab.explore.jacobian.view_model import JacobianViewModel
from gradlab.notebook.bundle import script, styles
from gradlab.notebook.live_view import LiveView, as_twin

PICTURED = ("step", "go", "fill", "pause")  # the static picture is redrawn after these
QUICK = 0.2  # seconds: a bitmap that takes longer is left out until a pause
LARGE = 1_000_000  # entries: a larger bitmap is drawn after the live view


class JacobianWidget(LiveView):
    """A live view of a Jacobian, made by `Jacobian.widget()`.

    `close()` releases the graph and gives the static picture back.
    """

    _esm = script("jacobian/view.js")
    _css = styles("kit/kit.css", "jacobian/jacobian.css")

    about = traitlets.Dict().tag(sync=True)  # names, shapes, costs, colours, the drawing of the graph; never changes
    token = traitlets.Unicode().tag(sync=True)  # identifies this widget's views
    ended = traitlets.Bool(False).tag(sync=True)  # the graph was released
    timeout = traitlets.Float(10.0).tag(sync=True)  # seconds after which a view says that the kernel does not answer

    def __init__(self, jacobian: Jacobian, *, columns: bool = True, **traits: Any) -> None:
        self._jacobian: Jacobian | None = jacobian
        self._lab: JacobianViewModel | None = JacobianViewModel(jacobian, columns=columns)
        self._picture: Any = None  # the display handle of the static twin
        self._complete = False  # the static twin shows all
        self._drawing_took, self._bitmap_due = 0.0, False  # seconds; whether the static picture lacks its bitmap
        super().__init__(about=self._lab.about(), token=uuid.uuid4().hex, **traits)
        self._listen()

    # ------------------------------------------------------------------------------------------ messages
    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Answer one message of a view. Errors are part of the answer, and shown in the widget."""
        message = message if isinstance(message, dict) else {}
        ask = str(message.get("ask"))
        frame: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        try:
            if ask == "gone":
                self._release()
                self.ended = True
            elif self._lab is None:
                raise RuntimeError("the graph is gone; run the cell again")
            elif ask == "colours":
                frame, arrays = self._lab.colours()
            else:
                frame, arrays = self._lab.answer(ask, message, [bytes(buffer) for buffer in buffers or ()])
        except Exception as error:  # noqa: BLE001  (no caller could report it to the user)
            frame = {"error": f"{type(error).__name__}: {error}"}
        except KeyboardInterrupt:
            frame = {"error": "interrupted"}
        finally:
            self.send(
                {
                    "answer": str(message.get("id", "")),
                    "ask": ask,
                    **frame,
                    "arrays": [[name, array.dtype.str.lstrip("<|=")] for name, array in arrays.items()],
                },
                [array.tobytes() for array in arrays.values()],
            )
        whole = bool(frame.get("done")) or ask in ("hello", "pause")
        if self._bitmap_due if ask == "hello" else ask in PICTURED and (whole or not message.get("swift")):
            self._refresh_picture(whole)

    # ------------------------------------------------------------------------------------------ display and end
    def _text(self) -> str:
        jacobian = self._jacobian
        return f"live view of the {jacobian.word} of {jacobian.heading()}" if jacobian is not None else "closed live view"

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static picture, and the live view as a second output below it."""
        from IPython.display import display

        if self._jacobian is not None:
            self._compute_picture()
            rows, columns = self._jacobian.shape
            self._bitmap_due = rows * columns > LARGE
            self._picture = display(self._static(quick=self._bitmap_due), raw=True, display_id=True)
        self._show()

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self._compute_picture()
        return super()._repr_mimebundle_(**options)

    def _compute_picture(self) -> None:
        """Compute the entries for the static picture of a small Jacobian."""
        if self._lab is not None:
            with contextlib.suppress(Exception):  # the error appears when the user asks for the values
                self._complete = self._lab.complete_picture()

    def _static(self, quick: bool = False) -> dict[str, str]:
        """Return the bundle of the known entries as this widget's twin, without the bitmap if `quick`. Computes nothing."""
        if self._lab is None:
            return {}
        drawing = self._lab.drawing()
        return as_twin({"text/html": drawing.html(), "text/plain": drawing.text} if quick else drawing.bundle())

    def _refresh_picture(self, whole: bool = True) -> None:
        """Redraw the static picture: whole, or without the bitmap if that is slow."""
        if self._picture is None or self._jacobian is None or self._complete:
            return
        start, quick = clock.now(), not whole and self._drawing_took > QUICK
        self._picture.update(self._static(quick), raw=True)
        self._bitmap_due = quick
        if not quick:
            self._drawing_took = clock.now() - start

    def _release(self) -> None:
        if self._jacobian is not None:
            with contextlib.suppress(Exception):  # a picture that cannot be drawn must not keep the graph
                self._refresh_picture()
        self._jacobian = self._lab = self._picture = None

    def close(self) -> None:
        """Release the graph, bring the static picture up to date, and remove the live view."""
        self._release()
        super().close()

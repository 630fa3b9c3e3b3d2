"""The live view of a Jacobian: step through its rows, or mix them with sliders.

Python computes, JavaScript (static/jacobian.js) draws and reports what was clicked. A view asks by a message, {"ask":
..., "id": ...}, and is answered by traits that change together, the last of which, `answered`, repeats the id. A view
asks for the next frame only when the last has come, so a slow backward can never be flooded by a fast slider.

What travels is bounded: at most 64 × 64 cells, pooled where the matrix is larger, and the first 64 numbers of vᵀJ; all
numbers as little-endian binary, weights as (row, weight) pairs of those that are not zero.

The widget holds the Jacobian, and with it the graph, until it is closed or its last view is gone. Beside itself it
displays the static picture of the Jacobian, as an output of its own above it, kept up to date as rows are filled; the
style sheet hides that picture while the live view stands right below it. So a saved, exported or reopened notebook has
the picture.
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets

from gradlab.explore.heat import NEGATIVE, POSITIVE, ZERO, bins, extremes, matrix_of, pool
from gradlab.explore.jacobian import Jacobian

STATIC = Path(__file__).parent / "static"
CELLS = 64  # drawn along a side
TWIN = "data-gradlab-twin"  # marks the static picture for the style sheet
VIEW = "application/vnd.jupyter.widget-view+json"
VIEW_VERSION = {"version_major": 2, "version_minor": 0}


class JacobianWidget(anywidget.AnyWidget):
    """A live view of a Jacobian, made by `Jacobian.widget()`.

    `close()` lets the graph go and gives the static picture back.
    """

    _esm = STATIC / "jacobian.js"
    _css = STATIC / "jacobian.css"

    about = traitlets.Dict().tag(sync=True)  # names, shapes, where the drawn bins begin, colours; never changes
    token = traitlets.Unicode().tag(sync=True)  # tells this widget's views apart from another's
    row = traitlets.Int(-1).tag(sync=True)  # the row filled last; -1: none, or a free mix
    filled = traitlets.Int(0).tag(sync=True)  # how many rows are shown
    cells = traitlets.Bytes().tag(sync=True)  # float64, drawn rows × drawn columns
    shown = traitlets.Bytes().tag(sync=True)  # uint8 per drawn row: whether it has a value
    extent: Any = traitlets.List().tag(sync=True)  # least and greatest finite value shown
    picked = traitlets.Bytes().tag(sync=True)  # int32, the rows whose weight is not zero
    weights = traitlets.Bytes().tag(sync=True)  # float64, their weights
    result = traitlets.Bytes().tag(sync=True)  # float64, the first numbers of vᵀJ; empty: none yet
    strip = traitlets.Bytes().tag(sync=True)  # float64, vᵀJ in drawn columns
    sweeps = traitlets.Int(0).tag(sync=True)  # weighted backwards the last frame took: 1, or 0 if the rows were known
    code = traitlets.Unicode().tag(sync=True)  # the same by hand
    error = traitlets.Unicode().tag(sync=True)  # what went wrong, in words
    ended = traitlets.Bool(False).tag(sync=True)  # the graph was let go
    answered = traitlets.Unicode().tag(sync=True)  # the id of the last message that was dealt with

    def __init__(self, jacobian: Jacobian, **traits: Any) -> None:
        rows, columns = jacobian.shape
        self._jacobian: Jacobian | None = jacobian
        self._columns = columns
        self._row_bins = bins([("", rows)], CELLS)
        self._column_bins = bins(jacobian.blocks, CELLS)
        self._values = np.zeros((len(self._row_bins), len(self._column_bins)))
        self._drawn = np.zeros(len(self._row_bins), np.uint8)
        self._done = np.zeros(rows, bool)
        self._picture: Any = None  # the display handle of the static twin
        stops = np.cumsum([0, *(size for _, size in jacobian.blocks)])
        about = {
            "output": {"name": jacobian.output_name, "shape": list(jacobian.output_shape)},
            "inputs": [
                {"name": name, "shape": list(shape)}
                for name, shape in zip(jacobian.input_names, jacobian.input_shapes, strict=True)
            ],
            "rows": rows,
            "columns": columns,
            "rowBins": self._row_bins.tolist(),
            "columnBins": self._column_bins.tolist(),
            "blocks": [int(np.searchsorted(self._column_bins, stop)) for stop in stops[:-1]]
            if len(stops) <= CELLS
            else [0],
            "colours": [list(NEGATIVE), list(ZERO), list(POSITIVE)],
        }
        super().__init__(
            about=about, token=uuid.uuid4().hex, code=jacobian.by_hand(0) if rows else "", **self._map(), **traits
        )
        self.on_msg(self._heard)

    # ------------------------------------------------------------------------------------------ messages
    def _heard(self, _: Any, message: Any, buffers: Any) -> None:
        """Deal with one message of a view. An exception is shown in the widget; the view is answered in any case."""
        message = message if isinstance(message, dict) else {}
        changes: dict[str, Any] = {}
        try:
            changes = {"error": "", **self._answer(str(message.get("ask")), buffers)}
        except Exception as error:  # noqa: BLE001  (a callback has nobody above it who could tell the user)
            changes = {"error": f"{type(error).__name__}: {error}"}
        except KeyboardInterrupt:
            changes = {"error": "interrupted"}
        finally:
            with self.hold_sync():
                for name, value in changes.items():
                    setattr(self, name, value)
                self.answered = str(message.get("id", ""))
        if message.get("ask") in ("step", "pause") or self._done.all():
            self._refresh_picture()

    def _answer(self, ask: str, buffers: Any) -> dict[str, Any]:
        if ask == "gone":
            self._let_go()
            return {"ended": True}
        if ask in ("here", "pause"):
            return {}
        if self._jacobian is None:
            raise RuntimeError("the graph is gone; run the cell again")
        if ask in ("step", "play"):
            return self._step()
        if ask == "reset":
            self._done[:], self._drawn[:], self._values[:] = False, 0, 0.0
            return {
                "row": -1,
                "filled": 0,
                **self._map(),
                **self._mix([], [], None),
                "sweeps": 0,
                "code": self._jacobian.by_hand(0),
            }
        if ask == "mix":
            return self._free(*(bytes(buffer) for buffer in buffers))
        raise ValueError(f"this widget does not know the request {ask!r}")

    def _step(self) -> dict[str, Any]:
        """Fill the first row that is not shown yet."""
        if self._done.all():
            return {}
        jacobian, i = self._jacobian, int(np.argmin(self._done))
        assert jacobian is not None
        before = jacobian.rows_known
        row = jacobian.row(i)
        self._done[i] = True
        bin_ = int(np.searchsorted(self._row_bins, i, side="right")) - 1
        pooled = self._pooled(row)
        old = self._values[bin_] if self._drawn[bin_] else np.zeros_like(pooled)
        self._values[bin_] = np.where(np.isnan(old) | (np.abs(old) > np.abs(pooled)), old, pooled)
        self._drawn[bin_] = 1
        low, high, _ = extremes(matrix_of(row))
        if self._done.sum() > 1:
            low, high = min(low, self.extent[0]), max(high, self.extent[1])
        return {
            "row": i,
            "filled": int(self._done.sum()),
            **self._map([low, high]),
            **self._mix([i], [1.0], row),
            "sweeps": jacobian.rows_known - before,
            "code": jacobian.by_hand(i),
        }

    def _free(self, picked: bytes, weights: bytes) -> dict[str, Any]:
        """vᵀJ for the weights that the sliders say."""
        jacobian = self._jacobian
        assert jacobian is not None
        rows, values = np.frombuffer(picked, "<i4"), np.frombuffer(weights, "<f8")
        if rows.shape != values.shape or (rows.size and not 0 <= rows.min() <= rows.max() < len(jacobian)):
            raise ValueError(f"weights for rows {rows.tolist()} do not fit a Jacobian with {len(jacobian)} rows")
        v = np.zeros(len(jacobian))
        v[rows] = values
        sweeps = int(jacobian.rows_known < len(jacobian))
        return {"row": -1, **self._mix(rows, values, jacobian.vjp(v)), "sweeps": sweeps, "code": jacobian.by_hand(v)}

    # ------------------------------------------------------------------------------------------ traits
    def _pooled(self, row: np.ndarray) -> np.ndarray:
        return pool(matrix_of(row), np.arange(1), self._column_bins)[0][0]

    def _map(self, extent: list[float] | None = None) -> dict[str, Any]:
        return {
            "cells": self._values.astype("<f8").tobytes(),
            "shown": self._drawn.tobytes(),
            "extent": extent or [0.0, 0.0],
        }

    def _mix(self, picked: Any, weights: Any, result: np.ndarray | None) -> dict[str, bytes]:
        return {
            "picked": np.asarray(picked, "<i4").tobytes(),
            "weights": np.asarray(weights, "<f8").tobytes(),
            "result": b"" if result is None else result[:CELLS].astype("<f8").tobytes(),
            "strip": b"" if result is None else self._pooled(result).astype("<f8").tobytes(),
        }

    # ------------------------------------------------------------------------------------------ display and end
    def _repr_mimebundle_(self, **_: Any) -> Any:
        return self._live()

    def _live(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The bundle of the live view, with a text where it cannot be shown."""
        text = {"text/plain": f"live view of {self._jacobian!r}" if self._jacobian is not None else "closed live view"}
        if self.comm is None:
            return text, {}
        inherited = getattr(super(), "_repr_mimebundle_", None)   # ipywidgets 7 has none
        bundle = inherited() if inherited is not None else {VIEW: {**VIEW_VERSION, "model_id": self.model_id}}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, **text}, metadata

    def _ipython_display_(self, **_: Any) -> None:
        """Display the static picture, and the live view as a second output below it."""
        from IPython.display import display

        if self._jacobian is not None:
            self._picture = display(self._static(), raw=True, display_id=True)
        data, metadata = self._live()
        display(data, metadata=metadata, raw=True)

    def _static(self) -> dict[str, str]:
        """The bundle of the rows known, marked as this widget's twin. It computes nothing."""
        assert self._jacobian is not None
        data = dict(self._jacobian.drawing(compute=False)._repr_mimebundle_())
        data["text/html"] = f"<div {TWIN}>{data['text/html']}</div>"
        return data

    def _refresh_picture(self) -> None:
        if self._picture is not None and self._jacobian is not None:
            self._picture.update(self._static(), raw=True)

    def _let_go(self) -> None:
        if self._jacobian is not None:
            with contextlib.suppress(Exception):  # a picture that cannot be drawn must not keep the graph
                self._refresh_picture()
        self._jacobian = self._picture = None

    def close(self) -> None:
        """Let the graph go, bring the static picture up to date, and remove the live view."""
        self._let_go()
        super().close()

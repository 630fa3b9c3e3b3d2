"""The result of `playground`: a live view, and a static picture for notebooks, pages and matplotlib."""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.explore.drawing import PICTURES, Drawing, Pictured
from gradlab.explore.markup import NO_MATH, Span, escape_html, style, to_html, to_text
from gradlab.explore.playground.painting import Painter, plot
from gradlab.explore.playground.view_model import PlaygroundViewModel
from gradlab.explore.views import open_view

WIDTH = 500  # maximal width of a static picture in pixels
FRAMES = 161, 441  # of a saved page with one and with two inputs
WAIT = 1.0  # seconds to compute a static picture
BAR = "border-left:2px solid #8886;padding-left:10px;margin:8px 0"
HEADS = "input", "gradient", "by differences", ""


class Playground(Pictured):
    """A function with a point, its gradient there, and a path of descent. Returned by `gradlab.playground`.

    In a notebook with widgets it is displayed as a live view, with a static picture that is saved with the notebook.

    Attributes
    ----------
    value : float
        f at the point; NaN if f raises.
    gradient : ndarray or None
        The gradient there, one number for each input; None if none was recorded.
    point : ndarray
    path : ndarray
        The points of the descent, shape (steps + 1, inputs), the start first.
    """

    def __init__(self, lab: PlaygroundViewModel) -> None:
        self._lab = lab
        self._widget: Any = None

    # ------------------------------------------------------------------------------------------ numbers
    @property
    def point(self) -> np.ndarray:
        """The current point, one number for each input."""
        return self._lab.point.copy()

    @property
    def value(self) -> float:
        """The value of f at the point; NaN if f raises."""
        try:
            return self._lab.function.value(self._lab.point)
        except Exception:  # noqa: BLE001  (f is the user's; the sentence has the error)
            return math.nan

    @property
    def gradient(self) -> np.ndarray | None:
        """The gradient at the point."""
        try:
            return self._lab.function.gradient(self._lab.point)[1]
        except Exception:  # noqa: BLE001
            return None

    @property
    def path(self) -> np.ndarray:
        """The points of the descent, the start first."""
        self._lab.finish(WAIT)
        return np.array(self._lab.path().points)

    @property
    def sentence(self) -> str:
        """The value, the gradient, the check and the path as text."""
        frame = self._frame()
        parts = [
            to_text(Span(*span) for span in frame["head"]),
            frame["checked"],
            frame["holes"],
            _path_text(frame),
        ]
        return "\n".join(part for part in parts if part)

    @property
    def code(self) -> str:
        """Code that computes the gradient, the difference and the descent."""
        frame = self._frame()
        return "\n\n".join([frame["code"], frame["differenceCode"], *([frame["descentCode"]] if frame["steps"] else [])])

    def _frame(self) -> dict[str, Any]:
        """Return the frame with the whole picture."""
        self._lab.finish(WAIT)
        return self._lab.whole_frame(WAIT)

    # ------------------------------------------------------------------------------------------ views
    def __repr__(self) -> str:
        return f"<playground of {self._lab.heading}>"

    def drawing(self) -> Drawing:
        """Return the static picture."""
        frame = self._frame()
        return Painter(frame["picture"], WIDTH).drawing(self.text(frame))

    def text(self, frame: dict[str, Any] | None = None) -> str:
        """Return the static view for a terminal."""
        frame = frame or self._frame()
        rows = [list(HEADS), *frame["rows"]]
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEADS))]
        table = [
            "  ".join(
                cell.ljust(w) if k in (0, 3) else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        head = to_text(Span(*span) for span in frame["head"])
        parts = [
            head,
            "\n".join(table) if frame["rows"] else "",
            frame["checked"],
            frame["holes"],
            _path_text(frame),
            frame["code"],
        ]
        return "\n\n".join(part for part in parts if part)

    def html(self) -> str:
        """Return the static view: a sentence, the picture, the table of the check, the code."""
        frame = self._frame()
        picture = Painter(frame["picture"], WIDTH).drawing("")
        head = to_html(Span(*span) for span in frame["head"])
        cells = "padding:2px 14px 2px 0;text-align:left;border:0"
        right = "padding:2px 14px 2px 0;text-align:right;border:0;font-variant-numeric:tabular-nums"
        kinds = "plain", "gradient", "plain", "dim"
        titles = "".join(
            f'<th scope="col" style="{right if k in (1, 2) else cells};font-weight:400;{style("dim")}">{escape_html(t)}</th>'
            for k, t in enumerate(HEADS)
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="{right if k in (1, 2) else cells};{style(kinds[k])}">{escape_html(cell)}</td>'
                for k, cell in enumerate(row)
            )
            + "</tr>"
            for row in frame["rows"]
        )
        small = "font-size:12px;margin:6px 0;max-width:62ch"
        said = "".join(
            f'<p style="{small};{style("dim")}">{escape_html(text)}</p>' for text in (frame["checked"], frame["holes"]) if text
        )
        course = f'<p style="{small}">{escape_html(_path_text(frame))}</p>' if _path_text(frame) else ""
        codes = [frame["code"], *([frame["descentCode"]] if frame["steps"] else [])]
        box = f"{style('code')};display:block;white-space:pre;overflow-x:auto;font-size:12px;{BAR}"
        code = "".join(f'<code style="{box}">{escape_html(text)}</code>' for text in codes)
        table = (
            f'<table style="border-collapse:collapse;margin:4px 0;font-size:13px">{f"<tr>{titles}</tr>{rows}"}</table>'
            if rows
            else ""
        )
        return (
            f'<div {NO_MATH} style="font-size:13px;line-height:1.5"><div style="padding:4px 0 8px">{head}</div>'
            '<div style="display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start">'
            f'<div style="min-width:0;max-width:100%">{picture.html()}</div>'
            f'<div style="flex:1;min-width:280px;max-width:100%">{table}{said}{course}{code}</div></div></div>'
        )

    def bundle(self) -> dict[str, str]:
        """Return the output for a notebook, by MIME type."""
        drawing = self.drawing()
        data = {"text/html": self.html(), "text/plain": drawing.text}
        if (picture := drawing.bitmap(100_000)) is not None:
            data["image/png"] = base64.b64encode(picture).decode()
        return data

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()

    def _ipython_display_(self) -> None:
        """Display the live view if the notebook has widgets, else the static view."""
        open_view("shown playground", self)

    def widget(self) -> Any:
        """Return the live view. Each call returns the same one."""
        if self._widget is None:
            self._widget = open_view("playground", self)
        return self._widget

    @property
    def lab(self) -> PlaygroundViewModel:
        """The model of the views."""
        return self._lab

    def plot(self, ax: Any = None) -> Any:
        """Draw the picture on matplotlib axes, `ax` or new ones, and return them."""
        frame = self._frame()
        return plot(frame["picture"], to_text(Span(*span) for span in frame["head"]).partition(" · ")[0], ax)

    def save(self, path: str | Path) -> Path:
        """Save a page (.html) whose sliders work without a kernel, or a picture (.svg, .png, .pdf).

        For one or two inputs, a page has the function at some hundred positions of its sliders, and the path from the current
        point; for more inputs, it is the static view. It states its contents and makes no network requests.

        Raises
        ------
        ValueError
            If the path has another suffix.
        RuntimeError
            If the package that makes a .png (resvg_py) or a .pdf (typst) is not installed.
        """
        path = Path(path)
        if path.suffix == ".html":
            few = len(self._lab.inputs) <= 2
            path.write_text(open_view("playground page", self, live=few), encoding="utf-8")
        elif path.suffix in PICTURES:
            self.drawing().save(path)
        else:
            raise ValueError(f"save({str(path)!r}): the suffix must be .html, .svg, .png or .pdf.")
        return path

    def record(self) -> Any:
        """Return the plain data of a page without a kernel."""
        self._lab.finish(WAIT)
        places, frames, rest = self._lab.records(FRAMES[len(self._lab.inputs) - 1])
        return plain({"about": {**self._lab.about(), "recorded": True}, "places": places, "frames": frames, **rest})


def plain(data: Any) -> Any:
    """Convert arrays to lists, and numbers that are not finite to None, with as many digits as a picture needs."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, np.ndarray):
        return [plain(value) for value in data.tolist()]
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    if isinstance(data, (bool, int, str)) or data is None:
        return data
    return float(f"{data:.7g}") if math.isfinite(data) else None


def _path_text(frame: dict[str, Any]) -> str:
    """Return the sentences on the path, if there is one or it ended."""
    return str(frame["course"]) if frame["steps"] or frame["ended"] else ""

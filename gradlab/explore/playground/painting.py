"""Draw marks: as SVG for static pictures and live views, and on matplotlib axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradlab.explore.axes import SIZE, Axes, ticks
from gradlab.explore.drawing import DIM, EDGE, GRADIENT, INK, PAPER, VALUE, Drawing, clean, escape, text_width, tidy
from gradlab.explore.playground.marks import Mark, Picture
from gradlab.explore.theme import hex_of

COLOURS = {"forward": VALUE, "backward": GRADIENT, "contour": VALUE}
CUT = "line", "band", "boxes"  # kinds of marks that are clipped at the frame
HALO = f'font-size="{SIZE}" stroke="{PAPER}" stroke-width="4" paint-order="stroke"'


class Painter:
    """A picture as SVG in two groups: the "ground", which stays while the point moves, and the "front".

    Parameters
    ----------
    picture : dict
    width : float
        The maximal width in pixels.
    """

    def __init__(self, picture: Picture, width: float) -> None:
        self._picture = picture
        x: tuple[float, float] = tuple(picture["x"]["range"])
        y: tuple[float, float] = tuple(picture["y"]["range"])
        room = min(max(round(0.66 * width), 220), 430)
        self._y_ticks = ticks(*y, max(2, (room - 40) // 44))
        left = math.ceil(max((text_width(t.text, SIZE) for t in self._y_ticks), default=0.0)) + 10.0
        top, below = 20.0, 35.0
        w, h = max(20.0, width - left - 12), max(20.0, room - top - below)
        if picture["equal"]:
            unit = min(w / (x[1] - x[0]), h / (y[1] - y[0]))
            w, h = unit * (x[1] - x[0]), unit * (y[1] - y[0])
        self._axes = Axes((left, top, w, h), x, y)
        self._width, self._height = left + w + 12, top + h + below

    def drawing(self, text: str) -> Drawing:
        """Return the whole picture."""
        return Drawing(f"{self._ground()}\n{self.front()}", self._width, self._height, text, self._picture["said"])

    def ground(self) -> str:
        """Return the ground as an `<svg>` for a view, which adds the front. Its attributes data-frame (left, top, width, height
        in px), data-x and data-y (from, to) describe the axes."""
        drawing = Drawing(self._ground(), self._width, self._height, "", self._picture["said"])
        return drawing.inline(**self._axes.attributes())

    def front(self) -> str:
        """Return the front as a `<g>`."""
        return f'<g class="gl-front">{self._draw(self._picture["front"])}</g>'

    def _ground(self) -> str:
        left, top, w, h = self._axes.frame
        ruled = self._axes.grid_svg(ticks(*self._axes.x, max(2, int(w // 78))), self._y_ticks, self._width)
        names = ((self._picture["x"]["label"], left + w, top + h + 29, "end"), (self._picture["y"]["label"], 2, 11, "start"))
        texts = "".join(self._text(text, x, y, anchor, DIM, ' font-weight="600"') for text, x, y, anchor in names)
        return f'<g class="gl-ground" font-size="{SIZE}">{ruled}{texts}{self._draw(self._picture["ground"])}</g>'

    def _draw(self, marks: Sequence[Mark]) -> str:
        """Draw marks: clipped ones below the others, and texts on top."""
        texts = "".join(self._mark(mark) for mark in marks if mark["kind"] == "text")
        cut = "".join(self._mark(mark) for mark in marks if mark["kind"] in CUT)
        if cut:
            left, top, w, h = map(tidy, self._axes.frame)
            size = f'x="{left}" y="{top}" width="{w}" height="{h}" viewBox="{left} {top} {w} {h}"'
            cut = f'<svg {size} overflow="hidden" fill="none">{cut}</svg>'
        free = "".join(self._mark(mark) for mark in marks if mark["kind"] not in (*CUT, "text"))
        return cut + free + (f"<g {HALO}>{texts}</g>" if texts else "")

    def _text(self, text: str, x: float, y: float, anchor: str, fill: str, more: str = "") -> str:
        """Draw a text that is completely inside the picture."""
        long = text_width(text, SIZE)
        before = {"start": 0.0, "middle": long / 2, "end": long}[anchor]
        x = min(max(x, before + 1), max(before + 1, self._width - 1 - (long - before)))
        return _type(text, x, y, anchor, fill, more)

    def _mark(self, mark: Mark) -> str:
        looks = mark.get("look", "").split()
        colour = next((COLOURS[look] for look in looks if look in COLOURS), DIM)
        left, top, w, h = self._axes.frame
        match mark["kind"]:
            case "line":
                wide = 1.0 if {"contour", "thin"} & set(looks) else 1.1 if "dashes" in looks else 1.9
                more = ' stroke-dasharray="4 3"' if "dashes" in looks else ' opacity="0.75"' if "contour" in looks else ""
                path = self._path(mark["xs"], mark["ys"])
                return f'<path d="{path}" stroke="{colour}" stroke-width="{wide}"{more}/>' if path else ""
            case "points":
                held = "held" in looks
                look = f'class="gl-held" fill="{PAPER}" stroke="{INK}" stroke-width="2"' if held else f'fill="{colour}"'
                places = (
                    (self._axes.across(float(x)), self._axes.down(float(y)))
                    for x, y in zip(mark["xs"], mark["ys"], strict=True)
                    if _finite(x, y)
                )
                return "".join(
                    f'<circle cx="{tidy(x)}" cy="{tidy(y)}" r="{mark["radius"]}" {look}/>'
                    for x, y in places
                    if left - 0.5 <= x <= left + w + 0.5 and top - 0.5 <= y <= top + h + 0.5
                )
            case "band":
                return self._nowhere(
                    [(mark["low"], self._axes.y[0], mark["high"] - mark["low"], self._axes.y[1] - self._axes.y[0])]
                )
            case "boxes":
                return self._nowhere(mark["boxes"])
            case "arrow":
                return self._arrow(mark, colour)
            case "text":
                x, y = self._axes.across(mark["x"]) + mark.get("dx", 0), self._axes.down(mark["y"]) + mark.get("dy", 0)
                y = min(max(y, 10), self._height - 3)
                return self._text(mark["text"], x, y, mark.get("end", "start"), colour)
        raise ValueError(f"unknown kind of mark {mark['kind']!r}")

    def _nowhere(self, boxes: Iterable[Sequence[float]]) -> str:
        """Draw rectangles where f has no finite value, each as x, y, width, height in units of the axes."""
        corners = (
            (self._axes.across(x), self._axes.down(y + high), self._axes.across(x + wide), self._axes.down(y))
            for x, y, wide, high in boxes
        )
        path = "".join(f"M{tidy(a)} {tidy(b)}H{tidy(c)}V{tidy(d)}H{tidy(a)}z" for a, b, c, d in corners)
        return f'<path class="gl-nowhere" d="{path}" fill="{EDGE}" opacity="0.25"/>'

    def _path(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        parts, opened = [], False
        far = 20 * self._height
        for x, y in zip(xs, ys, strict=True):
            if not _finite(x, y):
                opened = False
                continue
            a, b = self._axes.across(float(x)), self._axes.down(float(y))
            parts.append(f"{'L' if opened else 'M'}{tidy(min(max(a, -far), far))} {tidy(min(max(b, -far), far))}")
            opened = True
        return "".join(parts)

    def _arrow(self, mark: Mark, colour: str) -> str:
        (x, y), (u, v) = mark["from"], mark["towards"]
        right, lower = u * (self._axes.across(1) - self._axes.across(0)), v * (self._axes.down(1) - self._axes.down(0))
        size = math.hypot(right, lower)
        if not (0 < size < math.inf):
            return ""
        a, b = right / size, lower / size
        x, y = self._axes.across(x), self._axes.down(y)
        tip, back = (x + a * mark["long"], y + b * mark["long"]), (x + a * (mark["long"] - 9), y + b * (mark["long"] - 9))
        corners = tip, (back[0] - 4 * b, back[1] + 4 * a), (back[0] + 4 * b, back[1] - 4 * a)
        shaft, head = (f"M{'L'.join(f'{tidy(u)} {tidy(v)}' for u, v in places)}" for places in (((x, y), back), corners))
        return f'<path d="{shaft}" stroke="{colour}" stroke-width="2"/><path d="{head}z" fill="{colour}"/>'


def _type(text: str, x: float, y: float, anchor: str, fill: str, more: str = "") -> str:
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    look = f'fill="{fill}"{side}{more}'
    return f'<text x="{tidy(x)}" y="{tidy(y)}" {look}>{escape(text)}</text>'


def _finite(x: Any, y: Any) -> bool:
    return math.isfinite(x) and math.isfinite(y)


def plot(picture: Picture, title: str, ax: Any = None) -> Any:
    """Draw the picture on matplotlib axes."""
    import matplotlib.pyplot as plt
    from matplotlib.patheffects import withStroke

    if ax is None:
        ax = plt.subplots(layout="constrained", figsize=(5.6, 3.8))[1]
    for mark in [*picture["ground"], *picture["front"]]:
        looks = mark.get("look", "").split()
        colour = hex_of(next((COLOURS[look] for look in looks if look in COLOURS), DIM))
        match mark["kind"]:
            case "line":
                wide = 0.9 if {"contour", "thin", "dashes"} & set(looks) else 1.7
                ax.plot(
                    np.asarray(mark["xs"], float),
                    np.asarray(mark["ys"], float),
                    color=colour,
                    lw=wide,
                    ls="--" if "dashes" in looks else "-",
                )
            case "points":
                held = {"mfc": "white", "mec": hex_of(INK), "mew": 1.8, "ms": 8}
                look = held if "held" in looks else {"mfc": colour, "mec": colour, "ms": 4.5}
                ax.plot(np.asarray(mark["xs"], float), np.asarray(mark["ys"], float), "o", zorder=3, **look)
            case "band":
                ax.axvspan(mark["low"], mark["high"], color=hex_of(EDGE), alpha=0.25, lw=0)
            case "boxes":
                for x, y, wide, high in mark["boxes"]:
                    ax.add_patch(plt.Rectangle((x, y), wide, high, color=hex_of(EDGE), alpha=0.25, lw=0))
            case "arrow":
                size = math.hypot(*mark["towards"])
                room = 0.14 * min(picture[way]["range"][1] - picture[way]["range"][0] for way in "xy") / size
                end = [begin + room * by for begin, by in zip(mark["from"], mark["towards"], strict=True)]
                ax.annotate("", end, mark["from"], arrowprops={"color": colour, "width": 1.6, "headwidth": 8, "headlength": 9})
            case "text":
                aligned = {"start": "left", "middle": "center", "end": "right"}[mark.get("end", "start")]
                offset = mark.get("dx", 0) * 0.72, -mark.get("dy", 0) * 0.72
                ax.annotate(
                    clean(mark["text"]),
                    (mark["x"], mark["y"]),
                    offset,
                    textcoords="offset points",
                    ha=aligned,
                    color=colour,
                    fontsize=8,
                    path_effects=[withStroke(linewidth=3, foreground="white")],
                )
    ax.set_xlim(*picture["x"]["range"])
    ax.set_ylim(*picture["y"]["range"])
    ax.set_xlabel(_plain(picture["x"]["label"]))
    ax.set_ylabel(_plain(picture["y"]["label"]))
    ax.set_title(_plain(title), fontsize=10)
    if picture["equal"]:
        ax.set_aspect("equal")
    ax.grid(alpha=0.3)
    return ax


def _plain(text: str) -> str:
    """Escape a text so that matplotlib does not read it as a formula."""
    return clean(text).replace("$", r"\$")

"""Marks drawn as a static picture: what static/kit/plot.js does in a view, in SVG for light and dark and on matplotlib axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradlab.explore.axes import ticks
from gradlab.explore.drawing import DIM, EDGE, GRADIENT, INK, PAPER, VALUE, Drawing, clean, escape, text_width, tidy
from gradlab.explore.playground.marks import Mark, Picture
from gradlab.explore.theme import hex_of

SIZE = 10.5  # px of type
COLOURS = {"gl-forward": VALUE, "gl-backward": GRADIENT, "gl-contour": VALUE}
Frame = tuple[float, float, float, float]  # left, top, width, height


class Painter:
    """One picture on a ground of some width."""

    def __init__(self, picture: Picture, width: float, height: float) -> None:
        self.picture, self.width = picture, width
        self.x: tuple[float, float] = tuple(picture["x"]["range"])
        self.y: tuple[float, float] = tuple(picture["y"]["range"])
        self.y_ticks = ticks(self.y[0], self.y[1], max(2, int((height - 40) // 44)))
        widest = max((text_width(t.text, SIZE) for t in self.y_ticks), default=0.0)
        left, top, below = math.ceil(widest) + 10.0, 20.0, 35.0
        w, h = max(20.0, width - left - 12), max(20.0, height - top - below)
        if picture["equal"]:
            unit = min(w / (self.x[1] - self.x[0]), h / (self.y[1] - self.y[0]))
            w, h = unit * (self.x[1] - self.x[0]), unit * (self.y[1] - self.y[0])
        self.frame: Frame = (left, top, w, h)
        self.width, self.height = left + w + 12, top + h + below

    def across(self, x: float) -> float:
        """px from the left."""
        return self.frame[0] + self.frame[2] * (x - self.x[0]) / (self.x[1] - self.x[0])

    def down(self, y: float) -> float:
        """px from the top."""
        return self.frame[1] + self.frame[3] * (1 - (y - self.y[0]) / (self.y[1] - self.y[0]))

    def body(self) -> str:
        """The SVG."""
        left, top, w, h = self.frame
        parts = []
        for tick in ticks(self.x[0], self.x[1], max(2, int(w // 78))):
            x = self.across(tick.at)
            parts.append(_line(x, top, x, top + h, EDGE, 0.8, opacity=0.35))
            parts.append(self._text(tick.text, x, top + h + 14, "middle", DIM))
        for tick in self.y_ticks:
            y = self.down(tick.at)
            parts.append(_line(left, y, left + w, y, EDGE, 0.8, opacity=0.35))
            parts.append(_type(tick.text, left - 6, y + 3.6, "end", DIM))
        parts.append(self._text(self.picture["x"]["label"], left + w, top + h + 29, "end", DIM, weight=600))
        parts.append(self._text(self.picture["y"]["label"], 2, 11, "start", DIM, weight=600))
        marks = [*self.picture["ground"], *self.picture["front"]]
        cut = [self._drawn(mark) for mark in marks if mark["kind"] in ("line", "band", "boxes")]
        place = f'x="{tidy(left)}" y="{tidy(top)}" width="{tidy(w)}" height="{tidy(h)}"'
        parts.append(
            f'<svg {place} viewBox="{tidy(left)} {tidy(top)} {tidy(w)} {tidy(h)}" overflow="hidden">{"".join(cut)}</svg>'
        )
        parts += [self._drawn(mark) for mark in marks if mark["kind"] not in ("line", "band", "boxes")]
        return "\n".join(part for part in parts if part)

    def _text(self, text: str, x: float, y: float, anchor: str, fill: str, weight: int = 400) -> str:
        """A text that is whole between the left and the right."""
        long = text_width(text, SIZE)
        before = {"start": 0.0, "middle": long / 2, "end": long}[anchor]
        x = min(max(x, before + 1), max(before + 1, self.width - 1 - (long - before)))
        return _type(text, x, y, anchor, fill, weight)

    def _drawn(self, mark: Mark) -> str:
        kinds = mark["class"].split() if "class" in mark else []
        colour = next((COLOURS[kind] for kind in kinds if kind in COLOURS), DIM)
        left, top, w, h = self.frame
        match mark["kind"]:
            case "line":
                wide = 1.0 if "gl-contour" in kinds or "gl-thin" in kinds else 1.1 if "gl-dashes" in kinds else 1.9
                dashes = ' stroke-dasharray="4 3"' if "gl-dashes" in kinds else ""
                path = self._path(mark["xs"], mark["ys"])
                look = f'stroke="{colour}" stroke-width="{wide}" stroke-linejoin="round"{dashes}'
                return f'<path d="{path}" fill="none" {look}{_opacity(0.75 if "gl-contour" in kinds else 1)}/>' if path else ""
            case "points":
                held = "gl-held" in kinds
                look = f'fill="{PAPER}" stroke="{INK}" stroke-width="2"' if held else f'fill="{colour}"'
                radius = mark.get("radius", 3)
                places = [
                    (self.across(float(x)), self.down(float(y)))
                    for x, y in zip(mark["xs"], mark["ys"], strict=True)
                    if _finite(x, y)
                ]
                return "".join(
                    f'<circle cx="{tidy(x)}" cy="{tidy(y)}" r="{radius}" {look}/>'
                    for x, y in places
                    if left - 0.5 <= x <= left + w + 0.5 and top - 0.5 <= y <= top + h + 0.5
                )
            case "band":
                a, b = self.across(mark["low"]), self.across(mark["high"])
                return (
                    f'<rect x="{tidy(a)}" y="{tidy(top)}" width="{tidy(b - a)}" height="{tidy(h)}" fill="{EDGE}" opacity="0.25"/>'
                )
            case "boxes":
                corners = [
                    (self.across(x), self.down(y + high), self.across(x + wide), self.down(y))
                    for x, y, wide, high in mark["boxes"]
                ]
                return "".join(_box(*corner) for corner in corners)
            case "arrow":
                return self._arrow(mark, colour)
            case "text":
                x, y = self.across(mark["x"]) + mark.get("dx", 0), self.down(mark["y"]) + mark.get("dy", 0)
                return self._text(mark["text"], x, min(max(y, 10), self.height - 3), mark.get("end", "start"), colour)
        return ""

    def _path(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        parts, opened = [], False
        far = 20 * self.height
        for x, y in zip(xs, ys, strict=True):
            if not _finite(x, y):
                opened = False
                continue
            a, b = self.across(float(x)), self.down(float(y))
            parts.append(f"{'L' if opened else 'M'}{tidy(min(max(a, -far), far))} {tidy(min(max(b, -far), far))}")
            opened = True
        return "".join(parts)

    def _arrow(self, mark: Mark, colour: str) -> str:
        (x, y), (u, v) = mark["from"], mark["towards"]
        right, lower = u * (self.across(1) - self.across(0)), v * (self.down(1) - self.down(0))
        size = math.hypot(right, lower)
        if not (0 < size < math.inf):
            return ""
        a, b = right / size, lower / size
        x, y = self.across(x), self.down(y)
        tip, back = (x + a * mark["long"], y + b * mark["long"]), (x + a * (mark["long"] - 9), y + b * (mark["long"] - 9))
        corners = tip, (back[0] - 4 * b, back[1] + 4 * a), (back[0] + 4 * b, back[1] - 4 * a)
        head = f"M{'L'.join(f'{tidy(u)} {tidy(v)}' for u, v in corners)}Z"
        return f'{_line(x, y, *back, colour, 2)}<path d="{head}" fill="{colour}"/>'


def painted(picture: Picture, width: float, height: float, text: str, alt: str) -> Drawing:
    """A picture as a drawing, at most so wide and high."""
    painter = Painter(picture, width, height)
    return Drawing(painter.body(), painter.width, painter.height, text, alt)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, wide: float, opacity: float = 1) -> str:
    ends = f'x1="{tidy(x1)}" y1="{tidy(y1)}" x2="{tidy(x2)}" y2="{tidy(y2)}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{wide}"{_opacity(opacity)}/>'


def _box(left: float, top: float, right: float, bottom: float) -> str:
    size = f'width="{tidy(right - left)}" height="{tidy(bottom - top)}"'
    return f'<rect x="{tidy(left)}" y="{tidy(top)}" {size} fill="{EDGE}" opacity="0.25"/>'


def _type(text: str, x: float, y: float, anchor: str, fill: str, weight: int = 400) -> str:
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    look = f'font-size="{SIZE}" text-anchor="{anchor}"{bold} fill="{fill}"'
    return f'<text x="{tidy(x)}" y="{tidy(y)}" {look}>{escape(text)}</text>'


def _opacity(share: float) -> str:
    return "" if share == 1 else f' opacity="{share}"'


def _finite(x: Any, y: Any) -> bool:
    return math.isfinite(x) and math.isfinite(y)


def plot(picture: Picture, title: str, ax: Any = None) -> Any:
    """The picture on matplotlib axes."""
    import matplotlib.pyplot as plt

    if ax is None:
        ax = plt.subplots(layout="constrained", figsize=(5.6, 3.8))[1]
    for mark in [*picture["ground"], *picture["front"]]:
        kinds = mark["class"].split() if "class" in mark else []
        colour = hex_of(next((COLOURS[kind] for kind in kinds if kind in COLOURS), DIM))
        match mark["kind"]:
            case "line":
                wide = 0.9 if {"gl-contour", "gl-thin", "gl-dashes"} & set(kinds) else 1.7
                ax.plot(
                    np.asarray(mark["xs"], float),
                    np.asarray(mark["ys"], float),
                    color=colour,
                    lw=wide,
                    ls="--" if "gl-dashes" in kinds else "-",
                )
            case "points":
                held = "gl-held" in kinds
                look = (
                    {"mfc": "white", "mec": hex_of(INK), "mew": 1.8, "ms": 8}
                    if held
                    else {"mfc": colour, "mec": colour, "ms": 4.5}
                )
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
    """A text that matplotlib takes for no formula."""
    return clean(text).replace("$", r"\$")

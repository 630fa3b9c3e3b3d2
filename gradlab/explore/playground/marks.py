"""The picture as plain data: two axes, and marks in the units of the axes.

A mark is a dict with its "kind": "line" and "points" (`xs`, `ys`), "text", "band", "boxes", "arrow", and its "look". `painting`
draws the marks. The "ground" (a curve, contours) stays while the point moves, the "front" (the point, the tangent or the arrow,
the path) changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.markup import number
from gradlab.explore.playground.contours import Grid, contours, levels_of
from gradlab.explore.playground.curve import Curve, extent
from gradlab.explore.playground.descent import Descent
from gradlab.explore.playground.inputs import Input

ARROW = 54  # px
ROOM = 0.17  # distance between two labels of contours, as a share of the picture
EQUAL = 2.6  # maximal ratio of two ranges that have the same scale
DOTS = 60  # of a path; more are drawn small

Mark = dict[str, Any]
Picture = dict[str, Any]


def spread(ground: Curve | Grid) -> float:
    """Return the length of the range of values in the picture."""
    ys = ground.ys if isinstance(ground, Curve) else ground.values
    low, high = extent(ys[np.isfinite(ys)])
    return high - low


def curve(
    ground: Curve,
    inputs: Sequence[Input],
    k: int,
    point: np.ndarray,
    at: float,
    gradient: np.ndarray | None,
    path: Descent,
    ahead: tuple[float, float] | None,
) -> Picture:
    """Return the front of the curve y = f(x): the tangent at the point, the change along one step, and the path."""
    one, x = inputs[k], float(point[k])
    low, high = ground.extent()
    front: list[Mark] = []
    g = None if gradient is None else float(gradient[k])
    if g is not None and math.isfinite(g) and math.isfinite(at):
        ends = [one.low, one.high]
        front.append({"kind": "line", "xs": ends, "ys": [at + g * (end - x) for end in ends], "look": "backward"})
        if ahead is not None and not path.steps:
            step = ahead[0]
            inside = low < at + g * step < high and low < at < high
            if inside and abs(g * step) > 0.06 * (high - low):
                corner = {"xs": [x, x + step, x + step], "ys": [at, at, at + g * step]}
                front.append({"kind": "line", **corner, "look": "backward dashes"})
                away = 1 if step > 0 else -1
                side = {"end": "start" if step > 0 else "end", "dx": 7 * away}
                front.append(
                    {
                        "kind": "text",
                        "x": x + step,
                        "y": at + g * step / 2,
                        "text": number(g * step),
                        "dy": 4,
                        **side,
                        "look": "backward halo",
                    }
                )
                below = 13 if g * step > 0 else -6
                front.append(
                    {
                        "kind": "text",
                        "x": x + step / 2,
                        "y": at,
                        "text": number(step),
                        "dy": below,
                        "end": "middle",
                        "look": "halo",
                    }
                )
    if path.steps:
        places = [float(p[k]) for p in path.points[: len(path.values)]]  # f may have raised at the last one
        xs, ys = np.array(places), np.array(path.values)
        front.append({"kind": "line", "xs": xs, "ys": ys, "look": "backward thin"})
        front.append({"kind": "points", "xs": xs[1:], "ys": ys[1:], "look": "backward", "radius": _radius(path)})
    if math.isfinite(at):
        seen = min(max(at, low), high)
        front.append({"kind": "points", "xs": [x], "ys": [seen], "look": "held", "radius": 5.5})
    return {
        "x": {"range": [one.low, one.high], "label": one.name},
        "y": {"range": [low, high], "label": "f"},
        "equal": False,
        "front": front,
        "said": _curve_said(one, low, high),
    }


def ground_marks(ground: Curve | Grid, inputs: Sequence[Input], axes: Sequence[int]) -> Picture:
    """Return the part of a picture that stays while the point moves: the marks of the "ground" and the "values", with the "side"
    of the grid for contours, or the "xs" for a curve."""
    if isinstance(ground, Grid):
        a, b = inputs[axes[0]], inputs[axes[1]]
        return {"ground": _contour_marks(ground, a, b), "values": ground.values.reshape(-1), "side": ground.values.shape[1]}
    xs, ys = ground.line()
    bands = [{"kind": "band", "low": a, "high": b} for a, b in _holes(ground)]
    return {"ground": [*bands, {"kind": "line", "xs": xs, "ys": ys, "look": "forward"}], "values": ys, "xs": xs}


def _equal(a: Input, b: Input) -> bool:
    """Return True if two axes have the same scale."""
    return max(a.width, b.width) <= EQUAL * min(a.width, b.width)


def _curve_said(one: Input, low: float, high: float) -> str:
    return (
        f"curve of f for {_range(one)}\nWith the tangent at the point, and the path of descent. The vertical "
        f"axis goes from {number(low)} to {number(high)}."
    )


def _radius(path: Descent) -> float:
    return 3.4 if path.steps <= DOTS else 2.2


def _holes(ground: Curve) -> list[tuple[float, float]]:
    """Return ranges of x, longer than a point, where f has no finite value."""
    bad = ~np.isfinite(ground.ys)
    holes, k = [], 0
    while k < len(bad):
        if bad[k]:
            end = k
            while end + 1 < len(bad) and bad[end + 1]:
                end += 1
            if end > k:
                holes.append((float(ground.xs[k]), float(ground.xs[end])))
            k = end
        k += 1
    return holes


def scales_text(picture: Picture) -> str:
    """Return a note if the arrow may look wrong, else ""."""
    if picture["equal"] or not any(mark["kind"] == "arrow" for mark in picture["front"]):
        return ""
    return "The axes have different scales, so the gradient's arrow need not cross the contours at right angles."


def holes_text(ground: Curve | Grid, raised: Exception | None) -> str:
    """Return a sentence on where f has no finite value in the picture; "" if it is finite everywhere."""
    values = ground.ys if isinstance(ground, Curve) else ground.values
    bad = ~np.isfinite(values)
    if not bad.any():
        return ""
    why = f" (f raised {type(raised).__name__}: {str(raised).partition(chr(10))[0]})" if raised is not None else ""
    if bad.all():
        return f"f has no finite value anywhere in the picture{why}."
    if isinstance(ground, Curve):
        ranges = _holes(ground)
        places = (
            " and ".join(f"from {number(a)} to {number(b)}" for a, b in ranges[:3])
            or f"at {number(float(ground.xs[np.argmax(bad)]))}"
        )
        return f"f has no finite value {places}{' and elsewhere' if len(ranges) > 3 else ''}{why}."
    return f"f has no finite value in the grey part, {bad.mean():.0%} of the picture{why}."


# ------------------------------------------------------------------------------------------------------------ two inputs
def map_(
    inputs: Sequence[Input], axes: tuple[int, int], point: np.ndarray, gradient: np.ndarray | None, path: Descent
) -> Picture:
    """Return the front of the contours of f over two inputs: the gradient as an arrow at the point, and the path."""
    a, b = inputs[axes[0]], inputs[axes[1]]
    here = [float(point[axes[0]]), float(point[axes[1]])]
    front: list[Mark] = []
    if path.steps:
        places = np.array(path.points)[:, list(axes)]
        front.append({"kind": "line", "xs": places[:, 0], "ys": places[:, 1], "look": "backward"})
        front.append({"kind": "points", "xs": places[1:, 0], "ys": places[1:, 1], "look": "backward", "radius": _radius(path)})
    elif gradient is not None:
        towards = [float(gradient[axes[0]]), float(gradient[axes[1]])]
        if all(map(math.isfinite, towards)) and any(towards):
            front.append({"kind": "arrow", "from": here, "towards": towards, "long": ARROW, "look": "backward"})
    front.append({"kind": "points", "xs": here[:1], "ys": here[1:], "look": "held", "radius": 5.5})
    equal = _equal(a, b)
    return {
        "x": {"range": [a.low, a.high], "label": a.name},
        "y": {"range": [b.low, b.high], "label": b.name},
        "equal": equal,
        "front": front,
        "said": f"contours of f over {_range(a)} and {_range(b)}\n"
        "With an arrow along the gradient at the point, or the path of descent.",
    }


def _range(one: Input) -> str:
    return f"{one.name} from {number(one.low)} to {number(one.high)}"


def _contour_marks(ground: Grid, a: Input, b: Input) -> list[Mark]:
    levels = levels_of(ground.values)
    lines = contours(ground.xs, ground.ys, ground.values, levels)
    marks: list[Mark] = []
    labels: list[Mark] = []
    placed: list[tuple[float, float]] = []
    boxes = _empty_boxes(ground)
    if boxes:
        marks.append({"kind": "boxes", "boxes": boxes})
    for level in reversed(levels):
        mine = [((line.xs - a.low) / a.width, (line.ys - b.low) / b.width) for line in lines if line.level == level]
        if not mine:
            continue
        spot, text = _label_place(mine, placed), number(level)
        if spot is not None:
            placed.append(spot)
            labels.append(
                {
                    "kind": "text",
                    "x": a.low + spot[0] * a.width,
                    "y": b.low + spot[1] * b.width,
                    "text": text,
                    "dy": 4,
                    "end": "middle",
                    "look": "forward halo",
                }
            )
        gap = np.array([np.nan])
        xs, ys = (np.concatenate([part for line in mine for part in (line[way], gap)]) for way in (0, 1))
        marks.append({"kind": "line", "xs": a.low + xs * a.width, "ys": b.low + ys * b.width, "look": "contour"})
    return marks + labels


def _label_place(
    lines: Sequence[tuple[np.ndarray, np.ndarray]], placed: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """Return the point on some lines, as shares of the picture, that is farthest from other labels; the lower right without
    any."""
    best, most = None, ROOM
    for xs, ys in lines:
        if max(np.ptp(xs), np.ptp(ys)) < 0.08:
            continue
        for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
            if not (0.05 <= x <= 0.95 and 0.05 <= y <= 0.95):
                continue
            room = min((math.hypot(x - u, y - v) for u, v in placed), default=0.5)
            room = min(room, 0.3) + 0.1 * (x - y)  # with enough room, the lower right is preferred
            if room > most:
                best, most = (x, y), room
    return best


def _empty_boxes(ground: Grid) -> list[list[float]]:
    """Return rectangles around values that are not finite."""
    bad = ~np.isfinite(ground.values)
    if not bad.any():
        return []
    xs, ys = ground.xs, ground.ys
    dx, dy = xs[1] - xs[0], ys[1] - ys[0]
    boxes: list[list[float]] = []
    open_: dict[tuple[int, int], list[float]] = {}  # boxes that include the previous row, by columns
    for row, flags in enumerate(bad):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]]))).tolist()
        top = float(min(ys[row] + dy / 2, ys[-1]))
        reaching = {}
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            box = open_.get((begin, end))
            if box is None:
                left, right = float(max(xs[begin] - dx / 2, xs[0])), float(min(xs[end - 1] + dx / 2, xs[-1]))
                box = [left, float(max(ys[row] - dy / 2, ys[0])), right - left, 0.0]
                boxes.append(box)
            box[3] = top - box[1]
            reaching[begin, end] = box
        open_ = reaching
    return boxes

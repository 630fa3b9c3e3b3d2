"""What a playground shows, and what changes it: the model of its live view and of its pictures, without a front end.

A `PlaygroundViewModel` is asked for something ("move", "step", "rate", …) and answers with a frame: sentences, a table, code, and
a picture: as SVG for views (`answer`, `records`), as plain data (`marks`) elsewhere. It is called from one thread at a time,
whichever that is: a lock sees to it. An answer computes for a fraction of a second; where that was not enough the frame says so
("more", "running") and whoever draws asks again.

The point that the sliders move is also where a path of descent starts, so a path can be dragged by its start.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.explore.axes import round_step
from gradlab.explore.markup import Sentence, number, say
from gradlab.explore.playground import descriptions, marks
from gradlab.explore.playground.code import Code
from gradlab.explore.playground.contours import Grid
from gradlab.explore.playground.curve import Curve
from gradlab.explore.playground.descent import MOST, OPTIMIZERS, Descent, curvature
from gradlab.explore.playground.function import Function
from gradlab.explore.playground.gradient_check import Check, GradientCheck
from gradlab.explore.playground.inputs import Input, snapped
from gradlab.explore.playground.painting import Painter

GROUND = 0.2  # seconds for a curve or a grid in one answer
WALK = 0.15  # for steps
CHECK = 0.15  # for the check of the gradient
RUN = 100  # steps that "run" adds
RATES = 1e-5, 100.0  # that a slider reaches
WIDTH, WIDTHS = 440.0, (160.0, 2000.0)  # px of a view's picture: until a view says its own, and the range of that
GROUNDED = "ground", "values", "side", "xs"  # of a picture: what stays while the point moves


class PlaygroundViewModel:
    """A function being looked at.

    Parameters
    ----------
    function : Function
    inputs : sequence of Input
    code : Code
    heading : str
        How the function is called in a sentence.
    point : ndarray
        Where to begin.
    axes : sequence of int
        Which inputs are the axes of the picture: one for a curve, two for contours.
    optimizer, lr
        By whom, and how fast, the path descends.
    steps : int
        How many steps it has at first.
    """

    def __init__(
        self,
        function: Function,
        inputs: Sequence[Input],
        code: Code,
        heading: str,
        point: np.ndarray,
        axes: Sequence[int],
        optimizer: str,
        lr: float,
        steps: int = 0,
    ) -> None:
        self.function, self.inputs, self.code, self.heading = function, tuple(inputs), code, heading
        self.point, self.axes, self.optimizer, self.lr, self.wanted = point, tuple(axes), optimizer, lr, steps
        self._lock = threading.RLock()
        self._ground: Curve | Grid | None = None
        self._ground_key: tuple[Any, ...] = ()
        self._marks: tuple[tuple[Any, ...], dict[str, Any]] = (), {}  # of a ground, and how fine that is
        self._sent: tuple[Any, ...] = ()  # which of these the view has, and how wide
        self._width = WIDTH  # of the view's picture
        self._descent: Descent | None = None
        self._descent_key: tuple[Any, ...] = ()
        self._check: GradientCheck | None = None
        self._curvature: tuple[bool, np.ndarray | None] = (False, None)

    def about(self) -> dict[str, Any]:
        """What does not change: plain data for JSON."""
        return {
            "heading": self.heading,
            "inputs": [{"name": i.name, "low": i.low, "high": i.high, "step": i.step} for i in self.inputs],
            "optimizers": list(OPTIMIZERS),
            "rates": list(RATES),
            "recorded": False,
        }

    def answer(self, ask: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """The frame after a request, its picture drawn as wide as the message says: the "front" as SVG, and where it is new the
        "ground" with its numbers ("values").

        Raises
        ------
        ValueError
            If there is no such request, or it does not fit the function.
        """
        with self._lock:
            try:
                if isinstance(width := message.get("width"), (int, float)) and width > 0:
                    self._width = min(max(float(width), WIDTHS[0]), WIDTHS[1])
                return self._drawn(self._answered(ask, message))
            except KeyboardInterrupt:  # what was being computed may be half done
                self._ground = self._descent = self._check = None
                self._sent = ()
                raise

    def _drawn(self, frame: dict[str, Any]) -> dict[str, Any]:
        picture = frame["picture"]
        painter = Painter(picture, self._width)
        shown: dict[str, Any] = {"front": painter.front()}
        if (sent := (*self._marks[0], self._width)) != self._sent:
            self._sent = sent
            shown |= {"ground": painter.ground(), **{key: picture[key] for key in GROUNDED[1:] if key in picture}}
        return {**frame, "picture": shown}

    def _answered(self, ask: str, message: Mapping[str, Any]) -> dict[str, Any]:
        if ask not in ("go", "refine"):
            self._check = None
        match ask:
            case "hello":
                self._sent = ()
            case "move":
                self.point = self._asked_point(message.get("point"))
            case "axes":
                self.axes = self._asked_axes(message.get("axes"))
            case "optimizer":
                name = str(message.get("name"))
                if name not in OPTIMIZERS:
                    raise ValueError(f"there is no optimizer {name!r} here: {', '.join(OPTIMIZERS)}")
                self.optimizer = name
            case "rate":
                self.lr = asked_rate(message.get("lr"))
            case "step":
                self.wanted = min(self._path().steps + 1, MOST)
            case "run":
                self.wanted = min(self._path().steps + RUN, MOST)
            case "reset":
                self.wanted = 0
            case "go" | "refine":
                pass
            case _:
                raise ValueError(f"a playground does not know the request {ask!r}")
        return self.frame()

    def _asked_point(self, value: Any) -> np.ndarray:
        numbers = np.asarray(value, float)
        if numbers.shape != (len(self.inputs),) or not np.isfinite(numbers).all():
            raise ValueError(f"a point here has {len(self.inputs)} finite numbers")
        return np.array([min(max(float(n), i.low), i.high) for n, i in zip(numbers, self.inputs, strict=True)])

    def _asked_axes(self, value: Any) -> tuple[int, ...]:
        axes = tuple(int(k) for k in value)
        if len(axes) not in (1, 2) or len(set(axes)) != len(axes) or not all(0 <= k < len(self.inputs) for k in axes):
            raise ValueError("the axes are one input, or two different ones")
        return axes

    # ------------------------------------------------------------------------------------------ what is computed
    def ground(self) -> Curve | Grid:
        """The curve or the grid of values at the point."""
        others = tuple(float(n) for k, n in enumerate(self.point) if k not in self.axes)
        key = (self.axes, others)
        if self._ground is None or key != self._ground_key:
            self._ground_key = key
            if len(self.axes) == 1:
                (k,) = self.axes
                self._ground = Curve(self.function, self.inputs[k], k, self.point)
            else:
                k, j = self.axes
                self._ground = Grid(self.function, (k, self.inputs[k]), (j, self.inputs[j]), self.point)
            self._ground.refine(GROUND)
        return self._ground

    def _path(self) -> Descent:
        """The path from the point, as far as it is."""
        key = (self.optimizer, self.lr, *self.point.tolist())
        if self._descent is None or key != self._descent_key:
            self._descent, self._descent_key = Descent(self.function, self.inputs, self.point, self.optimizer, self.lr), key
        elif self._descent.steps > self.wanted:
            self._descent = Descent(self.function, self.inputs, self.point, self.optimizer, self.lr)
        return self._descent

    def walked(self) -> Descent:
        """The path, as long as it is wanted and the time of an answer allows."""
        path = self._path()
        if path.steps < self.wanted:
            path.run(self.wanted, WALK)
        if path.steps:
            path.look()
        return path

    def _quadratic(self) -> np.ndarray | None:
        if OPTIMIZERS[self.optimizer] != ("SGD", {}):
            return None
        if not self._curvature[0]:
            self._curvature = True, curvature(self.function, self.inputs, self.point)
        return self._curvature[1]

    def finish(self, seconds: float) -> None:
        """Compute on what a picture on its own should have: a finer ground, the whole path."""
        with self._lock:
            ground = self.ground()
            if not ground.finished:
                ground.refine(seconds)
            path = self._path()
            if path.steps < self.wanted:
                path.run(self.wanted, seconds)

    def whole_frame(self, seconds: float | None = None) -> dict[str, Any]:
        """The frame as if a new request asked for it. `seconds`: for the check of the gradient."""
        with self._lock:
            self._check = None
            return self.frame(seconds)

    def _checked(self, seconds: float) -> GradientCheck:
        """The check at the point, as far as it is and the time allows. It begins anew with each request but "go" and "refine"."""
        if self._check is None or not np.array_equal(self._check.point, self.point):
            self._check = GradientCheck(self.function, self.inputs, self.point)
        self._check.refine(seconds)
        return self._check

    def frame(self, seconds: float | None = None) -> dict[str, Any]:
        """All that is shown now. `seconds`: for the check of the gradient."""
        with self._lock:
            ground = self.ground()
            if not ground.finished and self._marks[0] and self._marks[0][0] is ground:
                ground.refine(GROUND)
            inputs, point = self.inputs, self.point
            trouble, at, gradient = "", math.nan, None
            try:
                at, gradient = self.function.gradient(point)
            except Exception as error:  # noqa: BLE001  (f is the user's: what it raises is shown)
                trouble = (
                    f"f raised {type(error).__name__} at {descriptions.place(inputs, point)}: {str(error).partition(chr(10))[0]}"
                )
            spread = marks.spread(ground)
            check = None if trouble else self._checked(CHECK if seconds is None else seconds)
            checks = [] if check is None else check.checks(gradient, spread)
            path = self.walked()
            said = self._headline(at, gradient) if not trouble else say(trouble)
            told = descriptions.path(path, self.optimizer, self.lr, self._quadratic(), gradient)
            key = (ground, self._fineness(ground), self.axes)
            if key != self._marks[0]:
                self._marks = key, marks.grounded(ground, inputs, self.axes)
            picture = self._picture(ground, at, gradient, path) | self._marks[1]
            shown = None if trouble else gradient
            first = next((k for k in self.axes), 0)
            h = next((c.h for c in checks if math.isfinite(c.h)), 1e-5)
            return {
                "head": [list(span) for span in said],
                "trouble": trouble,
                "rows": [] if trouble else self._rows(checks, gradient),
                "checked": descriptions.checked(inputs, checks, gradient, self.function.kind) if not trouble else "",
                "holes": " ".join(filter(None, (marks.holes_text(ground, self.function.raised), marks.scales_text(picture)))),
                "code": self.code.gradient(point, shown)
                if not trouble
                else self.code.gradient(point, np.zeros(len(inputs))).rpartition("\n")[0],
                "differenceCode": self.code.difference(point, first, h),
                "told": told,
                "descentCode": self.code.descent(
                    point, self.optimizer, self.lr, path.steps, path.points[-1] if path.steps else None
                ),
                "picture": picture,
                "point": point.tolist(),
                "texts": [number(float(n), descriptions.EXACT) for n in point],
                "axes": list(self.axes),
                "optimizer": self.optimizer,
                "lr": self.lr,
                "steps": path.steps,
                "ended": path.ended,
                "more": not ground.finished or (check is not None and not check.finished),
                "running": path.steps < self.wanted and not path.ended,
            }

    @staticmethod
    def _fineness(ground: Curve | Grid) -> tuple[int, ...]:
        return (len(ground.xs),) if isinstance(ground, Curve) else ground.values.shape

    def _headline(self, at: float, gradient: np.ndarray | None) -> Sentence:
        return descriptions.headline(self.heading, self.inputs, self.point, at, gradient, self._ahead())

    def _ahead(self) -> tuple[float, float] | None:
        """A step to the right along the only input, and what it adds; None if there are several inputs, or no room."""
        if len(self.inputs) != 1:
            return None
        (one,) = self.inputs
        step = round_step(one.width / 12)
        x = float(self.point[0])
        if x + step > one.high:
            step = -step
        try:
            return step, self.function.value(np.array([x + step])) - self.function.value(self.point)
        except Exception:  # noqa: BLE001  (f is the user's)
            return step, math.nan

    def _rows(self, checks: Sequence[Check], gradient: np.ndarray | None) -> list[list[str]]:
        rows = []
        for k, (one, check_) in enumerate(zip(self.inputs, checks, strict=True)):
            g = "none" if gradient is None else number(float(gradient[k]))
            difference = number(check_.slope) if math.isfinite(check_.slope) and check_.kind != "jump" else "–"
            rows.append([one.name, g, difference, descriptions.verdict(check_)])
        return rows

    def _picture(self, ground: Curve | Grid, at: float, gradient: np.ndarray | None, path: Descent) -> dict[str, Any]:
        if isinstance(ground, Curve):
            return marks.curve(ground, self.inputs, self.axes[0], self.point, at, gradient, path, self._ahead())
        return marks.map_(self.inputs, (self.axes[0], self.axes[1]), self.point, gradient, path)

    # ------------------------------------------------------------------------------------------ for a page without a kernel
    def records(self, most: int) -> tuple[list[list[float]], list[dict[str, Any]], dict[str, Any]]:
        """For a page that has no kernel: the places of each slider, a frame for each combination of them (the last input goes
        fastest), and the frames of the path from the present point by its steps, under "path". At most about `most` frames."""
        with self._lock:
            kept = self.point, self.wanted
            self._sent, self._width = (), WIDTH
            ground = self._drawn(self.frame())["picture"]  # the frames that follow have none
            side = max(2, round(most ** (1 / len(self.inputs))))
            places = [
                sorted({snapped(one, float(x)) for x in np.linspace(one.low, one.high, side)} | {float(self.point[k])})
                for k, one in enumerate(self.inputs)
            ]
            frames = []
            try:
                self.wanted = 0
                for combination in np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, len(places)):
                    self.point = combination
                    frames.append(self._drawn(self.frame()))
                self.point = kept[0]
                path = []
                for k in range(max(kept[1], 30) + 1):
                    self.wanted = k
                    path.append(self._drawn(self.frame()))
                    if path[-1]["steps"] < k or path[-1]["ended"]:
                        break
            finally:
                self.point, self.wanted = kept
                self._sent = ()
            for one in (*frames, *path):
                del one["more"], one["running"]  # which only a kernel can change
            return places, frames, {"still": {key: ground[key] for key in GROUNDED if key in ground}, "path": path}


def asked_rate(value: Any) -> float:
    """A learning rate.

    Raises
    ------
    ValueError
        If it is no positive finite number.
    """
    try:
        rate = float(value)
    except (TypeError, ValueError):
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"a learning rate is a positive number; got {value!r}")
    return rate

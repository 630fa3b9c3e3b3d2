"""The model of a playground's live view and pictures, without a front end.

A `PlaygroundViewModel` answers requests ("move", "step", "rate", …) with a frame: sentences, a table, code, and a picture, as SVG
for views (`answer`, `records`) or as plain data (`marks`). A lock ensures that only one thread at a time uses it. An answer
computes for a fraction of a second. If that is not enough, the frame has "more" or "running" set, and the view sends another
request.

The point that the sliders move is also the start of the path of descent, so a path can be dragged by its start.
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
from gradlab.explore.playground.inputs import Input, snap
from gradlab.explore.playground.painting import Painter

GROUND = 0.2  # seconds for a curve or a grid in one answer
WALK = 0.15  # seconds for steps
CHECK = 0.15  # seconds for the check of the gradient
RUN = 100  # steps that "run" adds
RATES = 1e-5, 100.0  # range of the slider of learning rates
WIDTH, WIDTHS = (
    440.0,
    (160.0, 2000.0),
)  # width of a view's picture in pixels, before the view sends its own, and the allowed range
GROUND_KEYS = "ground", "values", "side", "xs"  # parts of a picture that stay while the point moves


class PlaygroundViewModel:
    """The state of a playground.

    Parameters
    ----------
    function : Function
    inputs : sequence of Input
    code : Code
    heading : str
        The function in a sentence.
    point : ndarray
        The starting point.
    axes : sequence of int
        The inputs that are the axes of the picture: one for a curve, two for contours.
    optimizer, lr
        The optimizer and the learning rate of the path.
    steps : int
        The initial number of steps.
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
        self._marks: tuple[tuple[Any, ...], dict[str, Any]] = (), {}  # of a ground, by its resolution
        self._sent: tuple[Any, ...] = ()  # the key of the marks that the view has, and their width
        self._width = WIDTH  # of the view's picture
        self._descent: Descent | None = None
        self._descent_key: tuple[Any, ...] = ()
        self._check: GradientCheck | None = None
        self._curvature: tuple[bool, np.ndarray | None] = (False, None)

    def about(self) -> dict[str, Any]:
        """Return the constant data of a view, for JSON."""
        return {
            "heading": self.heading,
            "inputs": [{"name": i.name, "low": i.low, "high": i.high, "step": i.step} for i in self.inputs],
            "optimizers": list(OPTIMIZERS),
            "rates": list(RATES),
            "recorded": False,
        }

    def answer(self, ask: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the frame after a request. Its picture has the width of the message: the "front" as SVG and, if it is new, the
        "ground" with its numbers ("values").

        Raises
        ------
        ValueError
            If the request is unknown, or does not fit the function.
        """
        with self._lock:
            try:
                if isinstance(width := message.get("width"), (int, float)) and width > 0:
                    self._width = min(max(float(width), WIDTHS[0]), WIDTHS[1])
                return self._draw(self._answer(ask, message))
            except KeyboardInterrupt:  # unfinished results are discarded
                self._ground = self._descent = self._check = None
                self._sent = ()
                raise

    def _draw(self, frame: dict[str, Any]) -> dict[str, Any]:
        picture = frame["picture"]
        painter = Painter(picture, self._width)
        shown: dict[str, Any] = {"front": painter.front()}
        if (sent := (*self._marks[0], self._width)) != self._sent:
            self._sent = sent
            shown |= {"ground": painter.ground(), **{key: picture[key] for key in GROUND_KEYS[1:] if key in picture}}
        return {**frame, "picture": shown}

    def _answer(self, ask: str, message: Mapping[str, Any]) -> dict[str, Any]:
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
                    raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {name!r}")
                self.optimizer = name
            case "rate":
                self.lr = check_rate(message.get("lr"))
            case "step":
                self.wanted = min(self._path().steps + 1, MOST)
            case "run":
                self.wanted = min(self._path().steps + RUN, MOST)
            case "reset":
                self.wanted = 0
            case "go" | "refine":
                pass
            case _:
                raise ValueError(f"unknown request {ask!r}")
        return self.frame()

    def _asked_point(self, value: Any) -> np.ndarray:
        numbers = np.asarray(value, float)
        if numbers.shape != (len(self.inputs),) or not np.isfinite(numbers).all():
            raise ValueError(f"the point must have {len(self.inputs)} finite numbers")
        return np.array([min(max(float(n), i.low), i.high) for n, i in zip(numbers, self.inputs, strict=True)])

    def _asked_axes(self, value: Any) -> tuple[int, ...]:
        axes = tuple(int(k) for k in value)
        if len(axes) not in (1, 2) or len(set(axes)) != len(axes) or not all(0 <= k < len(self.inputs) for k in axes):
            raise ValueError("the axes must be one input, or two different ones")
        return axes

    # ------------------------------------------------------------------------------------------ computed parts
    def ground(self) -> Curve | Grid:
        """Return the curve or the grid of values at the point."""
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
        """Return the path from the point, as far as it is computed."""
        key = (self.optimizer, self.lr, *self.point.tolist())
        if self._descent is None or key != self._descent_key:
            self._descent, self._descent_key = Descent(self.function, self.inputs, self.point, self.optimizer, self.lr), key
        elif self._descent.steps > self.wanted:
            self._descent = Descent(self.function, self.inputs, self.point, self.optimizer, self.lr)
        return self._descent

    def path(self) -> Descent:
        """Return the path, continued to the requested number of steps while the time of an answer allows."""
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
        """Refine the ground and complete the path, for a static picture."""
        with self._lock:
            ground = self.ground()
            if not ground.finished:
                ground.refine(seconds)
            path = self._path()
            if path.steps < self.wanted:
                path.run(self.wanted, seconds)

    def whole_frame(self, seconds: float | None = None) -> dict[str, Any]:
        """Return the frame with a new check of the gradient, for which `seconds` are allowed."""
        with self._lock:
            self._check = None
            return self.frame(seconds)

    def _refine_check(self, seconds: float) -> GradientCheck:
        """Return the check at the point, refined while the time allows. Each request except "go" and "refine" starts a new
        one."""
        if self._check is None or not np.array_equal(self._check.point, self.point):
            self._check = GradientCheck(self.function, self.inputs, self.point)
        self._check.refine(seconds)
        return self._check

    def frame(self, seconds: float | None = None) -> dict[str, Any]:
        """Return the current frame. `seconds` are allowed for the check of the gradient."""
        with self._lock:
            ground = self.ground()
            if not ground.finished and self._marks[0] and self._marks[0][0] is ground:
                ground.refine(GROUND)
            inputs, point = self.inputs, self.point
            trouble, at, gradient = "", math.nan, None
            try:
                at, gradient = self.function.gradient(point)
            except Exception as error:  # noqa: BLE001  (f is the user's: its error is shown)
                trouble = (
                    f"f raised {type(error).__name__} at {descriptions.place(inputs, point)}: {str(error).partition(chr(10))[0]}"
                )
            spread = marks.spread(ground)
            check = None if trouble else self._refine_check(CHECK if seconds is None else seconds)
            checks = [] if check is None else check.checks(gradient, spread)
            path = self.path()
            said = self._headline(at, gradient) if not trouble else say(trouble)
            course = descriptions.path(path, self.optimizer, self.lr, self._quadratic(), gradient)
            key = (ground, self._fineness(ground), self.axes)
            if key != self._marks[0]:
                self._marks = key, marks.ground_marks(ground, inputs, self.axes)
            picture = self._picture(ground, at, gradient, path) | self._marks[1]
            shown = None if trouble else gradient
            first = next((k for k in self.axes), 0)
            h = next((c.h for c in checks if math.isfinite(c.h)), 1e-5)
            return {
                "head": [list(span) for span in said],
                "trouble": trouble,
                "rows": [] if trouble else self._rows(checks, gradient),
                "checked": descriptions.check_text(inputs, checks, gradient, self.function.kind) if not trouble else "",
                "holes": " ".join(filter(None, (marks.holes_text(ground, self.function.raised), marks.scales_text(picture)))),
                "code": self.code.gradient(point, shown)
                if not trouble
                else self.code.gradient(point, np.zeros(len(inputs))).rpartition("\n")[0],
                "differenceCode": self.code.difference(point, first, h),
                "course": course,
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
                "more": not ground.finished or (check is not None and not check.is_finished),
                "running": path.steps < self.wanted and not path.ended,
            }

    @staticmethod
    def _fineness(ground: Curve | Grid) -> tuple[int, ...]:
        return (len(ground.xs),) if isinstance(ground, Curve) else ground.values.shape

    def _headline(self, at: float, gradient: np.ndarray | None) -> Sentence:
        return descriptions.headline(self.heading, self.inputs, self.point, at, gradient, self._ahead())

    def _ahead(self) -> tuple[float, float] | None:
        """Return a step along the only input and the change of f; None if there are several inputs."""
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
        """Return the data of a page without a kernel: the positions of each slider, a frame for each combination of them (the
        last input changes fastest), and the frames of the path from the current point, under "path". At most about `most`
        frames."""
        with self._lock:
            kept = self.point, self.wanted
            self._sent, self._width = (), WIDTH
            ground = self._draw(self.frame())["picture"]  # the following frames have none
            side = max(2, round(most ** (1 / len(self.inputs))))
            places = [
                sorted({snap(one, float(x)) for x in np.linspace(one.low, one.high, side)} | {float(self.point[k])})
                for k, one in enumerate(self.inputs)
            ]
            frames = []
            try:
                self.wanted = 0
                for combination in np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, len(places)):
                    self.point = combination
                    frames.append(self._draw(self.frame()))
                self.point = kept[0]
                path = []
                for k in range(max(kept[1], 30) + 1):
                    self.wanted = k
                    path.append(self._draw(self.frame()))
                    if path[-1]["steps"] < k or path[-1]["ended"]:
                        break
            finally:
                self.point, self.wanted = kept
                self._sent = ()
            for one in (*frames, *path):
                del one["more"], one["running"]  # only a kernel can change these
            return places, frames, {"still": {key: ground[key] for key in GROUND_KEYS if key in ground}, "path": path}


def check_rate(value: Any) -> float:
    """Return a value as a learning rate.

    Raises
    ------
    ValueError
        If it is not a positive finite number.
    """
    try:
        rate = float(value)
    except (TypeError, ValueError):
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"a learning rate must be a positive number, got {value!r}")
    return rate

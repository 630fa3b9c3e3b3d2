"""Ports: a node's numbers on a pill at its lower edge, where its value leaves and its gradient arrives.

The value, with the user's name for it, is blue on the left; the gradient is orange on the right. Up to five elements are shown as
two aligned rows, value over gradient. A stepped view also shows the rows of small matrices. For larger tensors the pill shows
the shape and the norm of the gradient, with a bar on one log scale for the whole picture. A norm below the scale has no bar.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.drawing import (
    GRADIENT,
    GRADIENT_INK,
    GRADIENT_PANEL,
    LINE,
    PANEL,
    QUIET,
    VALUE,
    VALUE_INK,
    VALUE_PANEL,
    escape,
    text_width,
    tidy,
)
from gradlab.explore.markup import number
from gradlab.explore.trace.values import Value

LETTERS, BOLD = 9.5, 1.12  # the font size in pixels; the width of bold letters relative to regular ones
ELEMENTS = 5  # maximum number of elements that are shown
SIDE = 4  # maximum side of a small matrix
HEIGHT, ROW = 15.0, 13.5  # of a pill, and of a row of numbers
PADDING, GAP = 6.5, 5.0
BASELINE = 10.8  # of a pill's text, from its top
BAR = 2.4
DECADES = 6  # maximum of a scale
ORANGE = '<g class="gl-orange">'  # starts the part with the gradient


@dataclass(frozen=True)
class Scale:
    """A log scale for norms, between two powers of ten."""

    low: float
    high: float

    def part(self, norm: float) -> float:
        """Return the length of a norm's bar, from 0 to 1; 0 below the scale."""
        if not norm >= self.low:
            return 0.0
        return min(1.0, 0.04 + 0.96 * math.log(norm / self.low) / math.log(self.high / self.low))

    def __str__(self) -> str:
        return f"{number(self.low)} to {number(self.high)}"


def scale_of(norms: Iterable[float]) -> Scale | None:
    """Return a common scale of norms; None if there are none. Norms `DECADES` below the largest one are off the scale."""
    positive = [norm for norm in norms if 0 < norm < math.inf]
    if not positive:
        return None
    high = math.ceil(math.log10(max(positive)) - 1e-9)
    low = math.floor(math.log10(min(norm for norm in positive if norm >= max(positive) * 10.0**-DECADES)) + 1e-9)
    return Scale(10.0 ** min(low, high - 2), 10.0**high)


@dataclass(frozen=True)
class PortLabel:
    """Texts at a node's lower edge.

    Attributes
    ----------
    name, shape : str
        The user's name for the result; its shape, if it is shown.
    values, gradients : tuple of str
        The elements, if they are few.
    norm : float or None
        Norm of a gradient with more elements.
    across : int
        Elements in a row; 0 for all.
    """

    name: str = ""
    shape: str = ""
    values: tuple[str, ...] = ()
    gradients: tuple[str, ...] = ()
    norm: float | None = None
    across: int = 0

    def __bool__(self) -> bool:
        return bool(self.name or self.shape or self.values or self.gradients) or self.norm is not None

    @property
    def in_rows(self) -> bool:
        """True for rows of numbers, False for a pill."""
        return max(len(self.values), len(self.gradients)) > 1

    @property
    def blue(self) -> str:
        """Plain text of the left part of a pill, after the name."""
        return self.values[0] if self.values else self.shape

    @property
    def orange(self) -> str:
        """Text of the right part of a pill."""
        return (
            "" if self.norm is None and not self.gradients else self.gradients[0] if self.gradients else short_number(self.norm)
        )

    @property
    def spoken(self) -> tuple[str, ...]:
        """Text for screen readers; missing parts are empty."""
        if self.in_rows:
            gradients = f"gradients {' '.join(self.gradients)}" if self.gradients else ""
            return self.name, f"values {' '.join(self.values)}" if self.values else "", gradients
        return f"{self.name} {self.blue}".strip(), f"gradient {self.orange}" if self.orange else ""

    # ----------------------------------------------------------------------------------------------------------- measures
    @property
    def widths(self) -> tuple[float, float]:
        """Widths of a pill's two parts, 0 if a part is missing; for rows, of the name and of the numbers."""
        name = text_width(self.name, LETTERS) * BOLD
        if self.in_rows:
            head = name + (text_width(self.shape, LETTERS) + GAP * bool(name) if self.shape else 0.0)
            return head + 2 * PADDING - 2 if head else 0.0, sum(self.columns)
        left = name + text_width(self.blue, LETTERS) + (GAP if name and self.blue else 0)
        right = text_width(self.orange, LETTERS)
        return left + 2 * PADDING if left else 0.0, right + 2 * PADDING if right else 0.0

    @property
    def columns(self) -> list[float]:
        """Widths of the columns of rows."""
        rows = [*self._lines(self.values), *self._lines(self.gradients)]
        return [max(text_width(text, LETTERS) for text in column) + 9 for column in zip(*rows, strict=True)]

    def _lines(self, numbers: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Split numbers into rows."""
        across = self.across or len(numbers)
        return [numbers[i : i + across] for i in range(0, len(numbers), across or 1)]

    @property
    def width(self) -> float:
        return sum(self.widths)

    @property
    def height(self) -> float:
        return ROW * (len(self._lines(self.values)) + len(self._lines(self.gradients))) if self.in_rows else HEIGHT

    # ------------------------------------------------------------------------------------------------------------ drawing
    def svg(self, top: float, scale: Scale | None) -> str:
        """Return the SVG elements, centred at x = 0, with the upper side at `top`."""
        return f'<g class="gl-port" font-size="{LETTERS}">{self._rows(top) if self.in_rows else self._pill(top, scale)}</g>'

    def _pill(self, top: float, scale: Scale | None) -> str:
        left, right = self.widths
        start = -(left + right) / 2
        numbers = bool(self.values or self.orange)
        stroke, ink, fill = (VALUE, VALUE_INK, VALUE_PANEL) if self.name or numbers else (LINE, QUIET, PANEL)
        parts = []
        if left:
            parts.append(f'<path d="{_half(start, top, left, round_left=True, round_right=not right)}" {_look(fill, stroke)}/>')
            parts.append(_text(start + left / 2, top + BASELINE, _name_and_text(self.name, self.blue), ink))
        if right:
            at = start + left
            outline = _half(at, top, right, round_left=not left, round_right=True)
            parts.append(f'{ORANGE}<path d="{outline}" {_look(GRADIENT_PANEL, GRADIENT)}/>')
            long = 0.0 if scale is None or self.norm is None else scale.part(self.norm) * (right - 2 * PADDING + 4)
            if long:
                bar = f'x="{tidy(at + PADDING - 2)}" y="{tidy(top + HEIGHT - BAR)}" width="{tidy(long)}" height="{BAR}"'
                parts.append(f'<rect {bar} fill="{GRADIENT}"/>')
            parts.append(_text(at + right / 2, top + BASELINE - 0.7 * bool(long), escape(self.orange), GRADIENT_INK) + "</g>")
        return "".join(parts)

    def _rows(self, top: float) -> str:
        head, wide = self.widths
        start, at = -(head + wide) / 2, top
        parts = []
        looks = (
            ("<g>", self.values, VALUE, VALUE_INK, VALUE_PANEL),
            (ORANGE, self.gradients, GRADIENT, GRADIENT_INK, GRADIENT_PANEL),
        )
        for part, numbers, stroke, ink, fill in looks:
            if not numbers:
                continue
            lines = self._lines(numbers)
            if head and at == top:
                box = f'x="{tidy(start)}" y="{tidy(at)}" width="{tidy(head)}" height="{ROW}" rx="2"'
                parts.append(f"<rect {box} {_look(VALUE_PANEL, VALUE)}/>")
                parts.append(_text(start + head / 2, at + ROW - 3.6, _name_and_text(self.name, self.shape), VALUE_INK))
            box = f'x="{tidy(start + head)}" y="{tidy(at)}" width="{tidy(wide)}" height="{tidy(ROW * len(lines))}" rx="2"'
            parts.append(f"{part}<rect {box} {_look(fill, stroke)}/>")
            for line in lines:
                x = start + head
                for text, column in zip(line, self.columns, strict=True):
                    parts.append(_text(x + column / 2, at + ROW - 3.6, escape(text), ink))
                    x += column
                at += ROW
            parts.append("</g>")
        return "".join(parts)


def port_of(
    value: Value | None, gradient: Value | None, name: str, shape: str, *, always: bool = False, matrices: bool = False
) -> PortLabel:
    """Make the port of a node.

    Parameters
    ----------
    value, gradient : Value or None
    name : str
    shape : str
        Shape of the result.
    always : bool
        Whether to show the shape even if there are no numbers.
    matrices : bool
        Whether to show the numbers of small matrices.
    """
    values, gradients = elements(value, matrices=matrices), elements(gradient, matrices=matrices)
    if values and gradients and len(values) != len(gradients):
        values = ()
    norm = gradient.norm if gradient is not None and not gradients else None
    several = value if values else gradient
    if matrices and several is not None and is_small_matrix(several.shape) and (values or gradients):
        return PortLabel(name, "", values, gradients, across=several.shape[1])
    plain = several is None or sum(size > 1 for size in several.shape) < 2  # a single row of numbers shows the shape
    if (values or gradients) and (plain or len(values or gradients) == 1):
        return PortLabel(name, "", values, gradients)
    return PortLabel(name, shape if always or norm is not None or values or gradients else "", values, gradients, norm)


def is_small_matrix(shape: Sequence[int]) -> bool:
    """Return whether a matrix has at most `SIDE` × `SIDE` elements, so that views can show all of its numbers."""
    return len(shape) == 2 and max(shape) <= SIDE and min(shape) > 0


def elements(value: Value | None, *, matrices: bool = False) -> tuple[str, ...]:
    """Return the elements of a value as texts, if they are few enough for a node."""
    if value is None or value.numbers is None:
        return ()
    if len(value.numbers) > ELEMENTS and not (matrices and is_small_matrix(value.shape)):
        return ()
    digits = 4 if len(value.numbers) == 1 else 3
    return tuple(short_number(x, digits) for x in value.numbers)


def short_number(x: Any, digits: int = 3) -> str:
    """Return a number as a short text: "−0.2749", "1+2j", "True"."""
    if isinstance(x, complex):
        return f"{x:.{digits}g}".strip("()").replace("-", "−")
    if x == 0:
        return str(x) if isinstance(x, bool) else "0"  # no −0
    if isinstance(x, int):
        return str(x).replace("-", "−") if isinstance(x, bool) or abs(x) < 1_000_000 else number(float(x), digits)
    if 10**digits <= abs(x) < 1e6:
        return f"{x:.0f}".replace("-", "−")
    return number(x, digits)


def _name_and_text(name: str, text: str) -> str:
    bold = f'<tspan font-weight="600">{escape(name)}</tspan>' if name else ""
    return bold + ("\N{EN SPACE}" if name and text else "") + escape(text)


def _text(x: float, y: float, inner: str, ink: str) -> str:
    return f'<text x="{tidy(x)}" y="{tidy(y)}" fill="{ink}">{inner}</text>'


def _look(fill: str, stroke: str) -> str:
    return f'fill="{fill}" stroke="{stroke}"'


def _half(x: float, y: float, width: float, *, round_left: bool, round_right: bool) -> str:
    """Return the outline of one part of a pill, with round or straight ends."""
    r, right, bottom = HEIGHT / 2, x + width, y + HEIGHT
    a, b = (r if round_left else 0.0), (r if round_right else 0.0)
    path = f"M{tidy(x + a)} {tidy(y)}H{tidy(right - b)}"
    path += f"A{tidy(r)} {tidy(r)} 0 0 1 {tidy(right - b)} {tidy(bottom)}" if b else f"V{tidy(bottom)}"
    path += f"H{tidy(x + a)}"
    return path + (f"A{tidy(r)} {tidy(r)} 0 0 1 {tidy(x + a)} {tidy(y)}Z" if a else "Z")

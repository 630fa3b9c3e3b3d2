"""The numbers at a node: its port, a pill on the lower edge where its value leaves and its gradient arrives.

Blue at the left is the value with the user's name for it, orange at the right the gradient. Up to five elements stand as two
aligned rows, value over gradient, element under element; a view that steps also has the rows of small matrices. Beyond that there
are the shape and the norm of the gradient, with a bar along the pill's edge on one log scale for the whole picture; a norm below
the scale has none.
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

LETTERS, BOLD = 9.5, 1.12  # the font size in pixels; how much wider bold letters are
ELEMENTS = 5  # up to which the numbers stand there
SIDE = 4  # of a small matrix
HEIGHT, ROW = 15.0, 13.5  # of a pill, and of a row of numbers
PADDING, GAP = 6.5, 5.0
BASELINE = 10.8  # of a pill's text, from its top
BAR = 2.4
DECADES = 6  # of a scale at most
ORANGE = '<g class="gl-orange">'  # the part with the gradient


@dataclass(frozen=True)
class Scale:
    """A log scale of norms, between two powers of ten."""

    low: float
    high: float

    def part(self, norm: float) -> float:
        """How long the bar of a norm is, from 0 to 1; 0 of one below the scale."""
        if not norm >= self.low:
            return 0.0
        return min(1.0, 0.04 + 0.96 * math.log(norm / self.low) / math.log(self.high / self.low))

    def __str__(self) -> str:
        return f"{number(self.low)} to {number(self.high)}"


def scale_of(norms: Iterable[float]) -> Scale | None:
    """The scale on which norms are compared; None where there are none. What is `DECADES` below the largest is off it."""
    positive = [norm for norm in norms if 0 < norm < math.inf]
    if not positive:
        return None
    high = math.ceil(math.log10(max(positive)) - 1e-9)
    low = math.floor(math.log10(min(norm for norm in positive if norm >= max(positive) * 10.0**-DECADES)) + 1e-9)
    return Scale(10.0 ** min(low, high - 2), 10.0**high)


@dataclass(frozen=True)
class PortLabel:
    """What stands at a node's lower edge, in words.

    Attributes
    ----------
    name, shape : str
        The user's name for what leaves there; its shape where that is to be said.
    values, gradients : tuple of str
        The elements, where they are few.
    norm : float or None
        Of a gradient of more elements.
    across : int
        How many elements are in a row; 0: all.
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
        """Whether it is rows of numbers and no pill."""
        return max(len(self.values), len(self.gradients)) > 1

    @property
    def blue(self) -> str:
        """The plain text of a pill's left part, after the name."""
        return self.values[0] if self.values else self.shape

    @property
    def orange(self) -> str:
        """The text of its right part."""
        return "" if self.norm is None and not self.gradients else self.gradients[0] if self.gradients else said(self.norm)

    @property
    def spoken(self) -> tuple[str, ...]:
        """What a screen reader says of it; empty parts of what there is not."""
        if self.in_rows:
            gradients = f"gradients {' '.join(self.gradients)}" if self.gradients else ""
            return self.name, f"values {' '.join(self.values)}" if self.values else "", gradients
        return f"{self.name} {self.blue}".strip(), f"gradient {self.orange}" if self.orange else ""

    # ----------------------------------------------------------------------------------------------------------- measures
    @property
    def widths(self) -> tuple[float, float]:
        """Of a pill's two parts, 0 of a part that is not there; of rows of the name and of the numbers."""
        name = text_width(self.name, LETTERS) * BOLD
        if self.in_rows:
            head = name + (text_width(self.shape, LETTERS) + GAP * bool(name) if self.shape else 0.0)
            return head + 2 * PADDING - 2 if head else 0.0, sum(self.columns)
        left = name + text_width(self.blue, LETTERS) + (GAP if name and self.blue else 0)
        right = text_width(self.orange, LETTERS)
        return left + 2 * PADDING if left else 0.0, right + 2 * PADDING if right else 0.0

    @property
    def columns(self) -> list[float]:
        """How wide the columns of rows are."""
        rows = [*self._lines(self.values), *self._lines(self.gradients)]
        return [max(text_width(text, LETTERS) for text in column) + 9 for column in zip(*rows, strict=True)]

    def _lines(self, numbers: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Numbers row by row."""
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
        """Its elements, about x = 0, from `top` on."""
        return f'<g class="gl-port" font-size="{LETTERS}">{self._rows(top) if self.in_rows else self._pill(top, scale)}</g>'

    def _pill(self, top: float, scale: Scale | None) -> str:
        left, right = self.widths
        start = -(left + right) / 2
        numbers = bool(self.values or self.orange)
        stroke, ink, fill = (VALUE, VALUE_INK, VALUE_PANEL) if self.name or numbers else (LINE, QUIET, PANEL)
        parts = []
        if left:
            parts.append(f'<path d="{_half(start, top, left, round_left=True, round_right=not right)}" {_look(fill, stroke)}/>')
            parts.append(_text(start + left / 2, top + BASELINE, _named(self.name, self.blue), ink))
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
                parts.append(_text(start + head / 2, at + ROW - 3.6, _named(self.name, self.shape), VALUE_INK))
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
    """The port of a node.

    Parameters
    ----------
    value, gradient : Value or None
    name : str
    shape : str
        The shape of what is made.
    always : bool
        Whether the shape is said where there are no numbers besides.
    matrices : bool
        Whether the numbers of small matrices are there, too.
    """
    values, gradients = elements(value, matrices=matrices), elements(gradient, matrices=matrices)
    if values and gradients and len(values) != len(gradients):
        values = ()
    norm = gradient.norm if gradient is not None and not gradients else None
    several = value if values else gradient
    if matrices and several is not None and is_small_matrix(several.shape) and (values or gradients):
        return PortLabel(name, "", values, gradients, across=several.shape[1])
    plain = several is None or sum(size > 1 for size in several.shape) < 2  # one row of numbers says it
    if (values or gradients) and (plain or len(values or gradients) == 1):
        return PortLabel(name, "", values, gradients)
    return PortLabel(name, shape if always or norm is not None or values or gradients else "", values, gradients, norm)


def is_small_matrix(shape: Sequence[int]) -> bool:
    """Whether all numbers of a matrix are shown where small matrices are: of at most `SIDE` × `SIDE`."""
    return len(shape) == 2 and max(shape) <= SIDE and min(shape) > 0


def elements(value: Value | None, *, matrices: bool = False) -> tuple[str, ...]:
    """The numbers of a value, where they are few enough to stand at a node."""
    if value is None or value.numbers is None:
        return ()
    if len(value.numbers) > ELEMENTS and not (matrices and is_small_matrix(value.shape)):
        return ()
    digits = 4 if len(value.numbers) == 1 else 3
    return tuple(said(x, digits) for x in value.numbers)


def said(x: Any, digits: int = 3) -> str:
    """A number, as short as it can be read: "−0.2749", "1+2j", "True"."""
    if isinstance(x, complex):
        return f"{x:.{digits}g}".strip("()").replace("-", "−")
    if x == 0:
        return str(x) if isinstance(x, bool) else "0"  # no −0
    if isinstance(x, int):
        return str(x).replace("-", "−") if isinstance(x, bool) or abs(x) < 1_000_000 else number(float(x), digits)
    if 10**digits <= abs(x) < 1e6:
        return f"{x:.0f}".replace("-", "−")
    return number(x, digits)


def _named(name: str, text: str) -> str:
    bold = f'<tspan font-weight="600">{escape(name)}</tspan>' if name else ""
    return bold + ("\N{EN SPACE}" if name and text else "") + escape(text)


def _text(x: float, y: float, inner: str, ink: str) -> str:
    return f'<text x="{tidy(x)}" y="{tidy(y)}" fill="{ink}">{inner}</text>'


def _look(fill: str, stroke: str) -> str:
    return f'fill="{fill}" stroke="{stroke}"'


def _half(x: float, y: float, width: float, *, round_left: bool, round_right: bool) -> str:
    """The outline of a part of a pill, with round or straight ends."""
    r, right, bottom = HEIGHT / 2, x + width, y + HEIGHT
    a, b = (r if round_left else 0.0), (r if round_right else 0.0)
    path = f"M{tidy(x + a)} {tidy(y)}H{tidy(right - b)}"
    path += f"A{tidy(r)} {tidy(r)} 0 0 1 {tidy(right - b)} {tidy(bottom)}" if b else f"V{tidy(bottom)}"
    path += f"H{tidy(x + a)}"
    return path + (f"A{tidy(r)} {tidy(r)} 0 0 1 {tidy(x + a)} {tidy(y)}Z" if a else "Z")

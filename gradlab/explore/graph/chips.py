"""Chips: small grey pills beside an operation's box, on a short line, for operands that get no gradient.

A constant's chip shows the operand alone, since the node already says `**` or `÷`: "3", or "N = 6" where it was written as a
name. A data input's chip shows its name and its shape. A tensor whose history was cut off has no chip: see `torn_edges`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradlab.explore.drawing import EDGE, LINE, PANEL, escape, text_width, tidy
from gradlab.explore.graph.ports import short_number
from gradlab.explore.labels import shorten
from gradlab.explore.markup import shape_text
from gradlab.explore.trace.data import Operand

LETTERS, HEIGHT, PADDING = 9.5, 15.0, 6.5
PITCH = 17.5  # vertical distance between chips
STUB = 8.0  # length of the line from the box to a chip
LONGEST = 20  # characters
MOST = 3  # per side


@dataclass(frozen=True)
class Chips:
    """The texts of the chips at the left and at the right of a box, top to bottom."""

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    @property
    def room(self) -> tuple[float, float]:
        """Widths needed at the left and at the right of the box."""
        return _room(self.left), _room(self.right)

    @property
    def height(self) -> float:
        return max(len(self.left), len(self.right)) * PITCH + 10.5

    def svg(self, width: float) -> str:
        """Return the SVG of the chips, for a box of this width centred at x = 0 whose upper side is at y = 0."""
        parts = []
        for texts, way in ((self.left, -1), (self.right, 1)):
            for i, text in enumerate(texts):
                wide, near, y = _width(text), way * (width / 2 + STUB), 11 + i * PITCH
                x = near if way > 0 else near - wide
                parts.append(
                    f'<path d="M{tidy(way * width / 2)} {tidy(y + HEIGHT / 2)}H{tidy(near)}" stroke="{EDGE}" fill="none"/>'
                )
                box = f'x="{tidy(x)}" y="{tidy(y)}" width="{tidy(wide)}" height="{HEIGHT}" rx="{HEIGHT / 2}"'
                parts.append(f'<rect {box} fill="{PANEL}" stroke="{LINE}"/>')
                parts.append(f'<text x="{tidy(x + wide / 2)}" y="{tidy(y + 10.8)}">{escape(text)}</text>')
        return f'<g font-size="{LETTERS}">{"".join(parts)}</g>' if parts else ""


def chips_of(operands: Sequence[Operand], *, sided: bool = True) -> Chips:
    """Return the chips of an operation's constants and data inputs: the first argument's at the left if `sided`, others at the
    right."""
    left: list[str] = []
    right: list[str] = []
    for operand in operands:
        text = operand_text(operand)
        if operand.kind != "cut" and text:
            (left if sided and operand.argument == 0 else right).append(text)
    return Chips(_limit_chips(left), _limit_chips(right))


def operand_text(operand: Operand) -> str:
    """Return "3", "N = 6" or "targets 32"; "" if nothing is known."""
    value, text = operand.value, shorten(operand.text, LONGEST)
    numbers = () if value is None or value.numbers is None else value.numbers
    if len(numbers) == 1:
        known = short_number(numbers[0], 4)
        return f"{text} = {known}" if text and not _is_literal(operand.text) else known
    if operand.kind == "constant":
        return text
    shape = (
        ""
        if value is None
        else f"[{', '.join(short_number(x) for x in numbers)}]"
        if 1 < len(numbers) <= 3
        else shape_text(value.shape)
    )
    return f"{text}\N{EN SPACE}{shape}" if text and shape else text or (f"data\N{EN SPACE}{shape}" if shape else "")


def _is_literal(text: str) -> bool:
    try:
        complex(text.replace("_", "").replace(" ", ""))
    except ValueError:
        return text in ("True", "False")
    return True


def _limit_chips(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(texts) if len(texts) <= MOST else (*texts[: MOST - 1], f"and {len(texts) - MOST + 1} more")


def _width(text: str) -> float:
    return text_width(text, LETTERS) + 2 * PADDING


def _room(texts: Sequence[str]) -> float:
    return max((_width(text) for text in texts), default=-STUB) + STUB

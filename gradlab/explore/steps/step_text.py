"""The steps as text: short texts of numbers and sums, and the table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.drawing import clean, wide
from gradlab.explore.graph.ports import is_small_matrix, short_number
from gradlab.explore.labels import shorten
from gradlab.explore.markup import count, shape_text
from gradlab.explore.steps.data import Share, Step
from gradlab.explore.trace.values import Value

FEW, WIDEST = 5, 26  # elements and characters of a vector that is shown as numbers
TERMS = 4  # of a sum
LONGEST = 28  # characters of a name in a table


def short(held: Any) -> str:
    """Return a cotangent as a short text: "−6", "[0, 3, 12]", "5×4, ‖·‖ 3.24"; "–" for None."""
    if held is None:
        return "–"
    if isinstance(held, tuple):
        return "; ".join(map(short, held))
    if isinstance(held, Value):
        return f"{shape_text(held.shape)}, ‖·‖ {short_number(held.norm)}"
    if isinstance(held, np.ndarray):
        if held.size == 1:
            return short_number(held.item(), 4)
        if held.size <= FEW and len(text := _nested_text(held.tolist())) <= WIDEST:
            return text
        return f"{shape_text(held.shape)}, ‖·‖ {short_number(float(np.linalg.norm(held.reshape(-1))))}"
    return short_number(held, 4)


def matrix_text(held: Any) -> str:
    """Return the numbers of a small matrix in aligned columns, a line for each row; for anything else, the result of `short`."""
    if not isinstance(held, np.ndarray) or not is_small_matrix(held.shape):
        return short(held)
    rows = [[short_number(x) for x in row] for row in held.tolist()]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, wide, strict=True)) for row in rows)


def _nested_text(numbers: Any) -> str:
    return f"[{', '.join(map(_nested_text, numbers))}]" if isinstance(numbers, list) else short_number(numbers)


def local_text(local: Any) -> str:
    """Return a local derivative as a short text: "2", "diag [1, 0, 2]", "[1, 1, 1]", "3×4 matrix"; "" if there is none."""
    if local is None:
        return ""
    if not isinstance(local, np.ndarray):
        return short_number(local, 4)
    if local.ndim == 1:
        return f"diagonal of {len(local)}"
    rows, columns = local.shape
    diagonal = np.diagonal(local)
    if rows == columns and rows > 1 and np.array_equal(local, np.diag(diagonal), equal_nan=True):
        if np.all(diagonal == diagonal[0]):
            return f"{short_number(diagonal[0].item())} · I" if diagonal[0] != 1 else "I"
        return f"diag {_nested_text(diagonal.tolist())}" if rows <= FEW else f"diagonal of {rows}"
    if local.size <= FEW:
        return _nested_text(local.reshape(-1).tolist() if 1 in local.shape else local.tolist())
    return f"{rows}×{columns} matrix"


def sum_text(terms: Sequence[Any], total: Any) -> str:
    """Return a sum in the order of its terms, "24 − 6 = 18"; "" for a single term or if a term is not a scalar."""
    if len(terms) < 2 or not all(isinstance(term, (int, float)) for term in (*terms, total)):
        return ""
    left_out = len(terms) - TERMS
    shown = terms if left_out <= 0 else terms[-TERMS:]
    parts = [] if left_out <= 0 else ["…"]
    for term in shown:
        text = short_number(term, 4)
        if not parts:
            parts.append(text)
        else:
            parts.append(f"− {text[1:]}" if text.startswith("−") else f"+ {text}")
    return f"{' '.join(parts)} = {short_number(total, 4)}"


def factor_text(share: Share) -> str:
    """Return the named factor of a matrix product, "@ B.T" or "A.T @", else the local derivative."""
    factor = share["factor"]
    if factor is None or not factor.name:
        return local_text(share["local"])
    return f"{factor.name} {factor.symbol}" if factor.first else f"{factor.symbol} {factor.name}"


def product_text(share: Share, step: Step) -> str:
    """Return "−3·2 = −6" for scalars, "C.grad @ B.T" for small matrices, else the gradient of the input."""
    if share["factor"] is not None and (product := share["factor"].product(f"{step.name}.grad" if step.name else "grad")):
        return product
    local, upstream = share["local"], step.upstream
    if isinstance(local, (int, float)) and isinstance(upstream, (int, float)):
        return f"{short_number(local, 4)}·{parenthesize(short_number(upstream, 4))} = {short(share['downstream'])}"
    return short(share["downstream"])


def parenthesize(text: str) -> str:
    """Put a negative factor into parentheses."""
    return f"({text})" if text.startswith("−") else text


def terms_of(steps: Sequence[Step]) -> list[list[Any]]:
    """Return the terms of each sum of cotangents, in order; see `Step.meets`."""
    sums: list[list[Any]] = []
    for step in steps:
        for share, (place, _) in zip(step.shares, step.meets, strict=True):
            while len(sums) <= place:
                sums.append([])
            sums[place].append(share["downstream"])
    return sums


def title(step: Step) -> str:
    """Return "× (MulBackward0), c"."""
    return f"{step.label} ({step.operation})" + (f", {step.name}" if step.name else "")


def table(walk: Any, most: int) -> str:
    """Return the steps for a terminal. Of more than `most`, the first and the last are shown."""
    total = len(walk.steps)
    if not total:
        headline = f"{walk.called} is a leaf: there is no operation to step through, and its gradient is {short(walk.start)}."
        return "\n".join(map(clean, [headline, *walk.notes]))
    headline = f"backward from {walk.called} in {count(total, 'step')}, starting with gradient={short(walk.start)}:"
    first, last = (walk.steps, []) if total <= most else (walk.steps[: most - most // 3], walk.steps[total - most // 3 :])
    sums = terms_of(walk.steps)
    head = ("step", "line", "operation", "upstream", "goes to", "local", "downstream", "sum so far")
    body = [head, *(row for step in first for row in _rows(step, sums))]
    gap = len(body)
    body += [row for step in last for row in _rows(step, sums)]
    widths = [max(columns(row[i]) for row in body) for i in range(len(head))]
    lines = ["  ".join(_pad(text, width) for text, width in zip(row, widths, strict=True)).rstrip() for row in body]
    if last:
        left_out = total - len(first) - len(last)
        lines.insert(gap, f"… {left_out:,} more of {count(total, 'operation')} in .steps …")
    return "\n".join(map(clean, [headline, *lines, *walk.notes]))


def _rows(step: Step, sums: Sequence[Sequence[Any]]) -> list[tuple[str, ...]]:
    first: tuple[str, ...] = (str(step.number), str(step.line or ""), shorten(title(step), 2 * LONGEST), short(step.upstream))
    if not step.shares:
        return [(*first, "–", "", "", "")]
    rows = []
    for share, (place, term) in zip(step.shares, step.meets, strict=True):
        there = sum_text(sums[place][: term + 1], share["total"]) or short(share["total"])
        name = shorten(share["name"], LONGEST)
        rows.append((*first, name, factor_text(share), short(share["downstream"]), there))
        first = ("", "", "", "")
    return rows


def columns(text: str) -> int:
    """Return the number of terminal columns of a text."""
    return sum(2 if wide(character) else 1 for character in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - columns(text))

"""Find the mask of an attention that hides every key of a row.

The values of a mask are not recorded, so the mask is looked up by its name in the program: in the call of the attention, in the
`masked_fill` or the sum before the softmax, or among the arguments that the cell passed to the function with the softmax.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.explore.doctor.context.code_edits import argument, parse_expression
from gradlab.explore.doctor.context.flow import Flow, first_arguments
from gradlab.explore.libraries import library_of

KEYWORDS = ("key_padding_mask", "attn_mask", "src_key_padding_mask", "src_mask", "tgt_mask", "memory_mask", "mask")
TRUE_IS_SEEN = ("scaled_dot_product_attention",)  # functions in whose masks True marks a visible key
MAX_ROWS = 3  # named in a message


@dataclass(frozen=True)
class HiddenRows:
    """A mask that hides every key in some rows: its name, the value that hides, and the indices of the rows."""

    name: str
    hiding: bool
    rows: tuple[tuple[int, ...], ...]

    @property
    def description(self) -> str:
        """The rows in words: "row 4 of `hide` masks every key"."""
        shown = [str(row[0]) if len(row) == 1 else f"[{', '.join(map(str, row))}]" for row in self.rows[:MAX_ROWS]]
        more = f" and {len(self.rows) - MAX_ROWS} more" if len(self.rows) > MAX_ROWS else ""
        joined = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])}{',' if more else ' and'} {shown[-1]}"
        if len(self.rows) == 1:
            return f"row {joined} of `{self.name}` masks every key"
        return f"rows {joined}{more} of `{self.name}` mask every key"


def find_hidden_rows(flow: Flow, at: int, seen: int) -> HiddenRows | None:
    """Return the mask behind the NaN of an attention, or None if it is not known.

    Parameters
    ----------
    flow : Flow
    at : int
        The softmax, or an operation in the call of the attention.
    seen : int
        The first node with a NaN.
    """
    length = (flow.nodes[at].shape or (0,))[-1] if flow.ops[at] in ("Softmax", "LogSoftmax") else 0
    value = flow.nodes[seen].value
    for name, hiding in _candidates(flow, at):
        array = _mask_values(flow, name)
        if array is None or array.ndim == 0 or (length and array.shape[-1] != length):
            continue
        rows = _find_rows(array, hiding)
        if len(rows) and value is not None and value.nans and value.nans % len(rows) == 0:
            return HiddenRows(name, hiding, rows)
    return None


def _find_rows(array: np.ndarray, hiding: bool) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the rows of a mask that hide every key."""
    if array.ndim < 2 or not array.shape[-1]:
        return ()
    if array.dtype.kind in "iu" and not np.isin(array, (0, 1)).all():
        return ()
    hidden = np.isneginf(array) if array.dtype.kind == "f" else (array != 0) == hiding
    return tuple(tuple(int(k) for k in row) for row in np.argwhere(hidden.all(-1)))


def _candidates(flow: Flow, at: int) -> Iterator[tuple[str, bool]]:
    """Yield the names of tensors that may be the mask, and the value that hides a key."""
    for i in (at, *first_arguments(flow, at)):
        place = flow.nodes[i].place
        tree = parse_expression(place.source) if place is not None else None
        if place is None or tree is None:
            continue
        hiding = True
        parts: list[Any] = []
        if isinstance(tree, ast.Call):
            function = tree.func.attr if isinstance(tree.func, ast.Attribute) else getattr(tree.func, "id", "")
            parts += [keyword.value for keyword in tree.keywords if keyword.arg in KEYWORDS]
            hiding = function not in TRUE_IS_SEEN
            if function in ("masked_fill", "masked_fill_"):
                parts += tree.args[-2:-1]
            elif function == "where":
                parts += tree.args[:1]
                hiding = not _keeps_true(tree)
            elif not parts and len(tree.args) == 4 and i == at:
                parts.append(tree.args[3])  # of nn.MultiheadAttention
        elif isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
            parts += [tree.left, tree.right]
        for part in parts:
            name, inverted = _mask_name(part)
            if name and place.function in ("<module>", ""):
                yield name, hiding ^ inverted
            elif name:
                others = _passed_names(flow, i) or _only_mask(flow, hiding ^ inverted)
                yield from ((other, hiding ^ inverted) for other in others)


def _keeps_true(tree: ast.Call) -> bool:
    """Return whether a call is `where(keep, scores, -inf)`, in which False hides a key."""
    return len(tree.args) == 3 and "inf" not in ast.unparse(tree.args[1]) and "inf" in ast.unparse(tree.args[2])


def _mask_name(node: Any) -> tuple[str, bool]:
    """Return the name in `~mask`, `mask == 0`, `mask[:, None]` or `mask.unsqueeze(1)`, and whether the mask is inverted."""
    inverted = False
    while True:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            node, inverted = node.operand, not inverted
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and ast.unparse(node.comparators[0]) in ("0", "False"):
            node, inverted = node.left, inverted ^ isinstance(node.ops[0], ast.Eq)
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and argument(ast.unparse(node)):
            inverted ^= node.func.attr == "logical_not"
            node = node.func.value
        else:
            return (ast.unparse(node), inverted) if isinstance(node, (ast.Name, ast.Attribute)) else ("", False)


def _passed_names(flow: Flow, i: int) -> list[str]:
    """Return the names that a line outside of functions passes to the function or module of an operation."""
    node = flow.nodes[i]
    outer = [call.place for call in flow.trace.calls if node.module == call.path or node.module.startswith(f"{call.path}.")]
    names: list[str] = []
    for place in dict.fromkeys([node.cell, *outer]):
        tree = parse_expression(place.source) if place is not None and place.function in ("<module>", "") else None
        if isinstance(tree, ast.Call):
            given = [*tree.args, *(keyword.value for keyword in tree.keywords)]
            names += [ast.unparse(one) for one in given if isinstance(one, (ast.Name, ast.Attribute))]
    return list(dict.fromkeys(names))


def _only_mask(flow: Flow, hiding: bool) -> list[str]:
    """Return the mask in the namespace that hides every key of a row, if there is exactly one."""
    spaces = flow.case.namespace.items()
    tensors = [name for name, value in spaces if not name.startswith("_") and library_of(value) is not None]
    arrays = [(name, array) for name in tensors if (array := _mask_values(flow, name)) is not None and array.dtype == bool]
    found = [name for name, array in arrays if _find_rows(array, hiding)]
    return found if len(found) == 1 else []


def _mask_values(flow: Flow, name: str) -> np.ndarray | None:
    """Return the values of the tensor that a name of the program refers to."""
    first, *rest = name.split(".")
    value = flow.case.namespace.get(first)
    for step in rest:
        attributes = getattr(value, "__dict__", None)
        value = attributes.get(step) if isinstance(attributes, dict) else None
    if library_of(value) is None:
        return None
    array: np.ndarray | None = None
    with suppress(Exception):
        array = np.asarray(value.detach().cpu().numpy())  # type: ignore[union-attr]
    return array

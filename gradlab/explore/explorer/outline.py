"""The rows of a trace as two trees of folds: by the user's lines, and by modules. A view opens and closes them without the
kernel.

A row is [kind, label, small, line, where, members, rows]: its kind ("line", "module", "stack", "function"), its label and
additional text, the number of its line and its name elsewhere, the nodes that it represents as ranges (`columns.ranges`), and the
rows in it. A row without rows opens to its nodes, which have no rows themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gradlab.explore.explorer.columns import members_of, ranges
from gradlab.explore.graph.rows import first_line
from gradlab.explore.graph.spans import WHOLE_LAYERS, alike_stacks, is_move, paths_of
from gradlab.explore.markup import count
from gradlab.explore.module_paths import last_step
from gradlab.explore.trace.data import Line, Trace

Row = list[Any]


def code_outline(trace: Trace) -> list[Row]:
    """Return a row for each line of the user in the cell, which contains a row for each line of the functions that it called."""
    return _code(trace, inner=False)


def _code(trace: Trace, *, inner: bool) -> list[Row]:
    nodes = trace.nodes
    by_line: dict[tuple[str, int, str], list[int]] = {}
    lines: dict[tuple[str, int, str], Line] = {}
    waiting: list[int] = []  # operations without a line belong to the line before them
    last: tuple[str, int, str] | None = None
    for i, node in enumerate(nodes):
        if node.kind not in ("operation", "folded"):
            continue
        place = (node.place or node.cell) if inner else (node.cell or node.place)
        if place is None:
            if last is None:
                waiting.append(i)
            else:
                by_line[last].append(i)
            continue
        last = _key(trace, place)
        by_line.setdefault(last, []).extend([*waiting, i])
        lines.setdefault(last, place)
        waiting = []
    one_place = len({(key[0], lines[key].function) for key in by_line}) == 1
    keys = sorted(by_line, key=(lambda key: (key[1], by_line[key][0])) if one_place else (lambda key: by_line[key][0]))
    return [_line_row(trace, lines[key], key[1], by_line[key], split=not inner) for key in keys]


def _key(trace: Trace, place: Line) -> tuple[str, int, str]:
    return place.where.partition(" line ")[0], first_line(trace, place), place.statement


def _line_row(trace: Trace, line: Line, first: int, members: Sequence[int], *, split: bool) -> Row:
    inner: dict[tuple[str, int, str], list[int]] = {}
    lines: dict[tuple[str, int, str], Line] = {}
    here: tuple[str, int, str] | None = None
    if split:
        for i in members:
            place = trace.nodes[i].place
            here = _key(trace, place) if place is not None else here
            if here is not None:
                inner.setdefault(here, []).append(i)
                if place is not None:
                    lines.setdefault(here, place)
    own = _key(trace, line)
    rows: list[Row] = []
    if set(inner) - {own}:
        rows = [_line_row(trace, lines[key], key[1], numbers, split=False) for key, numbers in inner.items()]
    name = "" if line.function in ("", "<module>") or (line.in_cell and not split) else line.function
    many = sum(trace.nodes[i].kind != "leaf" for i in members)
    small = " · ".join(filter(None, (f"in {name}" if name else "", count(many, "operation") if many > 1 else "")))
    label = line.statement or line.source or line.where
    return ["line", label, small, str(first), f"line {first}", ranges(sorted(members)), rows]


# -------------------------------------------------------------------------------------------------------------- modules
def module_outline(trace: Trace) -> list[Row]:
    """Return a row for each module that was called, which contains the modules and lines that it ran. Equal modules are
    grouped."""
    nodes, edges = trace.nodes, trace.edges
    kinds = {call.path: call.kind for call in trace.layers}
    paths = paths_of(nodes, edges, trace.layers)
    inside = [i for i, node in enumerate(nodes) if node.kind != "output" and (paths[i] or node.kind != "leaf")]
    return _rows(trace, inside, paths, 0, kinds)


def _rows(trace: Trace, members: Sequence[int], paths: Sequence[Any], depth: int, kinds: dict[str, str]) -> list[Row]:
    """Return the rows of some nodes, by the step of their paths at a depth. Nodes whose path ends there have rows of their
    own."""
    lines = {step for i in members for step in paths[i] if step[0] == "line"}
    silent = depth > 0 and len(lines) < 2  # inside a model, the line that called it is not informative
    folds: defaultdict[Any, list[int]] = defaultdict(list)
    loose: list[int] = []
    for i in members:
        step = paths[i][depth] if len(paths[i]) > depth else None
        if step is None or (silent and step[0] == "line"):
            loose.append(i)
        else:
            folds[step].append(i)
    rows: list[Row] = []
    ordered = sorted(folds.items(), key=lambda pair: pair[1][0])
    signatures = {i: (node.kind, node.operation, node.shape) for i, node in enumerate(trace.nodes) if not is_move(node)}
    alike = [(step, [i for i in numbers if i in signatures]) for step, numbers in ordered]
    for stack in alike_stacks(alike, signatures):
        folded = [_fold(trace, step, folds[step], paths, depth, kinds) for step, _ in stack]
        if len(folded) == 1:
            rows.append(folded[0])
            continue
        several = sorted(i for step, _ in stack for i in folds[step])
        small = " · ".join(filter(None, (f"{len(stack)} alike", kinds.get(stack[0][0][1], ""))))
        label = f"{folded[0][1][:-1]}–{last_step(stack[-1][0][1])[1:]}"  # "layers[0–3]"
        rows.append(["stack", label, small, "", label, ranges(several), folded])
    rows += [["node", "", "", "", "", [i, 1], []] for i in loose if trace.nodes[i].kind != "leaf"]
    return sorted(rows, key=_first_operation(trace))


def _first_operation(trace: Trace) -> Any:
    def first(row: Row) -> int:
        return next((i for i in members_of(row[5]) if trace.nodes[i].kind != "leaf"), int(row[5][0]))

    return first


def _fold(trace: Trace, step: Any, numbers: Sequence[int], paths: Sequence[Any], depth: int, kinds: dict[str, str]) -> Row:
    kind, name = step
    operations = [i for i in numbers if trace.nodes[i].kind != "leaf"]
    many = count(len(operations), "operation")
    if kind == "line":
        place = next((place for i in operations if (place := trace.nodes[i].place) is not None), None)
        label = (place.statement or place.source) if place is not None else name
        number = "" if place is None else str(place.line)
        return ["line", label, many if len(operations) > 1 else "", number, name, ranges(sorted(numbers)), []]
    rows = _rows(trace, numbers, paths, depth + 1, kinds)
    outer = paths[numbers[0]][depth - 1] if depth else ("", "")
    short = name.removeprefix(outer[1]).removeprefix(".") if kind == "module" and outer[0] == "module" else name
    label = f"{name}()" if kind == "function" else name.partition(": ")[2] if kind == "call" else short
    if len(rows) == 1 and rows[0][0] in ("module", "stack") and kind == "module" and not kinds.get(name):
        whole = f"{label}{'' if rows[0][1][0] == '[' else '.'}{rows[0][1]}"
        return [*rows[0][:1], whole, *rows[0][2:4], whole, *rows[0][5:]]
    if all(row[0] == "node" for row in rows):
        rows = []
    what = kinds.get(name, "")
    small = " · ".join(filter(None, (what, "" if what in WHOLE_LAYERS else many)))
    line = name.partition(":")[0] if kind == "call" else ""
    return ["module" if kind == "module" else "function", label, small, line, label, ranges(sorted(numbers)), rows]

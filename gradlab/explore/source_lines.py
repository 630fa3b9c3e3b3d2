"""The user's source beside a graph: the cell, or the recorded lines, and the position of each node's text in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradlab.explore.trace.data import Line, Trace


def sources(trace: Trace, places: Iterable[Line]) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Return the texts that a view shows, and the positions of some places in them.

    Returns
    -------
    list of dict
        "title" of a source, and its "lines" as [number, text].
    list of list
        For each place [source, first line, last line, first column, end column, text]. Columns are null if they are unknown or
        the line is shown in another form; text is the subexpression.
    """
    files: list[dict[str, Any]] = []
    at: dict[str, int] = {}
    statements: list[dict[int, dict[str, int]]] = []  # for each source: by line, when each of its statements appeared first
    spans: list[list[Any]] = []
    for place in places:
        whole = place.in_cell and bool(trace.source)
        title = "the cell" if whole else place.where.rpartition(" line ")[0] or place.where
        if title not in at:
            at[title] = len(files)
            lines = [[n, text] for n, text in enumerate(trace.source, start=1)] if whole else []
            files.append({"title": title, "lines": lines})
            statements.append({})
        k = at[title]
        if not whole:
            there = statements[k].setdefault(place.line, {})
            column = place.columns[0] if place.columns is not None else 0
            text = place.statement or place.source
            there[text] = min(column, there.get(text, column))
        columns = place.columns if whole else None
        start, end = columns if columns is not None else (None, None)
        spans.append([k, place.line, place.end if whole else place.line, start, end, place.source])
    for source, by_line in zip(files, statements, strict=True):
        source["lines"] += [[line, "; ".join(sorted(texts, key=texts.__getitem__))] for line, texts in sorted(by_line.items())]
    return files, spans


def said_of(trace: Trace) -> str:
    """Return why there are no lines, and how to get them; "" if there are lines."""
    if any(node.place is not None for node in trace.nodes):
        return ""
    return "The lines were not recorded. Use %%grad -i, or compute inside “with gl.tracing():”."

"""A run in words: a sentence, the findings and a table of the layers, in a terminal, or with the picture in a notebook."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from gradlab.explore.doctor.findings import Finding
from gradlab.explore.drawing import MAX_BYTES
from gradlab.explore.markup import NO_MATH, Span, escape_html, number, say, to_html
from gradlab.explore.report import findings_view as findings
from gradlab.explore.report.parts import code_html
from gradlab.explore.report.table import CARD, RULE, TABULAR, head_html
from gradlab.explore.watch.picture import drawing, has_numbers
from gradlab.explore.watch.snapshot import snapshot

HEADS = ("layer", "‖gradient‖", "‖update‖ ÷ ‖weights‖", "‖weights‖")
TABLE_ROWS = 40  # maximum number of layers in the table of a notebook


def last_of(series: dict[str, Any] | Sequence[float | None]) -> float | None:
    """Return the last number that was measured, or None."""
    values = series["mean"] if isinstance(series, dict) else series
    return next((x for x in reversed(values) if x is not None), None)


def ends_badly(series: dict[str, Any]) -> bool:
    """Return whether the last measurement was not finite."""
    bad, last = series.get("bad", ()), max((i for i, x in enumerate(series["mean"]) if x is not None), default=-1)
    return any(bad[last + 1 :])


def table(data: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the table: name, ‖gradient‖, ratio with an arrow if it is outside the usual range, ‖weights‖."""
    rows = []
    low, high = data["usual"]
    for k, (name, layer) in enumerate(zip(data["names"], data["layers"], strict=True)):
        gradient, ratio, weight = (last_of(layer[what]) for what in ("gradient", "ratio", "weight"))
        is_bad = ends_badly(layer["gradient"])
        arrow = "" if ratio is None else " ↑" if ratio > high else " ↓" if ratio < low else ""
        rows.append(
            [
                f"{k} {name}" if has_numbers(data["names"]) else name,
                "not finite" if is_bad else "none" if gradient is None else number(gradient, 3),
                "" if ratio is None else number(ratio, 2) + arrow,
                "" if weight is None else number(weight, 3),
            ]
        )
    return rows


def card(data: dict[str, Any], picture: str) -> str:
    """Return the texts, the picture and the table as HTML."""
    sentence = say(*(Span(text, kind) for text, kind in data["head"]))
    problems, notes = _split_findings(data)
    kinds = ("code", "gradient", "plain", "plain")
    cells = [
        "<tr>" + "".join(_cell("td", k, Span(text, kinds[k])) for k, text in enumerate(row)) + "</tr>"
        for row in table(data)[:TABLE_ROWS]
    ]
    more = len(data["names"]) - TABLE_ROWS
    heads = "".join(_cell("th", k, Span(name, "dim")) for k, name in enumerate(HEADS))
    units = [
        f"{name} ({kind}): "
        + ", ".join(
            f"{share:.0%} {what}"
            for what, share in (("dead", last_of(one["dead"])), ("saturated", last_of(one["saturated"])))
            if share
        )
        for (name, kind), one in zip(data["units"], data["activations"], strict=True)
        if last_of(one["dead"]) or last_of(one["saturated"])
    ]
    shares = f'<div style="opacity:.72;padding:2px 0">{escape_html(" · ".join(units[:12]))}</div>' if units else ""
    top = f'<div {NO_MATH} style="{CARD}">{head_html([sentence])}{findings.html(problems, notes)}'
    if not data["count"]:
        return f"{top}</div>{code_html(data['code'])}"
    return (
        f'{top}<div style="padding:8px 14px;border-top:{RULE}">{picture}</div>'
        f'<div style="padding:6px 14px;border-top:{RULE};overflow-x:auto">'
        f'<table style="border-collapse:collapse;font-size:13px;color:inherit;{TABULAR}"><tr>{heads}</tr>{"".join(cells)}</table>'
        + (f'<div style="opacity:.72">and {more} more: <code>w.history()</code></div>' if more > 0 else "")
        + f'{shares}<div style="opacity:.72;font-size:12px">{escape_html(data["cost"])}</div></div></div>'
        + code_html(data["code"])
    )


def _cell(tag: str, k: int, text: Span) -> str:
    where = "right" if k else "left"
    return f'<{tag} style="padding:1px 14px 1px 0;font-weight:400;text-align:{where}">{to_html(say(text))}</{tag}>'


def _split_findings(data: dict[str, Any]) -> tuple[list[Finding], list[Finding]]:
    """Return the Problems and the Notes."""
    all_findings = [
        Finding(one["kind"], one["message"], one["line"], fix=one["fix"], remark=one["severity"] == "note")
        for one in data["findings"]
    ]
    return [one for one in all_findings if not one.remark], [one for one in all_findings if one.remark]


def words(data: dict[str, Any]) -> str:
    """Return the same for a terminal."""
    lines = ["".join(text for text, _ in data["head"])]
    said = findings.text(*_split_findings(data))
    if not data["count"]:
        return "\n".join([*lines, *([said] if said else [])])
    rows = [list(HEADS), *table(data)]
    wide = [max(len(row[k]) for row in rows) for k in range(len(HEADS))]
    body = ["  ".join(cell.ljust(wide[k]) if k == 0 else cell.rjust(wide[k]) for k, cell in enumerate(row)) for row in rows]
    return "\n".join([*lines, *([said] if said else []), "", *body, data["cost"]])


def bundle(watch: Any) -> dict[str, str]:
    """Return the representations of a run in a notebook, by MIME type."""
    data = snapshot(watch)
    picture = drawing(watch)
    mimes = {"text/html": card(data, picture.html()), "text/plain": words(data)}
    bitmap = picture.bitmap(MAX_BYTES)
    if bitmap is not None:
        mimes["image/png"] = base64.b64encode(bitmap).decode()
    return mimes


def text(watch: Any) -> str:
    """Return a run as text for a terminal."""
    return words(snapshot(watch))

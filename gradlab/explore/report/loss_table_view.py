"""Show which loss moves which optimizer's parameters: as a folded table in HTML, and as a line for each loss in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from gradlab.explore.doctor.context.loss_table import Influence, Loss, LossTable
from gradlab.explore.markup import Sentence, Span, code, count, join_items, say, to_html, to_latex, to_text
from gradlab.explore.report.table import RULE, TABULAR

MOST_LOSSES, MOST_OPTIMIZERS = 12, 6
TITLE = "Which loss moves which optimizer's parameters"
LEGEND = "moves: its gradient was in .grad when the optimizer stepped. A number counts parameters."


def _loss_name(loss: Loss) -> Sentence:
    return say(code(loss.name), Span(f"  {loss.where}", "dim") if loss.where else "")


def _more(table: LossTable) -> str:
    """Return how many losses and optimizers are left out, or ""."""
    rows, columns = len(table.losses) - MOST_LOSSES, len(table.optimizers) - MOST_OPTIMIZERS
    left = [count(rows, "more loss", "more losses")] if rows > 0 else []
    left += [count(columns, "more optimizer")] if columns > 0 else []
    return f"… and {' and '.join(left)}." if left else ""


def html(table: LossTable) -> str:
    """Return a folded table, which scrolls horizontally if there are many optimizers."""
    names, sizes = table.optimizers[:MOST_OPTIMIZERS], table.sizes
    cell = f"padding:3px 14px 3px 0;border:0;background:none;text-align:left;vertical-align:top;white-space:nowrap;{TABULAR}"
    heads = "".join(
        f'<th style="{cell};font-weight:600">{to_html(say(code(name), Span(f"  {size}", "dim")))}</th>'
        for name, size in zip(names, sizes, strict=False)
    )
    rows = "".join(
        f'<tr style="background:none"><td style="{cell}">{to_html(_loss_name(loss))}</td>'
        + "".join(f'<td style="{cell}">{to_html(_influence_text(one))}</td>' for one in influences[:MOST_OPTIMIZERS])
        + "</tr>"
        for loss, influences in list(zip(table.losses, table.influences, strict=True))[:MOST_LOSSES]
    )
    look = "border-collapse:collapse;table-layout:auto;margin:2px 0;font-size:13px;line-height:1.5;border:0;color:inherit"
    quiet = "font-size:12px;opacity:.72"
    return (
        f'<details style="border-top:{RULE};padding:6px 14px"><summary style="cursor:pointer"><span style="{quiet}">{TITLE}'
        f'</span></summary><div style="overflow-x:auto"><table style="{look}"><thead><tr style="background:none">'
        f'<th style="{cell}"></th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<div style="{quiet}">{" ".join(filter(None, (LEGEND, _more(table))))}</div></details>'
    )


def _influence_text(one: Influence) -> Sentence:
    """Return a cell of the table. Parameters that are moved are in bold."""
    return say(Span(str(one), "strong" if one.moved else "dim"))


def _sentences(table: LossTable) -> list[Sentence]:
    """Return a sentence for each loss: the parameters that it moves, and others that it reaches. Other optimizers are left
    out."""
    sentences = []
    for loss, influences in list(zip(table.losses, table.influences, strict=True))[:MOST_LOSSES]:
        known = list(zip(influences, table.optimizers, strict=True))
        moved = [say(code(name), f" ({one.moved})") for one, name in known if one.moved]
        reached = [say(code(name), f" ({one.reached})") for one, name in known if one.reached and not one.moved]
        parts: list[Sentence] = [say("moves ", _several(moved))] if moved else []
        parts += [say("reaches ", _several(reached), ", not stepped")] if reached else []
        words = say(*[piece for part in parts for piece in ("; ", part)][1:]) if parts else say("reaches none of them")
        sentences.append(say(code(loss.name), f" ({loss.where})" if loss.where else "", " ", words))
    return sentences


def _several(parts: Sequence[Sentence]) -> Sentence:
    return join_items(list(parts), MOST_OPTIMIZERS)


def text(table: LossTable) -> str:
    """Return the table for a terminal, shortened."""
    return "\n".join([f"{TITLE}:", *(f"  {to_text(one)}" for one in _sentences(table)), *filter(None, [_more(table)])])


def latex(table: LossTable) -> str:
    """Return the table for LaTeX."""
    lines = [say(f"{TITLE}:"), *_sentences(table), *([say(_more(table))] if _more(table) else [])]
    return "\n".join(rf"\noindent {to_latex(one)}\par" for one in lines)

"""The table of a run, as text and HTML: modules with output shapes, parameters and multiply-adds.

The columns are those of torchinfo's summary, with the share of each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradlab.explore.forward.assembling import Assembled, Part
from gradlab.explore.forward.costs import COUNTED
from gradlab.explore.forward.run import MOST as MOST_CALLS
from gradlab.explore.graph.painting import share_text
from gradlab.explore.labels import shorten
from gradlab.explore.markup import NO_MATH, escape_html, group_digits, number, size_text
from gradlab.explore.module_paths import CALL, path_range, without_root
from gradlab.explore.report.table import CARD, RULE, TABULAR

MOST = 60  # rows of a table without a given depth
LONGEST = 44  # characters of a name
UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class SummaryRow:
    """A row of a `Summary`.

    Attributes
    ----------
    name : str
        "layers[0–11]" for twelve equal modules.
    kind : str
        The class; "" for a function.
    depth : int
    shapes : str
        The shape of the result.
    alike : int
        The number of modules, or of calls, in the row. Its numbers are sums; the rows below it are those of one module.
    repeated : bool
        True if these are calls of one module or function.
    parameters : int
    mult_adds : int or None
        None if nothing in it is counted.
    size : int
        Bytes of the results of its calls.
    seconds : float
    called, failed : bool
    settings : str
    """

    name: str
    kind: str
    depth: int
    shapes: str
    alike: int
    repeated: bool
    parameters: int
    mult_adds: int | None
    size: int
    seconds: float
    called: bool
    failed: bool
    settings: str

    @property
    def remark(self) -> str:
        """The class, the number of modules or calls, and "not called" or "failed"."""
        many = "" if self.alike == 1 else f"{self.alike} {'calls' if self.repeated else 'alike'}"
        end = "not called" if not self.called else "failed" if self.failed else ""
        return " · ".join(filter(None, (self.kind, many, end)))


class Summary:
    """A table of the modules that ran. Returned by `ForwardGraph.table`.

    Attributes
    ----------
    rows : tuple of SummaryRow
    parameters, trainable : int
        Elements of the parameters of the model, and of those that require grad.
    mult_adds : int
        Multiply-adds of the run; half of its floating-point operations.
    input_bytes, parameter_bytes, result_bytes : int
        Bytes of the inputs, of parameters and buffers, and of all results.
    seconds : float or None
        None if the run was not timed.
    """

    def __init__(self, run: Assembled, depth: int | None = None) -> None:
        tree = merge_alike(run.tree)
        deepest = max((part.depth for part in _all(tree)), default=0)
        if depth is None:
            depth = next((d for d in range(deepest, 1, -1) if sum(part.depth <= d for part in _all(tree)) <= MOST), 1)
        self.depth, self.deepest = min(depth, deepest), deepest
        self.rows = tuple(_row(part, run.root) for part in _all(tree) if part.depth <= depth)
        owned = [one for one in run.owned if one.kind == "parameter"]
        self.parameters = sum(one.elements for one in owned)
        self.trainable = sum(one.elements for one in owned if one.learns)
        self.mult_adds = sum(cost.flops or 0 for cost in run.costs) // 2
        self.parameter_bytes = sum(one.size for one in run.owned)
        kinds = [node.operation if node.kind == "leaf" else node.kind for node in run.trace.nodes]
        self.input_bytes = sum(cost.size for cost, kind in zip(run.costs, kinds, strict=True) if kind == "input")
        self.result_bytes = sum(cost.size for cost, kind in zip(run.costs, kinds, strict=True) if kind == "operation")
        self.seconds = sum(cost.seconds for cost in run.costs) if run.timed else None
        self.uncounted = run.uncounted
        self.failed, self.truncated = run.failed is not None, run.truncated

    # -------------------------------------------------------------------------------------------------------------- parts
    @property
    def _heads(self) -> list[str]:
        return [
            "Module",
            "Output shape",
            "Parameters",
            "",
            "Mult-adds",
            "",
            "Results",
            *([] if self.seconds is None else ["Time", ""]),
        ]

    def _cells(self, row: SummaryRow) -> list[str]:
        cells = [
            row.shapes if row.called else "",
            group_digits(row.parameters) if row.parameters else "",
            percent_text(row.parameters, self.parameters),
            "" if not row.mult_adds else group_digits(row.mult_adds),
            percent_text(row.mult_adds or 0, self.mult_adds),
            size_text(row.size) if row.size else "",
        ]
        if self.seconds is not None:
            cells += [time_text(row.seconds) if row.called else "", percent_text(row.seconds, self.seconds)]
        return cells

    @property
    def totals(self) -> list[str]:
        """The sentences below the table."""
        still = self.parameters - self.trainable
        lines = [
            f"Parameters: {group_digits(self.parameters)}"
            + (f", of which {group_digits(still)} do not require grad" if still else ""),
            f"Mult-adds: {group_digits(self.mult_adds)} ({cost_text(2 * self.mult_adds)} floating-point operations)",
            f"Memory: input {size_text(self.input_bytes)}, parameters and buffers {size_text(self.parameter_bytes)}",
            f"Results of all calls: {size_text(self.result_bytes)}, without views",
        ]
        if self.seconds is not None:
            lines.append(f"Time in functions: {time_text(self.seconds)}, in one run")
        shown = ", ".join(self.uncounted[:6]) + (f" and {len(self.uncounted) - 6} more" if len(self.uncounted) > 6 else "")
        lines.append(f"Counted: {COUNTED}." + (f" Not counted: {shown}." if shown else ""))
        if any(row.alike > 1 and row.kind for row in self.rows):
            lines.append("Equal modules share a row with their sum; the rows below it are of one of them.")
        if self.truncated:
            lines.append(f"Only the first {MOST_CALLS:,} calls were recorded.")
        if self.failed:
            lines.append("The run failed: these are the calls up to there.")
        if self.depth < self.deepest:
            lines.append(f"Modules deeper than {self.depth} levels are left out: table(depth={self.deepest}) shows all.")
        return lines

    # --------------------------------------------------------------------------------------------------------------- text
    def text(self) -> str:
        """Return the table for a terminal."""
        heads = self._heads
        lines = [heads]
        for row in self.rows:
            name = shorten(f"{'  ' * row.depth}{row.name}", LONGEST) + (f"  {row.remark}" if row.remark else "")
            lines.append([name, *self._cells(row)])
        widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]
        keep = [k for k in range(len(heads)) if any(line[k] for line in lines)]
        ruled = "─" * (sum(widths[k] for k in keep) + 2 * (len(keep) - 1))

        def said(line: Sequence[str]) -> str:
            cells = [line[k].ljust(widths[k]) if k < 2 else line[k].rjust(widths[k]) for k in keep]
            return "  ".join(cells).rstrip()

        return "\n".join([said(heads), ruled, *map(said, lines[1:]), ruled, *self.totals])

    __str__ = text

    def __repr__(self) -> str:
        return self.text()

    # --------------------------------------------------------------------------------------------------------------- HTML
    def html(self) -> str:
        """Return the table for a notebook."""
        dim = "opacity:.66"
        heading = "padding:4px 8px;font-weight:600;white-space:nowrap;text-align"
        head = "".join(
            f'<th style="{heading}:{"left" if k < 2 else "right"}">{title}</th>' for k, title in enumerate(self._heads)
        )
        rows = []
        for row in self.rows:
            indent = 8 + 16 * row.depth
            name = f"<b>{escape_html(row.name)}</b>" if row.kind else f"<span>{escape_html(row.name)}</span>"
            remark = f' <span style="{dim}">{escape_html(row.remark)}</span>' if row.remark else ""
            title = f' title="{escape_html(shorten(f"{row.kind}({row.settings})", 300))}"' if row.settings else ""
            cells = [f'<td{title} style="padding:2px 8px 2px {indent}px;text-align:left;white-space:nowrap">{name}{remark}</td>']
            for k, text in enumerate(self._cells(row)):
                side = "left" if k == 0 else "right"
                quiet = f";{dim}" if text.endswith("%") else ""
                cells.append(f'<td style="padding:2px 8px;text-align:{side};white-space:nowrap{quiet}">{escape_html(text)}</td>')
            rows.append(f'<tr style="border-top:{RULE};background:none">{"".join(cells)}</tr>')
        totals = "".join(f"<div>{escape_html(line)}</div>" for line in self.totals)
        rows.insert(0, f'<tr style="background:none">{head}</tr>')
        table = f'<table style="border-collapse:collapse;margin:0;width:100%;{TABULAR}">{"".join(rows)}</table>'
        return (
            f'<div {NO_MATH} style="{CARD};max-width:max-content"><div style="overflow-x:auto">{table}</div>'
            f'<div style="padding:6px 10px;border-top:{RULE}">{totals}</div></div>'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.text()}


# ------------------------------------------------------------------------------------------------------------------ rows
def _row(part: Part, root: str) -> SummaryRow:
    return SummaryRow(
        without_root(part.name or part.path, root) if part.kind and part.depth else part.path,
        part.kind,
        part.depth,
        part.shapes,
        part.calls,
        not part.kind or CALL in part.path,
        part.parameters,
        part.flops // 2 if part.counted else None,
        part.size,
        part.seconds,
        part.called,
        part.failed,
        part.settings,
    )


def _all(parts: Sequence[Part]) -> list[Part]:
    """Yield the parts and all parts in them, each before its contents."""
    found, waiting = [], list(reversed(parts))
    while waiting:
        part = waiting.pop()
        found.append(part)
        waiting += reversed(part.parts)
    return found


def merge_alike(parts: Sequence[Part]) -> list[Part]:
    """Merge consecutive calls of one module, and of equal numbered modules, into one part each."""
    stacks: list[list[Part]] = []
    before = None
    for part in parts:
        again = CALL in part.path
        numbered = part.kind and (again or part.path.endswith("]"))
        sign = (part.base if again else "", _signature(part, parameters=not again)) if numbered else None
        if sign is not None and sign == before:
            stacks[-1].append(part)
        else:
            stacks.append([part])
        before = sign
    return [replace(stack[0] if len(stack) == 1 else _sum(stack), parts=merge_alike(stack[0].parts)) for stack in stacks]


def _sum(stack: Sequence[Part]) -> Part:
    return replace(
        stack[0],
        name=path_range(stack[0].path, stack[-1].path),
        calls=len(stack),
        flops=sum(part.flops for part in stack),
        size=sum(part.size for part in stack),
        seconds=sum(part.seconds for part in stack),
        parameters=sum(part.parameters for part in stack),
    )


def _signature(part: Part, *, parameters: bool) -> Any:
    """Return a key that is the same for equal parts. The parameters of a module are counted at its first call."""
    inside = tuple((inner.kind or inner.path, _signature(inner, parameters=parameters)) for inner in part.parts)
    own = part.parameters if parameters else 0
    return part.kind, part.shapes, own, part.flops, part.called, part.failed, part.settings, inside


# ----------------------------------------------------------------------------------------------------------------- texts
def cost_text(operations: float) -> str:
    """Return "3.64 G" or "812"."""
    for unit, letter in UNITS:
        if operations >= unit:
            return f"{number(operations / unit, 3)} {letter}"
    return number(operations, 3)


def flops_text(operations: float) -> str:
    """Return "3.64 GFLOPs" or "812 FLOPs"."""
    text = cost_text(operations)
    return f"{text}{'FLOPs' if text[-1].isalpha() else ' FLOPs'}"


def time_text(seconds: float) -> str:
    """Return "1.25 ms"."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{number(seconds / unit, 3)} {name}"
    return f"{number(seconds * 1e6, 3)} µs"


def percent_text(part: float, whole: float) -> str:
    """Return "38 %"; "" for 0."""
    return share_text(part / whole) if part and whole else ""

"""A run as plain data, which a file has, and a live view and a saved page show beside the picture: numbers, names and sentences,
no tensor.

It is what goes to a browser: lists of floats with five digits, None where nothing was measured. A live view gets the columns that
changed since it was last told, and everything when columns were pooled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.pages import page_url
from gradlab.explore.doctor.registry import KINDS
from gradlab.explore.markup import count, group_digits, number
from gradlab.explore.report.plain_data import finding_data
from gradlab.explore.watch.progress import progress_text

USUAL = (1e-4, 1e-2)  # ‖update‖ / ‖weights‖ of a step: a rule of thumb


def snapshot(watch: Any) -> dict[str, Any]:
    """All that is known of a run now.

    Returns
    -------
    dict
        "steps", "width" (steps a column), "loss", "rate", for each of "layers" "gradient", "ratio", "weight", for each of
        "activations" "dead", "saturated": each with the columns' "mean", "low", "high" and "bad" (how many were not finite).
        "moments": histograms. "findings", "head", "code", "cost": what is said.
    """
    sizes = [int(sum(np.prod(tuple(p.shape), dtype=np.int64) for p in watch.of.of_layer(i))) for i in range(len(watch.layers))]
    return {**described(watch), "sizes": sizes, **columns(watch, 0), "moments": moments(watch)}


def described(watch: Any) -> dict[str, Any]:
    """What is said of a run, and its names."""
    diagnosis = watch.findings
    cost = watch.cost
    return {
        "head": head(watch),
        "called": watch.called,
        "library": watch.library,
        "optimizer": watch.optimizer_name,
        "usual": list(USUAL),
        "names": list(watch.layers),
        "units": [[one.name, one.kind] for one in watch.of.activations],
        "findings": [
            *map(found, (*diagnosis.findings, *diagnosis.remarks)),
            *(found(Finding("", text, remark=True)) for text in diagnosis.unseen),
        ],
        "code": code(watch),
        "cost": cost_text(cost, watch.steps),
        "replay": watch.kept is not None and watch.kept.batch is not None,
        "ended": watch.ended,
        "interrupted": watch.interrupted,
        "paused": watch.is_paused,
    }


def found(finding: Finding) -> dict[str, Any]:
    """A finding, and what its kind means."""
    kind = finding.kind
    meaning = KINDS[kind].meaning if kind in KINDS else ""
    return {**finding_data(finding), "meaning": meaning, "url": page_url(kind) if kind else ""}


def columns(watch: Any, first: int, *, shown: bool = False) -> dict[str, Any]:
    """The columns from `first` on; `shown`: only what a view shows of them in words."""
    m = watch.measuring
    layout, pooled = m.layout, m.columns.pooled(first)
    lists = {what: _lists(getattr(pooled, what)) for what in (("mean",) if shown else ("mean", "low", "high"))}
    bad = pooled.bad.T.tolist()

    def of(at: int) -> dict[str, Any]:
        numbers = {what: lists[what][at] for what in lists}
        return {**numbers, "bad": bad[at]} if any(bad[at]) else numbers

    def part(name: str, i: int) -> dict[str, Any]:
        return of(getattr(layout, name).start + i)

    return {
        "first": first,
        "steps": watch.steps,
        "width": pooled.width,
        "count": m.columns.used,
        "loss": of(layout.loss),
        "rate": of(layout.rate),
        "layers": [
            {name: part(name, i) for name in ("gradient", "ratio", "weight")[: 2 if shown else 3]}
            for i in range(len(watch.layers))
        ],
        "activations": [
            {name: part(name, i)["mean"] for name in ("dead", "saturated")} for i in range(len(watch.of.activations))
        ],
    }


def moments(watch: Any) -> list[Any]:
    """The histograms: [step, gradients, weights], each [low, high, bins] or None."""
    return [
        [
            one.step,
            *([s and [_short(s.low), _short(s.high), list(s.bins)] for s in some] for some in (one.gradients, one.weights)),
        ]
        for one in watch.measuring.histograms.moments
    ]


def _lists(numbers: np.ndarray) -> list[list[float | None]]:
    """Of each series its columns, with five digits."""
    return [[None if x != x else _short(x) for x in series] for series in numbers.T.tolist()]


def _short(x: float) -> float:
    return float(f"{x:.5g}")


# ---------------------------------------------------------------------------------------------------------------- words
def head(watch: Any) -> list[list[str]]:
    """The sentence on top, as [text, kind] pieces."""
    m = watch.measuring
    pooled = m.columns.pooled()
    means, counts = pooled.mean[:, m.layout.loss], pooled.count[:, m.layout.loss]
    known = np.flatnonzero(counts)
    words = [[f"Step {group_digits(watch.steps)}", "strong"]]
    if watch.total is not None and watch.total > watch.steps:
        words.append([f" of {group_digits(watch.total)}", "dim"])
    if len(known):
        last = int(known[-1])
        many = int(counts[last])
        bad = np.flatnonzero(pooled.bad[:, m.layout.loss])
        if len(bad) and bad[-1] > last:
            words += [[f" · {watch.called} ", "plain"], ["not finite", "value"]]
            about = "" if pooled.width == 1 else "about "
            words += [[f" from {about}step {group_digits(int(bad[bad > last][0]) * pooled.width + 1)} on", "dim"]]
        else:
            of = f" mean of the last {many} steps" if many > 1 else ""
            words += [[f" · {watch.called} ", "plain"], [number(float(means[last]), 3), "value"]]
            words += [[f"{of}, from {number(float(means[known[0]]), 3)}", "dim"]]
    rates = pooled.mean[:, m.layout.rate]
    rates = rates[~np.isnan(rates)]
    how = f", {watch.optimizer_name}" if watch.optimizer_name else ", moved by hand"
    rate = f", lr {number(float(rates[-1]), 3)}" if len(rates) else ""
    noun = "layer" if watch.of.called else "tensor"
    words.append([f" · {count(len(watch.layers), noun)}", "dim"])
    if watch.of.called:
        words += [[" of ", "dim"], [watch.of.called, "code"]]
    words.append([f"{how}{rate}", "dim"])
    if progress := progress_text(watch):
        words.append([f" · {progress}", "dim"])
    if watch.interrupted:
        words.append([f" · stopped by {watch.interrupted}", "strong"])
    return words


def cost_text(cost: Mapping[str, float], steps: int) -> str:
    """What watching takes, in words."""
    seconds, share = cost["step"], cost["share"]
    time = f"{number(1e3 * seconds, 2)} ms" if seconds >= 1e-4 else f"{number(1e6 * seconds, 2)} µs"
    part = f"{time} a step, {f'{share:.1%} of' if share < 1 else f'{share:.1f} times'} the step itself"
    examined = int(cost["examined"])
    if examined and examined >= steps:
        return f"each step was recorded and examined: {part}"

    def every(n: float) -> str:
        return "each step" if n == 1 else f"one step in {group_digits(int(n))}"

    first = f"the first {group_digits(examined)} steps were recorded and examined; since then " if examined else ""
    return f"{first}watching takes {part}: gradients of {every(cost['gradients'])}, updates of {every(cost['updates'])}"


def code(watch: Any) -> str:
    """The loop as it is written."""
    model = watch.of.called or "params"
    if not watch.optimizer_name:
        return (
            f"with gl.watch({model}) as w:\n    for x, y in batches:\n        loss = …\n        loss.backward()\n        …\n"
            "        w.log(loss)"
        )
    return (
        f"with gl.watch({model}, optimizer) as w:\n    for x, y in batches:\n        optimizer.zero_grad()\n        loss = …\n"
        "        loss.backward()\n        optimizer.step()\n        w.log(loss)"
    )

"""A run as plain data for files, live views and saved pages: numbers, names and sentences, but no tensors.

Numbers are lists of floats with five digits, None if nothing was measured. A live view receives the columns that changed since
its last update, and all of them after columns were merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.pages import page_url
from gradlab.explore.doctor.registry import KINDS
from gradlab.explore.libraries.loss_scaling import factor_text
from gradlab.explore.markup import count, group_digits, number
from gradlab.explore.report.plain_data import finding_data
from gradlab.explore.watch.progress import progress_text

USUAL = (1e-4, 1e-2)  # usual range of ‖update‖ / ‖weights‖ in a step, a rule of thumb


def snapshot(watch: Any) -> dict[str, Any]:
    """Return all data of a run.

    Returns
    -------
    dict
        "steps"; "width", the number of steps per column; "loss", "rate"; for each of "layers" "gradient", "ratio" and "weight";
        for each of "activations" "dead" and "saturated". Each of these has the columns' "mean", "low", "high" and "bad", the
        number of non-finite values. "moments" are histograms. "findings", "head", "code" and "cost" are texts.
    """
    sizes = [
        int(sum(np.prod(tuple(p.shape), dtype=np.int64) for p in watch.target.layer_params(i))) for i in range(len(watch.layers))
    ]
    return {**describe(watch), "sizes": sizes, **columns(watch, 0), "moments": moments(watch)}


def describe(watch: Any) -> dict[str, Any]:
    """Return the texts about a run, and its names."""
    diagnosis = watch.findings
    cost = watch.cost
    return {
        "head": head(watch),
        "called": watch.loss_name,
        "library": watch.library,
        "optimizer": watch.optimizer_name,
        "usual": list(USUAL),
        "names": list(watch.layers),
        "units": [[one.name, one.kind] for one in watch.target.activations],
        "findings": [
            *map(finding_entry, (*diagnosis.findings, *diagnosis.remarks)),
            *(finding_entry(Finding("", text, remark=True)) for text in diagnosis.unseen),
        ],
        "code": code(watch),
        "cost": cost_text(cost, watch.steps),
        "replay": watch.bad_step is not None and watch.bad_step.batch is not None,
        "ended": watch.ended,
        "interrupted": watch.interrupted,
        "paused": watch.is_paused,
    }


def finding_entry(finding: Finding) -> dict[str, Any]:
    """Return a finding with the meaning of its kind."""
    kind = finding.kind
    meaning = KINDS[kind].meaning if kind in KINDS else ""
    return {**finding_data(finding), "meaning": meaning, "url": page_url(kind) if kind else ""}


def columns(watch: Any, first: int, *, shown: bool = False) -> dict[str, Any]:
    """Return the columns from `first` on. `shown` limits them to what a view shows in words."""
    m = watch.measuring
    layout, summary = m.layout, m.columns.summary(first)
    lists = {what: _lists(getattr(summary, what)) for what in (("mean",) if shown else ("mean", "low", "high"))}
    bad = summary.bad.T.tolist()

    def of(at: int) -> dict[str, Any]:
        numbers = {what: lists[what][at] for what in lists}
        return {**numbers, "bad": bad[at]} if any(bad[at]) else numbers

    def part(name: str, i: int) -> dict[str, Any]:
        return of(getattr(layout, name).start + i)

    return {
        "first": first,
        "steps": watch.steps,
        "width": summary.width,
        "count": m.columns.used,
        "loss": of(layout.loss),
        "rate": of(layout.rate),
        "layers": [
            {name: part(name, i) for name in ("gradient", "ratio", "weight")[: 2 if shown else 3]}
            for i in range(len(watch.layers))
        ],
        "activations": [
            {name: part(name, i)["mean"] for name in ("dead", "saturated")} for i in range(len(watch.target.activations))
        ],
    }


def moments(watch: Any) -> list[Any]:
    """Return the histograms as [step, gradients, weights], each a list of [low, high, bins] or None."""
    return [
        [
            one.step,
            *([s and [_short(s.low), _short(s.high), list(s.bins)] for s in some] for some in (one.gradients, one.weights)),
        ]
        for one in watch.measuring.histograms.moments
    ]


def _lists(numbers: np.ndarray) -> list[list[float | None]]:
    """Return the columns of each series, with five digits."""
    return [[None if x != x else _short(x) for x in series] for series in numbers.T.tolist()]


def _short(x: float) -> float:
    return float(f"{x:.5g}")


# ---------------------------------------------------------------------------------------------------------------- words
def head(watch: Any) -> list[list[str]]:
    """Return the sentence at the top, as pieces [text, kind]."""
    m = watch.measuring
    summary = m.columns.summary()
    means, counts = summary.mean[:, m.layout.loss], summary.count[:, m.layout.loss]
    known = np.flatnonzero(counts)
    words = [[f"Step {group_digits(watch.steps)}", "strong"]]
    if watch.total is not None and watch.total > watch.steps:
        words.append([f" of {group_digits(watch.total)}", "dim"])
    if len(known):
        last = int(known[-1])
        many = int(counts[last])
        bad = np.flatnonzero(summary.bad[:, m.layout.loss])
        if len(bad) and bad[-1] > last:
            words += [[f" · {watch.loss_name} ", "plain"], ["not finite", "value"]]
            about = "" if summary.width == 1 else "about "
            words += [[f" from {about}step {group_digits(int(bad[bad > last][0]) * summary.width + 1)} on", "dim"]]
        else:
            of = f" mean of the last {many} steps" if many > 1 else ""
            words += [[f" · {watch.loss_name} ", "plain"], [number(float(means[last]), 3), "value"]]
            words += [[f"{of}, from {number(float(means[known[0]]), 3)}", "dim"]]
    rates = summary.mean[:, m.layout.rate]
    rates = rates[~np.isnan(rates)]
    how = f", {watch.optimizer_name}" if watch.optimizer_name else ", no optimizer"
    rate = f", lr {number(float(rates[-1]), 3)}" if len(rates) else ""
    noun = "layer" if watch.target.model_name else "tensor"
    words.append([f" · {count(len(watch.layers), noun)}", "dim"])
    if watch.target.model_name:
        words += [[" of ", "dim"], [watch.target.model_name, "code"]]
    words.append([f"{how}{rate}", "dim"])
    if scaled := scale_text(watch):
        words.append([f" · {scaled}", "dim"])
    if progress := progress_text(watch):
        words.append([f" · {progress}", "dim"])
    if watch.interrupted:
        words.append([f" · stopped by {watch.interrupted}", "strong"])
    return words


def scale_text(watch: Any) -> str:
    """Describe the scale of a GradScaler and the steps that it skipped; "" without one."""
    if watch.loss_scale is None:
        return ""
    skipped = watch.skipped_steps
    more = f", {skipped} of {count(watch.scaled.steps.made + skipped, 'step')} skipped" if skipped else ""
    return f"loss scale {factor_text(watch.loss_scale)}{more}"


def cost_text(cost: Mapping[str, float], steps: int) -> str:
    """Describe the cost of watching; "" before the first step."""
    if not steps:
        return ""
    seconds, share = cost["step"], cost["share"]
    time = f"{number(1e3 * seconds, 2)} ms" if seconds >= 1e-4 else f"{number(1e6 * seconds, 2)} µs"
    part = f"{time} per step, {f'{share:.1%} of' if share < 1 else f'{share:.1f} times'} the step itself"
    examined = int(cost["examined"])
    if examined and examined >= steps:
        return f"each step was recorded and examined: {part}"

    def every(n: float) -> str:
        return "each step" if n == 1 else f"one step in {group_digits(int(n))}"

    first = f"the first {group_digits(examined)} steps were recorded and examined; since then " if examined else ""
    return f"{first}watching takes {part}: gradients of {every(cost['gradients'])}, updates of {every(cost['updates'])}"


def code(watch: Any) -> str:
    """Return code for a loop with a watch."""
    model = watch.target.model_name or "params"
    if not watch.optimizer_name:
        return (
            f"with gl.watch({model}) as w:\n    for x, y in batches:\n        loss = …\n        loss.backward()\n        …\n"
            "        w.log(loss)"
        )
    return (
        f"with gl.watch({model}, optimizer) as w:\n    for x, y in batches:\n        optimizer.zero_grad()\n        loss = …\n"
        "        loss.backward()\n        optimizer.step()\n        w.log(loss)"
    )

"""Recompute the numbers of a finding from a run of the program without the explorer (`witness`), by independent formulas.

The case and its trace are only used to find the expression, module or leaf that a finding points to. `RULES` has the function
that recomputes the numbers of each kind's evidence. A number without a rule is an error.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from symptoms import array
from witness import Seen, Witness

# Keys of the evidence that are not measurements: nodes, names and spellings.
POINTERS = frozenset(("at", "nodes", "start", "end", "leaf", "maker", "source", "argument", "then", "made", "leaves", "name", "of",  # noqa: E501
                      "modules", "type", "dtype", "matrix", "factors", "since", "mask", "hiding", "weights", "seen",
                      "reduction"))  # fmt: skip
GREATEST = {"float16": 65504.0, "float32": float(np.finfo(np.float32).max), "float64": float(np.finfo(np.float64).max)}


class Program:
    """A witness, and the values in it that the nodes of a trace point to."""

    def __init__(self, witness: Witness, case: Any) -> None:
        self.w, self.case, self.nodes = witness, case, () if case.trace is None else case.trace.nodes

    def values(self, i: int) -> list[Seen]:
        """Return the values of a node's expression or module."""
        node = self.nodes[i]
        if node.kind == "leaf":
            leaf = self.w.resolve(node.name.partition(", ")[0])
            return [Seen(leaf, array(leaf), 0, 0, 0)]
        if self.is_plain(i):
            return self.w.calls(node.module)
        return self.w.of(node.place.source) if node.place is not None else []

    def is_plain(self, i: int) -> bool:
        """Return whether a node is the operation of a module."""
        kinds = {call.path: call.kind for call in self.case.trace.calls}
        return bool(self.nodes[i].module) and kinds.get(self.nodes[i].module, "") in PLAIN_MODULES

    def value(self, i: int) -> np.ndarray:
        return self.values(i)[self.execution(i)].numbers

    def execution(self, i: int) -> int:
        """Return the index of a node among the executions of its expression, of which the last ones are in the graph."""
        node, count = self.nodes[i], len(self.values(i))
        alike = [k for k, one in enumerate(self.nodes) if (one.place, one.operation) == (node.place, node.operation)]
        own = [k for k in alike if self.nodes[k].module == node.module]
        if len(own) == count:
            return own.index(i)
        several = len(own) < len(alike) and not self.is_plain(i)  # the expression is in the forward of several modules
        return alike.index(i) - len(alike) if several and count % len(alike) == 0 else -1

    def grad(self, i: int) -> np.ndarray:
        one = self.values(i)[self.execution(i)]
        if one.grad is None:
            raise LookupError(f"{self.nodes[i].place} has no gradient")
        return one.grad

    def operand(self, i: int, argument: int = 0) -> Seen:
        """Return an input of an operation: the input of a module, or an operand, the receiver or an argument of an expression."""
        node = self.nodes[i]
        if self.is_plain(i):
            return self.w.calls(node.module)[self.execution(i)].given[0]
        tree = ast.parse(node.place.source, mode="eval").body
        parts = operands(tree, node.operation)
        return self.w.of(ast.unparse(parts[argument]))[self.execution(i)]


PLAIN_MODULES = (
    *("Linear", "ReLU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "LayerNorm", "GroupNorm", "Dropout", "LSTM", "Embedding"),
)


def operands(tree: ast.expr, operation: str) -> list[ast.expr]:
    """Return the tensors in an expression, in the order of the operation's arguments."""
    if isinstance(tree, ast.BinOp):
        both = [tree.left, tree.right]
        return both[::-1] if operation.startswith("Reciprocal") else both
    if isinstance(tree, ast.Call):
        receiver = [tree.func.value] if isinstance(tree.func, ast.Attribute) else []
        module = (
            receiver and isinstance(receiver[0], (ast.Name, ast.Attribute)) and ast.unparse(receiver[0]) in ("torch", "gl", "F")
        )
        return list(tree.args) if module or not receiver else [receiver[0], *tree.args]
    return [tree]


def norm(x: Any) -> float:
    return float(np.linalg.norm(np.asarray(x, dtype=float).reshape(-1)))


# ------------------------------------------------------------------------------------------------------------------ cuts
def of_cut(p: Program, f: Any) -> dict[str, Any]:
    without = [leaf for leaf in p.w.leaves().values() if leaf.requires_grad and leaf.grad is None]
    count = {"parameters": len(without)} if "parameters" in f.evidence else {}
    if "number" not in f.evidence:
        return count
    known = {float(x) for found in p.w.seen.values() for one in found if one.numbers.size == 1 for x in one.numbers.reshape(-1)}
    return {"number": min(known, key=lambda x: abs(x - f.evidence["number"])), **count}


def of_checkpoint(p: Program, f: Any) -> dict[str, Any]:
    """Count the named leaves that require grad and got no gradient."""
    leaves = [p.w.resolve(name) for name in f.evidence["leaves"]]
    without = [leaf for leaf in leaves if leaf.requires_grad and leaf.grad is None]
    return {"parameters": len(without)} if "parameters" in f.evidence else {}


def of_flat(p: Program, f: Any) -> dict[str, Any]:
    if "zeros" not in f.evidence:
        return of_cut(p, f)
    still = [leaf for leaf in p.w.leaves().values() if leaf.grad is not None and not array(leaf.grad).any()]
    return {"zeros": sum(array(leaf).size for leaf in still), "count": len(still)}


def of_frozen(p: Program, f: Any) -> dict[str, Any]:
    models = [p.w.resolve(name) for name in f.evidence["modules"]]
    return {"parameters": len([q for model in models for q in model.parameters()])}


# ------------------------------------------------------------------------------------------------------------- the steps
def of_stale(p: Program, f: Any) -> dict[str, Any]:
    keys = [p.w.key(name) for name in f.evidence["leaves"]]
    total = math.hypot(*(norm(p.w.run_of(key)[-1]["arrived"]) for key in keys))
    held = {
        id(q) for value in p.w.space.values() if hasattr(value, "param_groups") for g in value.param_groups for q in g["params"]
    }
    named = set()
    for value in p.w.space.values():
        if isinstance(value, p.w.space["nn"].Module):
            named |= {id(q) for q in value.parameters()}
        elif isinstance(value, p.w.lib.Tensor):
            named.add(id(value))
    still = [
        key
        for key in p.w.end
        if key not in held and (r := p.w.run_of(key)) and r[-1]["arrived"].any() and not r[-1]["step"].any()
    ]
    return {"gradient norm": total, "unnamed": len(held - named), "parameters": len(still)}


def of_accumulated(p: Program, f: Any) -> dict[str, Any]:
    runs = p.w.run_of(p.w.key(f.evidence["of"]))
    if "cells" in f.evidence:
        one = next(run for run in runs if run["at"] >= p.w.before_last)
        cells = len({run["cell"] for run in runs if run["at"] <= one["at"]})
    else:
        kept = [
            (a, b) for a, b in pairwise(runs)
            if b["before"] is not None and b["before"].any() and a["step"].any() and b["step"].any()
        ]  # fmt: skip
        one, cells = kept[-1][1], 0
    found = {"before": norm(one["before"]), "after": norm(one["after"]), "arrived": norm(one["arrived"])}
    if cells:
        now = [next((run for run in p.w.run_of(key) if run["at"] >= p.w.before_last), None) for key in p.w.end]
        return found | {"cells": cells, "parameters": sum(run is not None and run["before"] is not None for run in now)}
    added = [
        sum(b["before"] is not None and bool(b["before"].any()) and bool(a["step"].any()) and bool(b["step"].any())
            for a, b in pairwise(r))
        for r in (p.w.run_of(key) for key in p.w.end)
    ]  # fmt: skip
    return found | {"calls": max(added), "sweeps": len(p.w.sweeps), "parameters": sum(many > 0 for many in added)}


def of_empty(p: Program, f: Any) -> dict[str, Any]:
    if "of" in f.evidence:
        return {"gradient norm": norm(p.w.run_of(p.w.key(f.evidence["of"]))[-1]["arrived"])}
    held = {
        id(q) for value in p.w.space.values() if hasattr(value, "param_groups") for g in value.param_groups for q in g["params"]
    }
    first = [runs[0] for key in held if (runs := [r for r in p.w.run_of(key) if r["at"] >= p.w.before_last])]
    steps = sum(count for text, count in p.w.ran.items() if text.endswith(".step()"))
    return {"gradient norm": math.hypot(*(norm(run["arrived"]) for run in first)), "steps": steps}


def last_runs(p: Program, keys: Any) -> list[list[dict[str, Any]]]:
    """Return the runs of some leaves in the last cell."""
    return [runs for key in keys if (runs := [r for r in p.w.run_of(key) if r["at"] >= p.w.before_last])]


def of_idle(p: Program, f: Any) -> dict[str, Any]:
    """Count the calls of backward in the last cell, and return the last loss."""
    sweeps = p.w.sweeps[p.w.before_last :]
    return {"calls": len(sweeps), "loss": sweeps[-1].loss}


def of_rates(p: Program, f: Any) -> dict[str, Any]:
    """Return the learning rates up to the first step after which none exceeds 1e-4 of the largest, or the manual steps."""
    if "of" in f.evidence:
        runs = last_runs(p, [p.w.key(name) for name in f.evidence["of"]])
        return {"steps": len(runs[0]), "gradient norm": math.hypot(*(norm(one[0]["arrived"]) for one in runs))}
    rates = p.w.rates
    gone = max(i for i, rate in enumerate(rates) if rate > 1e-4 * max(rates)) + 1
    return {"first": max(rates), "low": rates[gone], "last": rates[-1], "steps": len(rates), "idle": len(rates) - gone,
            "after": gone - rates.index(max(rates))}  # fmt: skip


def of_clipping(p: Program, f: Any) -> dict[str, Any]:
    """Return the gradient norm after the first and the last call of backward, and the limit that the statement passes."""
    held = {id(q) for v in p.w.space.values() if hasattr(v, "param_groups") for g in v.param_groups for q in g["params"]}
    first, last = (math.hypot(*(norm(runs[at]["after"]) for runs in last_runs(p, held))) for at in (0, -1))
    tree = next(
        node
        for node in ast.walk(ast.parse(p.case.program.text))
        if isinstance(node, (ast.Expr, ast.AugAssign)) and node.lineno == f.line
    )
    call = tree.value
    given = [tree.value] if isinstance(tree, ast.AugAssign) else [*call.args[1:2], *(k.value for k in call.keywords)]  # type: ignore[attr-defined]
    limits = [eval(ast.unparse(one), {**p.w.space, "self": p.w.space.get("trainer")}) for one in given]
    return {"gradient norm": first, "scaled norm": last, "limit": limits[-1]}


def of_ascent(p: Program, f: Any) -> dict[str, Any]:
    losses = [s.loss for s in p.w.sweeps[p.w.before_last :]]
    if "cosine" not in f.evidence:
        return {"first": losses[-4], "last": losses[-1], "steps": 3}
    firsts = [runs[0] for key in p.w.end if (runs := [r for r in p.w.run_of(key) if r["at"] >= p.w.before_last])]
    step, g = (np.concatenate([run[part].reshape(-1) for run in firsts]) for part in ("step", "arrived"))
    cosine = step @ g / norm(step) / norm(g)
    if "first" not in f.evidence:
        return {"cosine": cosine, "steps": len(losses) - 1}
    return {"cosine": cosine, "first": losses[0], "last": losses[3], "steps": 3}


def of_steps(p: Program, f: Any) -> dict[str, Any]:
    if "ratio" in f.evidence:
        return of_long_step(p, f)
    if "weight_decay" in f.evidence:
        return of_decay(p, f)
    rates = tuple(g["lr"] for v in p.w.space.values() if hasattr(v, "param_groups") for g in v.param_groups)
    runs = p.w.run_of(p.w.key(f.evidence["of"]))
    if "stuck" in f.evidence:
        pushed = runs[-1]["arrived"] != 0
        return {"stuck": (runs[-1]["step"][pushed] == 0).mean(), "weight": norm(runs[-1]["weight"]), "rates": rates,
                "gradient norm": norm(runs[-1]["arrived"])}  # fmt: skip
    several = [p.w.run_of(p.w.key(name)) for name in f.evidence["leaves"]]  # the one with the largest gradient counts
    steps = [max(pairs, key=lambda pair: norm(pair[1]["arrived"])) for pairs in zip(*map(pairwise, several), strict=True)]
    turns = [float((a["arrived"] * b["arrived"]).sum() / norm(a["arrived"]) / norm(b["arrived"])) for a, b in steps]
    losses = [s.loss for s in p.w.sweeps]
    return {"cosine": turns[-1], "sweeps": sum(t < -0.9 for t in turns), "first": losses[1], "last": losses[-1], "rates": rates}


def in_cell(p: Program, key: int) -> list[dict[str, Any]]:
    """Return the run of a leaf in the last cell; `at` counts its sweeps from 1."""
    return [{**run, "at": run["at"] - p.w.before_last + 1} for run in p.w.run_of(key) if run["at"] >= p.w.before_last]


def of_long_step(p: Program, f: Any) -> dict[str, Any]:
    """Return the longest step after the first sweep of the cell after which a matrix moved by more than ten times its norm."""
    runs = [run for key in p.w.end for run in in_cell(p, key) if run["weight"].ndim >= 2 and np.isfinite(run["arrived"]).all()]
    ratio = [norm(run["step"]) / max(norm(run["weight"]), 1e-300) for run in runs]
    first = min(run["at"] for run, far in zip(runs, ratio, strict=True) if far > 10)
    far, worst = max(((r, run) for r, run in zip(ratio, runs, strict=True) if run["at"] == first), key=lambda pair: pair[0])
    rates = [g["lr"] for v in p.w.space.values() if hasattr(v, "param_groups") for g in v.param_groups]
    losses = [sweep.loss for sweep in p.w.sweeps[p.w.before_last :]]
    found = {
        "moved": norm(worst["step"]),
        "weight": norm(worst["weight"]),
        "ratio": far,
        "gradient norm": norm(worst["arrived"]),
        "rates": tuple(rates),
        "loss": losses[first - 1],
        "next": losses[first] if len(losses) > first else None,
    }
    if "input" in f.evidence:
        x = array(p.w.resolve(f.message.split("`")[1]))
        found |= {"input": np.sqrt((x**2).mean()), "largest": abs(x).max()}
    return found


def of_decay(p: Program, f: Any) -> dict[str, Any]:
    runs = in_cell(p, p.w.key(f.evidence["of"]))
    groups = [g for v in p.w.space.values() if hasattr(v, "param_groups") for g in v.param_groups]
    last = next(run for run in runs if run["at"] == f.evidence["numbers"][1])
    return {"weight_decay": groups[0]["weight_decay"], "rates": (groups[0]["lr"],), "first norm": norm(runs[0]["weight"]),
            "last norm": norm(last["weight"]), "numbers": (runs[0]["at"], last["at"])}  # fmt: skip


def of_sum(p: Program, f: Any) -> dict[str, Any]:
    tree = ast.parse(p.nodes[f.node].place.source, mode="eval").body
    losses = [s.loss for s in p.w.sweeps]
    stated = f.evidence.get("last", 0)  # the loss of a sweep that was examined
    found: dict[str, Any] = {"first": losses[0], "last": min(losses[1:], key=lambda x: abs(x - stated))} if losses[1:] else {}
    if "ratio" in f.evidence:
        runs = [run for key in p.w.end for run in p.w.run_of(key)]
        worst = max(runs, key=lambda run: norm(run["step"]) / max(norm(run["weight"]), 1e-300))
        moved, weight = norm(worst["step"]), norm(worst["weight"])
        found = {"moved": moved, "weight": weight, "ratio": moved / weight}
    if (isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add)) or "sum([" in ast.unparse(tree):
        data = [v for v in p.w.space.values() if isinstance(v, list) and v and isinstance(v[0], tuple)]
        return found | {"n": len(data[0])}
    return found | {"n": p.w.of(ast.unparse(operands(tree, "")[0]))[0].numbers.shape[0]}


# ----------------------------------------------------------------------------------------------------------------- depth
def of_way(p: Program, f: Any) -> dict[str, Any]:
    e = f.evidence
    gains = []
    for i in e["nodes"]:
        try:
            given = p.operand(i).grad
        except (LookupError, IndexError):
            given = None
        if given is None:  # the input of a product is the activation before it
            given = p.grad(i - 1)
        gains.append(norm(given) / norm(p.grad(i)))
    found = {"first": norm(p.grad(e["start"])), "last": norm(p.grad(e["end"])), "operations": len(gains),
             "product": math.prod(gains), "each": math.prod(gains) ** (1 / len(gains))}  # fmt: skip
    found["layers"] = sum(len(p.values(i)) for i in layers(p))
    if "scale" in e:
        weight = array(p.w.resolve(p.nodes[e["matrix"]].name.partition(", ")[0]))
        linear = p.nodes[e["matrix"]].name.partition(", ")[0].endswith(".weight")  # (out, in), and of x @ W (in, out)
        found |= {"scale": np.sqrt((weight**2).mean()), "xavier": math.sqrt(2 / sum(weight.shape)),
                  "he": math.sqrt(2 / weight.shape[1 if linear else 0]), "shape": weight.shape}  # fmt: skip
    if "bound" in e:  # the largest slope, by finite differences
        x = np.linspace(-3, 3, 60001)
        found["bound"] = (np.diff(1 / (1 + np.exp(-x))) / np.diff(x)).max()
    if "constant" in e:
        tree = ast.parse(p.nodes[f.node].place.source, mode="eval")
        found["constant"] = min(
            (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)), key=lambda x: abs(x - e["constant"])
        )
    return found


def layers(p: Program) -> list[int]:
    """Return one node of each line or module that multiplies by a weight."""
    found: dict[Any, int] = {}
    for i, node in enumerate(p.nodes):
        if node.operation.startswith(("Mm", "Addmm", "Linear")) and node.kind == "operation":
            found.setdefault((node.place, node.module), i)
    return list(found.values())


def of_recurrence(p: Program, f: Any) -> dict[str, Any]:
    node = p.nodes[f.evidence["start"]]
    seen = p.values(f.evidence["start"])
    inner = any(call.kind == "RNNCell" and call.path == node.module for call in p.case.trace.calls)
    g = [one.grad for one in seen if one.grad is not None]
    if inner:  # the state is tanh of a sum, whose gradient is (1 - h²) times that of h
        g = [one.grad * (1 - one.numbers**2) for one in p.w.calls(node.module)]
    first, last, steps = norm(g[0]), norm(g[-1]), len(g)
    return {"first": first, "last": last, "steps": steps, "each": (first / last) ** (1 / (steps - 1))}


# ----------------------------------------------------------------------------------------------------------------- units
def of_dead(p: Program, f: Any) -> dict[str, Any]:
    x = p.operand(f.node).numbers
    found: dict[str, Any] = {"least": x.min(), "greatest": x.max()}
    if "units" in f.evidence:
        units = x.shape[-1]
        shut = int((x.reshape(-1, units) <= 0).all(0).sum())
        return found | {"units": units, "shut": shut, "places": x.size // units, "share": shut / units}
    return found | {"elements": int((p.grad(f.node) != 0).sum())}


STEEP = {"sigmoid": (0.25, lambda x: 1 / (2 + np.exp(-x) + np.exp(x))), "tanh": (1.0, lambda x: 1 - np.tanh(x) ** 2)}


def of_saturated(p: Program, f: Any) -> dict[str, Any]:
    node = p.nodes[f.node]
    if "rows" in f.evidence:
        y, x = p.value(f.node), p.operand(f.node).numbers
        rows = y.reshape(-1, y.shape[-1])
        sharp = int((rows.max(-1) > 0.999).sum())
        return {"rows": len(rows), "sharp": sharp, "share": sharp / len(rows), "largest": abs(x).max()}
    if any(call.kind == "LSTM" for call in p.case.trace.calls):
        return of_gates(p, f)
    name = node.operation.partition("Backward")[0].lower()
    steepest, slope = STEEP[name]
    x, g = p.operand(f.node).numbers, p.grad(f.node)
    reached = g != 0
    inputs = [array(v) for v in p.w.space.values() if isinstance(v, p.w.lib.Tensor) and "input" in f.evidence]
    size = min((np.sqrt((v**2).mean()) for v in inputs), key=lambda y: abs(y - f.evidence["input"]), default=0)
    low = int((slope(x)[reached] < 0.01 * steepest).sum())
    return {"elements": int(reached.sum()), "flat": low, "share": low / reached.sum(), "slope": 0.01 * steepest,
            "members": len(p.values(f.node)), "largest": abs(x).max(), "input": size}  # fmt: skip


def of_gates(p: Program, f: Any) -> dict[str, Any]:
    """Count the closed sigmoid gates of an LSTM written by hand."""
    (module,) = [m for m, _ in p.w.modules if type(m).__name__ == "LSTM"][:1] or [p.w.space["lstm"]]
    wi, wh, bi, bh = (array(getattr(module, name)) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))
    n, h, c, flat, largest = wh.shape[1], 0.0, 0.0, 0, None
    x = array(p.w.space["x"])
    h = c = np.zeros((x.shape[1], n))
    for step in x:
        z = step @ wi.T + h @ wh.T + bi + bh
        i, fo, g, o = (z[:, k * n : (k + 1) * n] for k in range(4))
        s = lambda a: 1 / (1 + np.exp(-np.clip(a, -700, 700)))  # noqa: E731
        c = s(fo) * c + s(i) * np.tanh(g)
        h = s(o) * np.tanh(c)
        flat += int((s(i) * (1 - s(i)) < 0.0025).sum())
        largest = abs(i).max() if largest is None else largest
    return {"elements": flat if "flat" in f.evidence else array(p.w.space["out"]).size, "flat": flat, "share": 1.0, "slope": 0.0025,  # noqa: E501
            "members": len(x), "largest": largest}  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- numbers
def of_mask(p: Program, f: Any) -> dict[str, Any]:
    """Find the rows of a mask that hide every key."""
    mask = p.w.resolve(f.evidence["mask"])
    numbers = np.asarray(mask.detach().cpu().numpy())
    hidden = numbers == f.evidence["hiding"] if numbers.dtype == bool else np.isneginf(numbers)
    return {"rows": tuple(map(tuple, np.argwhere(hidden.all(-1)).tolist()))}


def of_class_weights(p: Program, f: Any) -> dict[str, Any]:
    """Count the class weights if all are 0, and list the classes that occur, whose weights are 0."""
    call = ast.parse(p.nodes[f.node].place.source, mode="eval").body
    assert isinstance(call, ast.Call)
    given = next((k.value for k in call.keywords if k.arg == "weight"), None)
    weights = p.w.of(ast.unparse(given))[-1].numbers if given is not None else array(p.w.resolve(ast.unparse(call.func)).weight)
    targets = p.w.of(ast.unparse(call.args[1]))[-1].numbers.astype(int)
    occurring = np.unique(targets[targets >= 0])
    assert not weights[occurring].any()
    return {"classes": None if weights.any() else weights.size, "occurring": tuple(occurring.tolist())}


def of_birth(p: Program, f: Any) -> dict[str, Any]:
    if "mask" in f.evidence:
        return of_mask(p, f)
    if "weights" in f.evidence:
        return of_class_weights(p, f) | {"nans": 1, "infs": 0}
    e, i = f.evidence, f.node
    y = p.value(i)
    harmed = y if not np.isfinite(y).all() else input_gradient(p, i)
    found: dict[str, Any] = {"nans": int(np.isnan(harmed).sum()), "infs": int(np.isinf(harmed).sum())}
    if "then_nans" in e:
        found["then_nans"] = int(np.isnan(p.value(e["then"])).sum())
    try:
        x = p.operand(i, e.get("argument", 0)).numbers
    except (LookupError, IndexError):
        x = y
    finite = x[np.isfinite(x)]
    sized = (
        y if e.get("made") or "limit" in e or ("largest" in e and isinstance(e["largest"], tuple)) or "argument" not in e else x
    )
    found |= {"zeros": int((sized == 0).sum()), "size": sized.size}
    if finite.size:
        found |= {"least": finite.min(), "below": int((x < 0).sum()), "greatest": finite.max(), "largest": abs(finite).max()}
    found["ends"] = int((abs(x) == 1).sum())
    dtype = str(p.values(i)[p.execution(i)].tensor.dtype).rpartition(".")[2]
    found["limit"] = math.log(GREATEST.get(dtype, math.inf)) if dtype in GREATEST else 0.0
    found["bound"] = GREATEST.get(dtype)
    tree = ast.parse(p.nodes[i].place.source, mode="eval").body
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.MatMult) and isinstance(e.get("largest"), tuple):
        found["largest"] = tuple(abs(p.operand(i, k).numbers).max() for k in (0, 1))
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
        found |= {"exponent": tree.right.value, "slope": tree.right.value - 1}
        if isinstance(e.get("largest"), tuple):
            found["largest"] = (abs(finite).max(), float(tree.right.value))
    return found


def input_gradient(p: Program, i: int) -> np.ndarray:
    """Return the gradient of the input of an operation with a finite value: its derivative times the upstream gradient."""
    name, x, g = p.nodes[i].operation.partition("Backward")[0], p.operand(i).numbers, p.grad(i)
    with np.errstate(all="ignore"):
        if name == "Sqrt":
            return g * (0.5 / np.sqrt(x))
        if name == "Pow":
            exponent = ast.parse(p.nodes[i].place.source, mode="eval").body.right.value  # type: ignore[attr-defined]
            return g * (exponent * x ** (exponent - 1))
        if name == "Acos":
            return g * (-1 / np.sqrt(1 - x**2))
        if name == "Var":  # 2 (x - mean) / (n - 1)
            return g * (2 * (x - x.mean(0)) / np.float64(len(x) - 1))
    raise LookupError(f"the derivative of {name} is missing here")


def of_input(p: Program, f: Any) -> dict[str, Any]:
    name = f.message.split("`")[1]
    x = array(p.w.resolve(name))
    return {"nans": int(np.isnan(x).sum()), "infs": int(np.isinf(x).sum()), "size": x.size}


def of_falling_scale(p: Program, f: Any) -> dict[str, Any]:
    """Count the backward passes of the last cell after which no weight changed, and recompute the numbers of the cause."""
    scaler = p.w.space["scaler"]
    steps = [[one["step"] for one in runs] for runs in last_runs(p, p.w.end)]
    skipped = [not any(one.any() for one in ones) for ones in zip(*steps, strict=True)]
    last = scaler.get_scale() * 2  # the scale of the last step that was skipped
    found: dict[str, Any] = {"skipped": sum(skipped), "steps": len(skipped), "first": scaler._init_scale, "scale": last,
                             "parameters": len(p.w.end)}  # fmt: skip
    if "nans" not in f.evidence:
        return found
    if f.node is None:  # the step that was skipped last, and not the last one
        own = p.w.resolve(f.message.split("`")[1].partition("(")[0])
        given = [seen.given[0].numbers for module, seen in p.w.modules if module is own]
        x = next(one for one in reversed(given) if not np.isfinite(one).all())
        return found | {"nans": int(np.isnan(x).sum()), "infs": int(np.isinf(x).sum()), "size": x.size}
    if "arrived" in f.evidence:  # in the first step, which has the same weights
        g = p.grad(f.node) * found["first"] / last
        half = g.astype("float16")
        return found | {"nans": int(np.isnan(half).sum()), "infs": int(np.isinf(half).sum()), "size": g.size,
                        "arrived": abs(g).max() / found["first"], "scaled": abs(g).max(), "bound": 65504.0}  # fmt: skip
    return found | of_birth(p, f)


def of_scaled_step(p: Program, f: Any) -> dict[str, Any]:
    return {"scale": p.w.space["scaler"].get_scale()}


def of_rounded_update(p: Program, f: Any) -> dict[str, Any]:
    """Return the share of elements with a gradient that a step leaves, and the half unit by PyTorch's next number."""
    matrices = [key for key, end in p.w.end.items() if end.ndim >= 2]
    shares = [
        float(np.median([(run["step"][run["arrived"] != 0] == 0).mean() for run in runs])) for runs in last_runs(p, matrices)
    ]
    sizes = [p.w.end[key].size for key in matrices]
    end = p.w.end[p.w.key(f.evidence["of"])]
    size = p.w.lib.tensor(norm(end) / math.sqrt(end.size)).to(getattr(p.w.lib, f.evidence["dtype"]))
    above = p.w.lib.nextafter(size, p.w.lib.full_like(size, math.inf))
    return {"share": np.average(shares, weights=sizes), "weight": norm(end) / math.sqrt(end.size),
            "half unit": float(above - size) / 2, "rate": p.w.rates[-1]}  # fmt: skip


def of_moving_statistics(p: Program, f: Any) -> dict[str, Any]:
    """Return the changes of running statistics since the first call in training mode with a frozen weight."""
    module = p.w.resolve(f.evidence["of"])
    mean, variance = p.w.statistics[id(module)]
    shift = (array(module.running_mean) - mean) / np.sqrt(variance + module.eps)
    return {"shift": math.sqrt((shift**2).mean()), "spread": array(module.running_var).sum() / variance.sum()}


def of_frozen_moves(p: Program, f: Any) -> dict[str, Any]:
    """Return how many steps of the last cell moved a frozen parameter, and by which share of its norm all together."""
    key = p.w.key(f.evidence["of"])
    pairs = [(before[key][0], *after[key]) for before, after in pairwise(p.w.steps[max(p.w.last_cell_steps - 1, 0) :])]
    moves = [after - before for before, after, frozen in pairs if frozen and (after != before).any()]
    return {"steps": len(moves), "share": norm(sum(moves)) / norm(p.w.steps[-1][key][0])}


def of_unstable(p: Program, f: Any) -> dict[str, Any]:
    """Return the current inputs of a formula and its limits: where exp overflows, and the first sigmoid that is rounded to 1."""
    e = f.evidence
    found: dict[str, Any] = {}
    maker = p.w.of(p.nodes[e["maker"]].place.source)[-1]
    made, dtype = maker.numbers, str(maker.tensor.dtype).rpartition(".")[2]
    found |= {"least": made.min(), "largest": made.max(), "gap": 1 - made.max(), "limit": math.log(GREATEST[dtype])}
    logits = np.linspace(0, 60, 600_001, dtype="float64" if dtype == "float64" else "float32")
    found["rounds"] = logits[(1 / (1 + np.exp(-logits))).astype(dtype) == 1].min()
    if "source" in e:
        found["greatest"] = p.operand(e["source"]).numbers.max()
    return found


def of_near_limit(p: Program, f: Any) -> dict[str, Any]:
    """Return the distance of the inputs from the pole of an operation."""
    e, i = f.evidence, f.node
    if "bound" in e:
        return {"largest": abs(p.value(i)).max(), "bound": GREATEST["float16"]}
    if "share" in e:
        made, rows = p.w.of(p.nodes[e["maker"]].place.source)[-1].numbers, p.w.of(p.nodes[i].place.source)[-1].numbers
        share = (made == 0).mean()
        return {"share": share, "percent": 100 * share, "length": made.shape[-1], "rows": rows.size}
    x = p.operand(i, e["argument"]).numbers
    dtype = str(p.values(i)[p.execution(i)].tensor.dtype).rpartition(".")[2]
    name = p.nodes[i].operation.partition("Backward")[0]
    pole = {"Acos": 1.0, "Asin": 1.0, "Atanh": 1.0, "Log1P": -1.0, "Acosh": 1.0}.get(name, 0.0)
    found = {"distance": abs(abs(x) - abs(pole)).min(), "size": x.size, "greatest": x.max(), "limit": math.log(GREATEST[dtype])}
    tree = ast.parse(p.nodes[i].place.source, mode="eval").body
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
        found["exponent"] = ast.literal_eval(tree.right)
    return found


def of_underflow(p: Program, f: Any) -> dict[str, Any]:
    if "eps" in f.evidence:
        groups = [g for v in p.w.space.values() if hasattr(v, "param_groups") for g in v.param_groups]
        assert np.float16(groups[0]["eps"]) == 0
        return {"eps": groups[0]["eps"], "least": float(np.finfo(np.float16).smallest_subnormal)}
    tree = ast.parse(p.nodes[f.node].place.source, mode="eval").body
    others = [p.w.of(ast.unparse(part))[-1].numbers for part in operands(tree, "")[1:]]
    return {
        "largest": abs(p.grad(f.node)).max(),
        "factor": abs(others[0]).max(),
        "least": float(np.finfo(np.float16).smallest_subnormal),
    }


# ------------------------------------------------------------------------------------------------------------------ zero
def of_cancelled(p: Program, f: Any) -> dict[str, Any]:
    if "axis" in f.evidence:
        return of_constant(p, f)
    if "norms" not in f.evidence:
        found: dict[str, Any] = {"arrived": norm(p.grad(f.node))}
        given = p.operand(f.node).grad
        return found | ({"handed": norm(given)} if given is not None else {"handed": 0.0})
    leaf = p.values(f.node)[-1]
    total = norm(leaf.grad if leaf.grad is not None else 0)
    return {"total": total, "norms": contributions(p, f.node)}


def of_constant(p: Program, f: Any) -> dict[str, Any]:
    """Return the input shape and the constant result of a normalisation over an axis of one element."""
    given = p.operand(f.evidence["reduction"])
    shape = given.numbers.shape
    lonely = [axis for axis, size in enumerate(shape) if size == 1]
    x = given.numbers.reshape(-1)
    name = p.nodes[f.node].operation.partition("Backward")[0]
    result = {"LogSoftmax": np.log(np.exp(x - x) / np.exp(x - x))}.get(name)
    if result is None:
        result = p.values(f.node)[-1].numbers if not p.nodes[f.node].module else x / x
    axis = 1 if name == "NativeGroupNorm" else lonely[-1]  # a group is one of the channels
    return {"shape": shape, "axis": axis, "result": float(result.reshape(-1)[0])}


def contributions(p: Program, i: int) -> tuple[float, ...]:
    """Return the norm of the gradient that a tensor receives from each expression that uses it, by finite differences."""
    found = []
    for edge in p.case.trace.edges:
        if edge.source != i:
            continue
        t = edge.target
        if p.nodes[t].module or p.nodes[t].operation.startswith(("T", "Addmm", "Linear")):
            found += [
                norm(seen.grad.T @ seen.given[0].numbers)
                for seen in p.w.calls(p.nodes[t].module or p.nodes[i].name.rpartition(".")[0])
            ]
            break
        g = p.grad(t)
        tree = ast.parse(p.nodes[t].place.source, mode="eval").body
        parts = operands(tree, "")
        x, own = p.values(i)[-1].numbers, ast.unparse(parts[edge.argument])
        assert own == ast.unparse(ast.parse(p.nodes[i].name or p.nodes[i].place.source, mode="eval")), (own, p.nodes[i])
        slope = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            values = []
            for h in (-0.5e-3, 0.5e-3):
                moved = x.copy()
                moved[at] += h
                values.append(evaluate(p, tree, edge.argument, moved))
            slope[at] = (g * (values[1] - values[0]) / 1e-3).sum()
        found.append(norm(slope))
    return tuple(found)


def evaluate(p: Program, tree: Any, argument: int, x: np.ndarray) -> np.ndarray:
    """Evaluate an expression in float64 with one operand replaced."""
    if isinstance(tree, ast.BinOp):
        both = [x if k == argument else p.w.of(ast.unparse(part))[-1].numbers for k, part in enumerate((tree.left, tree.right))]
        return {ast.Sub: np.subtract, ast.Add: np.add, ast.Div: np.divide, ast.Mult: np.multiply}[type(tree.op)](*both)
    keywords = {{"dim": "axis"}[k.arg]: ast.literal_eval(k.value) for k in tree.keywords}
    return getattr(np, tree.func.attr)(x, **keywords)


def of_factor(p: Program, f: Any) -> dict[str, Any]:
    if "weights" in f.evidence:
        return of_class_weights(p, f)
    return {"arrived": norm(p.grad(f.node)), "literal": 0}


# ---------------------------------------------------------------------------------------------------------------- losses
def of_shapes(p: Program, f: Any) -> dict[str, Any]:
    shapes = [p.w.of(name.strip("`"))[-1].numbers.shape for name in f.evidence["names"]]
    n = max(max(shape) for shape in shapes)
    return {"n": n, "pairs": n * n, "shape": np.broadcast_shapes(*shapes), "shapes": tuple(shapes)}


def of_probabilities(p: Program, f: Any) -> dict[str, Any]:
    tree = ast.parse(p.nodes[f.node].place.source, mode="eval").body
    given = p.w.of(ast.unparse(operands(tree, "")[0] if "NLLLoss()" not in ast.unparse(tree) else tree.args[0]))[-1].numbers  # type: ignore[attr-defined]
    return {"least": given.min(), "greatest": given.max()}


RANGES = {"Sigmoid": (0, 1), "Tanh": (-1, 1), "Relu": (0, None), "Softplus": (0, None)}


def of_limited(p: Program, f: Any) -> dict[str, Any]:
    """Return the extremes and the zeros of the targets, and the range of the activation."""
    targets = p.operand(f.node, f.evidence["argument"]).numbers
    low, high = RANGES[p.nodes[f.evidence["maker"]].operation.partition("Backward")[0]]
    return {"least": targets.min(), "greatest": targets.max(), "zeros": int((targets == 0).sum()), "size": targets.size,
            "bound": 0.5, "low": low, "high": high}  # fmt: skip


def of_dropped(p: Program, f: Any) -> dict[str, Any]:
    """Count the zeros in the result of a dropout."""
    node = p.nodes[f.node]
    result = p.w.calls(node.module)[-1].numbers if node.module else p.value(f.node)
    return {"zeros": int((result == 0).sum()), "size": result.size}


def of_advantage(p: Program, f: Any) -> dict[str, Any]:
    """Compute the gradient of one factor of a product: that of the product times the other factor."""
    return {"norm": norm(p.grad(f.node) * p.operand(f.node, 1 - f.evidence["argument"]).numbers)}


def of_batch_softmax(p: Program, f: Any) -> dict[str, Any]:
    """Sum the probabilities of each example of a softmax over the batch."""
    node = p.nodes[f.node]
    result = p.w.calls(node.module)[-1].numbers if node.module else p.value(f.node)
    probabilities = np.exp(result) if (result < 0).any() else result
    return {"shape": result.shape, "sum": probabilities.sum(1).mean(), "examples": len(result)}


def of_equal_units(p: Program, f: Any) -> dict[str, Any]:
    """Count the units of each layer, and the sweeps after which its weight changed."""
    units, steps = [], []
    for name in f.evidence["leaves"]:
        weight, runs = array(p.w.resolve(name)), in_cell(p, p.w.key(name))
        columns = [axis for axis in (0, 1) if np.ptp(weight, axis=axis).max() < 1e-6]
        units.append(weight.shape[columns[0]])
        steps.append(sum(bool(run["step"].any()) for run in runs))
    return {"units": tuple(units), "steps": steps[0]}


def of_overwritten(p: Program, f: Any) -> dict[str, Any]:
    """Look for a tensor of the program with the shape of the overwritten one."""
    shapes = [tuple(value.shape) for value in p.w.space.values() if isinstance(value, p.w.lib.Tensor)]
    return {"shape": next((shape for shape in shapes if shape == tuple(f.evidence["shape"])), None)}


# ------------------------------------------------------------------------------------------------ optimizers and tied weights
def of_repeated(p: Program, f: Any) -> dict[str, Any]:
    """Count the parameters that an optimizer holds more than once, and how often it holds one at most."""
    keys = [id(q) for group in p.w.space[f.evidence["optimizer"]].param_groups for q in group["params"]]
    many = [keys.count(key) for key in set(keys) if keys.count(key) > 1]
    return {"parameters": len(many), "times": max(many)}


def of_two_optimizers(p: Program, f: Any) -> dict[str, Any]:
    held = [{id(q) for group in p.w.space[name].param_groups for q in group["params"]} for name in f.evidence["optimizers"]]
    return {"parameters": len(held[0] & held[1])}


def of_idle_group(p: Program, f: Any) -> dict[str, Any]:
    groups = p.w.space[f.evidence["optimizer"]].param_groups
    key = p.w.key(f.evidence["of"][0])
    at = next(i for i, group in enumerate(groups) if group["lr"] == 0 and key in map(id, group["params"]))
    runs = last_runs(p, [id(q) for q in groups[at]["params"]])
    total = math.hypot(*(norm(run[-1]["arrived"]) for run in runs))
    return {"group": at, "parameters": len(groups[at]["params"]), "gradient norm": total}


def of_tie(p: Program, f: Any) -> dict[str, Any]:
    return {"norms": tuple(norm(p.w.run_of(p.w.key(name))[-1]["arrived"]) for name in f.evidence["of"])}


RULES: dict[str, Callable[[Program, Any], dict[str, Any]]] = {
    "detached": of_cut, "item": of_cut, "numpy": of_cut, "no_grad": of_cut, "integer": of_cut, "re-wrapped": of_cut,
    "checkpoint-without-grad": of_checkpoint,
    "non-differentiable": of_flat, "frozen": of_frozen, "in-place": of_overwritten,
    "stale-optimizer": of_stale, "accumulated": of_accumulated, "step-before-backward": of_empty, "ascent": of_ascent,
    "update-ratio": of_steps, "sum-for-mean": of_sum,
    "nothing-learns": of_idle, "zero-learning-rate": of_rates, "clipped-to-nothing": of_clipping,
    "vanishing": of_way, "exploding": of_way, "recurrent": of_recurrence,
    "dead": of_dead, "saturated": of_saturated,
    "nan-born": of_birth, "inf-born": of_birth, "nan-input": of_input, "underflow": of_underflow,
    "falling-scale": of_falling_scale, "scaled-step": of_scaled_step, "rounded-update": of_rounded_update,
    "held-twice": of_repeated, "two-optimizers": of_two_optimizers, "idle-group": of_idle_group, "broken-tie": of_tie,
    "moving-statistics": of_moving_statistics, "frozen-moves": of_frozen_moves,
    "unstable": of_unstable, "near-limit": of_near_limit,
    "cancelled": of_cancelled, "zero-factor": of_factor,
    "limited-output": of_limited, "dropped-output": of_dropped, "undetached-advantage": of_advantage,
    "batch-softmax": of_batch_softmax, "equal-units": of_equal_units,
    "broadcast": of_shapes, "double-softmax": of_probabilities, "nll-of-probabilities": of_probabilities,
}  # fmt: skip

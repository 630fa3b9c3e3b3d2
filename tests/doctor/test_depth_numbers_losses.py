"""Depth, units, zeros, numbers and losses: faults are found on their lines, healthy cells have no finding, numbers are right."""

from __future__ import annotations

import ast
import math
import re

import numpy as np
import pytest
from claims import claim, trace_of_net
from sweep import Net, figures, nets
from symptoms import array
from test_planted import FAULTS, HEALTHY
from test_planted import each as each_in_a_shell
from tracing import case_of

import gradlab
from gradlab.explore.doctor.checks.depth import find_vanishing_and_exploding
from gradlab.explore.doctor.checks.losses import find_misused_losses
from gradlab.explore.doctor.checks.non_finite import find_non_finite
from gradlab.explore.doctor.checks.reduced_axes import drop_consequences_of_constants
from gradlab.explore.doctor.checks.step_causes import drop_consequences
from gradlab.explore.doctor.checks.steps import find_wrong_steps
from gradlab.explore.doctor.checks.sums import find_sums
from gradlab.explore.doctor.checks.units import find_dead_and_saturated_units
from gradlab.explore.doctor.checks.zeros import find_zero_gradients
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.session import NOTEBOOK

FAMILIES = (
    find_vanishing_and_exploding,
    find_dead_and_saturated_units,
    find_zero_gradients,
    find_non_finite,
    find_misused_losses,
    find_sums,
)
KINDS = frozenset(
    [
        "vanishing",
        "exploding",
        "recurrent",
        "dead",
        "saturated",
        "nan-born",
        "inf-born",
        "nan-input",
        "underflow",
        "zero-factor",
        "cancelled",
        "broadcast",
        "double-softmax",
        "nll-of-probabilities",
    ]
)
MINE = {name: row for name, row in FAULTS.items() if set(row.kinds) & KINDS and "non-differentiable" not in row.kinds}
OTHERS = {name: row for name, row in FAULTS.items() if name not in MINE and "sum-for-mean" not in row.kinds}


# Rows whose cure removes the symptom and keeps the recurrence.
STILL_RECURRENT = {"an RNNCell over eighty steps"}


def each(table) -> list[pytest.param]:
    """Return every row with every library it runs with. Without a shell, no row is expected to fail."""
    return [
        pytest.param(*one.values, id=one.id, marks=[mark for mark in one.marks if mark.name != "xfail"])
        for one in each_in_a_shell(table)
    ]


def diagnosis(case: Case | None) -> Diagnosis:
    """Return the findings of these families; none if no backward pass ran."""
    if case is None:
        return Diagnosis()
    causes = list(find_wrong_steps(case))
    findings = drop_consequences(case, [*causes, *(finding for family in FAMILIES for finding in family(case))])
    findings = drop_consequences_of_constants(case, findings)
    return Diagnosis.of([one for one in findings if one not in causes or one.kind in KINDS])


def diagnose(library: str, row) -> Diagnosis:
    pytest.importorskip(library)
    with case_of(library, row.texts) as (case, _):
        return diagnosis(case)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(MINE))
def test_a_fault_is_named_with_its_line(name, library):
    row = MINE[name]
    findings = diagnose(library, row).findings
    lines = {line for cell, line in (*row.causes, *row.as_good) if cell == len(row.texts) - 1}
    right = [f for f in findings if f.kind in row.kinds and (not lines or f.line in lines)]
    assert right, findings
    assert len(findings) == 1, findings  # one cause, one finding
    for words in row.says:
        assert words in str(right[0])
    for words in row.never:
        assert words not in right[0].fix


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(HEALTHY))
def test_healthy_cells_have_no_finding(name, library):
    said = diagnose(library, HEALTHY[name])
    assert not said.findings
    assert {remark.kind for remark in said.remarks} <= set(HEALTHY[name].remarks)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(OTHERS))
def test_faults_of_other_families_are_not_reported(name, library):
    assert not diagnose(library, OTHERS[name]).findings


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(MINE))
def test_a_cured_fault_is_healthy(name, library):
    pytest.importorskip(library)
    if name in STILL_RECURRENT:
        return
    with case_of(library, MINE[name].cured) as (case, _):
        assert not [f for f in diagnosis(case).findings if f.kind in MINE[name].kinds]


# ------------------------------------------------------------------------------------------------------------ evidence
def count(x, condition) -> int:
    return int(condition(array(x)).sum())


TRUE = {
    # row: (kind, {evidence: its value by NumPy, over the names that the cells define})
    "the logarithm of a probability that is 0": ("inf-born", {"zeros": "count(p, lambda a: a == 0)", "size": "array(p).size"}),
    "entropy with zeros": (
        "nan-born",
        {
            "zeros": "count(p, lambda a: a == 0)",
            "size": "array(p).size",
            "then_nans": "int(np.isnan(array(p) * np.log(array(p))).sum())",
        },
    ),
    "distances with a zero diagonal": (
        "inf-born",
        {"zeros": "int((((array(pts)[:, None] - array(pts)) ** 2).sum(-1) == 0).sum())"},
    ),
    "a norm by hand of a zero row": ("nan-born", {"zeros": "int((np.linalg.norm(array(vectors), axis=1) == 0).sum())"}),
    "softmax by hand overflows": (
        "nan-born",
        {"greatest": "(array(X) @ array(lin.weight).T + array(lin.bias)).max()", "limit": "math.log(np.finfo(np.float32).max)"},
    ),
    "the logarithm of something negative": (
        "nan-born",
        {"least": "array(rate).min()", "below": "count(rate, lambda a: a < 0)", "size": "array(rate).size"},
    ),
    "a NaN in the data": ("nan-input", {"nans": "count(X, np.isnan)", "size": "array(X).size"}),
    "rectifiers shut by their bias": (
        "dead",
        {
            "units": "10",
            "shut": "int((array(X) @ array(net[0].weight).T + array(net[0].bias) <= 0).all(0).sum())",
            "places": "len(array(X))",
        },
    ),
    "most units dead": (
        "dead",
        {"shut": "int((array(h) == 0).all(0).sum())", "units": "array(h).shape[1]"},
    ),
    "tanh at its ends": (
        "saturated",
        {"flat": "int((1 - np.tanh(array(Z)) ** 2 < 0.01).sum())", "elements": "array(Z).size", "largest": "abs(array(Z)).max()"},
    ),
    "attention without its scale": ("saturated", {"rows": "20"}),
    "weights of a hundredth": (
        "vanishing",
        {"scale": "np.sqrt((array(mlp.blocks[1].weight) ** 2).mean())", "xavier": "math.sqrt(2 / 64)", "he": "math.sqrt(2 / 32)"},
    ),
    "a product of two hundred factors": (
        "recurrent",
        {"steps": "200", "first": "np.float32(0.8) ** 199.0", "each": "0.8"},
    ),
    "a recurrence that grows": (
        "recurrent",
        {"steps": "60", "each": "np.linalg.norm(array(U), 2)"},
    ),
    "the mean of a centred tensor": ("cancelled", {"norms": "(18 ** -0.5, 18 ** -0.5)"}),
    "float16 rounds to zero": (
        "underflow",
        {"least": "float(np.finfo(np.float16).smallest_subnormal)", "factor": "float(np.float16(1e-3))"},
    ),
    "a column against a row": ("broadcast", {"shape": "np.broadcast_shapes(pred.shape, y.shape)", "n": "len(array(y))"}),
    "softmax before cross_entropy": ("double-softmax", {"least": "array(probs).min()", "greatest": "array(probs).max()"}),
    "nll_loss of probabilities": ("nll-of-probabilities", {"least": "array(out).min()", "greatest": "array(out).max()"}),
}


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", TRUE)
def test_evidence_matches_numpy(name, library):
    pytest.importorskip(library)
    kind, facts = TRUE[name]
    with case_of(library, MINE[name].texts) as (case, space), np.errstate(all="ignore"):
        finding = next(f for f in diagnosis(case).findings if f.kind == kind)
        for key, expression in facts.items():
            expected = eval(expression, {**space, "array": array, "count": count, "np": np, "math": math})
            assert np.allclose(finding.evidence[key], expected, rtol=1e-3), (key, finding.evidence[key], expected)


@pytest.mark.parametrize("net", [Net("mlp", "sigmoid", "xavier", 32, 12, 0), Net("mlp", "relu", "one", 64, 8, 1)], ids=str)
def test_norms_along_the_depth_match_numpy(net):
    (finding,) = find_vanishing_and_exploding(Case(trace_of_net(net, gradlab)))
    gains = net.gains()  # gradient norms at the inputs of the layers, divided by that of the output
    slope = {"sigmoid": 12, "relu": 8}[net.activation]
    assert finding.evidence["layers"] == net.depth == slope
    # The range from the first product's output to the last's excludes the gains of the first matrix and the last activation.
    W, Ws = net.weights()[0], net.weights()[-1]
    ratio = finding.evidence["first"] / finding.evidence["last"]
    low, high = (np.linalg.svd(W, compute_uv=False)[k] for k in (-1, 0))
    assert gains[0] / high <= finding.evidence["first"] / _start(net) <= gains[0] / low
    low, high = (np.linalg.svd(Ws, compute_uv=False)[k] for k in (-1, 0))
    assert gains[-1] / high <= finding.evidence["last"] / _start(net) <= gains[-1] / low
    assert finding.evidence["product"] == pytest.approx(finding.evidence["each"] ** finding.evidence["operations"])
    assert (ratio < 1) == (finding.kind == "vanishing")


def _start(net: Net) -> float:
    rng = np.random.default_rng(net.seed + 1)
    rng.normal(size=(16, net.width))
    return float(np.linalg.norm(rng.normal(size=(16, net.width))))


NUMBER = re.compile(r"(?<![\w.\]])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w\[])")
# Numbers that are not measurements: bounds from calculus and dtypes, and constants in the advice.
KNOWN = {0.0, 1.0, 2.0, 65504.0, 0.999, -1.0, 100.0, -100.0, 1e-6, 1e-8, 1e-12, 0.25, 3.4e38, 88.7, 0.1}


def leaves_of(value) -> list:
    return [x for one in value for x in leaves_of(one)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize(("name", "library"), each(MINE))
def test_each_number_of_a_message_is_evidence(name, library):
    """The numbers agree to the digits shown; those in lines, code and names are ignored."""
    for finding in diagnose(library, MINE[name]).findings:
        text = re.sub(r"`[^`]*`|lines? \d+|\(\d+, ?\d*\)|\d+×\d+", "", finding.message)
        values = leaves_of(tuple(finding.evidence.values()))
        known = KNOWN | {float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)}
        known |= {v * v for v in known if abs(v) < 1e6}  # n² pairs of a broadcast
        for shown in map(float, NUMBER.findall(text)):
            assert any(math.isclose(shown, v, rel_tol=6e-3) for v in known), (shown, finding)


# ------------------------------------------------------------------------------------------------- biases without effect
IDLE = {
    "a batch norm": (
        ("nn.Linear(10, 20), nn.BatchNorm1d(20), nn.Linear(20, 2)", "64, 10"),
        "The bias `model[0].bias` has no effect: BatchNorm1d (`model[1]`) subtracts the mean. Use bias=False.",
    ),
    "an instance norm": (
        ("nn.Conv2d(1, 4, 3), nn.InstanceNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)", "16, 1, 8, 8"),
        "The bias `model[0].bias` has no effect: InstanceNorm2d (`model[1]`) subtracts the mean. Use bias=False.",
    ),
    "two batch norms": (
        ("nn.Linear(10, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Linear(9, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)", "64, 10"),
        (
            "The biases `model[0].bias` and `model[3].bias` have no effect: the normalisation after each, as BatchNorm1d "
            "(`model[1]`), subtracts the mean. Use bias=False."
        ),
    ),
}


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", IDLE)
def test_a_bias_without_effect_is_named_with_what_subtracts_it(name, library):
    pytest.importorskip(library)
    (layers, shape), said = IDLE[name]
    made = f"model = nn.Sequential({layers}); x = torch.randn({shape})"
    with case_of(library, (made, "loss = (model(x) - 1).pow(2).mean()\nloss.backward()")) as (case, space):
        found = diagnosis(case)
        assert not found.findings
        assert [str(remark) for remark in found.remarks] == [said]
        for bias in re.findall(r"`(\S+\.bias)`", said):  # adding to it does not change the loss
            leaf, before = eval(bias, space), float(space["loss"].item())
            with space["torch"].no_grad():
                leaf += 3.0
            again = (space["model"](space["x"]) - 1).pow(2).mean()
            assert math.isclose(float(again.item()), before, rel_tol=1e-4)


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("h = x @ W + b\nh = h - h.mean(0)\nloss = (h.tanh() @ V).pow(2).mean()", "the mean over the rows is subtracted"),
        ("loss = (torch.softmax(x @ W + b, 1) @ V).pow(2).mean()", "all entries of a row of the softmax"),
    ],
)
def test_a_bias_that_is_subtracted_by_hand(cell, said, library):
    pytest.importorskip(library)
    size = "()" if "softmax" in cell else "(6,)"
    made = f"""x = torch.randn(9, 4)
W, V = (torch.randn(a, b).requires_grad_() for a, b in ((4, 6), (6, 2)))
b = torch.zeros({size}).requires_grad_()"""
    with case_of(library, (made, f"{cell}\nloss.backward()")) as (case, _):
        found = diagnosis(case)
        assert not found.findings
        (remark,) = found.remarks
        assert "`b` has no effect" in str(remark) and said in str(remark)


# --------------------------------------------------------------------------------------------------------------- advice
CODE = re.compile(r"(?:nn\.init\.\w+\([^)]*\)|\(?[\w.@*+ ()\[\]]+\)?\.(?:squeeze|unsqueeze|clamp|isfinite)\([^)]*\))")
PRINTED = {
    "both layers start at zero": "nn.init.normal_(W1, std=0.1)",
    "a column against a row": ("pred.squeeze(1)", "y.unsqueeze(1)"),
    "weights of samples that broadcast": ("w_sample.squeeze(1)", "per.unsqueeze(1)"),
    "the residual of a fit, one axis too many": ("(a * ts + b).squeeze(1)", "obs.unsqueeze(1)"),
    "a NaN in the data": "X.isfinite()",
    "distances with a zero diagonal": "(diff ** 2).sum(-1) + 1e-12",
}


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", PRINTED)
def test_advice_that_is_code_runs_as_printed(name, library):
    pytest.importorskip(library)
    codes = PRINTED[name] if isinstance(PRINTED[name], tuple) else (PRINTED[name],)
    with case_of(library, MINE[name].texts) as (case, space):
        (finding,) = diagnosis(case).findings
        for code in codes:
            assert code in finding.fix
            ast.parse(code)
            eval(code, space)


# ---------------------------------------------------------------------------------------------------------------- sweep
@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "widths", "seeds"), [("mlp", (16, 64, 128), (0, 1, 2)), ("conv", (16, 64), (0,))])
def test_no_false_alarm_and_no_miss_over_the_sweep(kind, widths, seeds):
    judged = figures(lambda net: claim(net, gradlab), nets((kind,), widths, seeds=seeds))
    assert judged["false alarms"] == judged["misses"] == 0
    assert judged["healthy"] > 80 and judged["unhealthy"] > 60


@pytest.mark.slow
def test_recurrent_nets_have_no_false_alarm():
    """A net that is only vanishing or exploding by the formula of infinite width is not a miss."""
    judged = figures(lambda net: claim(net, gradlab), nets(("rnn",), (16, 64), seeds=(0, 1)))
    assert judged["false alarms"] == 0
    unhealthy = [net for net in nets(("rnn",), (64,), (16, 32), (0,)) if net.truth not in ("healthy", None)]
    assert all(claim(net, gradlab) == net.truth for net in unhealthy if not 1e-8 < net.gains()[0] < 1e8)


@pytest.mark.slow
def test_a_few_nets_of_the_sweep():
    judged = figures(lambda net: claim(net, gradlab), nets(("mlp",), (16,), (2, 8, 32), (0,)))
    assert judged["false alarms"] == judged["misses"] == 0


# ------------------------------------------------------------------------------------------------------ numbers in messages
@pytest.mark.parametrize(
    ("function", "limit"),
    [("exp", 88.7228), ("expm1", 88.7228), ("exp2", 128.0), ("sinh", 89.4159), ("cosh", 89.4159)],
)
def test_the_limit_of_an_exponential(run, function, limit):
    """For float32, with the largest number m ≈ 2**128, the limits are ln m, log2 m and ln 2m."""
    made = f"x = torch.tensor([{limit + 1}, {limit - 1}], requires_grad=True)"
    ran = run("gradlab", (f"%%grad\n{made}\nout = x.{function}()\nout.sum().backward()",))
    assert np.isinf(array(ran.shell.ns["out"])).tolist() == [True, False], "the limit is between the two"
    finding = NOTEBOOK.last.findings[0]
    assert f"{function} of {limit + 1:.3g} " in finding.message and f"the limit is {limit:.1f}." in finding.message
    np.testing.assert_allclose(finding.evidence["limit"], limit, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "own"),
    [("cross_entropy(torch.sigmoid(z), y)", "softmax"), ("binary_cross_entropy_with_logits(torch.sigmoid(z), t)", "sigmoid")],
)
def test_the_message_names_the_function_that_a_loss_applies(run, loss, own):
    text = f"%%grad\nz = torch.randn(8, 3, requires_grad=True)\ny, t = torch.arange(8) % 3, torch.rand(8, 3)\nF.{loss}.backward()"
    run("gradlab", (text,))
    (finding,) = NOTEBOOK.last.findings
    assert finding.kind == "double-softmax" and f"applies {own} to them itself" in finding.message
    assert ("sigmoid applied twice" in finding.message) == (own == "sigmoid")


@pytest.mark.parametrize("arguments", ["ignore_index=0, weight=weight", "weight=weight, ignore_index=0"])
def test_ignored_targets_have_no_weight(run, arguments):
    text = (
        "%%grad\nz = torch.randn(4, 3, requires_grad=True)\nweight = torch.tensor([1.0, 0.0, 1.0])\n"
        f"y = torch.tensor([0, 1, 1, 0])\nF.cross_entropy(z, y, {arguments}).backward()"
    )
    run("gradlab", (text,))
    assert "class 1, the only one that occurs, has weight 0" in NOTEBOOK.last.findings[0].message

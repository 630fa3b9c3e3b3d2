"""Findings on rare operations, whose properties the checks read from the table of operations."""

from __future__ import annotations

import textwrap

import pytest
from tracing import case_of

from gradlab.explore.doctor.checks.cut_history import find_zero_derivatives
from gradlab.explore.doctor.checks.depth import find_vanishing_and_exploding
from gradlab.explore.doctor.checks.units import find_dead_and_saturated_units
from gradlab.explore.doctor.context.loss_sign import sign_of_loss

pytestmark = pytest.mark.torch


def find(check, text):
    with case_of("torch", (textwrap.dedent(text),)) as (case, _):
        return list(check(case))


@pytest.mark.parametrize("layer", ["PReLU", "Mish", "CELU"])
def test_the_initialisation_for_rare_rectifiers(layer):
    (finding,) = find(
        find_vanishing_and_exploding,
        f"""
        layers = []
        for _ in range(6):
            layers += [nn.Linear(64, 64), nn.{layer}()]
        model = nn.Sequential(*layers, nn.Linear(64, 1))
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight)
        loss = model(torch.randn(16, 64)).pow(2).mean()
        loss.backward()
        """,
    )
    assert finding.kind == "exploding"
    assert finding.fix == "Draw the weights with a standard deviation of 0.177 (ReLU)."


@pytest.mark.parametrize("layer", ["Mish()", "CELU()", "Hardswish()"])
def test_units_of_rare_rectifiers_are_dead(layer):
    (finding,) = find(
        find_dead_and_saturated_units,
        f"""
        model = nn.Sequential(nn.Linear(10, 32), nn.{layer}, nn.Linear(32, 1))
        nn.init.constant_(model[0].bias, -200.0)
        loss = model(torch.randn(64, 10)).sub(1).pow(2).mean()
        loss.backward()
        """,
    )
    assert finding.kind == "dead"
    assert finding.evidence["shut"] == 32


def test_the_units_after_a_group_normalisation_are_channels():
    (finding,) = find(
        find_dead_and_saturated_units,
        """
        model = nn.Sequential(nn.Conv1d(4, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv1d(8, 1, 3))
        nn.init.constant_(model[1].bias, -9.0)
        loss = model(torch.randn(16, 4, 30)).sub(1).pow(2).mean()
        loss.backward()
        """,
    )
    assert (finding.evidence["units"], finding.evidence["places"]) == (8, 16 * 28)


COMPARED = """
w, x = torch.randn(3, requires_grad=True), torch.randn(16, 3)
h = (x @ w).clone()
h.{method}
loss = (h - 1).pow(2).sum()
loss.backward()
"""


def test_a_comparison_in_place_has_no_derivative():
    (finding,) = find(find_zero_derivatives, COMPARED.format(method="gt_(0.0)"))
    assert "`h.gt_(0.0)` on line 4 has the derivative 0 (gt)" in finding.message
    assert finding.fix == "Use a smooth function (sigmoid)."


@pytest.mark.parametrize("method", ["uniform_()", "exponential_()", "fill_(2.0)", "zero_()"])
def test_replaced_values_are_not_reported_as_without_a_derivative(method):
    assert find(find_zero_derivatives, COMPARED.format(method=method)) == []


@pytest.mark.parametrize(
    ("loss", "sign"),
    [
        ("w.sqrt().mean()", 1),
        ("w.std()", 1),
        ("F.log_softmax(w, 0)[0]", -1),
        ("torch.special.log_ndtr(w).sum()", -1),
        ("torch.std_mean(w)[1]", 0),
        ("torch.cat([w ** 2, w]).sum()", 0),
    ],
)
def test_the_sign_of_a_loss(loss, sign):
    with case_of("torch", (f"w = torch.rand(3, requires_grad=True)\nloss = {loss}\nloss.backward()",)) as (case, _):
        assert sign_of_loss(case) == sign

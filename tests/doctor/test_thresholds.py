"""Thresholds separate the measurements of healthy rows from those of faults (`measured_runs`)."""

from __future__ import annotations

import functools

import pytest
from measured_runs import figures_of_steps, shares
from test_planted import FAULTS, HEALTHY

from gradlab.explore.doctor.checks.step_causes import MAX_RATIO
from gradlab.explore.doctor.checks.steps import MIN_COSINE_UP
from gradlab.explore.doctor.checks.units import MIN_DEAD_SHARE, MIN_SATURATED_SHARE


@pytest.mark.slow
def test_cosines_distinguish_ascent_from_descent():
    found = figures_of_steps()
    assert found["runs"] == 192
    assert found["greatest down"] < -0.25 < MIN_COSINE_UP < 0.26 < found["least first up"]


@functools.cache
def healthy_shares():
    return shares(HEALTHY)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "kind", "threshold", "healthy", "faulty"),
    [
        ("shut", "dead", MIN_DEAD_SHARE, 0.63, 0.85),
        ("flat", "saturated", MIN_SATURATED_SHARE, 0.14, 0.98),
        ("sharp", "saturated", MIN_SATURATED_SHARE, 0.14, 0.98),
        ("ratio", "update-ratio", MAX_RATIO, 5.2, 37.0),
    ],
)
def test_a_threshold_separates_healthy_rows_from_faults(measure, kind, threshold, healthy, faulty):
    below = healthy_shares()[measure]
    above = [x for x in shares(FAULTS, (kind,))[measure] if x > threshold]
    assert below and above
    assert max(below) <= healthy < threshold < faulty <= min(above)

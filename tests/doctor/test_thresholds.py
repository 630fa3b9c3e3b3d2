"""The thresholds lie between what is measured of the healthy and of the sick (`measured_runs`)."""

from __future__ import annotations

import functools

import pytest
from measured_runs import figures_of_steps, shares
from test_planted import FAULTS, HEALTHY

from gradlab.explore.doctor.checks.step_causes import MAX_RATIO
from gradlab.explore.doctor.checks.steps import MIN_COSINE_UP
from gradlab.explore.doctor.checks.units import MIN_DEAD_SHARE, MIN_SATURATED_SHARE


@pytest.mark.slow
def test_steps_up_and_down_are_told_apart_by_their_cosines():
    found = figures_of_steps()
    assert found["runs"] == 192
    assert found["greatest down"] < -0.25 < MIN_COSINE_UP < 0.26 < found["least first up"]


@functools.cache
def of_healthy_rows():
    return shares(HEALTHY)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "kind", "threshold", "healthy", "sick"),
    [
        ("shut", "dead", MIN_DEAD_SHARE, 0.63, 0.85),
        ("flat", "saturated", MIN_SATURATED_SHARE, 0.14, 0.98),
        ("sharp", "saturated", MIN_SATURATED_SHARE, 0.14, 0.98),
        ("ratio", "update-ratio", MAX_RATIO, 5.2, 37.0),
    ],
)
def test_a_threshold_lies_between_the_healthy_and_the_planted(measure, kind, threshold, healthy, sick):
    well = of_healthy_rows()[measure]
    ill = [x for x in shares(FAULTS, (kind,))[measure] if x > threshold]
    assert well and ill
    assert max(well) <= healthy < threshold < sick <= min(ill)

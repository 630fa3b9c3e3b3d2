"""Plugin of pytest that runs each test inside `gl.tracing()` or `gl.watch()`, according to GRADLAB_INSIDE.

    GRADLAB_INSIDE=tracing python -m pytest -p inside test_autograd.py

The clock is stopped, so that recording never pauses to save time.
"""

import os

import pytest

import gradlab as gl
from gradlab import clock

INSIDE = os.environ["GRADLAB_INSIDE"]


@pytest.fixture(autouse=True)
def inside():
    with clock.use_source(lambda: 0.0):
        if INSIDE == "tracing":
            with gl.tracing():
                yield
        else:
            import torch

            with gl.watch({"w": torch.ones(1, requires_grad=True)}):
                yield

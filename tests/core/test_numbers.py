"""Python numbers as constants: one cached tensor for each number, up to a limit."""

from __future__ import annotations

import gradlab as gl
from gradlab.core import generate


def test_the_cache_is_bounded_after_a_race_at_the_limit(monkeypatch):
    known = {float(i): gl.tensor(float(i)) for i in range(1, generate.MAX_CACHED_NUMBERS + 2)}  # one too many, by a race
    monkeypatch.setitem(generate.NUMBER_CACHE, "f", known)
    x = gl.ones(2)
    for i in range(10):
        x * (1000.5 + i)
    assert len(known) == 10

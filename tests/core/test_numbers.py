"""Python numbers as constants: one tensor for each number, and not more of them than are worth it."""

from __future__ import annotations

import gradlab as gl
from gradlab.core import generate


def test_the_numbers_kept_are_bounded_after_threads_stepped_over_the_limit(monkeypatch):
    known = {float(i): gl.tensor(float(i)) for i in range(1, generate.MANY + 2)}  # one more than the limit: two threads added one
    monkeypatch.setitem(generate.KNOWN, "f", known)
    x = gl.ones(2)
    for i in range(10):
        x * (1000.5 + i)
    assert len(known) == 10

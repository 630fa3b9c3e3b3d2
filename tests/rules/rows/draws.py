"""Samples of random draws."""

from __future__ import annotations

from rules.sample import case

from gradlab.rules.draws import draw

CASES = [
    case("draw", lambda x: draw.record(x, values=(x * 0).detach().array) + x, (3, 4), coincidence=True),
]

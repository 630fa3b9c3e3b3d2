"""Kinds of findings that `gl.watch` reports over many steps."""

from __future__ import annotations

from gradlab.explore.doctor.registry import declare

declare(
    "stopped-learning",
    meaning="a layer whose gradient is exactly 0 from some step on",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "loss-swings",
    meaning="a loss that swings and comes no further",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "diverged",
    meaning="a loss that grows far beyond where it began",
    why="",
    remedy="",
    fault="",
    healthy="",
)

"""The steps that a GradScaler has skipped, and whether it is only searching for its scale."""

from __future__ import annotations

from dataclasses import dataclass

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.trace.data import Event

IN_A_ROW = 8  # skipped steps that a search does not need: the scale has become 256 times smaller
LATER = 5  # skipped steps after the first step that was made
RATE = 0.05  # share of skipped steps since then; by default the scale is doubled after 2000 steps without one


@dataclass
class ScaledSteps:
    """The steps of an optimizer by a GradScaler.

    Attributes
    ----------
    made, skipped : int
        How many were made and skipped.
    in_a_row : int
        How many were skipped since the last one that was made.
    later : int
        How many were skipped after the first one that was made.
    since : int
        How many there were, made or skipped, since that one.
    """

    made: int = 0
    skipped: int = 0
    in_a_row: int = 0
    later: int = 0
    since: int = 0

    def add(self, is_skipped: bool) -> None:
        """Add a step."""
        self.skipped += is_skipped
        self.made += not is_skipped
        self.in_a_row = self.in_a_row + 1 if is_skipped else 0
        if self.made:
            self.since += 1
            self.later += is_skipped

    @property
    def is_falling(self) -> bool:
        """Return whether so many steps were skipped that the scale keeps falling."""
        return self.in_a_row >= IN_A_ROW or (self.later >= LATER and self.later >= RATE * self.since)


@dataclass(frozen=True)
class FallingScale:
    """The steps of an optimizer that a GradScaler keeps skipping: their number with the others, and the skipped ones."""

    steps: ScaledSteps
    skips: list[Event]


def falling_scale(case: Case) -> FallingScale | None:
    """Return the steps of the first optimizer whose steps a GradScaler keeps skipping; None if there is none."""
    events = _scaled_steps(case)
    for whose in dict.fromkeys(event.whose for event in events):
        own, steps = [event for event in events if event.whose == whose], ScaledSteps()
        for event in own:
            steps.add(event.kind == "skip")
        if steps.is_falling:
            return FallingScale(steps, [event for event in own if event.kind == "skip"])
    return None


def is_searching(case: Case) -> bool:
    """Return whether the last steps were skipped, but not so many that the scale may not be the cause."""
    events = _scaled_steps(case)
    return bool(events) and events[-1].kind == "skip" and falling_scale(case) is None


def falling_text(statement: str, steps: ScaledSteps, first: float, last: float) -> str:
    """Return that a statement skipped steps, with the scale of the first and the last of them, for a sentence."""
    total = steps.made + steps.skipped
    many = f"{steps.skipped} of {total}" if steps.made else f"all {total}"
    return f"{statement} skipped {many} steps, and the scale fell from {first:.8g} to {last:.8g}"


def _scaled_steps(case: Case) -> list[Event]:
    if case.trace is None:
        return []
    keys = {leaf.key for leaf in case.trace.leaves}
    return [one for one in case.trace.events if one.scale and one.kind in ("step", "skip") and not keys.isdisjoint(one.held)]

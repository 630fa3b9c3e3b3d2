"""The steps that a GradScaler has skipped, and whether it is only searching for its scale."""

from __future__ import annotations

from dataclasses import dataclass

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.libraries.loss_scaling import factor_text
from gradlab.explore.trace.data import Event

# A search from the default scale, 65536, may take ten skipped steps: then gradients above 512 have overflowed float16.
IN_A_ROW = 8
LOW = 32.0  # the largest scale that a search does not need
LATER = 5  # times that steps were skipped after one that was made
RATE = 0.05  # share of skipped steps since the first one that was made; by default the scale is doubled after 2000 others


@dataclass
class ScaledSteps:
    """The steps of an optimizer by a GradScaler.

    Attributes
    ----------
    made, skipped : int
        How many were made and skipped.
    in_a_row : int
        How many were skipped since the last one that was made.
    since, later : int
        How many there were since the first one that was made, and how many of them were skipped.
    times : int
        How often steps were skipped after one that was made.
    scale : float
        The scale of the last one that was skipped.
    """

    made: int = 0
    skipped: int = 0
    in_a_row: int = 0
    since: int = 0
    later: int = 0
    times: int = 0
    scale: float = 0.0

    def add_made(self) -> None:
        """Add a step that was made."""
        self.made += 1
        self.since += 1
        self.in_a_row = 0

    def add_skipped(self, scale: float) -> None:
        """Add a step that was skipped at a scale."""
        self.skipped += 1
        self.times += self.made > 0 and self.in_a_row == 0
        self.in_a_row += 1
        self.scale = scale
        if self.made:
            self.since += 1
            self.later += 1

    @property
    def is_falling(self) -> bool:
        """Return whether so many steps were skipped that the scale keeps falling."""
        is_low = self.in_a_row >= IN_A_ROW and self.scale <= LOW
        return is_low or (self.times >= LATER and self.later >= RATE * self.since)


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
            if event.kind == "skip":
                steps.add_skipped(event.scale)
            else:
                steps.add_made()
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
    return f"{statement} skipped {many} steps, and the scale fell from {factor_text(first)} to {factor_text(last)}"


def _scaled_steps(case: Case) -> list[Event]:
    if case.trace is None:
        return []
    keys = {leaf.key for leaf in case.trace.leaves}
    return [one for one in case.trace.events if one.scale and one.kind in ("step", "skip") and not keys.isdisjoint(one.held)]

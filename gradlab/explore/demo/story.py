"""The programs of the demonstration: a network that does not learn a sine, and the same network with the line that the doctor
found.

Both programs run as under `gradlab doctor`. The fix is the difference between their sources.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradlab.explore.libraries import library_of
from gradlab.explore.report.comparison import changed_lines
from gradlab.explore.report.table import BLOCKS
from gradlab.explore.script import Program, ScriptRun, run_script, text

NAME = "fit_sine.py"
BROKEN = """\
import {library}
from {library} import nn

torch.manual_seed(0)
x = torch.linspace(-3, 3, 96).reshape(96, 1)
y = torch.sin(2 * x[:, 0])

model = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

losses = []
for step in range(500):
    out = model(x)
    loss = ((out - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

print(f"loss {{losses[0]:.3f}}, after {{len(losses)}} steps {{losses[-1]:.2g}}")
"""
WRONG, RIGHT = "(out - y)", "(out.squeeze(1) - y)"
TARGET, ANSWER = "sin 2x", "model(x)"  # labels in charts


@dataclass(frozen=True)
class DemoRun:
    """The run of one program.

    Attributes
    ----------
    run : ScriptRun
    printed : str
        The printed text.
    inputs, targets, answers : tuple of float
        The inputs, targets and outputs of the network after the training.
    losses : tuple of float
        The loss of each step.
    """

    run: ScriptRun
    printed: str
    inputs: tuple[float, ...]
    targets: tuple[float, ...]
    answers: tuple[float, ...]
    losses: tuple[float, ...]


@dataclass(frozen=True)
class Story:
    """The runs of both programs."""

    broken: DemoRun
    fixed: DemoRun

    @property
    def difference(self) -> tuple[str, ...]:
        """The lines that change, "- loss = …" and "+ loss = …"."""
        before, after = (one.run.program.source.splitlines() for one in (self.broken, self.fixed))
        return changed_lines(before, after)

    def text(self) -> str:
        """Return the story for a terminal."""
        broken, fixed = self.broken, self.fixed
        code = "\n".join(f"  {i:>3}  {line}" for i, line in enumerate(broken.run.program.source.splitlines(), 1))
        return "\n\n".join(
            [
                f"A network should learn a sine ({NAME}):",
                code.rstrip(),
                f"It runs without an error, and learns nothing: {broken.printed}\n\n{chart(broken)}",
                f"gradlab doctor {NAME} says why:",
                text(broken.run, unseen=False),
                "With that line changed",
                "\n".join(f"    {line}" for line in self.difference),
                f"it learns: {fixed.printed}\n\n{chart(fixed)}",
            ]
        )


def run_story(library: str) -> Story:
    """Run both programs on a library, "torch" or "gradlab"."""
    source = BROKEN.format(library="torch" if library == "torch" else "gradlab as torch").replace(
        "from gradlab as torch import", "from gradlab import"
    )
    return Story(_run(source), _run(source.replace(WRONG, RIGHT)))


def _run(source: str) -> DemoRun:
    here = os.getcwd()
    program = Program(NAME, os.path.join(here, "gradlab demo", NAME), source, (), here)
    said = io.StringIO()
    kept: dict[str, tuple[float, ...]] = {}

    def keep(names: Mapping[str, Any]) -> None:
        kept.update(inputs=_numbers(names["x"]), targets=_numbers(names["y"]), answers=_numbers(names["model"](names["x"])))
        kept["losses"] = tuple(names["losses"])

    with contextlib.redirect_stdout(said):
        seen = run_script(program, after=keep)
    return DemoRun(seen, said.getvalue().strip(), **kept)


def _numbers(tensor: Any) -> tuple[float, ...]:
    library = library_of(tensor)
    assert library is not None
    return tuple(float(number) for number in library.array(tensor.detach()).reshape(-1))


def chart(one: DemoRun, wide: int = 60) -> str:
    """Return the targets and the answers as rows of blocks over the inputs, with the ends of both axes."""
    low, high = min(one.targets), max(one.targets)
    rows = [(TARGET, one.targets), (ANSWER, one.answers)]
    lines = [f"    {name:<8}  {_blocks(numbers, low, high, wide)}" for name, numbers in rows]
    left, right = f"x = {format_signed(one.inputs[0])}", f"x = {format_signed(one.inputs[-1])}"
    scale = f"{BLOCKS[1]} is {format_signed(low)}, {BLOCKS[-1]} is {format_signed(high)}"
    return "\n".join([*lines, f"    {'':<8}  {left}{scale:^{wide - len(left) - len(right)}}{right}"])


def format_signed(x: float) -> str:
    """Write a number with two digits and a minus sign."""
    return f"{x:.2g}".replace("-", "−")


def _blocks(numbers: tuple[float, ...], low: float, high: float, wide: int) -> str:
    columns = [
        numbers[i * len(numbers) // wide : max((i + 1) * len(numbers) // wide, i * len(numbers) // wide + 1)] for i in range(wide)
    ]
    heights = [(math.fsum(column) / len(column) - low) / (high - low) for column in columns]
    return "".join(BLOCKS[1 + round(min(max(height, 0.0), 1.0) * 7)] for height in heights)

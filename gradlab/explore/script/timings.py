"""A table of the times that checks took."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gradlab.explore.doctor.registry import CHECKS
from gradlab.explore.script.running import ScriptRun

WIDTH = 120  # characters of a line


def timings_table(run: ScriptRun) -> str:
    """Return a table of the checks that ran, the slowest first: milliseconds, share of all checks, and kinds."""
    return "\n".join(_lines(run))


def _lines(run: ScriptRun) -> Iterator[str]:
    seconds = sorted(run.diagnosis.seconds.items(), key=lambda item: -item[1])
    total = sum(taken for _, taken in seconds)
    kinds = {check.name: ", ".join(check.kinds) for check in CHECKS}
    width = max(map(len, ["check", *run.diagnosis.seconds]))
    yield f"{'check':{width}}        ms  share  kinds"
    for name, taken in seconds:
        row = f"{name:{width}}  {1000 * taken:8.2f}  {_share(taken, total):>5}  "
        text = textwrap.fill(row + kinds.get(name, ""), WIDTH, subsequent_indent=" " * len(row), break_on_hyphens=False)
        yield text.rstrip()
    yield ""
    yield f"All checks took {1000 * total:.2f} ms. The script ran for {run.seconds:.2f} s."


def _share(part: float, total: float) -> str:
    return f"{part / total:.0%}" if total else ""

"""Save the measurements of a run, and compare a later run with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measuring import Measurement


def save(path: str, measured: Mapping[str, Measurement]) -> None:
    """Write measurements to a JSON file."""
    Path(path).write_text(json.dumps({name: one._asdict() for name, one in measured.items()}, indent=1) + "\n")


def load(path: str) -> dict[str, Measurement]:
    """Read the measurements that `save` wrote.

    Raises
    ------
    SystemExit
        If the file does not exist or has another format.
    """
    try:
        return {name: Measurement(**one) for name, one in json.loads(Path(path).read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SystemExit(f"{path} is not a run saved with --save: {error}") from None


def comparison(before: Mapping[str, Measurement], now: Mapping[str, Measurement]) -> str:
    """Return a table of the ratios then and now, and of gradlab's own time now over then, of the workloads in both runs."""
    lines = [f"{'workload':32s} {'ratio then':>10s} {'now':>7s} {'now / then':>11s} {'own time':>9s}"]
    for name in before:
        if name in now:
            a, b = before[name], now[name]
            lines.append(f"{name:32s} {a.ratio:10.2f} {b.ratio:7.2f} {b.ratio / a.ratio:11.2f} {b.ours / a.ours:9.2f}")
    if missing := [name for name in now if name not in before]:
        lines.append(f"not in the saved run: {', '.join(missing)}")
    return "\n".join(lines)

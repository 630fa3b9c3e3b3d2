"""`python -m benchmarks.healthy.notebook FILE [--magic %%grad] [--sweeps NAME …]`: run a notebook's cells in one IPython shell.

A magic is inserted above each cell that trains, and its output is printed below a heading. The numbers of cells that raise are
printed last: old notebooks may have some.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from benchmarks.healthy.training_cells import SWEEPS, training_cells, without_shell

FAILED = "cells that raised:"


def cells_of(notebook: Path) -> list[str]:
    """Return the code of each cell, "" for one that is not code."""
    cells = json.loads(notebook.read_text())["cells"]
    return [without_shell("".join(cell["source"])) if cell["cell_type"] == "code" else "" for cell in cells]


def run(notebook: Path, magic: str, sweeps: list[str]) -> None:
    shell = InteractiveShell.instance()
    if magic:
        shell.run_line_magic("load_ext", "gradlab")
    sources = cells_of(notebook)
    training = training_cells(sources, sweeps)
    raised = []
    for number, source in enumerate(sources):
        if not source.strip():
            continue
        trains = bool(magic) and number in training
        with capture_output() as captured:
            done = shell.run_cell(f"{magic}\n{source}" if trains else source, store_history=True)
        error = done.error_before_exec or done.error_in_exec
        if error is not None:
            raised.append(f"{number} ({type(error).__name__}: {str(error)[:200]})")
        if trains:
            print(f"── cell {number}")
            for output in captured.outputs:
                print(output.data.get("text/plain", ""))
    print(FAILED, "; ".join(raised))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.healthy.notebook", description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--magic", default="")
    parser.add_argument("--sweeps", nargs="*", default=list(SWEEPS))
    options = parser.parse_args()
    run(options.notebook, options.magic, options.sweeps)


if __name__ == "__main__":
    main()

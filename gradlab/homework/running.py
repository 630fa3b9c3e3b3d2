"""A whole notebook run and checked without nbgrader: for pytest, and for a teacher who has one notebook before him.

The notebook runs in a kernel of its own (a cell that fails does not stop it), in a copy of its folder with the teacher's
`checks.py`; then every exercise is checked in that kernel.
"""
from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from gradlab.homework.exercises import CHECKS, load
from gradlab.homework.verdicts import Finding, Verdict

MARK = "gradlab-verdicts:"
GRADE = """
import dataclasses as _d, json as _j
from gradlab.homework import load as _load
_homework = _load(".")
print({mark!r} + _j.dumps([_d.asdict(_homework.check(_n, globals(), {seed})) for _n in sorted(_homework.exercises)], default=str))
"""


def run(notebook: str | Path, seed: int = 0, checks: str | Path | None = None, timeout: float = 120) -> list[Verdict]:
    """Run a notebook and check all its exercises.

    Parameters
    ----------
    notebook : path
        A student's notebook, or the one with solutions. It is not written to.
    seed : int
        Of the shapes and numbers that the checks draw.
    checks : path, optional
        The folder of `checks.py`; by default the notebook's own.
    timeout : float
        Seconds for one cell.

    Returns
    -------
    list of Verdict
        One for each exercise, in order.

    Notes
    -----
    Needs nbclient and ipykernel (the extra `lab`). The notebook's code runs as it is, without a sandbox.
    """
    import nbformat
    from nbclient import NotebookClient

    path = Path(notebook).resolve()
    read: Any = nbformat.read(path, as_version=4)
    homework = load(path.parent if checks is None else checks)
    read.cells.append(nbformat.v4.new_code_cell(GRADE.format(mark=MARK, seed=seed)))
    with tempfile.TemporaryDirectory(prefix="gradlab-") as folder:
        for file in path.parent.iterdir():
            if file.is_file() and file.suffix != ".ipynb":
                shutil.copy(file, folder)
        shutil.copy(Path(path.parent if checks is None else checks) / CHECKS, folder)
        client = NotebookClient(read, timeout=timeout, allow_errors=True, store_widget_state=False,
                                resources={"metadata": {"path": folder}})
        client.execute()
    printed = "".join(output.get("text", "") for output in read.cells[-1].outputs if output.output_type == "stream")
    found = next((line for line in printed.splitlines() if line.startswith(MARK)), None)
    if found is None:
        said = "\n".join(output.get("evalue", "") for output in read.cells[-1].outputs if output.output_type == "error")
        raise RuntimeError(f"{path.name} could not be checked ({homework.title}): {said or printed or 'the kernel said nothing'}")
    return [Verdict(one["number"], one["title"], one["worth"], [Finding(**finding) for finding in one["findings"]])
            for one in json.loads(found.removeprefix(MARK))]

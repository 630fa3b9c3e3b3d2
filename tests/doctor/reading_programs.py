"""Training programs as people write them, each in a healthy and in a faulty form. Their files are in `programs/`.

A file runs alone (`python gan.py`) and is healthy. The faulty form differs in one to three lines: lines that end in `# healthy`
are removed, and comments `# faulty: …` become code. The docstring ends with the fault: its kinds, any of which is right, and a
description. "Note" instead of "Fault" means that others write the same on purpose, so the doctor should only report a Note.
The lines at fault are those marked `# cause`, or otherwise the faulty ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"
FAULT = re.compile(r"^(Fault|Note) \(([^)]+)\): ", re.MULTILINE)
LINE = re.compile(r"^(\s*)# faulty: (.*)$")


@dataclass(frozen=True)
class Program:
    """A program in one of its forms.

    Attributes
    ----------
    text : str
        Its source without marks.
    kinds : tuple of str
        The kinds of finding that are right; empty for the healthy form.
    lines : frozenset of int
        The lines at fault, counted from 1.
    remark : bool
        Whether a Note is expected instead of a Problem.
    """

    text: str
    kinds: tuple[str, ...] = ()
    lines: frozenset[int] = frozenset()
    remark: bool = False


def read(name: str, faulty: bool) -> Program:
    """Return the healthy or the faulty form of a program."""
    source = (FOLDER / f"{name}.py").read_text()
    declared = FAULT.search(source)
    assert declared, f"{name}: its docstring names no fault"
    head, body = source[: declared.start()], source[declared.start() :]
    text: list[str] = (head.rstrip() + '"""\n' + body.split('"""\n', 1)[1]).splitlines()
    kept, marked, put = [], set(), set()
    for line in text:
        swapped = LINE.match(line)
        if (swapped and not faulty) or (line.endswith("# healthy") and faulty):
            continue
        if swapped:
            line = swapped[1] + swapped[2]
            put.add(len(kept) + 1)
        if line.endswith("# cause"):
            marked.add(len(kept) + 1)
        kept.append(re.sub(r"  # (healthy|cause)$", "", line))
    form = "\n".join(kept) + "\n"
    if not faulty:
        return Program(form)
    assert marked or put, f"{name}: no line is at fault"
    return Program(form, tuple(declared[2].split(", ")), frozenset(marked or put), declared[1] == "Note")


NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.py")))

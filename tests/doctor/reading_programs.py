"""Training programs as people write them, each in a healthy and in a faulty form; `programs/` holds their files.

A file runs alone (`python gan.py`) and is healthy. The faulty form differs in one to three lines: it lacks the lines that end in
`# healthy`, and has those that stand as `# faulty: …` in comments. The docstring ends with the fault: its kinds, any of which is
right, and what it is; it begins with "Note" where others write the same on purpose, so that no more than a Note is due. The lines
at fault are those with the mark `# cause`, or else the faulty ones.
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
        Its source, without marks.
    kinds : tuple of str
        The kinds of finding that would be right; none for the healthy form.
    lines : frozenset of int
        The lines at fault, the first line of the text being 1.
    remark : bool
        Whether a Note is what is due.
    """

    text: str
    kinds: tuple[str, ...] = ()
    lines: frozenset[int] = frozenset()
    remark: bool = False


def read(name: str, faulty: bool) -> Program:
    """The program of a name, healthy or faulty."""
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

"""Test cells for the doctor: cells with a planted fault, and healthy cells for which it must find nothing.

How to add a row
----------------
A fault is a call of `fault(…)` in the module of its family in `faults/`; a healthy cell is a call of `healthy(…)` in `healthy/`.
The text is what a user types into a notebook. Lines `# %%` separate cells. The last cell runs under `%%grad`, and so does an
earlier one whose line is `# %% grad`. Before the first cell, the names `torch`, `gl` (the same library), `nn`, `F`, `optim`, `np`
and `math` are defined and the seed is 0, so one text runs with every library.

- `#!` at the end of a line marks the *cause*, whose line the finding must name, and `#?` a line that is also accepted. The marks
  are removed before the cell runs. A fault without a mark has no line.
- `kind` is the name of a kind of finding, or several names if each would be right.
- `shows` is the symptom: an expression over the cells' names that is true. It may call the functions of `symptoms`.
- `cure` replaces pieces of the text so that the symptom disappears. This proves that the marked cause is the cause.
- `raises` is the error that the last cell raises, if it raises one.
- `says` lists words that the message must contain, such as names and numbers; `never` lists words that no fix may contain.

`test_planted.py` runs all rows and their cures with each library; `test_findings.py` tests what the doctor finds in them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from gradlab.explore.doctor import examine  # noqa: F401  (declares all kinds)
from gradlab.explore.doctor.registry import KINDS, NOTE

LIBRARIES = ("gradlab", "torch")


@dataclass(frozen=True)
class Cells:
    """The cells of a row, as typed.

    Attributes
    ----------
    name : str
        Name of the row, as part of a test's name.
    texts : tuple of str
        The cells in order, with the line `%%grad` if they have one.
    causes, as_good : tuple of (int, int)
        The marked lines as (cell, line). The first cell is 0, and its first line, which may be `%%grad`, is 1.
    libraries : tuple of str
        Libraries that the row runs with.
    """

    name: str
    texts: tuple[str, ...]
    causes: tuple[tuple[int, int], ...]
    as_good: tuple[tuple[int, int], ...]
    libraries: tuple[str, ...]

    @property
    def line(self) -> int | None:
        """The line of the last cell that the finding must name, or None."""
        return next((line for cell, line in self.causes if cell == len(self.texts) - 1), None)


@dataclass(frozen=True)
class Fault(Cells):
    """Cells with a planted fault. The docstring of the module explains the fields."""

    kinds: tuple[str, ...]
    shows: str
    cured: tuple[str, ...]
    raises: str | None
    says: tuple[str, ...]
    never: tuple[str, ...]

    @property
    def is_note(self) -> bool:
        """True if all its kinds are Notes."""
        return all(KINDS[kind].severity == NOTE for kind in self.kinds)


@dataclass(frozen=True)
class Healthy(Cells):
    """Cells in which nothing is wrong. `remarks` are the kinds of remarks that are accepted; `learns` is a condition that is true
    afterwards, which shows that the cells train something."""

    remarks: tuple[str, ...]
    learns: str


def cells_of(text: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return the cells of a text, which `# %%` separates, without their marks; the lines marked `#!`; the lines marked `#?`."""
    heads, bodies = [""], [[]]  # type: ignore[var-annotated]
    for line in inspect.cleandoc(text).splitlines():
        if line.startswith("# %%"):
            heads.append(line[4:].strip())
            bodies.append([])
        else:
            bodies[-1].append(line)
    if not bodies[0]:
        heads, bodies = heads[1:], bodies[1:]
    heads[-1] = "grad"
    texts, causes, as_good = [], [], []
    for cell, (head, body) in enumerate(zip(heads, bodies, strict=True)):
        lines = ["%%grad"] * (head == "grad") + body
        for number, line in enumerate(lines, 1):
            causes += [(cell, number)] * line.endswith("#!")
            as_good += [(cell, number)] * line.endswith("#?")
        texts.append("\n".join(line.removesuffix("#!").removesuffix("#?").rstrip() for line in lines))
    return tuple(texts), tuple(causes), tuple(as_good)


def as_tuple(words: str | tuple[str, ...]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else words


class Table(dict[str, Cells]):
    """Rows by name. Names are unique, kinds are declared, and a cure only replaces text that occurs."""

    def add(self, row: Cells) -> None:
        assert row.name not in self, f"two rows have the name {row.name!r}"
        self[row.name] = row

    def fault(
        self,
        name: str,
        kind: str | tuple[str, ...],
        text: str,
        *,
        shows: str,
        cure: Mapping[str, str],
        raises: str | None = None,
        says: str | tuple[str, ...] = (),
        never: str | tuple[str, ...] = (),
        libraries: tuple[str, ...] = LIBRARIES,
    ) -> None:
        cured = inspect.cleandoc(text)
        for old, new in cure.items():
            assert old in cured, f"{name}: the cure replaces {old!r}, which is not in the text"
            cured = cured.replace(old, new)
        kinds = as_tuple(kind)
        assert set(kinds) <= set(KINDS), f"{name}: {kinds}"
        texts, causes, as_good = cells_of(text)
        self.add(
            Fault(
                name, texts, causes, as_good, libraries, kinds, shows, cells_of(cured)[0], raises, as_tuple(says), as_tuple(never)
            )
        )

    def healthy(
        self,
        name: str,
        text: str,
        *,
        learns: str,
        remarks: str | tuple[str, ...] = (),
        libraries: tuple[str, ...] = LIBRARIES,
    ) -> None:
        texts, causes, as_good = cells_of(text)
        assert not causes + as_good, f"{name}: a healthy cell has no line marked as a fault"
        assert set(as_tuple(remarks)) <= set(KINDS), f"{name}: {remarks}"
        self.add(Healthy(name, texts, (), (), libraries, as_tuple(remarks), learns))

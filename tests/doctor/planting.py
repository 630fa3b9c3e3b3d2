"""The doctor's test material: cells with a planted fault, and healthy cells on which it must be silent.

How to add a row
----------------
A fault is one call of `fault(…)` in the module of its family in `faults/`; a healthy cell is one of `healthy(…)` in `healthy/`.
The text is what a user types, as in a notebook: cells are parted by lines `# %%`, the last one runs under `%%grad`, and an
earlier one does where its line says `# %% grad`. Before the first cell the names `torch`, `gl` (the same library), `nn`, `F`,
`optim`, `np` and `math` are there, the seed is 0, and nothing else; so one text runs on every library.

- `#!` at the end of a line marks the line of the *cause*, which the finding must name, and `#?` a line that is as good. The
  marks are taken out before the cell runs. A fault without a mark has no line.
- `kind` is the name of a kind of findings, or several where each would be right.
- `shows` is the symptom, an expression over the names of the cells that is true; `symptoms` lists what it may call.
- `cure` replaces pieces of the text, and then the symptom is gone. This is what proves that the row's cause is the cause.
- `raises` is the error with which the last cell ends, if the fault ends it.
- `says` are words that the message must contain, names and numbers of the user's; `never` words that no fix may contain.

`test_planted.py` runs all rows and their cures on each library; what the doctor makes of them is tested beside it.
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
        What the row is called, in the words of a test's name.
    texts : tuple of str
        The cells in order, those under `%%grad` with their first line.
    causes, as_good : tuple of (int, int)
        The marked lines as (cell, line), both as IPython counts them: the line of `%%grad` is line 1, the first cell is 0.
    libraries : tuple of str
        Where the row runs.
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
    """Cells with a planted fault; the module's docstring says what the fields mean."""

    kinds: tuple[str, ...]
    shows: str
    cured: tuple[str, ...]
    raises: str | None
    says: tuple[str, ...]
    never: tuple[str, ...]

    @property
    def noted(self) -> bool:
        """Whether all its kinds are kinds of Notes."""
        return all(KINDS[kind].severity == NOTE for kind in self.kinds)


@dataclass(frozen=True)
class Healthy(Cells):
    """Cells in which nothing is wrong. `remarks` are the kinds of which a neutral remark would be right; `learns` is what holds
    after them, so that no row is healthy by doing nothing."""

    remarks: tuple[str, ...]
    learns: str


def parted(text: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """The cells of a text in which `# %%` parts them, without their marks; the lines marked `#!`; those marked `#?`."""
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
    """Rows by name. Names are unique, kinds are declared, and the text contains what a cure replaces."""

    def add(self, row: Cells) -> None:
        assert row.name not in self, f"two rows are called {row.name!r}"
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
            assert old in cured, f"{name}: the cure replaces {old!r}, which is not there"
            cured = cured.replace(old, new)
        kinds = as_tuple(kind)
        assert set(kinds) <= set(KINDS), f"{name}: {kinds}"
        texts, causes, as_good = parted(text)
        self.add(
            Fault(
                name, texts, causes, as_good, libraries, kinds, shows, parted(cured)[0], raises, as_tuple(says), as_tuple(never)
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
        texts, causes, as_good = parted(text)
        assert not causes + as_good, f"{name}: a healthy cell has no line at fault"
        assert set(as_tuple(remarks)) <= set(KINDS), f"{name}: {remarks}"
        self.add(Healthy(name, texts, (), (), libraries, as_tuple(remarks), learns))

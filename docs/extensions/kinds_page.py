"""Write the page of all kinds of findings, from their declarations. The examples run when the site is built."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from gradlab.explore.doctor import examine
from gradlab.explore.doctor.examples import WATCH, diagnose_example, looks_at
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.registry import KINDS, RUN, STATE, Kind, split_marks

TITLES = {
    "checks.cut_history": "The history is cut",
    "checks.checkpoints": "The history is cut",
    "checks.rebound_leaves": "Leaves that are replaced or not used",
    "checks.leaves": "Leaves that are replaced or not used",
    "checks.ties": "Leaves that are replaced or not used",
    "checks.training": "Optimizers and gradients over steps",
    "checks.membership": "Optimizers and gradients over steps",
    "checks.steps": "Size and direction of steps",
    "checks.depth": "Vanishing and exploding gradients",
    "checks.units": "Dead and saturated units",
    "checks.zeros": "Gradients that are exactly 0",
    "checks.non_finite": "NaN and infinity",
    "checks.losses": "Losses with the wrong input",
    "checks.sums": "Losses with the wrong input",
    "checks.dropped_outputs": "Losses with the wrong input",
    "checks.keras_outputs": "Models of Keras",
    "checks.linear_models": "Models of Keras",
    "errors": "Errors",
    "checks.final_state": "After a run that was not recorded",
    "checks.watched_runs": "Over many steps, with `gl.watch`",
}
WIDTH = 88  # characters in a line of output
DESCRIPTION = (
    "All kinds of gradient problems that gradlab finds in PyTorch training code, with examples, fixes, and how to silence them."
)
START = f"""\
---
myst:
  html_meta:
    description: "{DESCRIPTION}"
---
# Kinds of findings

The doctor prints the kind of a finding in brackets after it, for example `[detached]`. `gradlab doctor --explain KIND` prints the
text below. A **Problem** makes the exit status of `gradlab doctor` 1. A **Note** describes something that many programs do on
purpose.

To silence a kind:

| where | what you write |
| --- | --- |
| on one line | `loss = criterion(probabilities, labels)  # gradlab: ignore[double-softmax]` |
| in code | `gl.doctor(ignore=["double-softmax"])` |
| in a notebook | `%%doctor --ignore double-softmax`, also for `%doctor` and `%%grad` |
| for a script | `gradlab doctor --ignore double-softmax train.py` |
| of a watched run | `w.findings.without(["loss-swings"])` |

The comment may be on any line of the statement. Several kinds are separated by commas, and `# gradlab: ignore` silences all
kinds.

"""


def title_of(kind: Kind) -> str:
    """Return the title of the section that a kind belongs to: by default the name of its module."""
    module = kind.module.removeprefix("gradlab.explore.doctor.")
    return TITLES.get(
        "errors" if module.startswith("errors.") else module, module.partition(".")[2].replace("_", " ").capitalize()
    )


def sections() -> dict[str, list[Kind]]:
    """Return the kinds by the titles of their sections, in the order of `examine`'s table of contents."""
    modules = [one.__name__ for one in (*examine.RUNS, *examine.ERRORS, *examine.STATES, *examine.WATCHES)]
    known = sorted(KINDS.values(), key=lambda kind: modules.index(kind.module) if kind.module in modules else len(modules))
    by_title: dict[str, list[Kind]] = {title: [] for title in TITLES.values()}
    for kind in known:
        by_title.setdefault(title_of(kind), []).append(kind)
    return by_title


def summary(kinds: list[Kind]) -> Iterator[str]:
    """Yield a table of kinds and their meanings."""
    yield "| kind | severity | meaning |\n| --- | --- | --- |\n"
    for kind in kinds:
        yield f"| [{kind.name}](#{kind.name}) | {kind.severity} | {kind.meaning} |\n"
    yield "\n"


def fence(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n\n"


def output_of(kind: Kind) -> str:
    """Return the first finding of a kind in its example with the fault, as `gradlab doctor` prints it."""
    found = diagnose_example(kind.name, library=kind.libraries[-1])
    first = next(one for one in (*found.findings, *found.remarks) if one.kind == kind.name)
    lines = [wrap(f"{'Note' if first.remark else 'Problem'}  {first.message}  [{first.kind}]")]
    return "\n".join([*lines, *([wrap(f"  → {first.fix}")] if first.fix else [])])


def kinds_in(found: Diagnosis) -> set[str]:
    return {one.kind for one in (*found.findings, *found.remarks)}


def wrap(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def page_of(kind: Kind) -> Iterator[str]:
    """Yield the section of a kind."""
    source, marked = split_marks(kind.fault)
    where_found = looks_at(kind.name)
    of_script = where_found == STATE and kind.name in kinds_in(diagnose_example(kind.name, recorded=True))
    how = {
        RUN: "`gradlab doctor example.py`, or `%%doctor` above it in a notebook, reports",
        STATE: f"{'`gradlab doctor example.py`, or ' if of_script else ''}`%doctor` or `gl.doctor()` after it reports",
        WATCH: "`w.findings` reports",
    }[where_found]
    where = f" for line {marked[0]}" if marked else ""
    yield f"({kind.name})=\n### {kind.name}\n\n{kind.meaning}"
    yield (
        " Findings of this kind are Notes.\n\n"
        if kind.severity != "Problem"
        else " Some findings of this kind are Notes.\n\n"
        if kind.notes
        else "\n\n"
    )
    yield f"**Why it matters.** {kind.why}\n\n**What to do.** {kind.remedy}\n\n"
    yield "Example:\n\n" + code_block(source, marked)
    yield f"{how}{where}:\n\n{fence(output_of(kind), 'text')}"
    yield "Nothing is reported here:\n\n" + fence(split_marks(kind.healthy)[0], "python")


def code_block(source: str, marked: tuple[int, ...]) -> str:
    """Return a block of code with the marked lines emphasized."""
    lines = f":emphasize-lines: {','.join(map(str, marked))}\n" if marked else ""
    return f"```{{code-block}} python\n{lines}\n{source.rstrip()}\n```\n\n"


def text() -> str:
    """Return the page."""
    parts = [START]
    for title, kinds in sections().items():
        parts += [f"## {title}\n\n", *summary(kinds)]
        for kind in kinds:
            parts += page_of(kind)
    return "".join(parts)


def write_page(app: Sphinx) -> None:
    path = Path(app.srcdir) / "guide" / "kinds.md"
    new = text()
    if not path.exists() or path.read_text() != new:  # Sphinx reads changed files again
        path.write_text(new)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

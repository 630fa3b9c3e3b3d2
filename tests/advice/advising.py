"""How a table of advice is read, run, and compared with what the package can say."""

from __future__ import annotations

import ast
import linecache
import re
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradlab
from gradlab.ops.products import WARNINGS_GIVEN

CALL = r"(?:[\w*\])]+(?:\.\w+)*)?\.?\w+\((?:[^()]|\([^()]*\))*\)"
NAMED = r"\b[a-z_]+=(?:'\w+'|[\w.]+)?"  # an argument
ATTRIBUTE = r"(?:\b(?:gradlab|X))?\.[a-z_]\w*(?:\.\w+)*"
CODE = re.compile(rf"`([^`]+)`|({CALL})|({NAMED})|({ATTRIBUTE})\b|(\w+\[[^ ]+\])|(\bx = x \+ 1\b)")
GOES = re.compile(r"(?:instead of|rather than|[Ll]eave|[Oo]mit|[Rr]emove|outside) `?$")


class Row(NamedTuple):
    """A program that goes wrong, what is advised, and the programs with that advice taken."""

    program: str
    advice: str
    taken: list[str]


def rows_of(table: str) -> Iterator[Row]:
    """The rows of a table's text: the program, `!` the advice, `>` a program that takes it, `|` the next line of either."""
    row = None
    for line in table.strip().split("\n"):
        if line.startswith("-- "):
            continue
        if line.startswith("| "):
            assert row is not None
            if row.taken:
                row.taken[-1] += "\n" + line[2:]
            else:
                row = row._replace(program=f"{row.program}\n{line[2:]}")
        elif line.startswith("! "):
            assert row is not None
            row = row._replace(advice=line[2:])
        elif line.startswith("> "):
            assert row is not None
            row.taken.append(line[2:])
        else:
            if row is not None:
                yield row
            row = Row(line, "", [])
    if row is not None:
        yield row


def pieces(advice: str) -> tuple[list[str], list[str]]:
    """The code in a piece of advice: what is to be written, and what is to go."""
    found = [(next(filter(None, one.groups())).rstrip(".:"), advice[: one.start()]) for one in CODE.finditer(advice)]
    return [code for code, before in found if not GOES.search(before)], [code for code, before in found if GOES.search(before)]


def holds(program: str, code: str) -> bool:
    """Whether code stands in a program; … is what its author fills in, and so is what stands between empty brackets."""
    hole = re.sub(r"\(\)|\(\.\.\.\)", "(…)", re.sub("<.*>", "…", code))
    return re.search(r".*".join(map(re.escape, hole.split("…"))), program) is not None


def run(program: str, setup: str, name: str, lines: bool = False) -> str:
    """What is said, as an error or a warning, when a program runs where the library has this name; its lines are recorded, or
    not."""
    space: dict[str, Any] = {name: gradlab, "np": np}
    source, file = named(program, name), f"advice of {name} {program}".replace(" ", "_")
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(named(setup, name), space)
        caught.clear()
        WARNINGS_GIVEN.clear()  # what is said once a process is said again
        try:
            warnings.simplefilter("ignore", RuntimeWarning)  # as gradlab sets it
            with gradlab.record_sites() if lines else nullcontext():
                exec(compile(source, file, "exec"), space)
        except Exception as error:  # noqa: BLE001  (what it says is looked at)
            return f"{type(error).__name__}: {in_one_line(error)}"
    return "\n".join(in_one_line(one.message) for one in caught)


def in_one_line(said: object) -> str:
    """A message whose entries are not broken into lines."""
    return re.sub(r"\n {11}", " ", str(said))


def named(text: str, name: str) -> str:
    """A text with the library's name in it."""
    return re.sub(r"\bX\b(?=\.)", name, text)


# ------------------------------------------------------------------------------------------ what the package can say
VERBS = (
    "add|ask|begin|call|clone|come|compare|compute|consider|convert|copy|define|detach|differentiate|enter|flatten|get|give|go|"
    "install|leave|list|make|move|multiply|omit|open|pack|pass|put|read|reduce|replace|return|run|save|see|set|specify|take|try|"
    "turn|unpack|update|use|wrap|write"
)
ASKS = re.compile(
    r"(?:(?:^|[.:;,)—]) ?\(?|\b(?:and|or|please|rather|must|should|can|could|to|first|simply|instead,) )"
    rf"(?:{VERBS})\b|\binstead\b",
    re.IGNORECASE,
)
TYPED = re.compile(
    r"`[^`]+`|[\w\]})]\([^()]*\)|\b[a-z_]+=[\w.{(\[-]|(?<![\w.])\.[a-z_]+\b|\bgradlab\.[a-z]|\bx = |\b[a-z_]+= ?(?=[ ,.;])"
)


class Text(NamedTuple):
    """A text in the package's source: where it stands, and what it is; {…} is filled in when it is said."""

    where: str
    template: str

    def told_in(self, said: str) -> bool:
        """Whether it is part of what was said: what stands between its holes, in this order."""
        at = 0
        for part in re.split(r"\{[^{}]*\}", self.template.strip()):
            at = said.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


def texts() -> Iterator[Text]:
    """All texts of the package that are no docstrings."""
    root = Path(gradlab.__file__).parent
    for file in sorted(root.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        within = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
            id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
        }
        documents = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if id(node) in within or id(node) in documents:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield Text(str(file.relative_to(root)), node.value)
            elif isinstance(node, ast.JoinedStr):
                filled = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                yield Text(str(file.relative_to(root)), filled)


def advises(text: Text) -> bool:
    """Whether one sentence of it asks for something and has code in it."""
    sentences = re.split(r"(?<=[a-z)`\]}])\. (?=[A-Z`])", text.template)
    return " " in text.template and any(ASKS.search(one) and TYPED.search(one) for one in sentences)

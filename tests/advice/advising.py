"""Read and run tables of advice, and compare them with the texts in the package."""

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
KEYWORD = r"\b[a-z_]+=(?:'\w+'|[\w.]+)?"  # an argument
ATTRIBUTE = r"(?:\b(?:gradlab|X))?\.[a-z_]\w*(?:\.\w+)*"
CODE = re.compile(rf"`([^`]+)`|({CALL})|({KEYWORD})|({ATTRIBUTE})\b|(\w+\[[^ ]+\])|(\bx = x \+ 1\b)")
GOES = re.compile(r"(?:instead of|rather than|[Ll]eave|[Oo]mit|[Rr]emove|outside) `?$")


class Row(NamedTuple):
    """A program with an error, the advice, and the programs corrected as advised."""

    program: str
    advice: str
    corrected: list[str]


def rows_of(table: str) -> Iterator[Row]:
    """Yield the rows of a table: the program, `!` the advice, `>` a program that follows it, `|` the next line of a program."""
    row = None
    for line in table.strip().split("\n"):
        if line.startswith("-- "):
            continue
        if line.startswith("| "):
            assert row is not None
            if row.corrected:
                row.corrected[-1] += "\n" + line[2:]
            else:
                row = row._replace(program=f"{row.program}\n{line[2:]}")
        elif line.startswith("! "):
            assert row is not None
            row = row._replace(advice=line[2:])
        elif line.startswith("> "):
            assert row is not None
            row.corrected.append(line[2:])
        else:
            if row is not None:
                yield row
            row = Row(line, "", [])
    if row is not None:
        yield row


def pieces(advice: str) -> tuple[list[str], list[str]]:
    """Return the code that the advice asks to write, and the code that it asks to remove."""
    found = [(next(filter(None, one.groups())).rstrip(".:"), advice[: one.start()]) for one in CODE.finditer(advice)]
    return [code for code, before in found if not GOES.search(before)], [code for code, before in found if GOES.search(before)]


def contains(program: str, code: str) -> bool:
    """Return True if a program contains the code. … and empty parentheses stand for any code."""
    hole = re.sub(r"\(\)|\(\.\.\.\)", "(…)", re.sub("<.*>", "…", code))
    return re.search(r".*".join(map(re.escape, hole.split("…"))), program) is not None


def run(program: str, setup: str, name: str, lines: bool = False) -> str:
    """Run a program with this name of the library. Return its error or its warnings. `lines` records the lines."""
    space: dict[str, Any] = {name: gradlab, "np": np}
    source, file = with_name(program, name), f"advice of {name} {program}".replace(" ", "_")
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(with_name(setup, name), space)
        caught.clear()
        WARNINGS_GIVEN.clear()  # repeat warnings that are shown once in a process
        try:
            warnings.simplefilter("ignore", RuntimeWarning)  # as gradlab sets it
            with gradlab.record_sites() if lines else nullcontext():
                exec(compile(source, file, "exec"), space)
        except Exception as error:  # noqa: BLE001  (the message is compared)
            return f"{type(error).__name__}: {in_one_line(error)}"
    return "\n".join(in_one_line(one.message) for one in caught)


def in_one_line(said: object) -> str:
    """Join the lines of each entry of a message."""
    return re.sub(r"\n {11}", " ", str(said))


def with_name(text: str, name: str) -> str:
    """Replace X in a text by the name of the library."""
    return re.sub(r"\bX\b(?=\.)", name, text)


# ---------------------------------------------------------------------------------------------- texts of the package
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
    """A text in the source of the package: its file, and the text with {…} for values."""

    where: str
    template: str

    def occurs_in(self, said: str) -> bool:
        """Return True if the message contains the parts of the text between its values, in this order."""
        at = 0
        for part in re.split(r"\{[^{}]*\}", self.template.strip()):
            at = said.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


def texts() -> Iterator[Text]:
    """Yield all texts in the package except docstrings."""
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
    """Return True if a sentence of the text gives advice and contains code."""
    sentences = re.split(r"(?<=[a-z)`\]}])\. (?=[A-Z`])", text.template)
    return " " in text.template and any(ASKS.search(one) and TYPED.search(one) for one in sentences)

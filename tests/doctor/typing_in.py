"""Advice typed in: "`new` in place of `old`", "`new` before `old`" and "`new` after `old`" of a fix, done to the cells of a row.

Pieces that are joined by "and" are one change; others are alternatives, each of which is to cure alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

FORM = re.compile(r"`([^`]+)` (in place of|before|after) `([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w.]*(\[[^\][]*\][\w.]*)*(=\w+)?")  # of a variable, an attribute or item, a function, an argument

Piece = tuple[str, str, str]


def advised(fix: str) -> list[list[Piece]]:
    """The changes that a fix says to make, each of pieces (new, how, old)."""
    changes: list[list[Piece]] = []
    end = -1
    for found in FORM.finditer(fix):
        piece: Any = found.groups()
        if changes and fix[end : found.start()].strip(" ,;") == "and":
            changes[-1].append(piece)
        else:
            changes.append([piece])
        end = found.end()
    return changes


def beside(fix: str, texts: Sequence[str]) -> list[str]:
    """What a fix has between backticks besides what it says to type, and is neither a name nor a part of the cells."""
    quoted = re.findall(r"`([^`]+)`", FORM.sub("", fix))
    source = {
        squeezed(ast.unparse(node).partition("\n")[0])
        for text in texts
        for node in ast.walk(ast.parse(text.removeprefix("%%grad")))
        if isinstance(node, (ast.expr, ast.stmt))
    }
    codes = [code for code in quoted if not NAME.fullmatch(code)]
    whole = [squeezed(as_parsed(code)) for code in codes]
    return [
        code
        for code, text in zip(codes, whole, strict=True)
        if text not in source and not (text.endswith("…") and any(one.startswith(text[:-1]) for one in source))
    ]


def spelled_otherwise(fix: str, texts: Sequence[str]) -> list[str]:
    """The code that a fix says is there, and does not stand in the cells letter by letter."""
    text = " ".join("\n".join(texts).split())
    return [old for change in advised(fix) for _, _, old in change if old not in text]


def as_parsed(code: str) -> str:
    """Code as Python would write it."""
    try:
        return ast.unparse(ast.parse(code))
    except SyntaxError:
        return code


def form_of(fix: str) -> str:
    """Whether a fix is code, a sentence, or missing."""
    return "code" if advised(fix) else "sentence" if fix else "without"


def squeezed(text: str) -> str:
    return "".join(text.split()).replace('"', "'")


def followed(texts: Sequence[str], line: int | None, change: Sequence[Piece]) -> tuple[str, ...] | None:
    """The cells with a change made that a fix says to make; None if a piece of it is not there."""
    made: Any = tuple(texts)
    for piece in change:
        made = made and typed(made, line, piece)
    return made


def typed(texts: Sequence[str], line: int | None, advice: Piece) -> tuple[str, ...] | None:
    """The cells with one piece of advice followed; on `line` of the last cell if `old` stands there, else where it stands first.
    None if it stands nowhere."""
    new, how, old = advice
    orders = [(len(texts) - 1, line), (len(texts) - 1, None), *((cell, None) for cell in range(len(texts) - 1))]
    for cell, only in orders:
        head, text = ("%%grad", texts[cell][len("%%grad") :]) if texts[cell].startswith("%%grad") else ("", texts[cell])
        tree = ast.parse(text)
        change = Change(new, how, old, only)
        tree = ast.fix_missing_locations(change.visit(tree))
        if change.done:
            made = ast.unparse(tree)
            return (*texts[:cell], f"{head}\n{made}" if head else made, *texts[cell + 1 :])
    return None


class Change(ast.NodeTransformer):
    """Replaces what reads as `old` once in a program, or puts something before or after it."""

    def __init__(self, new: str, how: str, old: str, line: int | None) -> None:
        self.new, self.how, self.line, self.done = ast.parse(new).body, how, line, False
        head = old if old.endswith(":") else None
        try:
            self.old = ast.unparse(ast.parse(old if head is None else f"{old} pass"))
        except SyntaxError:
            self.old = old
        self.head = self.old.partition("\n")[0] if head is not None else None

    def visit(self, node: ast.AST) -> Any:
        if self.done:
            return node
        around = self.line is None or getattr(node, "lineno", 0) <= self.line <= (getattr(node, "end_lineno", 0) or 10**9)
        if isinstance(node, (ast.stmt, ast.expr)) and around and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            text = ast.unparse(node)
            if text == self.old or (self.head is not None and text.partition("\n")[0] == self.head):
                if isinstance(node, ast.stmt) and self.how != "in place of":
                    self.done = True
                    return [*self.new, node] if self.how == "before" else [node, *self.new]
                if self.how == "in place of":
                    self.done = True
                    (first,) = self.new[:1]
                    return first if isinstance(node, ast.stmt) and len(self.new) == 1 else first.value  # type: ignore[attr-defined]
        return self.generic_visit(node)

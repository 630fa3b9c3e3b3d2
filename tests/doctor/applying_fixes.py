"""Apply the advice of a fix to the cells of a row: "`new` in place of `old`", "`new` before `old`" and "`new` after `old`".

Pieces joined by "and" are one change. Others are alternatives, each of which must cure the fault alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

FORM = re.compile(r"`([^`]+)` (in place of|before|after) `([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w.]*(\[[^\][]*\][\w.]*)*(=\w+)?")  # a variable, an attribute or item, a function, an argument

Piece = tuple[str, str, str]


def changes_in(fix: str) -> list[list[Piece]]:
    """Return the changes that a fix asks for, each a list of pieces (new, how, old)."""
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


def other_code(fix: str, texts: Sequence[str]) -> list[str]:
    """Return the quoted code in a fix that is not part of a change, not a name and not in the cells."""
    quoted = re.findall(r"`([^`]+)`", FORM.sub("", fix))
    source = {
        without_spaces(ast.unparse(node).partition("\n")[0])
        for text in texts
        for node in ast.walk(ast.parse(text.removeprefix("%%grad")))
        if isinstance(node, (ast.expr, ast.stmt))
    }
    codes = [code for code in quoted if not NAME.fullmatch(code)]
    whole = [without_spaces(normalize(code)) for code in codes]
    return [
        code
        for code, text in zip(codes, whole, strict=True)
        if text not in source and not (text.endswith("…") and any(one.startswith(text[:-1]) for one in source))
    ]


def misquoted_code(fix: str, texts: Sequence[str]) -> list[str]:
    """Return the code that a fix replaces and that does not occur literally in the cells."""
    text = " ".join("\n".join(texts).split())
    return [old for change in changes_in(fix) for _, _, old in change if old not in text]


def normalize(code: str) -> str:
    """Return code as `ast.unparse` writes it."""
    try:
        return ast.unparse(ast.parse(code))
    except SyntaxError:
        return code


def form_of(fix: str) -> str:
    """Return whether a fix is code, a sentence, or missing."""
    return "code" if changes_in(fix) else "sentence" if fix else "without"


def without_spaces(text: str) -> str:
    return "".join(text.split()).replace('"', "'")


def apply_change(texts: Sequence[str], line: int | None, change: Sequence[Piece]) -> tuple[str, ...] | None:
    """Return the cells with a change applied, or None if a piece of it does not occur."""
    made: Any = tuple(texts)
    for piece in change:
        made = made and apply_piece(made, line, piece)
    return made


def apply_piece(texts: Sequence[str], line: int | None, advice: Piece) -> tuple[str, ...] | None:
    """Return the cells with one piece applied on `line` of the last cell, or else where `old` first occurs; None if nowhere."""
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
    """Replace one occurrence of `old` in a program, or insert code before or after it."""

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
                    return self.new if isinstance(node, ast.stmt) else self.new[0].value  # type: ignore[attr-defined]
        return self.generic_visit(node)

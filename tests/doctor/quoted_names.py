"""Check the names that a finding quotes by evaluating them in the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

CODE = re.compile(r"`([^`]+)`")
MISSING = object()
LEAVES = ("leaves", "of")  # keys of the evidence that hold names of leaves


def names_in(text: str) -> list[str]:
    """Return the names, attributes and items that a text quotes."""
    names = []
    for code in CODE.findall(text):
        try:
            tree = ast.parse(code, mode="eval").body
        except SyntaxError:
            continue
        if isinstance(tree, (ast.Name, ast.Attribute, ast.Subscript)) and not any(
            isinstance(node, (ast.Call, ast.BinOp)) for node in ast.walk(tree)
        ):
            names.append(code)
    return names


def loop_variables(texts: tuple[str, ...]) -> set[str]:
    """Return the names that only loops of the cells bind."""
    nodes = [node for text in texts for node in ast.walk(parse(text))]
    looped = {id(name) for node in nodes if isinstance(node, (ast.For, ast.comprehension)) for name in ast.walk(node.target)}
    stored = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {node.id for node in stored if id(node) in looped} - {node.id for node in stored if id(node) not in looped}


def check_names(finding: Any, case: Any, witness: Any, space: Mapping[str, Any], texts: tuple[str, ...]) -> None:
    """Check that each name of a leaf evaluates to that leaf and each other name to an object of the program, and that no leaf is
    named by a loop variable."""
    learners = {one.name: case.tensors[key] for key, one in case.learners.items()}
    functions = {node.name for text in texts for node in ast.walk(parse(text)) if isinstance(node, ast.FunctionDef)}
    passing = loop_variables(texts)
    for text in names_in(finding.message):
        value = evaluate(text, space)
        if text in learners:
            assert value is learners[text], (text, finding)
        elif value is MISSING:  # an expression of the program, in a function
            assert text in functions or ast.unparse(ast.parse(text)) in witness.ran, (text, finding)
    for text in [one for key in LEAVES for one in flat(finding.evidence.get(key, ()))]:
        assert evaluate(text, space) is not MISSING, (text, finding)
        assert re.split(r"[.\[]", text)[0] not in passing, (text, finding)


def evaluate(text: str, space: Mapping[str, Any]) -> Any:
    """Return the value of a name in a namespace; `MISSING` if there is none."""
    try:
        return eval(text, dict(space))
    except (NameError, AttributeError, LookupError, TypeError):
        return MISSING


def parse(text: str) -> ast.Module:
    return ast.parse(text.removeprefix("%%grad"))


def flat(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [one for one in value if isinstance(one, str)]

"""Record the last cell of a row without a shell."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import math
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from gradlab.diagnose.source_locations import cells, notebook
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.trace.recorder import Recorder

numbers = count()
VALUE = "value of the cell"


def prelude(library: str) -> dict[str, Any]:
    """Return the names that a row may use."""
    lib = import_module(library)
    modules = {
        name: import_module(f"{library}.{path}") for name, path in (("nn", "nn"), ("F", "nn.functional"), ("optim", "optim"))
    }
    lib.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  (rows draw from it as users do)
    return {"math": math, "np": np, "torch": lib, "gl": lib, **modules, "__name__": "__main__"}


def run(text: str, space: dict[str, Any]) -> Any:
    """Run a cell, and return its value or the last tensor that it assigned."""
    name = f"<ipython-input-{next(numbers)}-row>"
    text = text.replace("%%grad", "", 1) if text.startswith("%%grad") else text
    linecache.cache[name] = (len(text), None, [line + "\n" for line in text.split("\n")], name)
    cells.current = name
    notebook.numbers = {**notebook.numbers, name: None}
    tree = ast.parse(text, name)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name(VALUE, ast.Store())], last.value), last)
        ast.fix_missing_locations(tree)
    space.pop(VALUE, None)
    exec(compile(tree, name, "exec"), space)
    value = space.pop(VALUE, None)
    if value is None:
        assigned = [
            node.targets[0].id for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        ]
        value = next((space[n] for n in reversed(assigned) if getattr(space.get(n), "requires_grad", False)), None)
    return value


@contextlib.contextmanager
def case_of(library: str, texts: Sequence[str]) -> Iterator[tuple[Case | None, dict[str, Any]]]:
    """Yield the case of the last cell and the cells' names. The case is None if neither the cell nor `%%grad` ran backward."""
    space = prelude(library)
    before, notebook.numbers = (cells.current, notebook.numbers), {}
    recorder = Recorder(lambda: space)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            for text in texts[:-1]:
                run(text, space)
            with recorder, contextlib.suppress(Exception):
                value = run(texts[-1], space)
                if not recorder.sweeps and getattr(value, "requires_grad", False):
                    with recorder.for_the_user():
                        (value if value.numel() == 1 else value.sum()).backward()
        recorder.settle_journal()
        yield None if recorder.last is None else Case(recorder.trace(), space), space
    finally:
        recorder.forget()
        space["torch"].set_grad_enabled(True)
        cells.current, notebook.numbers = before

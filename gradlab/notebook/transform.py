"""Rewrite a `%%grad`, `%%doctor` or `%%watch` cell so that IPython runs it as an ordinary cell.

Its first line becomes a marker, and its last value passes through a function.

    %%grad x -v w                 __gradlab_cell__('x -v w')
    y = x ** 2                    y = x ** 2
    y * 3                         __gradlab_value__(y * 3)

The first step (`rewrite`, an input transformer) keeps the number of lines, the second (`Instrument`, an AST transformer) the
position of every node, so tracebacks, top-level `await`, `;` and Out work as usual. `%%grad` above `%%time` is read as `%%time`
above `%%grad`.

The arguments of the marker come from the AST: how the cell ends, and which names it mentions. If the transformer has not seen
the cell (`%%timeit` above it, say), the marker raises an error.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradlab.diagnose.faults import Faults

CELL_MARK, VALUE_MARK, IMPORT_MARK = (
    "__gradlab_cell__",
    "__gradlab_value__",
    "__gradlab_imported__",
)  # builtins while the extension is loaded
HELP_BY_MAGIC = {  # the code that shows each magic's help
    "%%grad": "get_ipython().run_line_magic('grad', '--help')\n",
    "%%doctor": "get_ipython().run_line_magic('pinfo', '%%doctor')\n",
    "%%watch": "get_ipython().run_line_magic('pinfo', '%%watch')\n",
}
RUNS_THE_CELL = frozenset({"%%time"})  # cell magics that run their body as a cell runs


def rewrite(lines: list[str]) -> list[str]:
    """Replace the line of options by the marker. A pure input transformer (`input_transformers_cleanup`)."""
    with Faults("read a cell"):
        return _rewrite(lines)
    return lines


def _rewrite(lines: list[str]) -> list[str]:
    magic = next(iter(lines[0].split()), "") if lines else ""
    if magic not in HELP_BY_MAGIC:
        return lines
    if {"-h", "--help"} & set(lines[0].split()):
        return [HELP_BY_MAGIC[magic]]
    if len(lines) < 2:
        return lines
    below = lines[1].split()[:1]
    if below and below[0] in RUNS_THE_CELL:
        return [lines[1], lines[0], *lines[2:]]
    if lines[1].startswith("%%"):
        return lines  # the magic itself raises an error
    said = "" if magic == "%%grad" else f", magic={magic!r}"
    return [f"{CELL_MARK}({lines[0].strip()[len(magic) :].strip()!r}{said})\n", *lines[1:]]


rewrite.has_side_effects = True  # type: ignore[attr-defined]  # so that the terminal asks for more lines, as in any cell magic


class Ending(NamedTuple):
    """The end of a cell, from its AST.

    Attributes
    ----------
    kind : str
        "value": an expression; "name": an assignment to one name; "none": anything else.
    text : str
        The source of the expression, the name, or a description of the statement.
    mentions : tuple of str
        The names that the cell mentions, in the order of their appearance.
    assigned : tuple of str
        The names assigned outside functions and classes, in the order of their last assignment.
    """

    kind: str
    text: str
    mentions: tuple[str, ...]
    assigned: tuple[str, ...] = ()


def show_as_typed(frame: Any, header: str) -> None:
    """Make tracebacks quote the first line of a running cell as it was typed, after a # to keep the source valid."""
    entry = linecache.cache.get(frame.f_code.co_filename)
    lines = entry[2] if entry is not None and len(entry) == 4 else []
    if frame.f_lineno <= len(lines) and lines[frame.f_lineno - 1].startswith(CELL_MARK):
        lines[frame.f_lineno - 1] = f"# {header}\n"


class Instrument(ast.NodeTransformer):
    """AST transformer. It must never raise, or IPython would drop it."""

    def visit(self, tree: Any) -> Any:
        """Pass the value of the last expression through `VALUE_MARK`, and add the cell's end to the marker's arguments."""
        with Faults("read a cell"):
            return self._instrument(tree)
        return tree

    def _instrument(self, tree: Any) -> Any:
        body = getattr(tree, "body", None)
        if not isinstance(tree, ast.Module) or not body or not _is_marker(body[0]):
            return tree
        call = body[0].value
        if len(call.args) > 1:  # already transformed: a nested transform of the same tree
            return tree
        ending = ending_of(body[1:])
        if ending.kind == "value":
            value = body[-1].value
            passed = ast.Call(ast.Name(VALUE_MARK, ast.Load()), [value], [])
            for node in (passed, passed.func):
                ast.copy_location(node, value)
            body[-1].value = passed
        tree.body = [statement for one in body for statement in _with_mark(one)]
        for part in ending:
            call.args.append(ast.Constant(part))  # type: ignore[arg-type]  # a tuple of constants is one too
        for part in call.args:
            ast.copy_location(part, call)
        return tree


def _with_mark(statement: ast.stmt) -> list[ast.stmt]:
    """Return a statement, followed by a call of `IMPORT_MARK` if it imports: new libraries are recorded from then on."""
    if not any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.walk(statement)):
        return [statement]
    mark = ast.Expr(ast.Call(ast.Name(IMPORT_MARK, ast.Load()), [], []))
    for node in ast.walk(mark):
        ast.copy_location(node, statement)
    return [statement, mark]


def _is_marker(statement: Any) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == CELL_MARK


ENGLISH = {
    ast.For: "a for loop",
    ast.AsyncFor: "a for loop",
    ast.While: "a while loop",
    ast.If: "an if statement",
    ast.With: "a with block",
    ast.AsyncWith: "a with block",
    ast.Try: "a try statement",
    ast.FunctionDef: "the definition of a function",
    ast.AsyncFunctionDef: "the definition of a function",
    ast.ClassDef: "the definition of a class",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.Delete: "a del statement",
    ast.Assert: "an assert statement",
    ast.Pass: "a pass statement",
    ast.Match: "a match statement",
}


def ending_of(body: list[ast.stmt]) -> Ending:
    """Return how a cell with these statements ends."""
    names = [node for statement in body for node in _names(statement, frozenset())]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    mentions = tuple(name for name in dict.fromkeys(node.id for node in names) if not hasattr(builtins, name))
    assigned = _assigned_names(body)
    if not body:
        return Ending("none", "", mentions)
    last = body[-1]
    if isinstance(last, ast.Expr):
        return Ending("value", ast.unparse(last.value), mentions, assigned)
    targets = (
        last.targets
        if isinstance(last, ast.Assign)
        else [last.target]
        if isinstance(last, ast.AugAssign) or (isinstance(last, ast.AnnAssign) and last.value is not None)
        else []
    )
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        return Ending("name", targets[0].id, mentions, assigned)
    if isinstance(last, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        return Ending("none", "an assignment to something other than one name", mentions, assigned)
    return Ending("none", ENGLISH.get(type(last), "a statement without a value"), mentions, assigned)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _names(node: ast.AST, own: frozenset[str]) -> Iterator[ast.Name]:
    """Yield the names in a part of a cell, except the local ones of functions and comprehensions."""
    if isinstance(node, ast.Name) and node.id not in own:
        yield node
    if isinstance(node, (*FUNCTIONS, *COMPREHENSIONS)):
        inside = list(ast.walk(node))
        shared = {name for one in inside if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
        stored = {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        own |= (stored | {one.arg for one in inside if isinstance(one, ast.arg)}) - shared
    for child in ast.iter_child_nodes(node):
        yield from _names(child, own)


def _assigned_names(body: list[ast.stmt]) -> tuple[str, ...]:
    """Return the names assigned outside functions and classes, in the order of their last assignment."""
    names: dict[str, None] = {}
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.pop(node.id, None)
            names[node.id] = None
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += reversed(list(ast.iter_child_nodes(node)))
    return tuple(names)

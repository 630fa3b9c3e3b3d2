"""Parameters that forward makes: once, at its first call, after the optimizer was made; or anew at every call.

Where a parameter comes from is read off the source of its module's class. What is known here is a statement `self.scale = …`
outside of `__init__`, or a call of a layer's class in the function in which that layer is called.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from gradlab.diagnose.source_locations import SourceLocation, cells
from gradlab.explore.doctor.context.case import Case, Learner
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check
from gradlab.explore.trace.data import Line, ModuleCall

REGISTERS = frozenset(("register_parameter", "add_module", "register_module"))


@dataclass(frozen=True)
class Creation:
    """The statement that makes a part of a module.

    Attributes
    ----------
    filename, function : str
        Where it stands.
    line : int
    text : str
        Its source.
    always : bool
        Whether each call of forward runs it.
    """

    filename: str
    function: str
    line: int
    text: str
    always: bool

    @property
    def cell_line(self) -> int | None:
        """The line if it is of the running cell or script."""
        return self.line if self.filename == cells.current else None

    @property
    def where(self) -> str:
        """ "on line 13", "in cell In[2] line 13"."""
        place = SourceLocation(self.filename, self.function, self.line, self.line, -1, -1)
        return f"on line {self.line}" if self.cell_line is not None else f"in {place.where}"


def created_late(case: Case, learner: Learner) -> Creation | None:
    """The statement in forward, or in what forward calls, that makes a parameter or the module that holds it; None if there is
    none."""
    for owner, attribute in _owners(case, learner):
        methods = {function.__name__: function for function in reversed(list(_methods(type(owner))))}
        early, late = _calls_of(methods.get("__init__")), _calls_of(methods.get("forward"))
        for name, function in methods.items():
            called = (name == "forward" or name in late) and name not in early and name != "__init__"
            if called and (found := _assignment(function, attribute)) is not None:
                return found
    return None


def _calls_of(function: FunctionType | None) -> set[str]:
    """The methods of its own object that a method calls."""
    parsed = None if function is None else _parsed(function)
    calls = [node.func for node in ast.walk(parsed[1]) if isinstance(node, ast.Call)] if parsed is not None else []
    return {call.attr for call in calls if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name)}


def _owners(case: Case, learner: Learner) -> Iterator[tuple[Any, str]]:
    """The modules around a parameter, the innermost first, each with the name of what it holds of it."""
    model = case.models.get(learner.model)
    for path, parameter in model.named_parameters() if model is not None else ():
        if id(parameter) != learner.key:
            continue
        steps = path.split(".")
        chain: list[Any] = [model]
        for step in steps[:-1]:
            inner = dict(chain[-1].named_children()).get(step)
            chain.append(inner)
        yield from reversed(list(zip(chain, steps, strict=True)))
        return


def _methods(kind: type) -> Iterator[FunctionType]:
    for one in kind.__mro__:
        if str(one.__module__).partition(".")[0] in ("torch", "gradlab", "builtins"):
            continue
        yield from (value for value in vars(one).values() if type(value) is FunctionType)


def _parsed(function: FunctionType) -> tuple[int, ast.AST] | None:
    """The first line of a function, and it parsed."""
    try:
        lines, first = inspect.getsourcelines(function.__code__)
        return first, ast.parse(inspect.cleandoc("\n" + "".join(lines)))
    except (OSError, SyntaxError, ValueError, TypeError):
        return None


def _assignment(function: FunctionType, attribute: str) -> Creation | None:
    """The statement of a method that gives an attribute of `self` a new value."""
    parsed = _parsed(function)
    if parsed is None or not function.__code__.co_argcount:
        return None
    first, tree = parsed
    place = f"{function.__code__.co_varnames[0]}.{attribute}"
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        made = any(ast.unparse(target) == place for target in targets) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _registers(node.value, place)
        )
        if made and isinstance(node, ast.stmt):
            line = first + node.lineno - 1
            always = function.__name__ == "forward" and node in getattr(next(ast.iter_child_nodes(tree)), "body", ())
            return Creation(function.__code__.co_filename, function.__name__, line, ast.unparse(node), always)
    return None


def _registers(call: ast.Call, place: str) -> bool:
    """Whether a call is `self.register_parameter("scale", …)`, or `setattr(self, "scale", …)`."""
    own, _, attribute = place.partition(".")
    texts = [ast.unparse(argument) for argument in call.args]
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in REGISTERS and ast.unparse(call.func.value) == own and texts[:1] == [repr(attribute)]
    return ast.unparse(call.func) == "setattr" and texts[:2] == [own, repr(attribute)]


# ---------------------------------------------------------------------------------------------------------------- every call
@check("stale-optimizer")
def find_layers_created_in_forward(case: Case) -> Iterable[Finding]:
    """A layer that forward makes at every call: each sweep reaches new weights, which no optimizer holds."""
    trace = case.trace
    if trace is None or not case.steps or len(trace.journal) < 2:
        return
    held = {key for one in case.optimizers for key in one.keys} | {key for event in case.steps for key in event.held}
    nameless = [
        [entry for entry in swept.entries if not entry.name and entry.parameter and entry.key not in held and entry.arrived > 0]
        for swept in trace.journal
    ]
    reached = any(node.kind == "leaf" and not node.name for node in trace.nodes)  # gradlab's leaves die with their layer
    if not (all(nameless) or (reached and not any(nameless))):
        return
    told: set[tuple[str, int]] = set()
    for call in trace.calls:
        found = _layer_made(case, call)
        if found is None or found[:2] in told:
            continue
        told.add(found[:2])
        text, line, place = found
        where = f"on line {line}" if place.in_cell else f"in {place.where.rpartition(' line ')[0]} line {line}"
        yield Finding(
            "stale-optimizer",
            f"`{text}` {where} makes a new layer at every call of `{place.function}`: its weights are drawn again each time, and "
            "no optimizer holds them.",
            line if place.in_cell else None,
            fix="Make the layer once, in `__init__`, keep it as an attribute of the module, and call that."
            if place.function == "forward"
            else "Make the layer once, before the loop, and give its parameters to the optimizer.",
            evidence={"name": text},
            worth=8.5,
        )


def _layer_made(case: Case, call: ModuleCall) -> tuple[str, int, Line] | None:
    """The call of a layer's class in the function that calls the layer: its source, its line and the place of the call."""
    place = call.place
    if place is None or not place.function or call.path.rpartition(".")[2] != call.kind:
        return None  # a layer that has a name is called by it
    for tree in _functions(case, place):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == call.kind:
                return ast.unparse(node), node.lineno, place
    return None


def _functions(case: Case, place: Line) -> Iterator[ast.AST]:
    """The function of the cell around a place, or the one of an earlier cell or a module that is called so."""
    program: Program = case.program
    if place.in_cell:
        around = [
            node
            for node in ast.walk(program.tree)
            if isinstance(node, ast.FunctionDef) and node.lineno <= place.line <= (node.end_lineno or 0)
        ]
        yield from around[-1:]
        return
    own = case.namespace.get(place.function)
    functions = [own] if type(own) is FunctionType else []
    functions += [one for model in case.models.values() for module in model.modules() for one in _methods(type(module))]
    for function in functions:
        if function.__name__ == place.function and (parsed := _parsed(function)) is not None:
            first, tree = parsed
            if first <= place.line <= first + max(getattr(node, "lineno", 1) for node in ast.walk(tree)):
                yield ast.increment_lineno(tree, first - 1)

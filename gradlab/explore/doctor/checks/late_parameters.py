"""Parameters that are created in forward: at its first call, after the optimizer was created, or again at every call.

The statement that creates a parameter is found in the source of the class of its module: `self.scale = …` outside `__init__`, or
a call of a layer's class in the function that calls the layer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from gradlab.diagnose.source_locations import SourceLocation, cells
from gradlab.explore.doctor.context.case import Case, Learner
from gradlab.explore.doctor.context.methods import methods_of, parse_method
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check
from gradlab.explore.trace.data import Line, ModuleCall

REGISTERING_METHODS = frozenset(("register_parameter", "add_module", "register_module"))


@dataclass(frozen=True)
class Creation:
    """A statement that creates a part of a module.

    Attributes
    ----------
    filename, function : str
        Its file, and the function that it is in.
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
        """The line, if it is in the running cell or script."""
        return self.line if self.filename == cells.current else None

    @property
    def where(self) -> str:
        """ "on line 13", "in cell In[2] line 13"."""
        place = SourceLocation(self.filename, self.function, self.line, self.line, -1, -1)
        return f"on line {self.line}" if self.cell_line is not None else f"in {place.where}"


def find_late_creation(case: Case, learner: Learner) -> Creation | None:
    """Return the statement in forward, or in a method that forward calls, that creates a parameter or a module around it.

    None if there is no such statement.
    """
    for owner, attribute in _owners(case, learner):
        methods = {function.__name__: function for function in reversed(list(methods_of(type(owner))))}
        early, late = _called_methods(methods.get("__init__")), _called_methods(methods.get("forward"))
        for name, function in methods.items():
            called = (name == "forward" or name in late) and name not in early and name != "__init__"
            if called and (found := _assignment(function, attribute)) is not None:
                return found
    return None


def _called_methods(function: FunctionType | None) -> set[str]:
    """Return the names of the methods that a method calls, of any object that has a name."""
    source = None if function is None else parse_method(function)
    calls = [node.func for node in ast.walk(source[1]) if isinstance(node, ast.Call)] if source is not None else []
    return {call.attr for call in calls if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name)}


def _owners(case: Case, learner: Learner) -> Iterator[tuple[Any, str]]:
    """Yield the modules around a parameter, the innermost first, each with the attribute that leads to the parameter."""
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


def _assignment(function: FunctionType, attribute: str) -> Creation | None:
    """Return the statement of a method that assigns to an attribute of `self`."""
    source = parse_method(function)
    if source is None or not function.__code__.co_argcount:
        return None
    first, tree = source
    place = f"{function.__code__.co_varnames[0]}.{attribute}"
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        assigns = any(ast.unparse(target) == place for target in targets) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _registers(node.value, place)
        )
        if assigns and isinstance(node, ast.stmt):
            line = first + node.lineno - 1
            always = function.__name__ == "forward" and node in getattr(next(ast.iter_child_nodes(tree)), "body", ())
            return Creation(function.__code__.co_filename, function.__name__, line, ast.unparse(node), always)
    return None


def _registers(call: ast.Call, place: str) -> bool:
    """Return whether a call is `self.register_parameter("scale", …)`, or `setattr(self, "scale", …)`."""
    own, _, attribute = place.partition(".")
    texts = [ast.unparse(argument) for argument in call.args]
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in REGISTERING_METHODS and ast.unparse(call.func.value) == own and texts[:1] == [repr(attribute)]
    return ast.unparse(call.func) == "setattr" and texts[:2] == [own, repr(attribute)]


# ---------------------------------------------------------------------------------------------------------------- every call
@check("stale-optimizer")
def find_layers_created_in_forward(case: Case) -> Iterable[Finding]:
    """Find layers that forward creates at every call: each sweep reaches new weights, which no optimizer holds."""
    trace = case.trace
    if trace is None or not case.steps or len(trace.journal) < 2:
        return
    held = {key for one in case.optimizers for key in one.keys} | {key for event in case.steps for key in event.held}
    nameless = [
        [entry for entry in swept.entries if not entry.name and entry.parameter and entry.key not in held and entry.arrived > 0]
        for swept in trace.journal
    ]
    reached = any(node.kind == "leaf" and not node.name for node in trace.nodes)  # gradlab's leaves are freed with their layer
    if not (all(nameless) or (reached and not any(nameless))):
        return
    reported: set[tuple[str, int]] = set()
    for call in trace.calls:
        creation = _find_layer_creation(case, call)
        if creation is None or creation[:2] in reported:
            continue
        reported.add(creation[:2])
        text, line, place = creation
        where = f"on line {line}" if place.in_cell else f"in {place.where.rpartition(' line ')[0]} line {line}"
        yield Finding(
            "stale-optimizer",
            f"`{text}` {where} creates a new layer at every call of `{place.function}`: its weights are initialised again each "
            "time, and no optimizer holds them.",
            line if place.in_cell else None,
            fix="Create the layer once, in `__init__`, as an attribute of the module, and call this attribute."
            if place.function == "forward"
            else "Create the layer once, before the loop, and pass its parameters to the optimizer.",
            evidence={"name": text},
            worth=8.5,
        )


def _find_layer_creation(case: Case, call: ModuleCall) -> tuple[str, int, Line] | None:
    """Return the call of a layer's class in the function that calls the layer: its source, its line and the place of the call."""
    place = call.place
    if place is None or not place.function or call.path.rpartition(".")[2] != call.kind:
        return None  # the layer has a name
    for tree in _functions(case, place):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == call.kind:
                return ast.unparse(node), node.lineno, place
    return None


def _functions(case: Case, place: Line) -> Iterator[ast.AST]:
    """Yield the function around a place: of the cell, or of an earlier cell or a module, by its name."""
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
    functions += [one for model in case.models.values() for module in model.modules() for one in methods_of(type(module))]
    for function in functions:
        if function.__name__ == place.function and (source := parse_method(function)) is not None:
            first, tree = source
            if first <= place.line <= first + max(getattr(node, "lineno", 1) for node in ast.walk(tree)):
                yield ast.increment_lineno(tree, first - 1)

"""Losses that mean something else than was meant: shapes that broadcast, probabilities in place of logits, sums for means."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import argument, before, grouped, instead, replaced
from gradlab.explore.doctor.context.flow import CASTS, LOSSES, SHAPES, Flow, called, extremes, figure, operand_text
from gradlab.explore.doctor.context.operands import argument_text, replace_argument
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Shape
from gradlab.explore.trace.values import Value

PAIRED = frozenset(["Sub", "Rsub", "Mul", "Div", "Add"])
EXPLICIT = re.compile(r"None|newaxis|unsqueeze|outer|view|reshape|expand|meshgrid|cdist|einsum")
ADDED_AXIS = frozenset(["Unsqueeze", "Index", "Slice", "Expand"])  # made for broadcasting
REDUCED = frozenset(["Mean", "Sum"])
ELEMENTWISE = frozenset(
    (
        "Pow", "Abs", "Square", "Mul", "Div", "Add", "Sub", "Rsub", "Neg", "Exp", "Log", "Log1P", "Clamp", "ClampMin", "ClampMax",
        "Relu", "Sqrt", "Softplus", "Sigmoid", "LogSigmoid", "Sin", "Cos", "Cosh", "Tanh", "Where", "Maximum", "Minimum",
    )
)  # fmt: skip
# Of rows that are probabilities: how far their mean may be from 1 / number of classes, rounding apart (ten roundings of 1).
ONE = 1e-5


declare(
    "broadcast",
    meaning="shapes that broadcast by accident",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "double-softmax",
    meaning="a loss that takes logits is given probabilities",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "nll-of-probabilities",
    meaning="a loss that takes logarithms of probabilities is given probabilities",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check("broadcast", "double-softmax", "nll-of-probabilities", of_each_loss=True)
def find_misused_losses(case: Case) -> Iterable[Finding]:
    """What a loss was given that it does not take."""
    if case.trace is None or not case.trace.recorded:
        return
    flow = Flow(case)
    yield from _broadcast(flow)
    yield from _probabilities(flow)


# ------------------------------------------------------------------------------------------------------------ broadcast
def _broadcast(flow: Flow) -> Iterable[Finding]:
    """(n, 1) against (n,): each of one with each of the other."""
    for i, node in enumerate(flow.nodes):
        shape = node.shape
        if node.kind != "operation" or shape is None or len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            continue
        n = shape[0]
        if flow.words[i] in PAIRED:
            pair = _pair(flow, i, n)
            if pair is None or not _summed(flow, i, shape):
                continue
            at, (names, shapes) = i, pair
        elif flow.words[i] == "Expand" and flow.given[i]:
            expanded = _expanded(flow, i, n)
            if expanded is None:
                continue
            at, names, shapes = expanded
        else:
            continue
        column = 0 if shapes[0] == (n, 1) else 1
        evidence = {"n": n, "shape": (n, n), "shapes": shapes, "names": names, "at": i}
        where = f"{flow.code(at)}{flow.place(at)}"
        if (n, n) in shapes:
            pairs, one = (names, names[::-1])[shapes[1] == (n, n)]
            yield Finding(
                "broadcast",
                f"{where}: {pairs} has shape ({n}, {n}), though it is computed from {n} values, as {one} is. A column ({n}, 1) "
                f"met a row ({n},) in it, so the loss is over {n * n} pairs instead of {n}.",
                flow.line(at),
                at,
                "Give all of them one shape: squeeze(1) of the column, or unsqueeze(1) of the row. This changes the loss.",
                evidence,
                worth=8.0,
            )
            return
        columns, rows = _met_later(flow, at, n)
        fixes = [_reshaped(flow, [(at, column, names[column]), *columns], "squeeze(1)")]
        if (n,) in shapes:
            fixes.append(_reshaped(flow, [(at, 1 - column, names[1 - column]), *rows], "unsqueeze(1)"))
        yield Finding(
            "broadcast",
            f"{where}: {names[0]} has shape {_text(shapes[0])} and {names[1]} has shape {_text(shapes[1])}. They broadcast to "
            f"({n}, {n}), so the loss is over {n * n} pairs instead of {n}.",
            flow.line(at),
            at,
            f"Give both one shape: {', or '.join(fixes)}. This changes the loss: it is then over {n} pairs.",
            evidence,
            worth=8.0,
        )
        return  # what is computed from it has the same shape


def _expanded(flow: Flow, i: int, n: int) -> tuple[int, tuple[str, str], tuple[Shape, Shape]] | None:
    """The loss whose input or target was expanded to (n, n), the names of both and their shapes."""
    source = flow.given[i][0].source
    inner = flow.nodes[source].shape
    user = next((edge for edge in flow.uses[i] if flow.words[edge.target] in LOSSES), None)
    if inner not in ((n, 1), (n,), (1, n)) or user is None:
        return None
    own, other = (argument_text(flow, user.target, argument) for argument in (user.argument, 1 - user.argument))
    words = "the input", "the target"
    name = f"`{own}`" if own else flow.name(source)
    names = name, f"`{other}`" if other else words[1 - user.argument]
    shapes: tuple[Shape, Shape] = (inner, (n,) if inner == (n, 1) else (n, 1))
    return (user.target, *((names, shapes) if user.argument == 0 else (names[::-1], shapes[::-1])))


Met = tuple[int, int, str]  # an operation, one of its arguments, and its name in backticks


def _met_later(flow: Flow, i: int, n: int) -> tuple[list[Met], list[Met]]:
    """The columns (n, 1) and the rows (n,) that what became (n, n) at node `i` meets on its way: what is reshaped there must be
    reshaped here, too."""
    columns: list[Met] = []
    rows: list[Met] = []
    seen, waiting = {i}, [i]
    while waiting:
        for use in flow.uses[waiting.pop()]:
            t = use.target
            if t in seen or (flow.nodes[t].shape != (n, n) and flow.words[t] not in LOSSES):
                continue
            seen.add(t)
            waiting.append(t)
            others = [(e.argument, _whole(flow, e.source)) for e in flow.given[t] if e.argument != use.argument]
            others += [(o.argument, o.value.shape) for o in flow.nodes[t].operands if o.value is not None]
            for which, shape in others:
                met = t, which, _named(flow, t, which)
                (columns if shape == (n, 1) else rows if shape == (n,) else []).append(met)
    return columns, rows


def _whole(flow: Flow, i: int) -> Shape | None:
    """The shape of a node before it was expanded."""
    return flow.nodes[flow.given[i][0].source if flow.words[i] == "Expand" else i].shape


def _reshaped(flow: Flow, met: list[Met], method: str) -> str:
    """Some arguments with another shape in place of them; in words where the source has no name for one."""
    codes = []
    for at, which, name in met:
        code = name.strip("`") if name.startswith("`") else ""
        codes.append(replace_argument(flow, at, which, method) or instead(called(code, method), code))
    if all(codes):
        return " and ".join(codes)
    return f"{method} of {' and '.join(name or 'what it meets later' for _, _, name in met)}"


def _pair(flow: Flow, i: int, n: int) -> tuple[tuple[str, str], tuple[Shape, Shape]] | None:
    """The names and shapes of two operands that broadcast, unless somebody asked for it."""
    node = flow.nodes[i]
    sides: dict[int, tuple[str, Shape, int | None]] = {}
    for edge in flow.given[i]:
        own = flow.nodes[edge.source].shape
        if own is not None:
            sides[edge.argument] = _named(flow, i, edge.argument) or flow.name(edge.source), own, edge.source
    for operand in node.operands:
        if operand.value is not None and operand.argument not in sides:
            written = _named(flow, i, operand.argument) or (operand_text(operand) if operand.text else "the other operand")
            sides[operand.argument] = written, operand.value.shape, None
    if len(sides) != 2:
        return None
    (a, first, s), (b, second, t) = (sides[k] for k in sorted(sides))
    if (n, n) in (first, second):
        return _made_before(flow, i, n, (a, b), (first, second))
    if {first, second} not in ({(n, 1), (n,)}, {(n, 1), (1, n)}):
        return None
    if {first, second} == {(n, 1), (1, n)} and node.place is not None and ".T" in node.place.source:
        return None
    if node.place is not None and any(EXPLICIT.search(text) for text in (node.place.source, node.place.statement)):
        return None
    crossed = {first, second} == {(n, 1), (1, n)}
    for side, own in ((s, first), (t, second)):
        if side is not None and len(own) == 2 and flow.words[side] in ADDED_AXIS | (SHAPES if crossed else frozenset()):
            return None  # it was given this shape by hand
    if s is not None and t is not None and flow.moved_from(s) == flow.moved_from(t):
        return None
    return (a, b), (first, second)


def _named(flow: Flow, i: int, argument: int) -> str:
    """An argument as it is written at the operation, in backticks; "" if the source does not show it."""
    text = argument_text(flow, i, argument)
    return f"`{text}`" if text else ""


def _made_before(
    flow: Flow, i: int, n: int, names: tuple[str, str], shapes: tuple[Shape, Shape]
) -> tuple[tuple[str, str], tuple[Shape, Shape]] | None:
    """A column of the graph against what was computed of a column of the graph and cut off: a target that broadcast already."""
    one, pairs = (0, 1) if shapes[1] == (n, n) else (1, 0)
    cut = next(
        (o.cut for o in flow.nodes[i].operands if o.cut is not None and o.value is not None and o.value.shape == (n, n)), None
    )
    if cut is None or shapes[one] not in ((n, 1), (n,)) or cut.shape != shapes[one] or EXPLICIT.search(names[pairs]):
        return None
    if not re.search(r"[-+*/]", names[pairs]):
        return None
    return names, shapes


def _summed(flow: Flow, i: int, shape: Shape) -> bool:
    """Whether the elements of a node, each changed by itself, are summed up to one number."""
    waiting, seen = [i], {i}
    while waiting:
        for edge in flow.uses[waiting.pop()]:
            t = edge.target
            if flow.words[t] in REDUCED | LOSSES and flow.nodes[t].shape == ():
                return True
            if t not in seen and flow.words[t] in ELEMENTWISE and flow.nodes[t].shape == shape:
                seen.add(t)
                waiting.append(t)
    return False


def _text(shape: Shape) -> str:
    return f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"


# -------------------------------------------------------------------------------------------------------- probabilities
def _probabilities(flow: Flow) -> Iterable[Finding]:
    for i, node in enumerate(flow.nodes):
        word = flow.words[i]
        if word not in ("LogSoftmax", "BinaryCrossEntropyWithLogits", "CrossEntropyLoss", "NllLoss", "NllLoss2D"):
            continue
        if node.kind != "operation" or not flow.given[i]:
            continue
        source = flow.given[i][0].source
        maker = _through_shapes(flow, source)
        maker_word, value = flow.words[maker], flow.nodes[source].value
        if word == "BinaryCrossEntropyWithLogits" and maker_word in ("Reciprocal", "Div", "Mul") and _by_hand(flow, maker, value):
            maker_word = "Sigmoid"
        rows = rows_add_up(value)
        if word in ("NllLoss", "NllLoss2D"):
            if maker_word in ("Softmax", "Sigmoid") or rows or _above_zero(value):
                yield _of_nll(flow, i, maker, value, rows or maker_word == "Softmax")
            continue
        call = _call(flow, i)
        if maker_word == "LogSoftmax" and word == "LogSoftmax":
            yield Finding(
                "double-softmax",
                f"{flow.code(i)}{flow.place(i)} takes the log_softmax of what {flow.operation(maker)} "
                f"made{flow.place(maker)}: that "
                "changes nothing, and costs a pass.",
                flow.line(i),
                i,
                f"Give {call} the logits, or use nll_loss.",
                {"at": i, "maker": maker},
                remark=True,
            )
        elif (
            maker_word == "Softmax"
            or (maker_word == "Sigmoid" and (word != "LogSoftmax" or call == "cross_entropy"))
            or (rows and word == "LogSoftmax")
        ):
            by_hand = f"a {'sigmoid' if maker_word == 'Sigmoid' else 'softmax'} by hand"
            name = flow.operation(maker) if flow.words[maker] in ("Softmax", "Sigmoid") else by_hand
            kind = "softmax" if maker_word != "Sigmoid" else "sigmoid"
            evidence: dict[str, object] = {"at": i, "maker": maker}
            between = ""
            if value is not None and value.size:
                low, high = extremes(value)
                between = f" (between {figure(low)} and {figure(high)})"
                evidence |= {"least": low, "greatest": high, "source": source}
            yield Finding(
                "double-softmax",
                f"{flow.code(i)}{flow.place(i)}: {call} takes logits and applies {kind} to them itself, but its input is "
                f"probabilities{between}, computed by {name} in {flow.code(maker)}{flow.place(maker)}. With {kind} applied twice "
                "the gradient is small and the loss cannot come near 0.",
                flow.line(i),
                i,
                _logits(flow, maker, kind),
                evidence,
                worth=7.0,
                lines=tuple(line for line in (flow.line(maker),) if line is not None and line != flow.line(i)),
            )


def _logits(flow: Flow, maker: int, kind: str) -> str:
    """What to give instead of probabilities."""
    place, module = flow.nodes[maker].place, flow.nodes[maker].module
    code = ""
    if flow.kinds.get(module, "") in ("Softmax", "Sigmoid"):
        line = flow.line(maker)
        statement = flow.case.program.at(line) if line is not None else None
        new = flow.case.spelled(f"{module} = gradlab.nn.Identity()")
        code = before(new, ast.unparse(statement)) if statement is not None else ""
    elif place is not None and flow.words[maker] in ("Softmax", "Sigmoid"):
        code = instead(argument(place.source), place.source)
    told = f": {code}. This changes the loss: it is then computed from the logits" if code else ""
    return f"Give the loss the input of the {kind}, and take the {kind} only to look at probabilities{told}."


def _by_hand(flow: Flow, i: int, value: Value | None) -> bool:
    """Whether numbers between 0 and 1 come from 1 / (1 + exp(-x))."""
    if value is None or not value.size or value.nans or not (extremes(value)[0] > 0 and extremes(value)[1] < 1):
        return False
    near = {i}
    for _ in range(3):
        near |= {edge.source for at in near for edge in flow.given[at]}
    return any(flow.words[at] == "Exp" for at in near)


def _through_shapes(flow: Flow, i: int) -> int:
    while flow.nodes[i].kind == "operation" and flow.words[i] in SHAPES | CASTS and len(flow.given[i]) == 1:
        i = flow.given[i][0].source
    return i


def _call(flow: Flow, i: int) -> str:
    """What the user called: "cross_entropy"."""
    place = flow.nodes[i].place
    source = "" if place is None else place.source
    if flow.words[i] == "BinaryCrossEntropyWithLogits":
        return "binary_cross_entropy_with_logits"
    fed = any(flow.words[edge.target] in ("NllLoss", "NllLoss2D") for edge in flow.uses[i])
    return "log_softmax" if "log_softmax" in source or not fed else "cross_entropy"


def _of_nll(flow: Flow, i: int, maker: int, value: Value | None, rows: bool) -> Finding:
    evidence: dict[str, object] = {"at": i, "maker": maker}
    between = ""
    if value is not None and value.size:
        low, high = extremes(value)
        between = f" between {figure(low)} and {figure(high)}"
        evidence |= {"least": low, "greatest": high, "source": flow.given[i][0].source}
    what = "probabilities" if rows else "numbers"
    by = f" that {flow.operation(maker)} made{flow.place(maker)}" if flow.nodes[maker].kind == "operation" else ""
    return Finding(
        "nll-of-probabilities",
        f"{flow.code(i)}{flow.place(i)}: nll_loss takes logarithms of probabilities, which are 0 at most, but is given "
        f"{what}{between}{by}. "
        "It takes no logarithm itself, so the loss has no bound below 0 that means anything.",
        flow.line(i),
        i,
        _log_first(flow, i, rows),
        evidence,
        worth=7.0,
    )


def _log_first(flow: Flow, i: int, rows: bool) -> str:
    """How nll_loss comes to logarithms."""
    place = flow.nodes[i].place
    source = place.source if place is not None else ""
    operand = argument(source)
    log = f"{grouped(operand)}.log()" if rows else f"gradlab.log_softmax({operand}, 1)"
    code = instead(flow.case.spelled(replaced(source, operand, log)), source) if operand else ""
    what = "Use log_softmax in place of softmax" if rows else "Use log_softmax first"
    changes = " This changes the loss: it is then the cross-entropy." if code else ""
    return f"{what}{f', or {code}' if code else ''}, or cross_entropy of the logits.{changes}"


def _above_zero(value: Value | None) -> bool:
    """Whether there is a number that is no logarithm of a probability."""
    return value is not None and value.size > 0 and not value.nans and extremes(value)[1] > ONE


def rows_add_up(value: Value | None) -> bool:
    """Whether the rows of a matrix are probabilities: none is negative, and their mean is that of rows that add up to 1."""
    if value is None or len(value.shape) != 2 or value.shape[1] < 2 or not value.size or value.nans or value.infs:
        return False
    low, high = extremes(value)
    if low < 0 or high > 1 + ONE:
        return False
    if value.numbers is not None:
        width = value.shape[1]
        return all(abs(sum(value.numbers[k : k + width]) - 1) < ONE for k in range(0, value.size, width))
    return abs(value.statistics.mean * value.shape[1] - 1) < ONE

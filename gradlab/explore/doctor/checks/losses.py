"""Find losses of unintended pairs, and losses of probabilities that expect logits or logarithms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from gradlab.diagnose.sites import is_user_file
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import (
    argument,
    before,
    instead,
    parenthesize,
    parse_expression,
    replace_expression,
    small_number,
)
from gradlab.explore.doctor.context.flow import Flow, digits, extremes, flow_of, method_call, operand_text
from gradlab.explore.doctor.context.operands import argument_text, is_loss, replace_argument
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries import library_of
from gradlab.explore.trace.data import Shape
from gradlab.explore.trace.values import Value

EXPLICIT = re.compile(r"None|newaxis|unsqueeze|outer|view|reshape|expand|meshgrid|cdist|einsum")
LOSS_NAME = re.compile("loss|crit|cross_entropy|kl_div", re.IGNORECASE)
# Largest difference from 1 of the sum of a row of probabilities: ten roundings of 1 in float32.
ROUNDING = 1e-5


declare(
    "broadcast",
    notes=True,
    meaning="Predictions and targets have different shapes, usually (n, 1) and (n,), and broadcast: the loss is over all pairs.",
    why="""
        A column (n, 1) and a row (n,) broadcast to a matrix: the loss compares each prediction with all n targets instead of its
        own. With a squared error all predictions move towards the mean of the targets, and the model does not learn. A column
        (n, 1) and a matrix (n, k) are reported as a Note, because one prediction for k targets may be intended.
    """,
    remedy="""
        Give both the same shape: `pred.squeeze(1)`, or `y.unsqueeze(1)`. For k targets of each example give the model k outputs.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x = torch.randn(32, 3)
        y = x @ torch.tensor([1.0, 2.0, 3.0])
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            pred = model(x)
            loss = ((pred - y) ** 2).mean()  #!
            loss.backward()
            optimizer.step()
    """,
    healthy={"pred = model(x)": "pred = model(x).squeeze(1)"},
)

declare(
    "double-softmax",
    notes=True,
    meaning="A loss that takes logits and applies softmax or sigmoid itself is given probabilities.",
    why="""
        Softmax of probabilities is nearly uniform: with 10 classes no probability exceeds 0.232, so the loss cannot fall below
        1.46 even if every prediction is right. The gradients are small, and training is slow. log_softmax of
        log-probabilities does not change them, and is reported as a Note.
    """,
    remedy="""
        Pass the logits to `cross_entropy` or `binary_cross_entropy_with_logits`, and apply softmax or sigmoid only to read
        probabilities.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(5):
            optimizer.zero_grad()
            probs = torch.softmax(model(x), dim=1)
            loss = F.cross_entropy(probs, y)  #!
            loss.backward()
            optimizer.step()
    """,
    healthy={
        "probs = torch.softmax(model(x), dim=1)": "logits = model(x)",
        "loss = F.cross_entropy(probs, y)": "loss = F.cross_entropy(logits, y)",
    },
)

declare(
    "nll-of-probabilities",
    meaning="`nll_loss` takes log-probabilities and is given probabilities or logits.",
    why="""
        `nll_loss` takes no logarithm: it returns minus the mean of the inputs at the targets. Of probabilities that is a number
        between -1 and 0, whose gradient is small where a prediction is wrong. Of logits it has no lower bound.
    """,
    remedy="Pass `log_softmax(logits, dim=1)` to `nll_loss`, or the logits to `cross_entropy`, which computes both.",
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
        model = nn.Linear(8, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            probs = torch.softmax(model(x), dim=1)
            loss = F.nll_loss(probs, y)  #!
            loss.backward()
            optimizer.step()
    """,
    healthy={
        "probs = torch.softmax(model(x), dim=1)": "log_probs = torch.log_softmax(model(x), dim=1)",
        "loss = F.nll_loss(probs, y)": "loss = F.nll_loss(log_probs, y)",
    },
)


@check("broadcast", "double-softmax", "nll-of-probabilities", of_each_loss=True)
def find_misused_losses(case: Case) -> Iterable[Finding]:
    """Find losses whose inputs have the wrong shape or are not what the loss expects."""
    if case.trace is None or not case.trace.recorded:
        return
    flow = flow_of(case)
    yield from _find_broadcasts(flow)
    yield from _find_broadcast_columns(flow)
    yield from _find_probabilities(flow)


# ------------------------------------------------------------------------------------------------------------ broadcast
def _find_broadcasts(flow: Flow) -> Iterable[Finding]:
    """Find operations on shapes (n, 1) and (n,) that combine each element with all elements of the other."""
    for i, node in enumerate(flow.nodes):
        shape = node.shape
        if node.kind != "operation" or shape is None or len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            continue
        n = shape[0]
        if flow.properties[i].adds or flow.properties[i].multiplies:
            pair = _broadcast_pair(flow, i, n)
            if pair is None or not _is_reduced(flow, i, shape):
                continue
            at, (names, shapes) = i, pair
        elif flow.ops[i] == "Expand" and flow.inputs[i]:
            expanded = _find_expanded(flow, i, n)
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
                f"{where}: {pairs} has shape ({n}, {n}), though it is computed from {n} values, as {one} is. It combines "
                f"a column ({n}, 1) with a row ({n},), so the loss is over {n * n} pairs instead of {n}.",
                flow.line(at),
                at,
                "Give all of them one shape: squeeze(1) of the column, or unsqueeze(1) of the row. This changes the loss.",
                evidence,
                worth=8.0,
            )
            return
        columns, rows = _later_arguments(flow, at, n)
        fixes = [_reshape_fix(flow, [(at, column, names[column]), *columns], "squeeze(1)")]
        if (n,) in shapes:
            fixes.append(_reshape_fix(flow, [(at, 1 - column, names[1 - column]), *rows], "unsqueeze(1)"))
        yield Finding(
            "broadcast",
            f"{where}: {names[0]} has shape {_shape_text(shapes[0])} and {names[1]} has shape {_shape_text(shapes[1])}. "
            f"They broadcast to ({n}, {n}), so the loss is over {n * n} pairs instead of {n}.",
            flow.line(at),
            at,
            f"Give both one shape: {', or '.join(fixes)}. This changes the loss: it is then over {n} pairs.",
            evidence,
            worth=8.0,
        )
        return  # later operations have the same shape


def _find_expanded(flow: Flow, i: int, n: int) -> tuple[int, tuple[str, str], tuple[Shape, Shape]] | None:
    """Return the loss whose input or target was expanded to (n, n), the names of both and their shapes.

    PyTorch records some losses, such as `F.l1_loss`, as several operations, of which the first is a difference.
    """
    source = flow.inputs[i][0].source
    inner = flow.nodes[source].shape
    user = next((edge for edge in flow.uses[i] if flow.properties[edge.target].loss is not None), None)
    if user is None and _is_inside_loss(flow, i):
        user = next((edge for edge in flow.uses[i] if _is_inside_loss(flow, edge.target)), None)
        if user is not None and user.argument == 0 and _given_target(flow, user.target)[0] not in ((n,), (n, 1)):
            return None
    if inner not in ((n, 1), (n,), (1, n)) or user is None:
        return None
    own, other = (argument_text(flow, user.target, argument) for argument in (user.argument, 1 - user.argument))
    words = "the input", "the target"
    name = f"`{own}`" if own else flow.name(source)
    names = name, f"`{other}`" if other else words[1 - user.argument]
    shapes: tuple[Shape, Shape] = (inner, (n,) if inner == (n, 1) else (n, 1))
    return (user.target, *((names, shapes) if user.argument == 0 else (names[::-1], shapes[::-1])))


def _find_broadcast_columns(flow: Flow) -> Iterable[Finding]:
    """Find losses of a column (n, 1) and a matrix (n, k), one of which is computed and the other one data."""
    for i, node in enumerate(flow.nodes):
        loss, adds = flow.properties[i].loss, flow.properties[i].adds
        if node.kind != "operation" or not flow.inputs[i] or node.place is None or not (adds or loss is not None):
            continue
        if EXPLICIT.search(node.place.statement) or (loss is not None and loss.takes in ("log-probabilities", "scores")):
            continue
        own = flow.inputs[i][0].source
        prediction = _shape_before_expand(flow, own)
        if prediction is None or len(prediction) != 2 or flow.leaf_of(own) is not None:
            continue
        if flow.ops[own] == "Expand" and not _is_inside_loss(flow, own):
            continue  # the program expands it
        if loss is not None or _is_inside_loss(flow, i):
            target, target_name = _given_target(flow, i)
        else:
            operand = next((o for o in node.operands if o.kind == "input" and o.value is not None), None)
            if operand is None or operand.value is None or not _is_reduced(flow, i, node.shape or ()):
                continue
            if prediction[1] != 1:
                continue  # a matrix of quantiles, of samples or of an ensemble
            target, target_name = operand.value.shape, operand.text
        if target is None:
            continue
        finding = _column_finding(flow, i, flow.before_reshapes(own), prediction, target, target_name)
        if finding is not None:
            yield finding
            return


def _is_inside_loss(flow: Flow, i: int) -> bool:
    """Return whether an operation is a part of a loss, such as a difference in `F.l1_loss(pred, y)`."""
    place, module = flow.nodes[i].place, flow.nodes[i].module
    if module or place is None or not LOSS_NAME.search(place.source):
        return "Loss" in flow.kinds.get(module, "")
    call = parse_expression(place.source)
    return isinstance(call, ast.Call) and is_loss(call)


def _given_target(flow: Flow, i: int) -> tuple[Shape | None, str]:
    """Return the shape of the target of a loss as the program gives it, and its code."""
    text = argument_text(flow, i, 1)
    named: Any = flow.case.namespace.get(text)
    at, place = i, flow.nodes[i].place
    while not flow.nodes[at].operands and len(flow.uses[at]) == 1 and flow.nodes[flow.uses[at][0].target].place == place:
        at = flow.uses[at][0].target  # PyTorch records what a loss was given at the last of its operations
    value = next((o.value for o in flow.nodes[at].operands if o.argument == 1 and o.value is not None), None)
    if library_of(named) is not None:  # gradlab records a target after it was expanded
        return (tuple(named.shape) if "int" not in str(named.dtype) else None), text
    return (value.shape if value is not None and "int" not in value.dtype else None), text


def _column_finding(flow: Flow, i: int, own: int, prediction: Shape, target: Shape, target_name: str) -> Finding | None:
    """Return a Note on a prediction and a target of different shapes, if one has k columns and the other one."""
    n, k = prediction
    if prediction == (n, 1) and len(target) == 2 and target[0] == n > 1 and target[1] > 1:
        k = target[1]
        compared = f"each prediction is compared with all {k} targets of its example"
        advice = f"If the {k} targets have predictions of their own, give the model {k} outputs."
    elif k > 1 and target == (n, 1) and n > 1:
        compared = f"all {k} predictions of an example are compared with the same target"
        advice = "If one prediction for each example is intended, give the model one output."
    elif k > 1 and target == (n,) == (k,):
        compared = "each target is compared with a column of the predictions, and not with those of its example"
        advice = "If there is one target for each example, give the model one output, and both the same shape."
    else:
        return None
    name = _written_name(flow, i, 0) or flow.name(own)
    return Finding(
        "broadcast",
        f"{flow.code(i)}{flow.place(i)}: {name} has shape {_shape_text(prediction)} and "
        f"{f'`{target_name}`' if target_name else 'the target'} has shape {_shape_text(target)}. They broadcast to "
        f"{_shape_text((n, k))}: {compared}.",
        flow.line(i),
        i,
        advice,
        {"shape": (n, k), "shapes": (prediction, target), "at": i},
        remark=True,
        worth=3.0,
    )


Argument = tuple[int, int, str]  # an operation, one of its arguments, and its name in backticks


def _later_arguments(flow: Flow, i: int, n: int) -> tuple[list[Argument], list[Argument]]:
    """Return the columns (n, 1) and the rows (n,) that are combined later with the result of node `i`, of shape (n, n).

    They must be reshaped like the arguments of node `i`.
    """
    columns: list[Argument] = []
    rows: list[Argument] = []
    seen, waiting = {i}, [i]
    while waiting:
        for use in flow.uses[waiting.pop()]:
            t = use.target
            if t in seen or (flow.nodes[t].shape != (n, n) and flow.properties[t].loss is None):
                continue
            seen.add(t)
            waiting.append(t)
            others = [(e.argument, _shape_before_expand(flow, e.source)) for e in flow.inputs[t] if e.argument != use.argument]
            others += [(o.argument, o.value.shape) for o in flow.nodes[t].operands if o.value is not None]
            for which, shape in others:
                if shape in ((n, 1), (n,)):
                    (columns if shape == (n, 1) else rows).append((t, which, _written_name(flow, t, which)))
    return columns, rows


def _shape_before_expand(flow: Flow, i: int) -> Shape | None:
    """Return the shape of a node before it was expanded."""
    return flow.nodes[flow.inputs[i][0].source if flow.ops[i] == "Expand" else i].shape


def _reshape_fix(flow: Flow, arguments: list[Argument], method: str) -> str:
    """Return a fix that reshapes arguments, in words if the source has no name for one."""
    codes = []
    for at, which, name in arguments:
        code = name.strip("`") if name.startswith("`") else ""
        codes.append(replace_argument(flow, at, which, method) or instead(method_call(code, method), code))
    if all(codes):
        return " and ".join(codes)
    return f"{method} of {' and '.join(name or 'the other operand' for _, _, name in arguments)}"


def _broadcast_pair(flow: Flow, i: int, n: int) -> tuple[tuple[str, str], tuple[Shape, Shape]] | None:
    """Return the names and shapes of two operands that broadcast, unless the program asks for it."""
    node = flow.nodes[i]
    sides: dict[int, tuple[str, Shape, int | None]] = {}
    for edge in flow.inputs[i]:
        own = flow.nodes[edge.source].shape
        if own is not None:
            sides[edge.argument] = _written_name(flow, i, edge.argument) or flow.name(edge.source), own, edge.source
    for operand in node.operands:
        if operand.value is not None and operand.argument not in sides:
            written = _written_name(flow, i, operand.argument) or (operand_text(operand) if operand.text else "the other operand")
            sides[operand.argument] = written, operand.value.shape, None
    if len(sides) != 2:
        return None
    (a, first, s), (b, second, t) = (sides[k] for k in sorted(sides))
    if (n, n) in (first, second):
        return _detached_pairs(flow, i, n, (a, b), (first, second))
    if {first, second} not in ({(n, 1), (n,)}, {(n, 1), (1, n)}):
        return None
    if {first, second} == {(n, 1), (1, n)} and node.place is not None and ".T" in node.place.source:
        return None
    if node.place is not None and any(EXPLICIT.search(text) for text in (node.place.source, node.place.statement)):
        return None
    crossed = {first, second} == {(n, 1), (1, n)}
    for side, own in ((s, first), (t, second)):
        if side is None or len(own) != 2:
            continue
        if flow.properties[side].inserts_axis or (crossed and flow.is_reshape(side)):
            return None  # the program reshaped it on purpose
    if s is not None and t is not None and flow.origin_of(s) == flow.origin_of(t):
        return None
    return (a, b), (first, second)


def _written_name(flow: Flow, i: int, argument: int) -> str:
    """Return the source of an argument of an operation, in backticks; "" if the source does not show it."""
    text = argument_text(flow, i, argument)
    return f"`{text}`" if text else ""


def _detached_pairs(
    flow: Flow, i: int, n: int, names: tuple[str, str], shapes: tuple[Shape, Shape]
) -> tuple[tuple[str, str], tuple[Shape, Shape]] | None:
    """Return the operands if one is detached and has broadcast before, as a target computed from a column and a row."""
    one, pairs = (0, 1) if shapes[1] == (n, n) else (1, 0)
    cut = next(
        (o.cut for o in flow.nodes[i].operands if o.cut is not None and o.value is not None and o.value.shape == (n, n)), None
    )
    if cut is None or shapes[one] not in ((n, 1), (n,)) or cut.shape != shapes[one] or EXPLICIT.search(names[pairs]):
        return None
    if not re.search(r"[-+*/]", names[pairs]):
        return None
    return names, shapes


def _is_reduced(flow: Flow, i: int, shape: Shape) -> bool:
    """Return whether the elements of a node are reduced to one number, after elementwise operations only."""
    waiting, seen = [i], {i}
    while waiting:
        for edge in flow.uses[waiting.pop()]:
            t = edge.target
            reduced = flow.ops[t] in ("Mean", "Sum") or flow.properties[t].loss is not None
            if reduced and flow.nodes[t].shape == ():
                return True
            if t not in seen and flow.properties[t].elementwise and flow.nodes[t].shape == shape:
                seen.add(t)
                waiting.append(t)
    return False


def _shape_text(shape: Shape) -> str:
    return f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"


# -------------------------------------------------------------------------------------------------------- probabilities
def _find_probabilities(flow: Flow) -> Iterable[Finding]:
    for i, node in enumerate(flow.nodes):
        op, loss = flow.ops[i], flow.properties[i].loss
        takes_logits, is_nll = loss is not None and loss.takes == "logits", op in ("NllLoss", "NllLoss2D")
        if op != "LogSoftmax" and not takes_logits and not is_nll:
            continue
        if node.kind != "operation" or not flow.inputs[i]:
            continue
        source = flow.inputs[i][0].source
        maker = flow.before_reshapes(source)
        maker_op, value = flow.ops[maker], flow.nodes[source].value
        if (
            op == "BinaryCrossEntropyWithLogits"
            and (maker_op == "Reciprocal" or flow.properties[maker].multiplies)
            and _is_sigmoid_by_hand(flow, maker, value)
        ):
            maker_op = "Sigmoid"
        rows = rows_add_up(value)
        if is_nll:
            if maker_op in ("Softmax", "Sigmoid") or rows or _exceeds_zero(value):
                yield _nll_finding(flow, i, maker, value, rows or maker_op == "Softmax")
            continue
        call = _loss_name(flow, i)
        if maker_op == "LogSoftmax" and op == "LogSoftmax":
            yield Finding(
                "double-softmax",
                f"{flow.code(i)}{flow.place(i)} applies log_softmax to the output of {flow.operation(maker)}"
                f"{flow.place(maker)}: this changes nothing and takes time.",
                flow.line(i),
                i,
                f"Give {call} the logits, or use nll_loss.",
                {"at": i, "maker": maker},
                remark=True,
            )
        elif (
            maker_op == "Softmax"
            or (maker_op == "Sigmoid" and (op != "LogSoftmax" or call == "cross_entropy"))
            or (rows and op == "LogSoftmax")
        ):
            by_hand = f"a hand-written {'sigmoid' if maker_op == 'Sigmoid' else 'softmax'}"
            name = flow.operation(maker) if flow.ops[maker] in ("Softmax", "Sigmoid") else by_hand
            kind = "softmax" if maker_op != "Sigmoid" else "sigmoid"
            own = "softmax" if op == "LogSoftmax" else kind  # what the loss applies
            twice = f"{kind} applied twice" if own == kind else f"{own} of a {kind}"
            evidence: dict[str, object] = {"at": i, "maker": maker}
            between = ""
            if value is not None and value.size:
                low, high = extremes(value)
                between = f" (between {digits(low)} and {digits(high)})"
                evidence |= {"least": low, "greatest": high, "source": source}
            yield Finding(
                "double-softmax",
                f"{flow.code(i)}{flow.place(i)}: {call} takes logits and applies {own} to them itself, but its inputs are "
                f"probabilities{between}, computed by {name} in {flow.code(maker)}{flow.place(maker)}. With {twice} "
                "the gradient is small and the loss cannot come near 0.",
                flow.line(i),
                i,
                _logits_fix(flow, maker, kind),
                evidence,
                worth=7.0,
                lines=tuple(line for line in (flow.line(maker),) if line is not None and line != flow.line(i)),
            )


def _logits_fix(flow: Flow, maker: int, kind: str) -> str:
    """Return a fix that passes logits instead of probabilities."""
    place, module = flow.nodes[maker].place, flow.nodes[maker].module
    code = ""
    if flow.kinds.get(module, "") in ("Softmax", "Sigmoid"):
        line = flow.line(maker)
        statement = flow.case.program.statement_at(line) if line is not None else None
        new = flow.case.spell(f"{module} = gradlab.nn.Identity()")
        code = before(new, ast.unparse(statement)) if statement is not None else ""
    elif place is not None and flow.ops[maker] in ("Softmax", "Sigmoid") and is_user_file(place.file):
        code = instead(argument(place.source), place.source)
    how = f": {code}. This changes the loss: it is then computed from the logits" if code else ""
    return f"Pass the input of the {kind} to the loss, and use the {kind} only to read probabilities{how}."


def _is_sigmoid_by_hand(flow: Flow, i: int, value: Value | None) -> bool:
    """Return whether a value is 1 / (1 + exp(-x))."""
    if value is None or not value.size or value.nans or not (extremes(value)[0] > 0 and extremes(value)[1] < 1):
        return False
    near = {i}
    for _ in range(3):
        near |= {edge.source for at in near for edge in flow.inputs[at]}
    return any(flow.ops[at] == "Exp" for at in near)


def _loss_name(flow: Flow, i: int) -> str:
    """Return the name of the loss in the program: "cross_entropy"."""
    place = flow.nodes[i].place
    source = "" if place is None else place.source
    if flow.ops[i] == "BinaryCrossEntropyWithLogits":
        return "binary_cross_entropy_with_logits"
    fed = any(flow.ops[edge.target] in ("NllLoss", "NllLoss2D") for edge in flow.uses[i])
    return "log_softmax" if "log_softmax" in source or not fed else "cross_entropy"


def _nll_finding(flow: Flow, i: int, maker: int, value: Value | None, rows: bool) -> Finding:
    evidence: dict[str, object] = {"at": i, "maker": maker}
    between = ""
    if value is not None and value.size:
        low, high = extremes(value)
        between = f" between {digits(low)} and {digits(high)}"
        evidence |= {"least": low, "greatest": high, "source": flow.inputs[i][0].source}
    what = "probabilities" if rows else "numbers"
    by = f" computed by {flow.operation(maker)}{flow.place(maker)}" if flow.nodes[maker].kind == "operation" else ""
    return Finding(
        "nll-of-probabilities",
        f"{flow.code(i)}{flow.place(i)}: nll_loss takes logarithms of probabilities, which are at most 0, but its inputs are "
        f"{what}{between}{by}. It takes no logarithm itself, so the loss is not a negative log-likelihood.",
        flow.line(i),
        i,
        _log_fix(flow, i, rows),
        evidence,
        worth=7.0,
    )


def _log_fix(flow: Flow, i: int, rows: bool) -> str:
    """Return a fix that passes logarithms to nll_loss."""
    place = flow.nodes[i].place
    source = place.source if place is not None else ""
    operand = argument(source)
    least = small_number(flow.nodes[flow.inputs[i][0].source].dtype)  # a probability may be rounded to 0
    log = f"{parenthesize(operand)}.clamp(min={least}).log()" if rows else f"gradlab.log_softmax({operand}, 1)"
    code = instead(flow.case.spell(replace_expression(source, operand, log)), source) if operand else ""
    what = "Use log_softmax in place of softmax" if rows else "Use log_softmax first"
    changes = " This changes the loss: it is then the cross-entropy." if code else ""
    return f"{what}{f', or {code}' if code else ''}, or cross_entropy of the logits.{changes}"


def _exceeds_zero(value: Value | None) -> bool:
    """Return whether a value has an element that cannot be the logarithm of a probability."""
    return value is not None and value.size > 0 and not value.nans and extremes(value)[1] > ROUNDING


def rows_add_up(value: Value | None) -> bool:
    """Return whether the rows of a matrix are probabilities: not negative, with the mean of rows that add up to 1."""
    if value is None or len(value.shape) != 2 or value.shape[1] < 2 or not value.size or value.nans or value.infs:
        return False
    low, high = extremes(value)
    if low < 0 or high > 1 + ROUNDING:
        return False
    if value.numbers is not None:
        width = value.shape[1]
        return all(abs(sum(value.numbers[k : k + width]) - 1) < ROUNDING for k in range(0, value.size, width))
    return abs(value.statistics.mean * value.shape[1] - 1) < ROUNDING

"""Find losses of outputs that a dropout has set to 0."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import argument, instead, parenthesize, parse_expression
from gradlab.explore.doctor.context.flow import Flow, flow_of
from gradlab.explore.doctor.context.keras_models import layer_call, line_of_call
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.module_paths import last_step

FUNCTIONS = ("dropout", "alpha_dropout", "feature_alpha_dropout")
SOFTMAXES = ("Softmax", "LogSoftmax")

declare(
    "dropped-output",
    meaning="A dropout after the last layer sets outputs to 0 before the loss.",
    why="""
        A dropout sets random elements to 0 and divides the others by the share that it keeps. After a hidden layer, the next
        layer learns to do without some of its inputs. After the last layer no weights follow: the loss compares the 0 with the
        target, and no gradient passes through an output that is dropped. A score of 0 can be larger than those that the model has
        learned.
    """,
    remedy="Put the dropout before the last layer, or leave it out.",
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3), nn.Dropout(0.5))
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(5):
            optimizer.zero_grad()
            scores = model(x)  #!
            loss = F.cross_entropy(scores, y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"nn.ReLU(), nn.Linear(16, 3), nn.Dropout(0.5)": "nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)"},
)


@check("dropped-output", of_each_loss=True, keras=True)
def find_dropped_outputs(case: Case) -> Iterable[Finding]:
    """Find losses that compare the output of a dropout with targets."""
    if case.trace is None or not case.trace.recorded:
        return
    flow = flow_of(case)
    for i, node in enumerate(flow.nodes):
        if node.kind != "operation" or flow.properties[i].loss is None or len(flow.inputs[i]) != 1:
            continue
        at = _dropout_before(flow, i)
        if at is None:
            continue
        value, given = flow.nodes[at].value, flow.nodes[flow.inputs[at][0].source].value
        if value is None or given is None or value.zeros <= given.zeros:
            continue
        line, place = line_of_call(flow, at, layer_call(case, flow.nodes[at].module))
        yield Finding(
            "dropped-output",
            f"The loss {flow.code(i)}{flow.place(i)} gets the outputs of the dropout {_name(flow, at)}: {value.zeros} of "
            f"{value.size} are 0. No weights follow that could change them.",
            line,
            at,
            _advise(flow, at),
            {"zeros": value.zeros, "size": value.size, "at": at},
            place=place,
            worth=6.0,
        )


def _dropout_before(flow: Flow, loss: int) -> int | None:
    """Return the dropout that a loss gets its predictions from; None if there is none."""
    i = flow.inputs[loss][0].source
    while len(flow.inputs[i]) == 1:
        if _is_dropout(flow, i):
            return i
        if not (flow.is_reshape_or_cast(i) or flow.ops[i] in SOFTMAXES or flow.properties[i].sigmoidal):
            break
        i = flow.inputs[i][0].source
    return None


def _is_dropout(flow: Flow, i: int) -> bool:
    """Return whether a node is a dropout: PyTorch records some of them as products with a mask."""
    return flow.properties[i].drops or _is_module(flow, i) or _callee(flow, i).rstrip("123d") in FUNCTIONS


def _is_module(flow: Flow, i: int) -> bool:
    return "Dropout" in flow.kinds.get(flow.nodes[i].module, "")


def _callee(flow: Flow, i: int) -> str:
    """Return the last name of what the code of a node calls: "dropout" for `F.dropout(x, 0.2)`; "" if it is not a call."""
    place = flow.nodes[i].place
    call = parse_expression(place.source) if place is not None else None
    return ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""


def _name(flow: Flow, at: int) -> str:
    module = flow.nodes[at].module
    return flow.keras_layers.get(module, f"`{module}`") if _is_module(flow, at) else flow.code(at)


def _advise(flow: Flow, at: int) -> str:
    node = flow.nodes[at]
    inner = argument(node.place.source) if node.place is not None else ""
    if not inner or (_is_module(flow, at) and _callee(flow, at) != last_step(node.module).removeprefix(".")):
        return "Leave it out, or put it before the last layer. This changes the loss."
    assert node.place is not None
    source = node.place.source
    code = instead(inner if node.place.statement.endswith((f"= {source}", f"return {source}")) else parenthesize(inner), source)
    return f"Leave the dropout out: {code}. This changes the loss."

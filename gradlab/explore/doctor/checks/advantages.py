"""Find advantages that are not detached, so that the loss of the policy also trains the critic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.flow import Flow, digits, flow_of, is_positive
from gradlab.explore.doctor.context.operands import argument_text, replace_argument
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare

LOG_PROBABILITY = re.compile(r"log_?_?probs?\b|\blog_?ps?\b|log_?pi\b|log_?likelihood", re.IGNORECASE)
MAX_VISITED = 400  # nodes between a product and the critic


declare(
    "undetached-advantage",
    meaning="A log-probability is multiplied by an advantage that has the history of the critic, which has a loss of its own.",
    why="""
        The gradient of the policy is that of log π(a) times the advantage, a number. If the advantage is not detached, the
        product also has a gradient for the critic: it moves the values up or down to decrease the loss of the policy, against the
        regression to the returns. The loss has the same value with and without `detach()`, so its curve does not show it.
    """,
    remedy="Detach the advantage where the policy's loss uses it: `-(log_prob * advantage.detach()).mean()`.",
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
        both = [*actor.parameters(), *critic.parameters()]
        optimizer = torch.optim.Adam(both, lr=0.01)
        for step in range(5):
            state = torch.randn(32, 4)
            log_probs = F.log_softmax(actor(state), dim=1)
            action = torch.multinomial(log_probs.detach().exp(), 1)
            reward = (action == 0).float().squeeze(1)
            value = critic(state).squeeze(1)
            advantage = reward - value
            log_prob = log_probs.gather(1, action).squeeze(1)
            policy_loss = -(log_prob * advantage).mean()  #!
            value_loss = F.mse_loss(value, reward)
            loss = policy_loss + value_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    healthy={"log_prob * advantage)": "log_prob * advantage.detach())"},
    notes=True,
)


@dataclass(frozen=True)
class Product:
    """A product of a log-probability and an advantage that is computed from a critic.

    Attributes
    ----------
    node, argument : int
        The product, and which of its arguments is the advantage.
    layers : tuple of int
        The last layers of the critic.
    between : frozenset of int
        The nodes from the advantage to these layers.
    """

    node: int
    argument: int
    layers: tuple[int, ...]
    between: frozenset[int]


@check("undetached-advantage", of_each_loss=True)
def find_undetached_advantages(case: Case) -> Iterable[Finding]:
    """Find products of a log-probability and a difference of a critic's value, if the value is also regressed to a target."""
    if case.trace is None or not case.trace.outputs or len(case.trace.journal) < 2:
        return
    flow = flow_of(case)
    reported: dict[tuple[int | None, str], Finding] = {}
    for i in range(len(flow.nodes)):
        product = _find_product(flow, i)
        finding = _explain(case, flow, product) if product is not None else None
        if product is None or finding is None:
            continue
        same = finding.line, argument_text(flow, i, product.argument)
        first = reported.setdefault(same, finding)
        code = _detaching_code(flow, product)
        if first is not finding and code and code not in first.fix:  # the clipped ratio times the same advantage
            reported[same] = replace(first, fix=f"{first.fix.removesuffix('.')} and {code}.")
    yield from reported.values()


def _explain(case: Case, flow: Flow, product: Product) -> Finding | None:
    """Return a finding if the critic has a loss of its own, and the product gives it another gradient."""
    i, weights = product.node, _find_weights(flow, product)
    regression = _find_regression(flow, product) if weights else None
    other = _find_other_loss(case, flow, weights) if weights and regression is None else ""
    if regression is None and not other:
        return None
    arrived = next(edge for edge in flow.inputs[i] if edge.argument == product.argument)
    norm = arrived.gradient.norm if arrived.gradient is not None else flow.norms[arrived.source]
    if not is_positive(norm):
        return None
    name = argument_text(flow, i, product.argument) or flow.code(arrived.source).strip("`")
    critic = _critic_name(flow, product, weights)
    own = f"{flow.code(regression)}{flow.place(regression)}" if regression is not None else f"`{other}`"
    code = _detaching_code(flow, product)
    return Finding(
        "undetached-advantage",
        f"{flow.code(i)}{flow.place(i)} also trains {critic}: `{name}` has its history and gets a gradient of norm "
        f"{digits(norm or 0.0)} from the loss of the policy. {critic[:1].upper()}{critic[1:]} has a loss of its own, {own}.",
        flow.line(i),
        i,
        f"Detach it: {code}." if code else "Call detach() of the advantage in this product.",
        {"norm": norm, "at": i, "argument": product.argument},
        worth=7.0,
    )


def _find_product(flow: Flow, i: int) -> Product | None:
    """Return the product at a node; None if it is not of a log-probability and a difference of a critic's value."""
    if flow.ops[i] != "Mul" or len(flow.inputs[i]) != 2:
        return None
    sources = {edge.argument: edge.source for edge in flow.inputs[i]}
    if set(sources) != {0, 1} or sources[0] == sources[1]:
        return None
    place = flow.nodes[i].place
    is_named = place is not None and LOG_PROBABILITY.search(place.source)
    texts = [argument_text(flow, i, at) if is_named else "" for at in (0, 1)]
    for at in (0, 1):
        own, other = texts[at], texts[1 - at]
        if _is_log_probability(flow, sources[1 - at], other) and not _is_log_probability(flow, sources[at], own):
            between, layers = _trace_back(flow, sources[at])
            if layers and any(flow.properties[n].adds for n in between):
                return Product(i, at, tuple(layers), frozenset(between))
    return None


def _is_log_probability(flow: Flow, i: int, text: str) -> bool:
    """Return whether a node is a log-probability of actions, or the ratio of two probabilities of them."""
    if LOG_PROBABILITY.search(text) or LOG_PROBABILITY.search(flow.nodes[i].name):
        return True
    picked = False
    for _ in range(12):
        one = flow.properties[i]
        place = flow.nodes[i].place
        if flow.ops[i] == "LogSoftmax":
            return picked
        if place is not None and LOG_PROBABILITY.search(place.source):
            return True
        passes = bool(one.moves) or one.reduces == "sum" or one.rectifier or flow.ops[i] in ("Neg", "Exp")
        if not passes and not (one.adds and len(flow.inputs[i]) == 1):
            return False
        picked = picked or one.moves == "part"
        if not flow.inputs[i]:
            return False
        i = flow.inputs[i][0].source
    return False


def _trace_back(flow: Flow, start: int) -> tuple[set[int], list[int]]:
    """Return the nodes between an advantage and the layers that it is computed from, and these layers.

    The layers are empty if other operations than sums, scales, reductions and moves of data are in between.
    """
    visited: set[int] = set()
    layers: list[int] = []
    waiting = [start]
    while waiting:
        i = waiting.pop()
        if i in visited or len(visited) > MAX_VISITED:
            continue
        visited.add(i)
        one = flow.properties[i]
        if one.product:
            layers.append(i)
            continue
        if flow.nodes[i].kind != "operation" or not (
            one.adds or one.multiplies or one.moves or one.reduces or flow.ops[i] == "Neg"
        ):
            return visited, []
        waiting += [edge.source for edge in flow.inputs[i]]
    return visited, layers


def _find_regression(flow: Flow, product: Product) -> int | None:
    """Return the node that compares the value with a target: a loss of values, or the square of a difference."""
    for i in sorted(product.between):
        for edge in flow.uses[i]:
            if edge.target in product.between or edge.target == product.node:
                continue
            for t in _following(flow, edge.target):
                loss = flow.properties[t].loss
                if (loss is not None and loss.takes == "values") or _is_square(flow, t):
                    return t
    return None


def _is_square(flow: Flow, i: int) -> bool:
    """Return whether an operation squares its input."""
    exponents = [o.value.numbers for o in flow.nodes[i].operands if o.kind == "constant" and o.value is not None]
    sources = [edge.source for edge in flow.inputs[i]]
    return (
        (flow.ops[i] == "Pow" and any(numbers and numbers[0] == 2 for numbers in exponents))
        or flow.ops[i] == "Square"
        or (flow.ops[i] == "Mul" and len(sources) == 2 and sources[0] == sources[1])
    )


def _find_other_loss(case: Case, flow: Flow, weights: list[int]) -> str:
    """Return the name of another loss whose gradient is added to that of the policy's loss in the weights of the critic.

    "" if there is none, or if the gradients are cleared in between.
    """
    names = {root for i in flow.trace.outputs if (root := flow.nodes[i].name)}
    for key in {flow.keys[i] for i in weights if i in flow.keys}:
        for (earlier, before), (later, after) in pairwise(case.timelines.get(key, ())):
            own = [swept for swept in (earlier, later) if swept.root in names]
            others = [swept for swept in (earlier, later) if swept.root and swept.root not in names]
            if len(own) == len(others) == 1 and before.moved == 0 and after.before:
                return others[0].root
    return ""


def _following(flow: Flow, i: int) -> Iterator[int]:
    """Yield a node and, over sums and moves of data, the nodes that use it."""
    for _ in range(4):
        yield i
        one = flow.properties[i]
        if not (one.adds or one.moves) or len(flow.uses[i]) != 1:
            return
        i = flow.uses[i][0].target


def _find_weights(flow: Flow, product: Product) -> list[int]:
    """Return the weights of the critic's last layers that get a gradient."""
    weights = [i for layer in product.layers if (i := flow.weights[layer]) is not None and i >= 0]
    return [leaf for i in weights if flow.nodes[leaf := flow.origin_of(i)].kind == "leaf" and is_positive(flow.norms[leaf])]


def _critic_name(flow: Flow, product: Product, weights: list[int]) -> str:
    """Return the name of the critic in backticks: of its model, or of its last weight."""
    modules = [flow.nodes[layer].module for layer in product.layers if flow.nodes[layer].module]
    name = re.sub(r"\[\d+\]$", "", modules[0]) if modules else flow.nodes[weights[0]].name
    return f"`{name}`" if name else "the critic"


def _detaching_code(flow: Flow, product: Product) -> str:
    """Return the code that detaches the advantage in a product; "" if the source does not show it."""
    return replace_argument(flow, product.node, product.argument, "detach()")

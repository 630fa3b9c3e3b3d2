"""Find gradients that vanish or explode over the layers of a model, or over the steps of a recurrence.

The checks compare the norms of the gradient at two nodes of one path. A norm alone says nothing: the scale of the loss changes
all of them. The path from a layer to the loss follows the edges that carried most of the gradient, so it uses a skip connection
if there is one. If the input of a layer gets its gradient by another path, the layer is in a branch and is not reported. Nor is
a layer in a short branch beside a frozen one, as an adapter is, whose last weights start at 0.

The gain of an operation is ‖gradient of its input‖ / ‖gradient of its output‖. The product of the gains along a path is the ratio
of the norms, and the type of operation with the largest share of the logarithm of that product is the cause.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.core.properties import Properties
from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.flow import (
    LOSS_REDUCTIONS,
    Flow,
    digits,
    flow_of,
    has_gradients,
    is_positive,
    operand_text,
    plural,
    root_mean_square,
)
from gradlab.explore.doctor.context.step_history import is_changed
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare

# No false alarm and no miss in 1300 networks without shared weights, for which mean-field theory gives the answer (Schoenholz et
# al. 2017; tests/doctor/sweep.py: multilayer and convolutional networks, four activations, five initialisations).
VANISHING_RATIO, EXPLODING_RATIO = 1e-4, 1e3
# With shared weights the product is a power of one matrix, and its norm varies far more than that of independent matrices. Of 270
# healthy recurrent networks 3 change the norm by a factor of more than 1e3, and none by 1e6.
VANISHING_RATIO_OVER_STEPS = 1e-6
MIN_LAYERS = 3  # with fewer layers only a single operation that causes the ratio alone is reported
MIN_STEPS = 8  # uses of one parameter on a path that count as a recurrence; 1e-6 over 8 steps is less than 0.18 for each
MIN_STEPS_OF_SCALARS = 16  # of a scalar: powers and Horner's scheme use one a fewest times
MIN_SHARED_USES = 3  # from here on the uses of one parameter do not count as independent layers
MAX_NODES_BEHIND = 200  # nodes before a layer that are examined
MAX_BRANCH = 3  # layers of a branch that is added to the result of frozen layers
MAX_PATHS = 16  # paths that are examined, the most extreme ones first


declare(
    "vanishing",
    meaning="The gradient becomes smaller from layer to layer, until next to nothing arrives at the first ones.",
    why="""
        Each operation multiplies the gradient by its derivative, and a product of many factors below 1 decreases exponentially
        with the depth: twelve sigmoids, with a slope of at most 1/4 each, scale it by at most 0.25**12 = 6e-8. The first layers
        then hardly learn, while the last ones do.
    """,
    remedy="""
        Use ReLU or GELU with He initialisation (`nn.init.kaiming_normal_`), normalise between the layers, or add skip
        connections (`h = h + f(h)`).
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(64, 32), torch.randn(64, 1)
        layers = [nn.Linear(32, 32) for _ in range(12)]
        head = nn.Linear(32, 1)
        h = x
        for layer in layers:
            h = torch.sigmoid(layer(h))  #!
        loss = F.mse_loss(head(h), y)
        loss.backward()
    """,
    healthy="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(64, 32), torch.randn(64, 1)
        layers = [nn.Linear(32, 32) for _ in range(12)]
        for layer in layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        head = nn.Linear(32, 1)
        h = x
        for layer in layers:
            h = torch.relu(layer(h))
        loss = F.mse_loss(head(h), y)
        loss.backward()
    """,
)

declare(
    "exploding",
    meaning="""
        The gradient becomes larger from layer to layer, so at the first layers it is many times as large as at the last ones.
    """,
    why="""
        Each layer multiplies the gradient by its weights, and a product of many factors above 1 grows exponentially with the
        depth. A learning rate that suits the last layers then makes far too large steps in the first ones, and the loss
        increases or becomes NaN.
    """,
    remedy="""
        Draw the weights so that each layer keeps the norm: `nn.init.kaiming_normal_` with ReLU, `nn.init.xavier_normal_` with
        tanh. Or normalise between the layers, and scale down what residual blocks add.
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(16, 64), torch.randn(16, 1)
        layers = []
        for _ in range(6):
            layers += [nn.Linear(64, 64), nn.ReLU()]
        model = nn.Sequential(*layers, nn.Linear(64, 1))
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight)
        loss = F.mse_loss(model(x), y)  #!
        loss.backward()
    """,
    healthy={"nn.init.normal_(layer.weight)": 'nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")'},
)

declare(
    "recurrent",
    meaning="The gradient vanishes or explodes over the steps of a recurrence, which multiply it by the same weights.",
    why="""
        Over n steps the gradient scales like the n-th power of one factor: 0.5**100 is 8e-31. The early part of a sequence
        then has no effect on the weights, or it dominates the whole gradient.
    """,
    remedy="""
        If the gradient vanishes, let the state pass on unchanged, as an LSTM or `h = h + f(h)` does, start from an orthogonal
        matrix (`nn.init.orthogonal_`), or add losses at earlier steps. If it explodes, start from an orthogonal matrix, or
        clip the gradients with `nn.utils.clip_grad_norm_`.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        inputs, target = torch.randn(100, 8, 4), torch.randn(8, 16)
        encode = nn.Linear(4, 16)
        recur = nn.Linear(16, 16, bias=False)
        h = torch.zeros(8, 16)
        for x in inputs:
            h = torch.tanh(encode(x) + recur(h))  #!
        loss = ((h - target) ** 2).mean()
        loss.backward()
    """,
    healthy={"h = torch.tanh(encode(x) + recur(h))": "h = h + 0.1 * torch.tanh(encode(x) + recur(h))"},
)


@dataclass
class Path:
    """A path from a layer to the last layer before the loss.

    Attributes
    ----------
    nodes : list of int
        All nodes of the path, the first layer first.
    layers : list of int
        The nodes that are layers, without recurrent parts.
    gains : dict of int to float
        The logarithm of the gain of each node, without recurrent parts.
    log : float
        The sum of the gains.
    """

    nodes: list[int]
    layers: list[int]
    gains: dict[int, float]
    log: float


@check("vanishing", "exploding", "recurrent", of_each_loss=True, keras=True)
def find_vanishing_and_exploding(case: Case) -> Iterable[Finding]:
    """Find gradients that vanish or explode over layers or over steps."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    findings = _find_recurrent(flow)
    yield from findings
    for sign in (-1, 1):
        path = _most_extreme_path(flow, sign)
        if path is not None:
            finding = _finding_of_path(flow, path, sign)
            if finding is not None:
                yield finding


def log_threshold(sign: int) -> float:
    """Return the absolute value of the logarithm of a ratio beyond which the ratio is reported."""
    return -math.log(VANISHING_RATIO) if sign < 0 else math.log(EXPLODING_RATIO)


# --------------------------------------------------------------------------------------------------------------- layers
def _most_extreme_path(flow: Flow, sign: int) -> Path | None:
    """Return the path with the smallest (sign -1) or the largest ratio (sign 1), if it is beyond the threshold."""
    norms, bound = flow.norms, log_threshold(sign)
    last: list[int | None] = [None] * len(flow.nodes)
    for i in reversed(range(len(flow.nodes))):
        edge = flow.main_edges[i]
        above = None if edge is None else last[edge.target]
        last[i] = above if above is not None else i if flow.weights[i] is not None else None
    ends = []
    for i, weight in enumerate(flow.weights):
        end = last[i]
        if weight is None or end is None or end == i or flow.follows_layer[i]:
            continue
        first, final = norms[i], norms[end]
        if not (is_positive(first) and is_positive(final)):
            continue
        assert first is not None
        assert final is not None
        log = math.log(first) - math.log(final)
        if sign * log > bound and not (sign < 0 and (_is_bypassed(flow, i, final) or _is_beside_frozen(flow, i, final))):
            ends.append((sign * log, i, end))
    best = None
    for _, i, end in sorted(ends, reverse=True)[:MAX_PATHS]:
        path = _path_between(flow, i, end)
        if path is not None and sign * path.log > bound and (best is None or sign * path.log > sign * best.log):
            largest = sign * max(sign * gain for i, gain in path.gains.items() if not _is_end_of_loss(flow, i))
            if len(path.layers) >= MIN_LAYERS or sign * largest > bound:
                best = path
    return best


def _is_end_of_loss(flow: Flow, i: int) -> bool:
    """Return whether an operation is a loss, or a reduction as in `((pred - y) ** 2).mean()`."""
    return flow.properties[i].loss is not None or flow.properties[i].reduces in LOSS_REDUCTIONS


def _is_bypassed(flow: Flow, layer: int, final: float) -> bool:
    """Return whether the input of a layer gets its gradient by another path, so that the layer is in a branch."""
    parameters = set(flow.weights)
    behind, waiting = {layer}, [layer]
    while waiting and len(behind) < MAX_NODES_BEHIND:
        for edge in flow.inputs[waiting.pop()]:
            s = edge.source
            if s in behind or s in parameters:
                continue
            norm, carrier = flow.norms[s], flow.main_edges[s]
            if norm is not None and norm > VANISHING_RATIO * final and carrier is not None and carrier.target not in behind:
                return True
            behind.add(s)
            waiting.append(s)
    return False


def _is_beside_frozen(flow: Flow, layer: int, final: float) -> bool:
    """Return whether the result of a layer, or of up to two layers behind it, is added to one that does not require grad."""
    layers = 0
    for i in flow.path_up(layer):
        layers += flow.weights[i] is not None
        norm, properties, shape = flow.norms[i], flow.properties[i], flow.nodes[i].shape or ()
        if layers > MAX_BRANCH:
            return False
        if norm is None or norm <= VANISHING_RATIO * final or len(shape) < 2:
            continue
        for operand in flow.nodes[i].operands:
            is_addend = operand.kind != "constant" and (properties.adds or operand.argument == properties.addend)
            if is_addend and operand.value is not None and operand.value.shape == shape:
                return True
    return False


def _path_between(flow: Flow, start: int, end: int) -> Path | None:
    """Return the path between two layers, without the parts in which one parameter is used again and again."""
    nodes = []
    for i in flow.path_up(start):
        nodes.append(i)
        if i == end:
            break
    norms = flow.norms
    if any(not is_positive(norms[i]) for i in nodes):
        return None
    uses = Counter(weight for i in nodes if (weight := flow.weights[i]) is not None and weight >= 0)
    spans = []
    for weight, count in uses.items():
        if count >= MIN_SHARED_USES:
            at = [k for k, i in enumerate(nodes) if flow.weights[i] == weight]
            spans.append((at[0], at[-1]))
    shared = {k for first, final in spans for k in range(first + 1, final + 1)}
    gains = {
        nodes[k]: math.log(norms[nodes[k - 1]]) - math.log(norms[nodes[k]])  # type: ignore[arg-type]
        for k in range(1, len(nodes))
        if k not in shared
    }
    layers = [i for k, i in enumerate(nodes) if flow.weights[i] is not None and k not in shared]
    return Path(nodes, layers, gains, sum(gains.values())) if gains else None


def _finding_of_path(flow: Flow, path: Path, sign: int) -> Finding | None:
    """Return the finding on a path with its cause: a single operation, or all of one type."""
    start, end = path.nodes[0], path.nodes[-1]
    total: dict[str, float] = {}
    by_op: dict[str, list[int]] = {}
    for i, gain in path.gains.items():
        op = "@" if flow.properties[i].product else flow.ops[i]
        total[op] = total.get(op, 0.0) + gain
        by_op.setdefault(op, []).append(i)
    op = max(total, key=lambda k: sign * total[k])
    single = max(path.gains, key=lambda i: sign * path.gains[i])
    members = by_op[op]
    alone = sign * path.gains[single] > log_threshold(sign) and sign * (path.log - path.gains[single]) < sign * path.gains[single]
    if alone:
        op, members = ("@" if flow.properties[single].product else flow.ops[single]), [single]
    log, n = sum(path.gains[i] for i in members), len(members)
    each = math.exp(log / n)
    first, last = flow.norms[start], flow.norms[end]
    assert first is not None
    assert last is not None
    name = "vanishing" if sign < 0 else "exploding"
    evidence: dict[str, object] = {
        "first": first,
        "last": last,
        "layers": len(path.layers),
        "operations": n,
        "each": each,
        "nodes": tuple(members),
        "start": start,
        "end": end,
    }
    at = members[0]
    lines = [line for i in members if (line := flow.line(i)) is not None]
    line = lines[0] if lines else None
    sentence = (
        f"Over {len(path.layers)} layers the norm of the gradient {'falls' if sign < 0 else 'grows'} from {digits(last)} after "
        f"{_layer_name(flow, end)} to {digits(first)} after {_layer_name(flow, start)}."
    )
    cause, fix = _explain_cause(flow, op, members, each, sign, evidence)
    return Finding(
        name,
        f"{cause} {sentence}",
        line,
        at,
        fix,
        evidence,
        worth=5.0 + min(abs(path.log) / 100, 1.0),
        lines=tuple(dict.fromkeys(other for other in lines if other != line))[:3],
    )


def _layer_name(flow: Flow, i: int) -> str:
    weight = flow.weights[i]
    if weight is not None and weight >= 0 and flow.nodes[weight].name:
        return f"`{flow.nodes[weight].name}`"
    return flow.code(i)


def _explain_cause(
    flow: Flow, op: str, members: list[int], each: float, sign: int, evidence: dict[str, object]
) -> tuple[str, str]:
    """Return a sentence with the cause, and the fix. Add the numbers in them to the evidence."""
    n, at = len(members), members[0]
    product = each**n
    scale_by = f"scales the gradient by {digits(each)}"
    on_average = f"{scale_by} on average, and all {n} by {digits(product)}."
    evidence["product"] = product
    if op == "@":
        weights = [w for i in members if (w := flow.weights[i]) is not None and w >= 0]
        node = flow.nodes[weights[0]] if weights else None
        value = node.value if node is not None else None
        weight_scale = ""
        fix = "Scale the weights so that each layer keeps the norm, as Xavier and He initialisation do."
        if node is not None and value is not None and node.shape is not None and len(node.shape) >= 2:
            fans = node.shape[0] * math.prod(node.shape[2:]), node.shape[1] * math.prod(node.shape[2:])
            fan_in = fans[1] if _has_output_rows(flow, members, weights[0]) else fans[0]
            scale, xavier, he = root_mean_square(value), math.sqrt(2 / sum(fans)), math.sqrt(2 / max(fan_in, 1))
            evidence |= {"scale": scale, "xavier": xavier, "he": he, "shape": node.shape, "matrix": weights[0]}
            size = "×".join(map(str, node.shape))
            weight_scale = (
                f" The weights of `{node.name}` ({size}) have a root mean square of {digits(scale)}; Xavier initialisation gives "
                f"{digits(xavier)}, He initialisation {digits(he)}."
            )
            fix = _advise_initialisation(flow, weights, xavier, he)
        names = join_names([flow.nodes[w].name or flow.nodes[w].label for w in weights]) if weights else flow.code(at)
        where = f"{flow.code(at)}{flow.place(at)}"
        if n == 1:
            return f"The product with {names} in {where} alone {scale_by}.{weight_scale}", fix
        return f"Each product with the weights {names} ({where}) {on_average}{weight_scale}", fix
    bound = flow.properties[at].steepest if _is_like_tanh(flow.properties[at]) else None
    named = flow.operation(at) if n == 1 else op.lower()
    if bound is not None and sign < 0:
        evidence["bound"] = bound
        fix = "Use relu or gelu with He initialisation, normalise between the layers, or add skip connections."
        cause = (
            f"{plural(n, op.lower())} ({flow.code(at)}{flow.place(at)}) {'scales' if n == 1 else 'scale'} the gradient by "
            f"{digits(product)}, {digits(each)} each on average: the slope of {op.lower()} is at most {bound:.3g}."
        )
        return cause, fix
    constant = next((o for o in flow.nodes[at].operands if o.kind in ("constant", "input", "cut")), None)
    by = ""
    if flow.properties[at].multiplies and constant is not None and constant.value is not None and constant.value.size == 1:
        number = constant.value.numbers[0] if constant.value.numbers else 0
        by = f", by {digits(float(number))}"
        evidence["constant"] = number
    if n == 1:
        fix = f"Remove the factor {operand_text(constant)}, or normalise after it." if constant is not None else ""
        return f"{flow.code(at)}{flow.place(at)} ({named}{by}) alone {scale_by}.", fix
    fix = "Scale this operation so that it keeps the norm, or normalise between the layers."
    return f"Each {flow.code(at)}{flow.place(at)} ({named}{by}) {on_average}", fix


def _advise_initialisation(flow: Flow, weights: list[int], xavier: float, he: float) -> str:
    """Return how to draw the weights for the activations of the model, or that the steps changed the weights."""
    if any(is_changed(flow.case, flow.keys[w]) for w in weights if w in flow.keys):
        return "The steps of this cell changed the weights to this size: use a smaller learning rate or a smaller weight decay."
    like_tanh = any(map(_is_like_tanh, flow.properties))
    rectified = any(one.leaky or (one.rectifier and one.saturates == "below") for one in flow.properties)
    rules = [f"{digits(xavier)} (tanh)"] * (like_tanh or not rectified) + [f"{digits(he)} (ReLU)"] * (rectified or not like_tanh)
    return f"Draw the weights with a standard deviation of {' or '.join(rules)}."


def _is_like_tanh(properties: Properties) -> bool:
    """Return whether an activation is like tanh. The node of ReLU6 is Hardtanh, so this is not one."""
    return properties.sigmoidal and not properties.rectifier


def _has_output_rows(flow: Flow, members: list[int], weight: int) -> bool:
    """Return whether the rows of a matrix are outputs, as in nn.Linear and `W @ x`, rather than inputs, as in `x @ W`."""
    for i in members:
        for edge in flow.inputs[i]:
            if flow.weights[i] != weight or flow.weight_of(edge.source) != weight:
                continue
            if flow.properties[i].product != "matrix":
                return True  # a layer of the library: nn.Linear, a convolution
            transposed, at = False, edge.source
            while flow.nodes[at].kind == "operation" and len(flow.inputs[at]) == 1 and at != weight:
                transposed ^= flow.properties[at].transposes
                at = flow.inputs[at][0].source
            first = edge.argument == (1 if flow.properties[i].addend == 0 else 0)
            return transposed ^ first
    return True


# ---------------------------------------------------------------------------------------------------------------- steps
def _find_recurrent(flow: Flow) -> list[Finding]:
    """Find gradients that vanish or explode over the uses of one parameter on one path."""
    users: dict[int, list[int]] = {}
    for i, node in enumerate(flow.nodes):
        if node.kind != "operation":
            continue
        for edge in flow.inputs[i]:
            leaf = flow.leaf_of(edge.source) if flow.properties[i].product or flow.properties[i].multiplies else None
            if leaf is not None:
                users.setdefault(leaf, []).append(i)
    findings: list[Finding] = []
    covered: set[int] = set()
    for leaf, nodes in sorted(users.items(), key=lambda item: -len(flow.nodes[item[0]].shape or ())):
        fewest = MIN_STEPS if flow.nodes[leaf].shape else MIN_STEPS_OF_SCALARS
        nonzero = [i for i in nodes if is_positive(flow.norms[i])]
        if len(nodes) < fewest or len(nonzero) < fewest or covered & set(nodes):
            continue
        used = set(nonzero)
        uses = [i for i in flow.path_up(nonzero[0]) if i in used]
        if len(uses) < fewest:
            continue
        first, last = flow.norms[uses[0]], flow.norms[uses[-1]]
        assert first is not None
        assert last is not None
        log = math.log(first) - math.log(last)
        if abs(log) < -math.log(VANISHING_RATIO_OVER_STEPS):
            continue
        covered |= set(flow.path_up(uses[0]))
        findings.append(_finding_of_recurrence(flow, leaf, uses, first, last))
    return findings


def _finding_of_recurrence(flow: Flow, leaf: int, uses: list[int], first: float, last: float) -> Finding:
    steps, at, node = len(uses), uses[-1], flow.nodes[leaf]
    each = math.exp((math.log(first) - math.log(last)) / (steps - 1))
    small = first < last
    evidence = {"steps": steps, "first": first, "last": last, "each": each, "start": uses[0], "end": at, "leaf": leaf}
    module = flow.nodes[at].module
    name = f"`{node.name or node.label}`"
    what = f"{flow.code(at)}{flow.place(at)}" + (f" (in `{module}`)" if module and not flow.case.is_of_keras else "")
    effect = "so the first steps learn nothing" if small else "which outweighs all other steps"
    message = (
        f"{what} runs {steps} times with the same {name}, and each step scales the gradient by {digits(each)}: its norm "
        f"{'falls' if small else 'grows'} from {digits(last)} at the last step to {digits(first)} at the first, {effect}."
    )
    gated = flow.kinds.get(flow.nodes[at].module, "").startswith(("LSTM", "GRU"))
    if not node.shape:
        fix = f"Keep {name} near 1, or use fewer steps."
    elif small and gated:
        fix = "Add losses at early steps."
    elif small:
        fix = (
            "Let the state pass on unchanged, as an LSTM or h = h + f(h) does, start from an orthogonal matrix, or add losses "
            "at early steps."
        )
    else:
        clip = "`clipnorm=1.0` in the optimizer" if flow.case.is_of_keras else "nn.utils.clip_grad_norm_"
        fix = f"Start from an orthogonal matrix of scale 1, or clip the gradients with {clip}."
    return Finding("recurrent", message, flow.line(at), at, fix, evidence, worth=5.0)

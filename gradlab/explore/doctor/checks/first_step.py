"""Find what the first backward call of a training shows of the initialisation: a large first loss, units that do not learn.

All numbers are those of the first backward call (`context/first_sweep`), also if the report shows the last one. Weights that
were trained before, or loaded, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.cross_entropies import CrossEntropy, find_cross_entropies, spread_of
from gradlab.explore.doctor.context.first_sweep import Cause, find_cause, first_flow, scale_weights, starts_from_other_weights
from gradlab.explore.doctor.context.flow import Flow, digits
from gradlab.explore.doctor.context.step_history import input_name, standardising_advice
from gradlab.explore.doctor.context.unit_advice import advise_dead_units
from gradlab.explore.doctor.findings import Finding, join
from gradlab.explore.doctor.registry import NOTE, check, declare
from gradlab.explore.trace.slopes import NEARLY_FLAT, open_slope

# With logits of a standard deviation s the loss of K classes is about ln(K) + s² / 2. The usual initialisations have s ≤ √2, so
# the loss is at most ln(K) + 1.
MIN_SPREAD = 2.0
MIN_EXCESS = 2.0
MIN_RATIO = 1.5
MIN_BINARY_SPREAD = 4.0  # the mean of softplus of a normal number with this standard deviation is 1.8
MIN_BINARY_LOSS = 2.0
MIN_ROWS = 8  # of fewer examples the loss is a matter of chance
MASKED = -1e4  # logits below are of classes that are masked

MIN_NEARLY_FLAT = 1 / 3  # of a tanh, the inputs have then a standard deviation of 2.2
MIN_FLAT_OF_HARD = 2 / 3  # of a hardtanh, which is flat at 32 % of normalised inputs
MIN_ELEMENTS = 200
MIN_DEAD = 0.6
DEVIATIONS = 3.0  # above one half, in standard deviations of units that are inactive by chance
MIN_PLACES = 32
MAX_NAMED = 4  # layers that a message names

declare(
    "first-loss",
    severity=NOTE,
    meaning="The cross entropy of the first step is far above ln(K), that of equal probabilities for K classes.",
    why="""
        Before the first step a model knows nothing, so no class should be much more probable than another, and the loss should be
        near ln(K): 3.3 for 27 classes. If the output layer or its inputs are too large, the model starts with probabilities near
        1 for random classes. The first steps are then spent on making the logits smaller, not on learning. The Note is given
        for a mean above 1.5 ln(K) and ln(K) + 2 whose logits have a standard deviation above 2, if a layer explains them; of
        two classes with one logit, for a loss above 2 and a standard deviation above 4.
    """,
    remedy="""
        Draw the weights of the output layer with a smaller scale and start its bias at 0: `W2 = torch.randn(200, 27) * 0.01`.
        Standardise the inputs if they are large. The check is silent if weights are loaded or were trained before.
    """,
    fault="""
        import torch
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(64, 10), torch.randint(0, 27, (64,))
        W1 = (torch.randn(10, 200) / 10**0.5).requires_grad_()
        W2 = torch.randn(200, 27, requires_grad=True)
        for step in range(5):
            h = torch.tanh(x @ W1)
            loss = F.cross_entropy(h @ W2, y)  #!
            loss.backward()
            for p in (W1, W2):
                p.data -= 0.1 * p.grad
                p.grad = None
    """,
    healthy={
        "W2 = torch.randn(200, 27, requires_grad=True)": "W2 = (torch.randn(200, 27) * 0.01).requires_grad_()",
    },
)


@check("first-loss", "saturated", "dead", keras=True)
def find_faults_of_first_step(case: Case) -> Iterable[Finding]:
    """Find a first loss that is far above that of equal probabilities, and layers that are saturated or dead at the start."""
    flow = first_flow(case)
    if flow is None:
        return
    sweeps = case.trace.sweeps if case.trace is not None else 0
    found = [*_find_first_loss(flow, sweeps), *_find_saturated(flow, case), *_find_dead(flow, case)]
    if found and not starts_from_other_weights(flow):
        yield from found


# --------------------------------------------------------------------------------------------------------------- the loss
def _find_first_loss(flow: Flow, sweeps: int) -> Iterable[Finding]:
    """Find the largest cross entropy that is far above that of equal probabilities, with its cause.

    One sweep alone may try large numbers, so large data are reported in a training of several sweeps.
    """
    entropies = [one for one in find_cross_entropies(flow) if one.rows >= MIN_ROWS and _is_far_above(flow, one)]
    for one in sorted(entropies, key=lambda one: -one.loss):
        cause = find_cause(flow, one.logits)
        if cause is None or (cause.how == "factor" and _is_cosine(flow, cause)) or (cause.how == "data" and sweeps < 2):
            continue
        value = flow.nodes[one.logits].value
        assert value is not None
        spread, equal = spread_of(value), one.of_equal_probabilities
        reason, evidence = _describe_cause(flow, cause)
        name = flow.name(one.logits) if flow.nodes[one.logits].name else ""
        logits = f"{name} has" if name == "`logits`" else f"The logits {name} have" if name else "The logits have"
        code = flow.code(one.at)
        code = "the cross entropy" if code == f"`{flow.ops[one.at].lower()}`" else code
        yield Finding(
            "first-loss",
            f"In the first backward call {code}{flow.place(one.at)} is {digits(one.loss)}, far above ln({one.classes}) = "
            f"{digits(equal)}, the loss of equal probabilities. {logits} a standard deviation of {digits(spread)}. {reason}",
            flow.line(one.at),
            None,
            _advise_output(flow, cause, equal),
            {"loss": one.loss, "classes": one.classes, "equal": equal, "spread": spread} | evidence,
            remark=True,
            worth=3.0,
            place=flow.nodes[one.at].place,
        )
        return


def _is_far_above(flow: Flow, one: CrossEntropy) -> bool:
    value = flow.nodes[one.logits].value
    if value is None or value.odd or value.statistics.minimum < MASKED:
        return False
    spread, equal = spread_of(value), one.of_equal_probabilities
    if one.binary:
        return spread > MIN_BINARY_SPREAD and one.loss > MIN_BINARY_LOSS
    return spread > MIN_SPREAD and one.loss > max(MIN_RATIO * equal, equal + MIN_EXCESS)


def _is_cosine(flow: Flow, cause: Cause) -> bool:
    """Return whether the input of a layer is divided by its norm, so that a factor is needed."""
    waiting = [edge.source for edge in flow.inputs[cause.layer]]
    for _ in range(10):
        if not waiting:
            return False
        i = waiting.pop()
        if flow.properties[i].reduces == "norm":
            return True
        if flow.properties[i].multiplies or flow.is_reshape_or_cast(i) or flow.properties[i].rectifier:
            waiting += [edge.source for edge in flow.inputs[i]]
    return False


def _describe_cause(flow: Flow, cause: Cause) -> tuple[str, dict[str, object]]:
    """Return a sentence on why an output is large, and its numbers."""
    if cause.how == "data":
        assert cause.operand is not None
        return f"{input_name(flow, cause.source, cause.operand)} has a root mean square of {digits(cause.scale)}.", {
            "input": cause.scale
        }
    weight = flow.code(cause.weight)
    if cause.how == "weights":
        made_of = f"its weights have a standard deviation of {digits(cause.scale)}, and {cause.inputs} of them"
        return f"The cause is {weight}: {made_of} are summed for each output.", {"scale": cause.scale, "inputs": cause.inputs}
    if cause.how == "factor":
        return f"The output of the layer with {weight} is multiplied by {digits(cause.scale)}.", {"factor": cause.scale}
    return (
        f"The input {flow.name(cause.source)} of the layer with {weight} has a root mean square of {digits(cause.scale)}.",
        {"input": cause.scale},
    )


def _advise_output(flow: Flow, cause: Cause, equal: float) -> str:
    """Return how to start with small logits."""
    if cause.how == "data":
        assert cause.operand is not None
        return standardising_advice(flow, cause.operand)
    if cause.how == "factor":
        return f"Start without the factor of {digits(cause.scale)}, or with smaller weights."
    if cause.how == "input":
        return "Normalise it before the output layer, or draw the weights of the layers before it with a smaller scale."
    weight = flow.code(cause.weight)
    code = scale_weights(flow, cause.weight, "0.01")
    zero = f", and start {flow.code(cause.bias)} at 0" if cause.bias is not None else ""
    if code:
        return f"Draw it with a smaller scale: {code}{zero}. This changes the loss, which then starts near {digits(equal)}."
    advice = f"Draw {weight} with a smaller scale, such as a standard deviation of 0.01{zero}."
    return f"{advice} The loss then starts near {digits(equal)}."


# ------------------------------------------------------------------------------------------------------------------- units
@dataclass
class Layer:
    """An activation, in all calls with the same weights.

    Attributes
    ----------
    at : int
        Its first node.
    total, lost : int
        Elements or units, and those of them that are nearly flat or inactive.
    """

    at: int
    total: int
    lost: int

    @property
    def share(self) -> float:
        return self.lost / self.total


def _find_saturated(flow: Flow, case: Case) -> Iterable[Finding]:
    """Find activations between two limits that are in their flat parts at a third of their elements and more."""
    groups: dict[object, Layer] = {}
    reported = _reported_lines(case, "saturated")
    for i, node in enumerate(flow.nodes):
        slopes = node.slopes
        if slopes is None or not flow.properties[i].sigmoidal or not slopes.elements or flow.line(i) in reported:
            continue
        if not _feeds_layer(flow, i):
            continue
        layer = groups.setdefault((node.place, node.module, flow.ops[i], _weight_below(flow, i)), Layer(i, 0, 0))
        layer.total, layer.lost = layer.total + slopes.elements, layer.lost + slopes.nearly_flat
    layers = [one for one in groups.values() if one.total >= MIN_ELEMENTS and one.share >= _least_share(flow, one.at)]
    explained = [(one, find_cause(flow, flow.inputs[one.at][0].source)) for one in layers]
    # A constant factor before an activation is there to make it steep.
    layers = [one for one, cause in explained if cause is not None and cause.how != "factor"]
    causes = [cause for _, cause in explained if cause is not None and cause.how != "factor"]
    if not layers:
        return
    first = layers[0]
    op = flow.properties[first.at].short_name or flow.ops[first.at].lower()
    where = {"tanh": "beyond ±0.97", "sigmoid": "below 0.015 or above 0.985"}.get(op, "in its flat part")
    reason, evidence = _describe_causes(flow, causes)
    steepest = open_slope(flow.nodes[first.at].operation)
    assert steepest is not None
    slope = NEARLY_FLAT * steepest
    yield Finding(
        "saturated",
        f"In the first backward call the {op} in {flow.code(first.at)}{flow.place(first.at)} is {where} at "
        f"{_shares(flow, layers, 'elements')}, where it scales the gradient by less than {digits(slope)}. {reason}",
        flow.line(first.at),
        None,
        _advise_saturated(flow, causes, op),
        _evidence(layers) | {"slope": slope} | evidence,
        remark=True,
        worth=2.5,
        place=flow.nodes[first.at].place,
    )


def _find_dead(flow: Flow, case: Case) -> Iterable[Finding]:
    """Find layers of rectifiers of whose units clearly more than half are inactive for the whole first batch."""
    layers: list[Layer] = []
    reported = _reported_lines(case, "dead")
    for i, node in enumerate(flow.nodes):
        slopes, properties = node.slopes, flow.properties[i]
        if slopes is None or not properties.rectifier or properties.saturates != "below" or flow.line(i) in reported:
            continue
        if not slopes.units or slopes.places < MIN_PLACES or not _feeds_layer(flow, i) or _weight_below(flow, i) is None:
            continue
        by_chance = slopes.units / 2 + DEVIATIONS * slopes.units**0.5 / 2
        if slopes.shut >= max(MIN_DEAD * slopes.units, by_chance):
            layers.append(Layer(i, slopes.units, slopes.shut))
    if not layers:
        return
    first = layers[0]
    slopes = flow.nodes[first.at].slopes
    assert slopes is not None
    yield Finding(
        "dead",
        f"In the first backward call {_shares(flow, layers, 'units')} of the {flow.operation(first.at)} in "
        f"{flow.code(first.at)}{flow.place(first.at)} are inactive at all {slopes.places} places of the batch, and pass back "
        "exactly 0.",
        flow.line(first.at),
        None,
        advise_dead_units(flow, first.at),
        _evidence(layers) | {"places": slopes.places},
        remark=True,
        worth=2.5,
        place=flow.nodes[first.at].place,
    )


def _least_share(flow: Flow, i: int) -> float:
    return MIN_FLAT_OF_HARD if flow.properties[i].rectifier else MIN_NEARLY_FLAT


def _reported_lines(case: Case, kind: str) -> set[int | None]:
    """Return the lines of the Problems of a kind that other checks have reported."""
    found = [one for findings, _ in case.found.values() for one in findings if one.kind == kind and not one.remark]
    return {line for one in found for line in (one.line, *one.lines)}


def _evidence(layers: Sequence[Layer]) -> dict[str, object]:
    lost, total = sum(one.lost for one in layers), sum(one.total for one in layers)
    found: dict[str, object] = {"layers": len(layers), "total": tuple(one.total for one in layers), "lost": lost}
    return found | {"share": tuple(one.share for one in layers), "of": total}


def _shares(flow: Flow, layers: Sequence[Layer], what: str) -> str:
    """Return "69.2 % of 6400 elements", or the shares of several layers with their names."""
    if len(layers) == 1:
        return f"{percent(layers[0].share)} of {layers[0].total} {what}"
    texts = [f"{percent(one.share)} of {one.total} {what} of {_layer_name(flow, one.at)}" for one in layers]
    more = [f"{len(texts) - MAX_NAMED + 1} more layers"] if len(texts) > MAX_NAMED else []
    return join([*(texts[: MAX_NAMED - 1] if more else texts), *more])


def percent(share: float) -> str:
    """Return "69.2 %"."""
    return f"{100 * share:.3g} %"


def _layer_name(flow: Flow, i: int) -> str:
    """Return the name of a layer: its variable, its module, or that of the weights before it."""
    node = flow.nodes[i]
    name = node.name if node.name and "self." not in node.name else node.module
    weight = _weight_below(flow, i)
    if not name and weight is not None:
        return f"the layer with {flow.code(weight)}"
    return f"`{name}`" if name else flow.code(i)


def _weight_below(flow: Flow, i: int) -> int | None:
    """Return the weights of the layer whose output an activation takes, also through a normalisation; None if there are none."""
    at = flow.inputs[i][0].source
    for _ in range(10):
        if flow.properties[at].product:
            weight = flow.weights[at]
            return weight if weight is not None and weight >= 0 else None
        computed = [edge for edge in flow.inputs[at] if flow.leaf_of(edge.source) is None]
        if not computed:
            return None
        at = computed[0].source
    return None


def _feeds_layer(flow: Flow, i: int) -> bool:
    """Return whether the output of a node is the input of a layer, not only a factor: gates are meant to be open or shut."""
    seen, waiting = {i}, [i]
    while waiting and len(seen) < 200:
        for edge in flow.uses[waiting.pop()]:
            t = edge.target
            properties = flow.properties[t]
            if properties.product or properties.recurrent:
                return True
            if t in seen or flow.nodes[t].kind != "operation" or properties.loss is not None:
                continue
            if properties.multiplies and len(flow.inputs[t]) == 2:
                continue
            seen.add(t)
            waiting.append(t)
    return False


def _describe_causes(flow: Flow, causes: Sequence[Cause]) -> tuple[str, dict[str, object]]:
    """Return a sentence on why the outputs of layers are large, and its numbers."""
    if len(causes) == 1 or any(one.how != "weights" for one in causes):
        return _describe_cause(flow, causes[0])
    scales, inputs = tuple(one.scale for one in causes), tuple(one.inputs for one in causes)
    names = join_names([flow.code(one.weight).strip("`") for one in causes])
    sizes = f"their standard deviations are {_join_texts(map(digits, scales))}"
    sentence = (
        f"The cause is the size of {names}: {sizes}, and {_join_texts(map(str, inputs))} weights are summed for each output."
    )
    return sentence, {"scale": scales, "inputs": inputs}


def _join_texts(texts: Iterable[str]) -> str:
    """Return "0.1, 0.2 and 0.3"; the first texts of many."""
    several = list(texts)
    return join(several if len(several) <= MAX_NAMED else [*several[: MAX_NAMED - 1], f"{len(several) - MAX_NAMED + 1} more"])


def _advise_saturated(flow: Flow, causes: Sequence[Cause], op: str) -> str:
    """Return how to bring the inputs of activations to their steep part."""
    cause = causes[0]
    if cause.how == "data":
        assert cause.operand is not None
        return standardising_advice(flow, cause.operand)
    if any(one.how != "weights" for one in causes):
        return "Make its input smaller: draw the weights with a smaller scale, or normalise before it."
    gain, words = (5 / 3, "5/3") if op == "tanh" else (1.0, "1")
    numbers = [gain / one.inputs**0.5 for one in causes]
    if len(causes) > 1:
        each = _join_texts(map(digits, numbers))
        rule = f"Draw the weights of each layer with a standard deviation of {words} / √n for n inputs ({each})"
        return f"{rule}, or normalise before the {op}."
    factor = f"(5 / 3) / {cause.inputs} ** 0.5" if op == "tanh" else f"{cause.inputs} ** -0.5"
    code = scale_weights(flow, cause.weight, factor)
    rule = f"Draw the weights with a standard deviation of {words} / √{cause.inputs} = {digits(numbers[0])}"
    if code:
        return f"{rule}: {code}. This changes the loss, which starts from other weights."
    return f"{rule}, or normalise before the {op}."

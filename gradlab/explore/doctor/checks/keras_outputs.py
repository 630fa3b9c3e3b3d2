"""Find last layers of Keras models that do not fit the loss or its targets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gradlab.explore.doctor.checks.limited_outputs import MIN_SHARE, MIN_TARGETS, is_far_outside, share_outside
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.flow import Flow, digits, extremes, flow_of
from gradlab.explore.doctor.context.keras_models import (
    change_layer,
    change_loss,
    layer_call,
    line_of_call,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.keras_layers import CUSTOM, activation_of, describe_layer
from gradlab.explore.operations.keras_losses import BINARY, CLASSES
from gradlab.explore.trace.data import Shape
from gradlab.explore.trace.values import Value

ROUNDING = 1e-4  # of a sum over the classes, by the mean of the outputs in float32
MIN_EXCESS = 0.05  # of the sum of targets over 1, below which noise may explain it
# The ranges of activations by their names in Keras.
RANGES = {
    "": (-math.inf, math.inf),
    "sigmoid": (0.0, 1.0),
    "hard_sigmoid": (0.0, 1.0),
    "softmax": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "softsign": (-1.0, 1.0),
    "relu6": (0.0, 6.0),
    **dict.fromkeys(("relu", "softplus", "exponential"), (0.0, math.inf)),
    **dict.fromkeys(("leaky_relu", "elu", "selu", "gelu", "silu", "swish"), (-math.inf, math.inf)),
}
ENTROPIES = (*CLASSES, *BINARY)
CONVOLUTION = re.compile(r"(Depthwise|Separable)?Conv\dD(Transpose)?$")
CLASS_OF_ACTIVATION = {"LeakyReLU": "leaky_relu", "ELU": "elu"}


declare(
    "not-probabilities",
    meaning="A cross-entropy of Keras takes probabilities, and the last layer computes numbers that are not probabilities.",
    why="""
        `binary_crossentropy`, `categorical_crossentropy` and `sparse_categorical_crossentropy` take probabilities unless
        `from_logits=True`. Keras clips other numbers to the range from 1e-7 to 1 - 1e-7, and where it clips, no gradient passes.
        The losses of classes also divide the outputs by their sum: sigmoids, which do not add up to 1, can all become 1 without
        a larger loss.
    """,
    remedy="""
        End with `activation="sigmoid"` for `binary_crossentropy` and with `activation="softmax"` for the losses of classes, or
        leave the activation out and give the loss `from_logits=True`.
    """,
    fault="""
        import os

        os.environ["KERAS_BACKEND"] = "torch"
        import keras
        import numpy as np
        from keras.layers import Dense

        keras.utils.set_random_seed(0)
        x = np.random.randn(128, 6).astype("float32")
        y = (x[:, 0] + x[:, 1] ** 2 > 1).astype("float32")
        model = keras.Sequential()
        model.add(keras.Input((6,)))
        model.add(Dense(16, activation="relu"))
        model.add(Dense(1))  #!
        model.compile(optimizer="adam", loss="binary_crossentropy")
        model.fit(x, y, epochs=2, verbose=0)
    """,
    healthy={"model.add(Dense(1))": 'model.add(Dense(1, activation="sigmoid"))'},
    libraries=("keras",),
)

declare(
    "target-range",
    meaning="A loss of Keras gets targets that it is not made for, such as a cross-entropy targets that are not probabilities.",
    why="""
        A cross-entropy compares probabilities. The targets of exclusive classes add up to 1 for each example, as the outputs of a
        softmax do: with several classes in a target, the outputs cannot reach it. A binary cross-entropy takes targets from 0 to
        1: for a target of 3 it falls without limit while the output approaches 1. `poisson` is for counts: a negative target
        pulls the output to 0 and below. `mean_absolute_percentage_error` divides by the targets, and by 1e-7 where they are 0.
    """,
    remedy="""
        If an example may have several classes, end with `activation="sigmoid"` and use `binary_crossentropy`. Classes with
        numbers 0, 1, 2, … need an output for each of them, `activation="softmax"` and `sparse_categorical_crossentropy`. Labels
        -1 and 1 become 0 and 1 by `(y + 1) / 2`. Numbers that are measured need another loss, such as `mean_squared_error`.
    """,
    fault="""
        import os

        os.environ["KERAS_BACKEND"] = "torch"
        import keras
        import numpy as np
        from keras.layers import Dense

        keras.utils.set_random_seed(0)
        x = np.random.randn(128, 6).astype("float32")
        y = (x[:, :3] > 0).astype("float32")  # any of three labels
        model = keras.Sequential()
        model.add(keras.Input((6,)))
        model.add(Dense(16, activation="relu"))
        model.add(Dense(3, activation="softmax"))
        model.compile(optimizer="adam", loss="categorical_crossentropy")
        model.fit(x, y, epochs=2, verbose=0)  #!
    """,
    healthy={
        'Dense(3, activation="softmax")': 'Dense(3, activation="sigmoid")',
        'loss="categorical_crossentropy"': 'loss="binary_crossentropy"',
    },
    libraries=("keras",),
)


@dataclass(frozen=True)
class Output:
    """The output of a Keras model, and the loss that it goes into.

    Attributes
    ----------
    flow : Flow
    at : int
        The node of the loss.
    source : int
        The node of the output.
    path : str
        The last layer, "model.layers[2]".
    layer : Layer
    activation : str
        The name of its activation; "" if it has none.
    shape : tuple of int
    value, targets : Value or None
    """

    flow: Flow
    at: int
    source: int
    path: str
    layer: Any
    activation: str
    shape: Shape
    value: Value | None
    targets: Value | None

    @property
    def loss(self) -> str:
        """The name of the loss in backticks."""
        return f"`{self.flow.nodes[self.at].label}`"

    @property
    def operation(self) -> str:
        """The name of its operation, without "WithLogits"."""
        return self.flow.nodes[self.at].operation.removesuffix("WithLogits")

    @property
    def takes(self) -> str:
        loss = self.flow.properties[self.at].loss
        return "" if loss is None else loss.takes

    @property
    def name(self) -> str:
        """The layer, as in a sentence."""
        return describe_layer(self.path, self.layer)

    @property
    def case(self) -> Case:
        return self.flow.case

    @property
    def has_binary_targets(self) -> bool:
        """True if all targets are 0 or 1."""
        value = self.targets
        if value is None or value.odd or not value.size:
            return False
        low, high = extremes(value)
        total, squares = value.statistics.mean * value.size, value.norm**2
        return low >= 0 and high <= 1 and math.isclose(total, squares, rel_tol=1e-6, abs_tol=1e-6)

    def report(self, kind: str, message: str, fix: str, evidence: dict[str, Any], *, at_layer: bool = True) -> Finding:
        """Return a finding on the line that makes the layer, or on that of the loss."""
        line, place = line_of_call(self.flow, self.at, layer_call(self.case, self.path) if at_layer else None)
        return Finding(kind, message, line, self.at, fix, {"at": self.at, **evidence}, worth=8.0, place=place)


@check(
    *("cancelled", "not-probabilities", "target-range", "limited-output", "double-softmax", "broadcast"),
    of_each_loss=True,
    keras=True,
)
def find_misfit_outputs(case: Case) -> Iterable[Finding]:
    """Find outputs of Keras models that do not fit the loss or its targets, in the last or the first backward call.

    Of each output, the first fault is reported.
    """
    if case.trace is None or not case.trace.recorded:
        return
    last = flow_of(case)
    known: set[str] = set()
    for flow in dict.fromkeys((last, last.first or last)):
        for output in _outputs(flow):
            found = next((one for find in FAULTS if (one := find(output)) is not None), None)
            if found is None or output.path in known:
                continue
            known.add(output.path)
            yield found if flow is last else _in_first_call(found, flow)


def _in_first_call(found: Finding, flow: Flow) -> Finding:
    """Return a finding in the graph of the first backward call, whose nodes are not those of the trace."""
    assert found.node is not None
    evidence = {key: value for key, value in found.evidence.items() if key != "at"}
    place = found.place or flow.nodes[found.node].place
    message = f"In the first backward call, {found.message}"
    return replace(found, message=message, node=None, place=place, evidence=evidence)


def _outputs(flow: Flow) -> Iterator[Output]:
    for i, node in enumerate(flow.nodes):
        output = _output_of(flow, i) if node.kind == "operation" and node.operation.startswith("Keras ") else None
        if output is not None:
            yield output


def _output_of(flow: Flow, i: int) -> Output | None:
    """Return the output that a loss gets; None if it is not that of a layer with a known activation."""
    if len(flow.inputs[i]) != 1:
        return None
    source = flow.inputs[i][0].source
    maker, shape = flow.before_reshapes(source), flow.nodes[source].shape
    path = flow.nodes[maker].module
    layer = flow.case.keras_layer(path)
    if layer is None or not shape or not type(layer).__module__.startswith("keras.src."):
        return None
    activation = _activation(layer)
    if activation not in RANGES:
        return None
    targets = next((one.value for one in flow.nodes[i].operands if one.argument == 1), None)
    return Output(flow, i, source, path, layer, activation, shape, flow.nodes[source].value, targets)


def _activation(layer: Any) -> str:
    """Return the name of the activation with which a layer ends, "" if it has none; `CUSTOM` if it is not known."""
    kind = type(layer).__name__
    if kind in ("Dense", "EinsumDense", "Activation") or CONVOLUTION.match(kind):
        return activation_of(layer)
    if kind == "Softmax" and layer.axis == -1:
        return "softmax"
    if kind == "ReLU" and layer.max_value is None and not layer.threshold and not layer.negative_slope:
        return "relu"
    return CLASS_OF_ACTIVATION.get(kind, CUSTOM)


def _find_constant(one: Output) -> Finding | None:
    """Find an output that is 1 for every input, because it is normalised over one class."""
    if one.shape[-1] != 1 or not (one.activation == "softmax" or one.operation in CLASSES):
        return None
    if one.activation == "softmax":
        cause = f"{one.name} applies a softmax to one unit, so its output is 1 for every input"
    elif one.takes == "logits":
        cause = f"{one.loss} applies a softmax to the outputs of {one.name}, which has one unit: it is 1 for every input"
    else:
        cause = (
            f"{one.loss} divides the outputs by their sum over the classes. {one.name} has one unit, so the quotient is 1 for "
            "every input"
        )
    leaves = [norm for i, norm in enumerate(one.flow.norms) if one.flow.nodes[i].kind == "leaf" and norm is not None]
    nothing = ", and all gradients are 0" if leaves and not any(leaves) else ""
    return one.report("cancelled", f"{cause}{nothing}.", f"{_advise_for_one_unit(one)} This changes the loss.", {"units": 1})


def _find_broadcast(one: Output) -> Finding | None:
    """Find a loss of values whose targets have another number of columns than the outputs, of which one has a single column."""
    if one.takes not in ("values", "scores") or one.targets is None or len(one.shape) != 2:
        return None
    n, units = one.shape
    given = one.targets.shape if len(one.targets.shape) == 2 else (*one.targets.shape, 1)
    if len(given) != 2 or given[0] != n or given[1] == units or 1 not in (given[1], units):
        return None
    wide = max(units, given[1])
    same = f"each of the {units} outputs" if units > 1 else "the output"
    what = "the same target" if units > 1 else f"{wide} targets"
    edit = change_layer(one.case, one.path, units=given[1])
    return one.report(
        "broadcast",
        f"{one.loss} compares {same} of {one.name} with {what}: the targets have the shape {one.targets.shape}, and the outputs "
        f"have the shape {one.shape}.",
        f"Give the layer {'one unit' if units > 1 else 'a unit for each target'}{f': {edit}' if edit else ''}. This changes the "
        "loss.",
        {"targets": one.targets.shape, "outputs": one.shape},
    )


def _are_signs(value: Value) -> bool:
    """Return whether all targets are -1 or 1."""
    return extremes(value) == (-1, 1) and math.isclose(value.norm**2, value.size, rel_tol=1e-6)


def _find_odd_targets(one: Output) -> Finding | None:
    """Find targets of a cross-entropy that are not probabilities."""
    value = one.targets
    if value is None or value.odd or not value.size:
        return None
    low, high = extremes(value)
    if one.operation in BINARY and (low < 0 or high > 1):
        between = f"{one.loss} is for targets from 0 to 1, and these are between {digits(low)} and {digits(high)}"
        limit = "For a target above 1 or below 0 it has no lower limit."
        evidence: dict[str, Any] = {"least": low, "greatest": high}
        if _are_signs(value):
            fix = "Give it the labels 0 and 1: `(y + 1) / 2` of the labels -1 and 1."
        elif value.dtype.startswith(("int", "uint")) and low >= 0:
            fix = (
                'For classes with these numbers, use a unit for each class, `activation="softmax"` and the loss '
                "`sparse_categorical_crossentropy`."
            )
        else:
            edit = change_loss(one.case, one.path, "mean_squared_error")
            fix = f"For targets that are measured, use another loss: {edit}." if edit else "Use the loss `mean_squared_error`."
        return one.report("target-range", f"{between}. {limit}", f"{fix} This changes the loss.", evidence, at_layer=False)
    if one.operation in CLASSES and "Sparse" not in one.operation and len(value.shape) == 2 and value.shape == one.shape:
        total = value.statistics.mean * value.shape[1]
        if low < 0 or total > 1 + ROUNDING * value.shape[1]:
            fix = (
                'If an example may have several classes, use `activation="sigmoid"` and the loss `binary_crossentropy`; '
                "otherwise one-hot targets."
            )
            return one.report(
                "target-range",
                f"{one.loss} is for targets that add up to 1 for each example, and these add up to {digits(total)} on average.",
                f"{fix} This changes the loss.",
                {"total": total, "classes": value.shape[1]},
                at_layer=False,
            )
    return None


def _find_odd_numbers(one: Output) -> Finding | None:
    """Find negative targets of a Poisson loss, and targets of 0 that a percentage error divides by."""
    value = one.targets
    if value is None or value.odd or not value.size:
        return None
    low, high = extremes(value)
    if one.operation == "Keras Poisson" and low < 0:
        message = (
            f"{one.loss} is for counts, which are at least 0, and these targets are between {digits(low)} and {digits(high)}. "
            "For a negative target it is smallest where the output is 0 or below."
        )
        evidence: dict[str, Any] = {"least": low, "greatest": high}
    elif one.operation == "Keras MeanAbsolutePercentageError" and value.zeros and high > low:
        message = (
            f"{one.loss} divides by the targets, and {value.zeros} of these {value.size} are 0. Keras divides by 1e-7 there, so "
            "their gradients hide those of the others."
        )
        evidence = {"zeros": value.zeros, "size": value.size}
    else:
        return None
    edit = change_loss(one.case, one.path, "mean_squared_error")
    fix = f"Use another loss: {edit}." if edit else "Use another loss, such as `mean_squared_error`."
    return one.report("target-range", message, f"{fix} This changes the loss.", evidence, at_layer=False)


def _find_other_numbers(one: Output) -> Finding | None:
    """Find a cross-entropy of numbers that need not be between 0 and 1."""
    low, high = RANGES[one.activation]
    if one.takes != "probabilities" or (low >= 0 and high <= 1) or one.value is None or one.value.odd:
        return None
    least, greatest = extremes(one.value)
    ends = f"ends with {one.activation}" if one.activation else "has no activation"
    right = "softmax" if one.operation in CLASSES and one.shape[-1] > 1 else "sigmoid"
    return one.report(
        "not-probabilities",
        f"{one.loss} takes probabilities, and {one.name} {ends}. Its outputs are between {digits(least)} and {digits(greatest)}.",
        _advise_activation(one, right),
        {"least": least, "greatest": greatest},
    )


def _find_separate_classes(one: Output) -> Finding | None:
    """Find a cross-entropy of exclusive classes whose probabilities are computed by separate sigmoids."""
    if one.operation not in CLASSES or one.takes != "probabilities" or one.activation not in ("sigmoid", "hard_sigmoid"):
        return None
    if one.value is None or one.value.odd or one.shape[-1] < 2:
        return None
    total = one.value.statistics.mean * one.shape[-1]
    return one.report(
        "not-probabilities",
        f"{one.loss} takes the probabilities of classes that exclude each other, which add up to 1. {one.name} computes each of "
        f"the {one.shape[-1]} by a {one.activation} of its own: they add up to {digits(total)} on average.",
        _advise_activation(one, "softmax"),
        {"total": total, "classes": one.shape[-1]},
    )


def _find_probabilities(one: Output) -> Finding | None:
    """Find a loss that applies softmax or sigmoid itself to probabilities."""
    if one.takes != "logits" or one.activation not in ("softmax", "sigmoid"):
        return None
    own = "softmax" if one.operation in CLASSES else "sigmoid"
    return one.report(
        "double-softmax",
        f"{one.loss} with `from_logits=True` applies {own} itself, and {one.name} ends with {one.activation}: its outputs are "
        "probabilities already.",
        f"{_advise_no_activation(one)} This changes the loss.",
        {},
    )


def _find_limits(one: Output) -> Finding | None:
    """Find targets outside the range of the last activation."""
    value = one.targets
    low, high = RANGES[one.activation]
    if one.takes != "values" or value is None or value.odd or value.size < MIN_TARGETS or math.isinf(low):
        return None
    least, greatest = extremes(value)
    if is_far_outside(value, low, high) and share_outside(value, low, high) >= MIN_SHARE:
        ends = f"is between {digits(low)} and {digits(high)}" if math.isfinite(high) else f"is at least {digits(low)}"
        return one.report(
            "limited-output",
            f"{one.name} ends with {one.activation}, which {ends}, and the targets are between {digits(least)} and "
            f"{digits(greatest)}: those outside cannot be reached.",
            f"{_advise_no_activation(one)} This changes the loss.",
            {"least": least, "greatest": greatest, "low": low, **({"high": high} if math.isfinite(high) else {})},
        )
    total = value.statistics.mean * one.shape[-1]
    if one.activation == "softmax" and value.shape == one.shape and abs(total - 1) > MIN_EXCESS:
        return one.report(
            "limited-output",
            f"{one.name} ends with softmax, so its {one.shape[-1]} outputs add up to 1, and the targets add up to "
            f"{digits(total)} on average.",
            f"{_advise_no_activation(one)} This changes the loss.",
            {"total": total, "units": one.shape[-1]},
        )
    return None


FAULTS = (
    _find_constant,
    _find_broadcast,
    _find_odd_targets,
    _find_odd_numbers,
    _find_other_numbers,
    _find_separate_classes,
    _find_probabilities,
    _find_limits,
)


# ---------------------------------------------------------------------------------------------------------------- advice
def _advise_activation(one: Output, name: str) -> str:
    edit = change_layer(one.case, one.path, activation=name) if type(one.layer).__name__ != "ReLU" else ""
    code = edit or f'`activation="{name}"` in `{one.path}`'
    return f"Use {code}. This changes the loss."


def _advise_for_one_unit(one: Output) -> str:
    """Return what to do about an output that is normalised over one unit, by the loss and the targets."""
    loss, value = one.operation, one.targets
    is_known = value is not None and not value.odd and value.size > 0
    if one.has_binary_targets and one.takes == "logits":
        if loss in BINARY:
            return _advise_no_activation(one)
        return (
            "For labels 0 and 1, leave the activation out and use the loss `keras.losses.BinaryCrossentropy(from_logits=True)`."
        )
    if one.has_binary_targets:
        layer = change_layer(one.case, one.path, activation="sigmoid") if one.activation != "sigmoid" else ""
        other = change_loss(one.case, one.path, "binary_crossentropy") if loss in CLASSES else ""
        edits = [layer] * (one.activation != "sigmoid") + [other] * (loss in CLASSES)
        code = f": {' and '.join(edits)}" if all(edits) else ' (`activation="sigmoid"`) and the loss `binary_crossentropy`'
        return f"For labels 0 and 1, use a sigmoid{code}."
    if loss not in ENTROPIES:
        return _advise_no_activation(one)
    if value is not None and is_known and _are_signs(value):
        return 'Give it the labels 0 and 1, `(y + 1) / 2`, and use `activation="sigmoid"` and the loss `binary_crossentropy`.'
    if value is not None and is_known and extremes(value)[0] < 0:
        edit = change_loss(one.case, one.path, "mean_squared_error") or "`mean_squared_error`"
        activation = f"{_advise_no_activation(one)} " if one.activation else ""
        return f"{activation}For targets that are measured, use another loss: {edit}."
    return "Give the layer a unit for each class, and use the loss `sparse_categorical_crossentropy` if the labels are numbers."


def _advise_no_activation(one: Output) -> str:
    edit = change_layer(one.case, one.path, activation=None) if type(one.layer).__name__ != "Activation" else ""
    return f"Leave the activation out: {edit}." if edit else f"Leave the activation of `{one.path}` out."

"""Find models of Keras without an activation between their layers."""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.flow import Flow, flow_of
from gradlab.explore.doctor.context.keras_models import change_layer, layer_call, line_of_call
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare

LAST_ACTIVATIONS = ("Softmax", "Sigmoid")

declare(
    "linear-model",
    meaning="No layer has an activation, so that together the layers compute what one of them can compute.",
    why="""
        A linear function of a linear function is linear: `W2 @ (W1 @ x + b1) + b2` is one product and one bias. More layers and
        more units do not help with anything that a straight line does not fit. Models whose hidden layers have fewer units than
        both the input and the output are not reported: they limit the rank, as the principal components of an autoencoder do.
    """,
    remedy='Give the hidden layers an activation: `Dense(16, activation="relu")`. If the model should be linear, keep one layer.',
    fault="""
        import os

        os.environ["KERAS_BACKEND"] = "torch"
        import keras
        import numpy as np
        from keras.layers import Dense

        keras.utils.set_random_seed(0)
        x = np.random.randn(128, 1).astype("float32")
        y = x**2
        model = keras.Sequential()
        model.add(keras.Input((1,)))
        model.add(Dense(16))  #!
        model.add(Dense(1))
        model.compile(optimizer="adam", loss="mean_squared_error")
        model.fit(x, y, epochs=2, verbose=0)
    """,
    healthy={"model.add(Dense(16))": 'model.add(Dense(16, activation="relu"))'},
    libraries=("keras",),
)


@check("linear-model", of_each_loss=True, keras=True)
def find_linear_models(case: Case) -> Iterable[Finding]:
    """Find losses of models of Keras in which every operation is linear."""
    if case.trace is None or not case.trace.recorded or not case.is_of_keras:
        return
    flow = flow_of(case)
    for i, node in enumerate(flow.nodes):
        if flow.properties[i].loss is None or not node.operation.startswith("Keras ") or len(flow.inputs[i]) != 1:
            continue
        layers = _linear_layers(flow, flow.inputs[i][0].source)
        if len(layers) < 2 or _has_bottleneck(flow, layers):
            continue
        paths = [flow.nodes[at].module for at in layers]
        if any(path not in flow.keras_layers for path in paths):
            continue
        names = [flow.keras_layers[path] for path in paths]
        widest = max(range(len(layers) - 1), key=lambda k: flow.nodes[layers[k]].shape or ())
        edit = change_layer(case, paths[widest], activation="relu")
        code = edit or f'`activation="relu"` in `{paths[widest]}`'
        line, place = line_of_call(flow, layers[widest], layer_call(case, paths[widest]))
        yield Finding(
            "linear-model",
            f"{', '.join(names[:-1])} and {names[-1]} have no activation between them. Together they compute what the last one "
            "alone can compute.",
            line,
            layers[widest],
            f"Give the hidden layers an activation: {code}. This changes the loss.",
            {"nodes": tuple(layers)},
            place=place,
            worth=3.0,
        )


def _linear_layers(flow: Flow, i: int) -> list[int]:
    """Return the dense layers that a node is computed by, first to last; nothing if other operations are among them. The
    activation after the last layer may be a softmax or a sigmoid."""
    layers = []
    if flow.ops[i] in LAST_ACTIVATIONS and flow.inputs[i]:
        i = flow.inputs[i][0].source
    while True:
        inputs = [edge.source for edge in flow.inputs[i] if flow.leaf_of(edge.source) is None]
        if flow.properties[i].product and flow.weights[i] is not None and flow.weights[i] != -1:
            layers.append(i)
        elif not (flow.is_reshape_or_cast(i) or flow.properties[i].adds or flow.properties[i].drops):
            return []
        if len(inputs) != 1:
            return layers[::-1] if not inputs else []
        i = inputs[0]


def _has_bottleneck(flow: Flow, layers: list[int]) -> bool:
    """Return whether a hidden layer has fewer units than both the input and the output, so that the rank is limited."""
    shapes = [flow.nodes[weight].shape or () for at in layers if (weight := flow.weights[at]) is not None]
    if any(len(shape) != 2 for shape in shapes):
        return True
    widths = [shape[0] for shape in shapes] + [shapes[-1][1]]
    return min(widths[1:-1]) < min(widths[0], widths[-1])

"""Models of Keras on PyTorch as the explorers see them: names, layers, the graph, steps, and what is left behind."""

from __future__ import annotations

import os

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
torch = pytest.importorskip("torch")
from keras import layers  # noqa: E402

import gradlab as gl  # noqa: E402
from gradlab.explore.keras_layers import keras_layers, keras_parameters  # noqa: E402
from gradlab.explore.names import module_names, names_in  # noqa: E402
from gradlab.explore.trace.recorder import Recorder  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.torch]


class Nested(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = layers.Dense(3)
        self.blocks = [layers.Dense(3), layers.Dense(2)]
        self.tail = keras.Sequential([layers.Dense(2), layers.BatchNormalization()])

    def call(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.tail(x)


def functional():
    given = keras.Input((5, 4))
    hidden = layers.Bidirectional(layers.GRU(2))(given)
    return keras.Model(given, layers.Dense(2, "softmax")(hidden))


def test_parameters_have_the_paths_of_the_users_code():
    nested, model = Nested(), functional()
    nested(np.ones((4, 3), "float32"))
    for name, value in (("nested", nested), ("model", model)):
        parameters = keras_parameters(name, value)
        assert {id(p) for _, p in parameters} == {id(one.value) for one in value.trainable_variables}
        for path, parameter in parameters:
            assert eval(path, {name: value}).value is parameter, path
        for path, layer in keras_layers(name, value):
            assert eval(path, {name: value}) is layer, path
    paths = [path for path, _ in keras_parameters("nested", nested)]
    assert {"nested.first.kernel", "nested.blocks[1].bias", "nested.tail.layers[1].gamma"} <= set(paths)
    assert not [path for path in paths if "moving" in path]
    assert "model.layers[1].forward_layer.cell.recurrent_kernel" in [path for path, _ in keras_parameters("model", model)]


def test_frozen_layers_keep_their_names():
    model = functional()
    before = [path for path, _ in keras_parameters("model", model)]
    model.layers[1].trainable = False
    assert [path for path, _ in keras_parameters("model", model)] == before


def test_the_namespace_has_no_inner_names():
    model = functional()
    names = names_in({"model": model})
    assert set(names) == {path for path, _ in keras_parameters("model", model)}
    assert module_names([{"model": model}])[id(model.layers[2])] == "model.layers[2]"


def fit(model, x, y, **options):
    space = {"model": model, "x": x, "y": y}
    recorder = Recorder(lambda: space)
    recorder.examines_every_sweep = True
    with recorder:
        model.fit(x, y, verbose=0, **{"epochs": 1, "batch_size": len(x), **options})
    return recorder


def model_with_penalty():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, "relu", kernel_regularizer="l2"), layers.Dense(1, "sigmoid")])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def data():
    x = np.random.default_rng(0).standard_normal((16, 4)).astype("float32")
    return x, (x.sum(1) > 0).astype("float32")


def test_a_loss_is_one_node_with_the_gradients_around_it():
    x, y = data()
    model = model_with_penalty()
    weights = [torch.tensor(one, requires_grad=True) for one in model.get_weights()]
    recorder = fit(model, x, y)
    trace = recorder.trace()
    labels = [node.label for node in trace.nodes if node.kind == "operation"]
    assert labels == ["@", "+", "relu", "@", "+", "sigmoid", "binary_crossentropy", "L2(0.01)", "total loss"]
    assert [node.label for node in trace.nodes if node.kind == "output"] == ["loss"]
    assert all(not node.operation.startswith(("Clamp", "Log", "Mean", "Pow")) for node in trace.nodes)

    kernel, bias, last, offset = weights
    out = torch.sigmoid(torch.relu(torch.tensor(x) @ kernel + bias) @ last + offset)
    out.retain_grad()
    loss = torch.nn.functional.binary_cross_entropy(out[:, 0], torch.tensor(y))
    (loss + 0.01 * kernel.square().sum()).backward()
    by_label = {node.label: node for node in trace.nodes}
    assert by_label["binary_crossentropy"].value.numbers[0] == pytest.approx(loss.item(), rel=1e-5)
    assert by_label["sigmoid"].gradient.norm == pytest.approx(out.grad.norm().item(), rel=1e-4)
    for leaf, weight in zip(("layers[0].kernel", "layers[0].bias", "layers[1].kernel", "layers[1].bias"), weights, strict=True):
        assert by_label[f"model.{leaf}"].gradient.norm == pytest.approx(weight.grad.norm().item(), rel=1e-4), leaf
    (target,) = by_label["binary_crossentropy"].operands
    assert target.argument == 1 and target.value.statistics.mean == pytest.approx(y.mean())
    recorder.forget()


def test_lines_are_those_of_the_user_and_steps_are_recorded():
    x, y = data()
    recorder = fit(model_with_penalty(), x, y, epochs=3)
    trace = recorder.trace()
    assert all(node.place.source.startswith("model.fit(") for node in trace.nodes if node.kind == "operation")
    steps = [event for event in trace.events if event.kind == "step"]
    assert len(steps) == 3 and {step.optimizer for step in steps} == {"SGD"}
    assert steps[0].rates == (pytest.approx(0.1),) and len(steps[0].held) == 4
    assert not [event for event in trace.events if event.kind == "write"], "an optimizer's writes are not the user's"
    recorder.forget()


def test_nothing_is_left_behind_after_an_error():
    before = {
        owner: dict(vars(owner)) for owner in (keras.losses.Loss, keras.Model, keras.optimizers.Optimizer, keras.regularizers.L2)
    }

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise ValueError("stop")

    x, y = data()
    with pytest.raises(ValueError, match="stop"):
        fit(model_with_penalty(), x, y, callbacks=[Stop()])
    assert {owner: dict(vars(owner)) for owner in before} == before


def test_a_recorded_training_is_the_same_training():
    x, y = data()
    ends = []
    for recorded in (False, True):
        keras.utils.set_random_seed(0)
        model = model_with_penalty()
        history = (
            (fit(model, x, y, epochs=3) and model.history) if recorded else model.fit(x, y, epochs=3, batch_size=16, verbose=0)
        )
        ends.append((history.history["loss"], model.get_weights()))
    assert ends[0][0] == ends[1][0]
    assert all(np.array_equal(a, b) for a, b in zip(ends[0][1], ends[1][1], strict=True))


class Reader(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = layers.Embedding(20, 8), layers.Bidirectional(layers.LSTM(4))
        self.head = keras.Sequential([layers.Dropout(0.5), layers.Dense(2, activation="softmax")])

    def call(self, tokens, training=False):
        return self.head(self.rnn(self.embed(tokens)), training=training)


def calls_of(graph):
    """Return the modules and functions that the summary of a run lists, with their depths."""
    waiting, found = list(reversed(graph.run.tree)), []
    while waiting:
        part = waiting.pop()
        found.append((part.depth, part.path, part.kind))
        waiting += reversed(part.parts)
    return found


def test_a_run_has_the_layers_of_the_user_and_no_operations_inside_them():
    model = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization()])
    for layer in (layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3, activation="gelu")):
        model.add(layer)
    graph = gl.graph(model, np.ones((2, 8, 8, 1), "float32"))
    kinds = ["Conv2D", "BatchNormalization", "MaxPooling2D", "Flatten", "Dense"]
    expected = [(1, f"model.layers[{i}]", kind) for i, kind in enumerate(kinds)]
    assert calls_of(graph) == [(0, "model", "Sequential"), *expected]
    assert "model(inputs): Sequential" in graph.text() and "evaluation mode" in graph.text()
    assert f"Parameters: {sum(weight.value.numel() for weight in model.trainable_weights)}" in graph.text()
    assert "The model takes a tensor of shape (batch, 8, 8, 1)." in error_of(gl.graph, model)
    assert graph.run.whole["model.layers[0]"] == "Conv2D(filters=4, kernel_size=(3, 3), activation='relu')"
    assert graph.run.whole["model.layers[4]"] == "Dense(units=3, activation='gelu')"


def test_a_run_of_a_model_that_gets_its_weights_when_it_is_called():
    reader, tokens = Reader(), np.arange(12).reshape(2, 6)
    graph = gl.graph(reader, tokens, training=True)
    expected = [(0, "reader", "Reader"), (1, "reader.embed", "Embedding"), (1, "reader.rnn", "Bidirectional")]
    expected += [(1, "reader.head", "Sequential"), (2, "reader.head.layers[0]", "Dropout"), (2, "reader.head.layers[1]", "Dense")]
    assert calls_of(graph) == expected
    assert (
        f"Parameters: {sum(weight.value.numel() for weight in reader.weights if weight.trainable)}" in graph.text()
        and "training mode" in graph.text()
    )
    assert "call graph(model, tokens) with the arguments of Reader.call(tokens, training=False)" in error_of(gl.graph, reader)


def error_of(function, *args):
    with pytest.raises(TypeError) as caught:
        function(*args)
    return str(caught.value)

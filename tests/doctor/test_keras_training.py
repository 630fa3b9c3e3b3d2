"""The doctor on models of Keras on PyTorch: findings, their numbers, and fixes that are run as printed."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
pytest.importorskip("keras")
pytest.importorskip("torch")

from gradlab.explore.script import Program, run_script

pytestmark = [pytest.mark.frameworks, pytest.mark.torch]

START = """import os
os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from keras.layers import *
keras.utils.set_random_seed(0)
x = np.random.RandomState(0).randn(64, 4).astype("float32")
"""
BINARY = 'y = (x.sum(1) > 0).astype("float32")\n'
LABELS = "y = np.digitize(x[:, 0], [-0.5, 0.5])\n"
ONE_HOT = f"{LABELS}y = np.eye(3)[y]\n"
MEASURED = "y = 10 * x[:, :1]\n"
NESTED = f"""{START}{BINARY}given = keras.Input((4,))
base = keras.Model(given, Dense(8, activation="relu")(given))
top = keras.Sequential()
top.add(Dense(4, activation="relu"))
top.add(Dense(1, activation="softmax"))
model = keras.Model(base.input, top(base.output))
model.compile("adam", "binary_crossentropy")
before = np.asarray(model(x).detach())
model.fit(x, y, batch_size=64, epochs=1, verbose=0)
"""
EDIT = re.compile(r"`([^`]+)` in place of `([^`]+)`")


def program(data, last, loss, *, layers='Dense(8, activation="relu")', optimizer='"adam"', more=""):
    """Return a program that fits a model to one batch. It keeps what the model returns before."""
    lines = [f"model.add({layer})" for layer in (*([layers] if layers else []), *([last] if isinstance(last, str) else last))]
    made = "\n".join(["model = keras.Sequential([keras.Input((4,))])", *lines])
    loss = loss if loss.startswith("keras") else f'"{loss}"'
    return (
        f"{START}{data}{made}\nmodel.compile(loss={loss}, optimizer={optimizer})\nbefore = np.asarray(model(x).detach())\n"
        f"model.fit(x, y, batch_size=64, epochs=1, verbose=0)\n{more}"
    )


def examine(source):
    """Return what the doctor reports of a program, and the program's names."""
    kept = {}
    run = run_script(Program("program.py", "/program.py", source, (), ""), every=True, after=kept.update)
    assert not run.diagnosis.unseen, run.diagnosis.unseen
    return run, kept


def repair(source, fix):
    for new, old in EDIT.findall(fix):
        assert source.count(old) == 1, (old, source)
        source = source.replace(old, new)
    return source


FAULTS = {  # kind, words of the message, the line that it names, whether the fix is code
    "softmax of one unit": (
        *("cancelled", "applies a softmax to one unit", 'Dense(1, activation="softmax")', True),
        program(BINARY, 'Dense(1, activation="softmax")', "binary_crossentropy"),
    ),
    "softmax layer of one unit": (
        *("cancelled", "applies a softmax to one unit", "Activation('softmax')", True),
        program(BINARY, ["Dense(1)", "Activation('softmax')"], "binary_crossentropy"),
    ),
    "softmax of one unit, squared error": (
        *("cancelled", "applies a softmax to one unit", 'Dense(1, activation="softmax")', True),
        program(MEASURED, 'Dense(1, activation="softmax")', "mse"),
    ),
    "one unit for classes": (
        *("cancelled", "the quotient is 1 for every input", 'Dense(1, activation="sigmoid")', True),
        program(BINARY, 'Dense(1, activation="sigmoid")', "categorical_crossentropy"),
    ),
    "softmax of one unit for several classes": (
        *("cancelled", "applies a softmax to one unit", 'Dense(1, activation="softmax")', False),
        program("y = np.digitize(x[:, 0], [-0.5, 0.5]) / 2\n", 'Dense(1, activation="softmax")', "binary_crossentropy"),
    ),
    "layers that are not used in the order of the program": (
        *("not-probabilities", "`last` (Dense", "last = Dense(1)", True),
        START
        + BINARY
        + "last = Dense(1)\nfirst = Dense(8, activation='relu')\ngiven = keras.Input((4,))\n"
        + "model = keras.Model(given, last(first(given)))\nmodel.compile('adam', 'binary_crossentropy')\n"
        + "before = np.asarray(model(x).detach())\nmodel.fit(x, y, batch_size=64, epochs=1, verbose=0)\n",
    ),
    "a model with two names": (
        *("cancelled", "the quotient is 1 for every input", 'Dense(1, activation="sigmoid")', True),
        program(BINARY, 'Dense(1, activation="sigmoid")', "categorical_crossentropy").replace(
            "model.fit(x, y,", "def train(net):\n    net.fit(x, y,"
        )
        + "train(model)\n",
    ),
    "an optimizer with a name": (
        *("not-probabilities", "has no activation", "Dense(1)", True),
        program(f"{BINARY}sgd = keras.optimizers.SGD(0.01)\n", "Dense(1)", "binary_crossentropy", optimizer="sgd"),
    ),
    "scores for probabilities": (
        *("not-probabilities", "has no activation", "Dense(1)", True),
        program(BINARY, "Dense(1)", "binary_crossentropy"),
    ),
    "scores of classes": (
        *("not-probabilities", "has no activation", "Dense(3)", True),
        program(LABELS, "Dense(3)", "sparse_categorical_crossentropy"),
    ),
    "ReLU for probabilities": (
        *("not-probabilities", "ends with relu", 'Dense(3, activation="relu")', True),
        program(ONE_HOT, 'Dense(3, activation="relu")', "categorical_crossentropy"),
    ),
    "tanh for probabilities": (
        *("not-probabilities", "ends with tanh", 'Dense(1, activation="tanh")', True),
        program(BINARY, 'Dense(1, activation="tanh")', "binary_crossentropy"),
    ),
    "sigmoids of classes": (
        *("not-probabilities", "classes that exclude each other", 'Dense(3, activation="sigmoid")', True),
        program(ONE_HOT, 'Dense(3, activation="sigmoid")', "categorical_crossentropy"),
    ),
    "several labels, one softmax": (
        *("target-range", "add up to", "model.fit(", False),
        program('y = (x[:, :3] > 0).astype("float32")\n', 'Dense(3, activation="softmax")', "categorical_crossentropy"),
    ),
    "labels above 1 with logits": (
        *("target-range", "is for targets from 0 to 1", "model.fit(", False),
        program(LABELS, "Dense(1)", "keras.losses.BinaryCrossentropy(from_logits=True)"),
    ),
    "labels -1 and 1 with logits": (
        *("target-range", "between -1 and 1", "model.fit(", False),
        program("y = np.sign(x[:, 0])\n", "Dense(1)", "keras.losses.BinaryCrossentropy(from_logits=True)"),
    ),
    "sigmoid for a regression": (
        *("limited-output", "is between 0 and 1", 'Dense(1, activation="sigmoid")', True),
        program(MEASURED, 'Dense(1, activation="sigmoid")', "mse"),
    ),
    "ReLU for negative targets": (
        *("limited-output", "is at least 0", 'Dense(1, activation="relu")', True),
        program(MEASURED, 'Dense(1, activation="relu")', "mae"),
    ),
    "softmax for a regression": (
        *("limited-output", "add up to 1", "Dense(2, activation='softmax')", True),
        program("y = np.abs(x[:, :2]) / 4 + 0.6\n", "Dense(2, activation='softmax')", "mse"),
    ),
    "softmax and logits": (
        *("double-softmax", "applies softmax itself", 'Dense(3, activation="softmax")', True),
        program(ONE_HOT, 'Dense(3, activation="softmax")', "keras.losses.CategoricalCrossentropy(from_logits=True)"),
    ),
    "softmax of one unit in logits": (
        *("cancelled", "applies a softmax to one unit", 'Dense(1, activation="softmax")', True),
        program(BINARY, 'Dense(1, activation="softmax")', "keras.losses.BinaryCrossentropy(from_logits=True)"),
    ),
    "softmax of one unit for measured targets": (
        *("cancelled", "applies a softmax to one unit", 'Dense(1, activation="softmax")', True),
        program(MEASURED, 'Dense(1, activation="softmax")', "keras.losses.BinaryCrossentropy(from_logits=True)"),
    ),
    "softmax of one unit for signs": (
        *("cancelled", "applies a softmax to one unit", 'Dense(1, activation="softmax")', False),
        program("y = np.sign(x[:, 0])\n", 'Dense(1, activation="softmax")', "keras.losses.BinaryCrossentropy(from_logits=True)"),
    ),
    "one unit for the logits of classes": (
        *("cancelled", "has one unit: it is 1 for every input", "Dense(1)", False),
        program(f"{BINARY}y = y[:, None]\n", "Dense(1)", "keras.losses.CategoricalCrossentropy(from_logits=True)"),
    ),
    "softmax of one unit in a model in a model": (
        *("cancelled", "`top.layers[1]` (Dense", 'Dense(1, activation="softmax")', True),
        NESTED,
    ),
    "two units for one column of a squared error": (
        *("broadcast", "each of the 2 outputs", 'Dense(2, activation="sigmoid")', True),
        program(f"{BINARY}y = y[:, None]\n", 'Dense(2, activation="sigmoid")', "mse"),
    ),
    "one unit for three columns of an absolute error": (
        *("broadcast", "with 3 targets", "Dense(1)", True),
        program(ONE_HOT, "Dense(1)", "mae"),
    ),
    "negative targets of a Poisson loss": (
        *("target-range", "is for counts", "model.fit(", True),
        program(MEASURED, 'Dense(1, activation="softplus")', "poisson"),
    ),
    "a percentage of 0": (
        *("target-range", "divides by the targets", "model.fit(", True),
        program(f"{MEASURED}y[:5] = 0\n", "Dense(1)", "mean_absolute_percentage_error"),
    ),
    "a dropout before the softmax": (
        *("dropped-output", "of 192 are 0", "Dropout(0.5)", False),
        program(ONE_HOT, ["Dense(3)", "Dropout(0.5)", "Softmax()"], "categorical_crossentropy"),
    ),
    "a dropout of predictions": (
        *("dropped-output", "No weights follow", "Dropout(0.2)", False),
        program(MEASURED, ["Dense(1)", "Dropout(0.2)"], "mse"),
    ),
    "layers without activations": (
        *("linear-model", "have no activation between them", "Dense(16)", True),
        program(MEASURED, ["Dense(16)", "Dense(1)"], "mse", layers="Dense(2)"),
    ),
    "layers without activations before a sigmoid": (
        *("linear-model", "what the last one alone can compute", "Dense(16)", True),
        program(BINARY, ["Dense(6)", 'Dense(1, activation="sigmoid")'], "binary_crossentropy", layers="Dense(16)"),
    ),
    "weights of 0": (
        *("zero-factor", "are 0 everywhere", "model.fit(", True),
        program(
            BINARY,
            'Dense(1, activation="sigmoid", kernel_initializer="zeros")',
            "binary_crossentropy",
            layers='Dense(8, activation="relu", kernel_initializer="zeros")',
        ),
    ),
    "large inputs": (
        *("saturated", "is in its flat part", "model.fit(", False),
        program(
            f"{BINARY}x = 1000 * x\n",
            'Dense(1, activation="sigmoid")',
            "binary_crossentropy",
            layers="Dense(8, activation='tanh')",
        ),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_line_and_a_fix(name):
    kind, says, line, has_code, source = FAULTS[name]
    run, kept = examine(source)
    (finding,) = run.diagnosis.findings
    assert finding.kind == kind and says in finding.message, finding
    assert line in source.splitlines()[finding.line - 1], finding
    for text in (finding.message, finding.fix):
        assert not re.search(r"torch|_functional|\.py\b|site-packages|nn\.|clamp", text), text
    assert bool(EDIT.search(finding.fix)) == has_code, finding.fix
    check_numbers(kind, finding.evidence, kept)
    if has_code:
        changed, _ = examine(repair(source, finding.fix))
        assert not changed.failed and not [one for one in changed.diagnosis.findings if one.kind == kind], changed.diagnosis


def check_numbers(kind, evidence, kept):
    """Compare the numbers of a finding with those of the program: of the outputs, or of the targets."""
    values = kept["before"] if kind == "not-probabilities" else np.asarray(kept["y"], dtype=float)
    if "least" in evidence:
        assert np.allclose((evidence["least"], evidence["greatest"]), (values.min(), values.max()), rtol=1e-4, atol=1e-6)
    if "total" in evidence:
        assert np.isclose(evidence["total"], values.sum(1).mean(), rtol=1e-4)
    if kind == "broadcast":
        assert (np.shape(kept["y"])[1:] or (1,), kept["before"].shape) == (evidence["targets"][1:] or (1,), evidence["outputs"])
    if "zeros" in evidence and kind == "target-range":
        assert (evidence["zeros"], evidence["size"]) == ((values == 0).sum(), values.size)
    if kind in ("not-probabilities", "target-range"):
        assert {"least", "total", "zeros"} & set(evidence)


HEALTHY = {
    "sigmoid": program(BINARY, 'Dense(1, activation="sigmoid")', "binary_crossentropy"),
    "softmax": program(ONE_HOT, 'Dense(3, activation="softmax")', "categorical_crossentropy"),
    "labels": program(LABELS, 'Dense(3, activation="softmax")', "sparse_categorical_crossentropy"),
    "softmax layer": program(ONE_HOT, ["Dense(3)", "Dropout(0.0)", "Softmax()"], "categorical_crossentropy"),
    "logits": program(LABELS, "Dense(3)", "keras.losses.SparseCategoricalCrossentropy(from_logits=True)"),
    "binary logits": program(BINARY, "Dense(1)", "keras.losses.BinaryCrossentropy(from_logits=True)"),
    "several labels": program('y = (x[:, :3] > 0).astype("float32")\n', 'Dense(3, activation="sigmoid")', "binary_crossentropy"),
    "smoothed labels": program(f"{ONE_HOT}y = 0.9 * y + 0.1 / 3\n", 'Dense(3, activation="softmax")', "categorical_crossentropy"),
    "regression": program(MEASURED, "Dense(1)", "mse"),
    "scaled regression": program("y = 1 / (1 + np.exp(-x[:, :1]))\n", 'Dense(1, activation="sigmoid")', "mse"),
    "counts": program("y = np.floor(np.abs(3 * x[:, :1]))\n", 'Dense(1, activation="softplus")', "mse"),
    "penalty": program(
        BINARY, 'Dense(1, activation="sigmoid")', "binary_crossentropy", layers='Dense(8, "relu", kernel_regularizer="l2")'
    ),
    "scores": program("y = np.sign(x[:, :1])\n", "Dense(1)", "keras.losses.Hinge()"),
    "an activation of the user": program(BINARY, "Dense(1, activation=lambda s: keras.ops.sigmoid(s))", "binary_crossentropy"),
    "a state between 0 and 1": program(
        f"{BINARY}x = x[:, :, None]\n", 'LSTM(1, activation="sigmoid")', "binary_crossentropy", layers=""
    ).replace("(4,)", "(4, 1)"),
    "a rectifier between 0 and 1": program(BINARY, ["Dense(1)", "ReLU(max_value=1.0)"], "binary_crossentropy"),
    "rows without a class": program(f"{ONE_HOT}y[:10] = 0\n", 'Dense(3, activation="softmax")', "categorical_crossentropy"),
    "a softmax over another axis": program(
        f"{BINARY}y = np.eye(4)[np.digitize(x[:, 0], [-0.7, 0, 0.7])][:, :, None]\n",
        ["Reshape((4, 1))", "Softmax(axis=1)"],
        "keras.losses.CategoricalCrossentropy(axis=1)",
        layers="Dense(4)",
    ),
    "counts of a Poisson loss": program("y = np.floor(np.abs(3 * x[:, :1]))\n", 'Dense(1, activation="softplus")', "poisson"),
    "percentages": program("y = 1 + np.abs(x[:, :1])\n", "Dense(1)", "mean_absolute_percentage_error"),
    "a dropout before the last layer": program(
        ONE_HOT, ["Dropout(0.5)", 'Dense(3, activation="softmax")'], "categorical_crossentropy"
    ),
    "one linear layer": program(MEASURED, "Dense(1)", "mse", layers=""),
    "a linear autoencoder": program("y = x\n", "Dense(4)", "mse", layers="Dense(2)"),
    "recurrent": program(
        f'{BINARY}x = x[:, :, None] * np.ones((1, 1, 2), "float32")\n',
        'Dense(1, activation="sigmoid")',
        "binary_crossentropy",
        layers="LSTM(4)",
    ).replace("(4,)", "(4, 2)"),
    "convolution": program(
        f"{BINARY}x = x.reshape(64, 2, 2, 1)\n",
        ["Flatten()", 'Dense(1, activation="sigmoid")'],
        "binary_crossentropy",
        layers='Conv2D(3, 2, activation="relu")',
    ).replace("(4,)", "(2, 2, 1)"),
    "batch normalisation": program(BINARY, ["BatchNormalization()", 'Dense(1, activation="sigmoid")'], "binary_crossentropy"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_found_in_a_healthy_program(name):
    run, _ = examine(HEALTHY[name])
    assert not run.failed and not run.diagnosis.findings and not run.diagnosis.remarks, run.diagnosis


ERRORS = {  # kind, words of the message, whether the fix is code
    "labels for one-hot targets": (
        "shape",
        "(64,)",
        True,
        program(LABELS, 'Dense(3, activation="softmax")', "categorical_crossentropy"),
    ),
    "two units for one label": (
        "shape",
        "(64, 2)",
        True,
        program(BINARY, 'Dense(2, activation="softmax")', "binary_crossentropy"),
    ),
    "labels for logits": (
        "shape",
        "do not match for `CategoricalCrossentropy`",
        False,
        program(LABELS, "Dense(3)", "keras.losses.CategoricalCrossentropy(from_logits=True)"),
    ),
    "one unit for three columns": (
        "shape",
        "A softmax over one unit is 1 for every input",
        True,
        program(ONE_HOT, 'Dense(1, activation="softmax")', "binary_crossentropy"),
    ),
    "two units for one label of a squared error": (
        "shape",
        "do not match for `mse`",
        True,
        program(BINARY, 'Dense(2, activation="sigmoid")', "mse"),
    ),
    "labels above 1": (
        "target",
        "targets from 0 to 1",
        False,
        program(LABELS, 'Dense(1, activation="sigmoid")', "binary_crossentropy"),
    ),
    "a label above the last unit": (
        "target",
        "has 2 units",
        False,
        program(LABELS, 'Dense(2, activation="softmax")', "sparse_categorical_crossentropy"),
    ),
    "NaN in the data": (
        "target",
        "are NaN",
        False,
        program(f"{BINARY}x[3, 1] = np.nan\n", 'Dense(1, activation="sigmoid")', "binary_crossentropy"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_a_loss_is_explained(name, capsys):
    kind, says, has_code, source = ERRORS[name]
    run, _ = examine(source)
    capsys.readouterr()
    (finding,) = run.diagnosis.findings
    assert run.failed and finding.kind == kind and says in finding.message, finding
    assert source.splitlines()[finding.line - 1].startswith("model.fit("), finding
    assert bool(EDIT.search(finding.fix)) == has_code, finding.fix
    if has_code:
        changed, _ = examine(repair(source, finding.fix))
        assert not changed.failed and not changed.diagnosis.findings, changed.diagnosis

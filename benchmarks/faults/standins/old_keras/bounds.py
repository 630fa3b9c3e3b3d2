"""Bounded training: at most FAULTS_UPDATES updates per call, without validation, callbacks and progress bars.

The size of the batches and the loss stay as they are. As in Keras 2, lists become arrays, and arrays of one axis get a second.
"""

from __future__ import annotations

import functools
import inspect
import math
import os

import numpy as np

UPDATES = int(os.environ.get("FAULTS_UPDATES", "200"))
EVALUATED = 512  # samples
OLD = {"nb_epoch": "epochs", "samples_per_epoch": "steps_per_epoch", "generator": "x"}
LEFT_OUT = {"callbacks", "initial_epoch", "validation_data", "validation_split", "validation_steps", "verbose"}
LISTED = 100_000  # epochs in a history


def set_bounds(keras) -> None:
    """Let `fit` and `evaluate` end soon."""
    model = keras.Model
    model.fit = _bounded_fit(model.fit)
    model.fit_generator = model.fit
    model.evaluate = _bounded_evaluate(model.evaluate)
    model.evaluate_generator = model.evaluate
    model.predict = _quiet_predict(model.predict)
    model.predict_generator = model.predict
    for function in (model.fit, model.evaluate, model.predict):  # their frames are those of Keras, and not of the program
        function.__code__ = function.__code__.replace(co_filename=keras.__file__)
    for name in ("DeepLocalize", "backpropagation", "generator"):  # of DeepLocalize's changed Keras
        setattr(keras.callbacks, name, lambda *args, **options: None)


class History(dict):
    """The values of each epoch that the program asked for. Epochs that were left out have those of the last one that ran."""

    def __init__(self, values: dict[str, list[float]], epochs: int) -> None:
        super().__init__({name: _extend(some, epochs) for name, some in values.items()})

    def __missing__(self, name: str) -> list[float]:
        """Return the values of the training for those of the validation, which is left out."""
        return self.get(name.removeprefix("val_"), self["loss"])


def _extend(values: list[float], count: int) -> list[float]:
    return values + values[-1:] * (min(count, LISTED) - len(values))


def _bounded_fit(original):
    names = list(inspect.signature(original).parameters)[1:]

    @functools.wraps(original)
    def fit(self, *args, **given):
        given = {OLD.get(name, name): value for name, value in (*zip(names, args, strict=False), *given.items())}
        options = {name: value for name, value in given.items() if name in names and name not in LEFT_OUT}
        options["shuffle"] = bool(options.get("shuffle", True))
        epochs = int(options.get("epochs") or 1)
        steps = options.get("steps_per_epoch")
        if _is_array(options["x"]):
            kept = 1 - (given.get("validation_split") or 0)
            x, y = (_array(options.get(name)) for name in ("x", "y"))
            batch = int(options.get("batch_size") or (math.ceil(len(x) / steps) if steps else 32))
            count = max(1, min(int(len(x) * kept), UPDATES * batch))
            options |= {"x": _column(x[:count]), "y": _column(y[:count]), "batch_size": batch, "steps_per_epoch": None}
            steps = math.ceil(count / batch)
        else:
            steps = options["steps_per_epoch"] = min(int(steps or UPDATES), UPDATES)
        done = original(self, **{**options, "epochs": min(epochs, max(1, UPDATES // steps)), "verbose": 0})
        done.history = History(done.history, epochs)
        return done

    return fit


def _bounded_evaluate(original):
    @functools.wraps(original)
    def evaluate(self, x=None, y=None, *args, **options):
        if _is_array(x):
            x, y = (_column(_array(value)[:EVALUATED]) for value in (x, y))
        options = {name: value for name, value in options.items() if name in ("batch_size", "sample_weight")}
        return original(self, x, y, verbose=0, **options, **({} if y is not None else {"steps": 4}))

    return evaluate


def _quiet_predict(original):
    @functools.wraps(original)
    def predict(self, x, *args, **options):
        options = {name: value for name, value in options.items() if name in ("batch_size", "steps")}
        return original(self, _column(_array(x)) if _is_array(x) else x, verbose=0, **options)

    return predict


def _is_array(value) -> bool:
    """Return whether a value is one array, a data frame, or a list of numbers, rather than a generator or several arrays."""
    if isinstance(value, list):
        return not hasattr(value[0], "shape")
    return hasattr(value, "shape") and hasattr(value, "__len__")


def _array(value):
    """Return an array. Columns of numbers that pandas has as objects become numbers, as they were in older versions of it."""
    if value is None:
        return None
    array = np.asarray(value)
    return array.astype("float64") if array.dtype == object else array


def _column(values):
    return values[:, None] if values is not None and values.ndim == 1 else values

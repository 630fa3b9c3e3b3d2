"""Modules of Keras under their old names."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

PACKAGES = ("tensorflow.keras", "tensorflow.python.keras", "tensorflow.contrib.keras", "tensorflow.contrib.keras.python.keras")
PRESENT = (
    "activations applications backend callbacks constraints datasets initializers layers losses metrics models ops optimizers "
    "preprocessing regularizers utils datasets.mnist datasets.fashion_mnist datasets.cifar10 datasets.cifar100 datasets.imdb "
    "datasets.reuters datasets.boston_housing applications.vgg16 applications.resnet50 applications.inception_v3"
)
OLD = {
    "layers": "layers.core layers.convolutional layers.pooling layers.recurrent layers.normalization layers.embeddings "
    "layers.advanced_activations layers.merge layers.noise layers.wrappers layers.local engine engine.topology engine.training",
    "utils": "utils.np_utils utils.vis_utils utils.generic_utils",
    "initializers": "initializers.initializers_v1 initializers.initializers_v2 initializations",
    "optimizers": "optimizers.legacy optimizer_v2",
    "models": "engine.sequential",
}


def _wrapper(name: str):
    if name not in ("KerasClassifier", "KerasRegressor"):
        raise AttributeError(name)
    from old_keras import scikit_learn

    return getattr(scikit_learn, name)


def register(keras: ModuleType) -> None:
    """Put all modules into `sys.modules`, so that they can be imported by any of their names."""
    found = {"": keras}
    for name in PRESENT.split():
        found[name] = importlib.import_module(f"keras.{name}")
    for kept, names in OLD.items():
        for name in names.split():
            found[name] = found[kept]
    # Keras keeps these of old for tf.keras.
    for name in ("text", "sequence", "image"):
        old = importlib.import_module(f"keras._tf_keras.keras.preprocessing.{name}")
        found[f"preprocessing.{name}"] = old
        setattr(keras.preprocessing, name, old)
    wrappers = ModuleType("keras.wrappers.scikit_learn")
    wrappers.__getattr__ = _wrapper
    found["wrappers.scikit_learn"] = keras.wrappers.scikit_learn = wrappers
    found["wrappers"] = keras.wrappers
    for name, module in found.items():
        for package in ("keras", *PACKAGES):
            sys.modules[f"{package}.{name}" if name else package] = module
    keras.utils.np_utils = keras.utils
    keras.optimizers.legacy = keras.optimizers
    for name in ("mean", "sum", "square", "abs", "sqrt", "exp", "log", "max", "min", "maximum", "minimum", "equal", "argmax"):
        setattr(keras.backend, name, getattr(keras.ops, name))
    keras.backend.clip, keras.backend.cast, keras.backend.round = keras.ops.clip, keras.ops.cast, keras.ops.round
    keras.backend.set_learning_phase = lambda value: None

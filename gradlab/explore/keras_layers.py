"""Layers and variables of Keras models on the PyTorch backend, with their paths in the user's code: `model.layers[0].kernel`.

A layer of Keras is a module of PyTorch, but it registers all variables in one dictionary at the outermost model, and not its
layers. Keras is never imported here: a layer is recognised by its class.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradlab.explore.module_paths import attribute

LAYER = "keras.src.layers.layer"  # the module of Keras that defines the class Layer
CUSTOM = "custom"
ACTIVATIONS = {"relu": "ReLU", "relu6": "ReLU6", "sigmoid": "Sigmoid", "tanh": "Tanh"}
LEFT_OUT = ("name", "dtype", "trainable", "data_format")  # arguments that every layer has, or that models share
PARTS = ("_functional", "_torch_params")  # children that repeat the layers and the variables of their parent


def is_keras_layer(value: Any) -> bool:
    """Return whether a value is a layer or a model of Keras."""
    return LAYER in sys.modules and any(one.__name__ == "Layer" and one.__module__ == LAYER for one in type(value).__mro__)


def is_own_layer(value: Any) -> bool:
    """Return whether a value is a layer whose class is Keras' own, and not a model."""
    return is_keras_layer(value) and type(value).__module__.startswith(f"{LAYER.rpartition('.')[0]}.")


def is_unbuilt(model: Any) -> bool:
    """Return whether a layer of a Keras model gets its weights when it is called."""
    return is_keras_layer(model) and any(not getattr(part, "built", True) for _, part in modules_of("", model))


def has_channels_first(layer: Any) -> bool:
    """Return whether axis 1 of the output of a Keras layer has the channels, and not the last axis."""
    default = sys.modules["keras"].config.image_data_format()
    return str(vars(layer).get("data_format", default)) == "channels_first"


def settings_of(layer: Any) -> str:
    """Return the arguments with which a Keras layer was made, without defaults: "units=8, activation='relu'"."""
    config = layer.get_config()
    shown = []
    for name, parameter in inspect.signature(type(layer).__init__).parameters.items():
        value = activation_of(layer) if name == "activation" else config.get(name)
        if value and name not in LEFT_OUT and value != parameter.default and isinstance(value, (int, float, str, tuple)):
            shown.append(f"{name}={value!r}")
    return ", ".join(shown)


def modules_of(name: str, model: Any) -> list[tuple[str, Any]]:
    """Return a module and all modules in it, with their paths in code. The layers of a Keras model count as its modules."""
    if is_keras_layer(model):
        return list(keras_layers(name, model))
    return [(attribute(name, path, model), module) for path, module in model.named_modules()]


def keras_layers(name: str, layer: Any) -> Iterator[tuple[str, Any]]:
    """Yield a Keras layer and all layers in it, with their paths in code, each once. Modules of PyTorch in them are included."""
    yield from _layers(name, layer, set())


def _layers(name: str, layer: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(layer) in seen:
        return
    seen.add(id(layer))
    yield name, layer
    for path, child in _children(name, layer):
        yield from _layers(path, child, seen)


def _children(name: str, layer: Any) -> list[tuple[str, Any]]:
    """Return the layers that a layer holds: in attributes, in lists and dictionaries that are attributes, and in `layers`."""
    named = [(key, child) for key, child in layer.named_children() if key not in PARTS]
    found = [(f"{name}.{key}" if key.isidentifier() else f"{name}[{key}]", child) for key, child in named]
    if not is_keras_layer(layer):
        return found
    for key, held in vars(layer).items():
        if key.startswith("_"):
            continue
        items = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, (list, tuple)) else ()
        found += [(f"{name}.{key}[{at!r}]", child) for at, child in items if is_keras_layer(child)]
    known = {id(child) for _, child in found}
    for i, child in enumerate(getattr(layer, "layers", ())):
        if id(child) not in known and type(child).__name__ != "InputLayer":
            found.append((f"{name}.layers[{i}]", child))
    return found


def keras_parameters(name: str, layer: Any) -> list[tuple[str, Any]]:
    """Return the parameters of a Keras layer and the layers in it, also frozen ones, with their paths in code.

    Statistics that batch normalisation tracks and the states of random generators are not among them.
    """
    return [one for path, part in keras_layers(name, layer) for one in own_parameters(path, part)]


def own_parameters(path: str, layer: Any) -> list[tuple[str, Any]]:
    """Return the parameters of a layer itself, without those of layers in it."""
    if not is_keras_layer(layer):
        return [(attribute(path, key, layer), p) for key, p in layer.named_parameters(recurse=False)]
    return [(f"{path}.{one.name}", one.value) for one in vars(layer).get("_trainable_variables", ())]


def activation_kind(module: Any) -> str:
    """Return the class of a module, or the class of PyTorch's module with the activation of a dense layer of Keras: "ReLU"."""
    if is_keras_layer(module) and type(module).__name__ == "Dense":
        return ACTIVATIONS.get(activation_of(module), "Dense")
    return type(module).__name__


def activation_of(layer: Any) -> str:
    """Return the name of a layer's activation, "relu"; "" if it has none, and `CUSTOM` if it is not one of Keras."""
    function = vars(layer).get("activation")
    if not str(getattr(function, "__module__", "keras.src.")).startswith("keras.src."):
        return CUSTOM
    name = str(getattr(function, "__name__", CUSTOM))
    return "" if function is None or name == "linear" else name


def to_tensors(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a Keras model with tensors in place of NumPy's arrays, which Keras would convert itself."""
    convert = sys.modules["keras"].ops.convert_to_tensor

    def one(value: Any) -> Any:
        return convert(value) if isinstance(value, np.ndarray) else value

    return tuple(map(one, args)), {key: one(value) for key, value in kwargs.items()}


def describe_layer(path: str, layer: Any) -> str:
    """Return "`model.layers[1]` (Dense 'dense_1')"."""
    return f"`{path}` ({type(layer).__name__} {layer.name!r})"

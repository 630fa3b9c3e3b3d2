"""The tensors in the arguments and results of a model, with their names, and the arguments that a model needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from gradlab.explore.keras_layers import is_keras_layer
from gradlab.explore.module_paths import is_model

DEEP = 6  # levels of containers
HELD = 1_000  # items of a container
SIMPLE = frozenset((str, bytes, int, float, complex, bool, type(None)))


def named_tensors(name: str, value: Any, is_tensor: Callable[[Any], bool], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the tensors in lists, tuples, named tuples, mappings and dataclasses, each with its path: "batch['ids']"."""
    if is_tensor(value):
        yield name, value
        return
    if depth > DEEP or type(value) in SIMPLE:
        return
    for label, item in _items(name, value):
        yield from named_tensors(label, item, is_tensor, depth + 1)


def _items(name: str, value: Any) -> list[tuple[str, Any]]:
    keys = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and isinstance(keys, tuple):
        return [(f"{name}.{key}", item) for key, item in zip(keys, value, strict=False)]
    if isinstance(value, (list, tuple)):
        return [(f"{name}[{i}]", item) for i, item in enumerate(value[:HELD])]
    if isinstance(value, Mapping):
        return [(f"{name}[{key!r}]", item) for key, item in list(value.items())[:HELD]]
    if is_dataclass(value) and not isinstance(value, type):
        return [(f"{name}.{field.name}", getattr(value, field.name, None)) for field in fields(value)]
    return []


def tensors_in(values: Any, is_tensor: Callable[[Any], bool]) -> list[Any]:
    """Return the tensors in the arguments or the result of a call."""
    if is_tensor(values):
        return [values]
    if type(values) in (tuple, list):
        found: list[Any] = []
        for value in values[:HELD]:
            if is_tensor(value):
                found.append(value)
            elif type(value) not in SIMPLE:
                found += [tensor for _, tensor in named_tensors("", value, is_tensor, 1)]
        return found
    return [tensor for _, tensor in named_tensors("", values, is_tensor)]


# ----------------------------------------------------------------------------------------------- arguments of a model
def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a model's `forward`, of the `call` of a Keras model, or of a function; None if it is unknown."""
    try:
        return inspect.signature(getattr(function, _method(function)) if is_model(function) else function)
    except (TypeError, ValueError):
        return None


def _method(model: Any) -> str:
    return "call" if is_keras_layer(model) else "forward"


def name_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the arguments of a call with the names of the parameters that they are bound to.

    Raises
    ------
    TypeError
        If they do not fit the signature. The message says what the function needs.
    """
    signature = signature_of(function)
    if signature is None:
        return [*((f"argument {i}", value) for i, value in enumerate(args)), *kwargs.items()]
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(_needs(function, signature, args, kwargs, error)) from None
    named: list[tuple[str, Any]] = []
    for key, value in bound.arguments.items():
        kind = signature.parameters[key].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named += value.items()
        elif kind is inspect.Parameter.VAR_POSITIONAL and len(value) == 1:
            named.append((key, value[0]))
        else:
            named.append((key, value))
    return named


def _needs(
    function: Any, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: TypeError
) -> str:
    name = type(function).__name__ if is_model(function) else getattr(function, "__name__", type(function).__name__)
    what = f"{name}.{_method(function)}" if is_model(function) else name
    plain = signature.replace(
        parameters=[one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    required = [
        one.name
        for one in signature.parameters.values()
        if one.default is inspect.Parameter.empty
        and one.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]
    if args or kwargs:
        return f"The arguments do not fit {what}{plain}: {error}. Pass the arguments of the model to graph."
    call = ", ".join(["model", *required])
    layer = describe_first_layer(function)
    return (
        f"graph(model) runs the model and draws the run, so it needs an input: call graph({call}) with the arguments of "
        f"{what}{plain}.{f' {layer}' if layer else ''}"
    )


def describe_first_layer(model: Any) -> str:
    """Return a sentence on the input of the first layer that has a fixed one, or "" if none is known."""
    if not is_model(model):
        return ""
    if is_keras_layer(model):
        # It has no shape if it is not built, and several shapes if it has several inputs.
        shape: Any = getattr(model, "input_shape", None)
        known = isinstance(shape, tuple) and all(isinstance(one, (int, type(None))) for one in shape)
        axes = ", ".join("…" if one is None else str(one) for one in shape[1:]) if known else ""
        return f"The model takes a tensor of shape (batch, {axes})." if known else ""
    for path, module in model.named_modules():
        shape = _input_of(module)
        if shape:
            where = f"`{path}`, " if path else ""
            return f"The first layer, {where}{type(module).__name__}, takes {shape}."
    return ""


def _input_of(module: Any) -> str:
    kind = type(module).__name__
    spatial = {"1d": "length", "2d": "height, width", "3d": "depth, height, width"}.get(kind[-2:], "")
    if kind == "Linear":
        return f"a tensor of shape (…, {module.in_features})"
    if kind.startswith("Conv") and spatial and hasattr(module, "in_channels"):
        return f"a tensor of shape (batch, {module.in_channels}, {spatial})"
    if kind in ("Embedding", "EmbeddingBag"):
        return f"a tensor of integers from 0 to {module.num_embeddings - 1}"
    if kind in ("LSTM", "GRU", "RNN"):
        order = "batch, steps" if module.batch_first else "steps, batch"
        return f"a tensor of shape ({order}, {module.input_size})"
    if kind == "LayerNorm":
        return f"a tensor of shape (…, {', '.join(map(str, module.normalized_shape))})"
    return ""

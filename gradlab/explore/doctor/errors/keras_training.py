"""Explain errors of losses in the training of a Keras model: shapes and ranges of targets, and NaN in the outputs."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.keras_models import change_layer, change_loss
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import ERROR, check
from gradlab.explore.keras_layers import activation_of, is_keras_layer
from gradlab.explore.names import modules_in

SHAPES = r"must have the same shape.*target\.shape=torch\.Size\(\[([\d, ]*)\]\), output\.shape=torch\.Size\(\[([\d, ]*)\]\)"


@check("shape", "target", looks_at=ERROR, keras=True)
def explain_keras_losses(case: Case) -> Iterable[Finding]:
    """Explain an error of a loss of Keras."""
    scene = case.scene
    if case.error is None or scene is None or not case.failed_in_keras:
        return
    for pattern, explain in RULES:
        if (match := re.search(pattern, str(case.error), re.DOTALL)) is not None:
            found = explain(case, scene.code, match)
            if found is not None:
                yield replace(found, line=scene.line)
            return


def _explain_shapes(case: Case, where: str, match: re.Match[str]) -> Finding:
    target, output = ([int(one) for one in group.split(",") if one.strip()] for group in match.groups())
    return _describe_shapes(case, where, target, output)


def _explain_broadcast(case: Case, where: str, match: re.Match[str]) -> Finding | None:
    """Explain targets and outputs whose shapes do not broadcast, if that is in the innermost loss of Keras."""
    frames = [frame for frame, _ in traceback.walk_tb(None if case.error is None else case.error.__traceback__)]
    own = frames[-1].f_locals if frames else {}
    shapes = [list(own[name].shape) for name in ("y_true", "y_pred") if hasattr(own.get(name), "shape")]
    return _describe_shapes(case, where, *shapes) if len(shapes) == 2 else None


def _describe_shapes(case: Case, where: str, target: list[int], output: list[int]) -> Finding:
    fix, constant = "Give each output a target of its own.", ""
    loss, (path, last) = _loss_name(case), _last_layer(case, output[-1] if output else 0)
    wide = len(output) == 2 and output[1] > 1 and target in ([output[0]], [output[0], 1])
    if wide and loss == "categorical_crossentropy":
        edit = change_loss(case, path, "sparse_categorical_crossentropy")
        code = edit or "the loss `sparse_categorical_crossentropy`"
        fix = f"If the targets are the numbers of classes, use {code}. This changes the loss."
    elif wide and loss == "CategoricalCrossentropy":
        name = f"keras.losses.SparseCategoricalCrossentropy({'from_logits=True' if _takes_logits(case) else ''})"
        fix = f"If the targets are the numbers of classes, use the loss `{name}`. This changes the loss."
    elif wide and output[1] == 2 and loss == "binary_crossentropy":
        edit = change_layer(case, path, units=1, activation="sigmoid")
        fix = f"For two classes, one unit with a sigmoid is enough{f': {edit}' if edit else ''}. This changes the loss."
    elif wide and last is not None and "crossentropy" not in loss.lower():
        edit = change_layer(case, path, units=1)
        fix = f"Give `{path}` one unit{f': {edit}' if edit else ''}. This changes the loss."
    elif len(output) == len(target) == 2 and output[1] == 1 and last is not None:
        edit = change_layer(case, path, units=target[1])
        fix = f"Give `{path}` a unit for each column of the targets{f': {edit}' if edit else ''}. This changes the loss."
        if any(activation_of(one) == "softmax" for one in (last, _layers_of_model(case)[-1][1])):
            constant = " A softmax over one unit is 1 for every input."
    return Finding(
        "shape",
        f"{where}: the shapes do not match{f' for `{loss}`' if loss else ''}. The targets have the shape {tuple(target)}, and "
        f"the outputs of the model have the shape {tuple(output)}.{constant}",
        fix=fix,
        evidence={"targets": tuple(target), "outputs": tuple(output)},
    )


def _explain_targets(case: Case, where: str, match: re.Match[str]) -> Finding:
    return Finding(
        "target",
        f"{where}: `binary_crossentropy` is for targets from 0 to 1, and there are others.",
        fix=(
            'Classes with numbers 0, 1, 2, … need a unit for each class, `activation="softmax"` and the loss '
            "`sparse_categorical_crossentropy`. Labels -1 and 1 become 0 and 1 by `(y + 1) / 2`. Numbers that are measured need "
            "the loss `mean_squared_error`. This changes the loss."
        ),
    )


def _explain_outputs(case: Case, where: str, match: re.Match[str]) -> Finding:
    return Finding(
        "target",
        f"{where}: the outputs of the model are NaN.",
        fix="Check the data for NaN, for example by `np.isnan(x).any()`. If there are none, use a smaller learning rate.",
    )


def _explain_class(case: Case, where: str, match: re.Match[str]) -> Finding:
    label = int(match[1])
    layers = [(path, one.units) for path, one in _layers_of_model(case) if isinstance(getattr(one, "units", None), int)]
    path, units = layers[-1] if layers else ("", None)
    has = f" `{path}` has {units} units, so labels are from 0 to {units - 1}." if isinstance(units, int) else ""
    return Finding(
        "target",
        f"{where}: the label {label} is not a class.{has}",
        fix="Labels count from 0, and the last layer needs a unit for each class.",
        evidence={"label": label, **({"units": units, "last": units - 1} if isinstance(units, int) else {})},
    )


def _layers_of_model(case: Case) -> list[tuple[str, Any]]:
    """Return the only compiled model and the layers in it, with their paths; nothing if there are several."""
    models = [(name, model) for name, model in case.models.items() if is_keras_layer(model) and getattr(model, "loss", None)]
    return modules_in(*models[0]) if len(models) == 1 else []


def _last_layer(case: Case, units: int) -> tuple[str, Any]:
    """Return the last layer of the compiled model that has units, and its path, if they are as many as the model has outputs; ""
    and None otherwise."""
    layers = [(path, one) for path, one in _layers_of_model(case) if isinstance(getattr(one, "units", None), int)]
    return layers[-1] if layers and layers[-1][1].units == units else ("", None)


def _loss_name(case: Case) -> str:
    """Return the name of the loss of the compiled model, or the class of a loss that is an object; "" if it is not known."""
    loss = _layers_of_model(case)[0][1].loss if _layers_of_model(case) else ""
    return loss if isinstance(loss, str) else str(getattr(loss, "__name__", type(loss).__name__))


def _takes_logits(case: Case) -> bool:
    """Return whether the loss of the compiled model was made with `from_logits=True`."""
    loss = _layers_of_model(case)[0][1].loss
    return bool(loss.get_config().get("from_logits")) if hasattr(loss, "get_config") else False


RULES: tuple[tuple[str, Callable[[Case, str, re.Match[str]], Finding | None]], ...] = (
    (SHAPES, _explain_shapes),
    (r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)", _explain_broadcast),
    (r"all elements of target should be between 0 and 1", _explain_targets),
    (r"all elements of input should be between 0 and 1", _explain_outputs),
    (r"Target (-?\d+) is out of bounds", _explain_class),
)

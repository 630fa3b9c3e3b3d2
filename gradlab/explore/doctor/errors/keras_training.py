"""Explain errors of losses in the training of a Keras model: shapes and ranges of targets, and NaN in the outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.keras_models import change_layer, change_loss
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import ERROR, check
from gradlab.explore.keras_layers import is_keras_layer
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
            yield replace(explain(case, scene.code, match), line=scene.line)
            return


def _explain_shapes(case: Case, where: str, match: re.Match[str]) -> Finding:
    target, output = ([int(one) for one in group.split(",") if one.strip()] for group in match.groups())
    fix, path, loss = "Give each output a target of its own.", *_last_layer_and_loss(case)
    wide = len(output) == 2 and output[1] > 1 and target in ([output[0]], [output[0], 1])
    if wide and loss == "categorical_crossentropy":
        edit = change_loss(case, path, "sparse_categorical_crossentropy")
        code = edit or "the loss `sparse_categorical_crossentropy`"
        fix = f"If the targets are the numbers of classes, use {code}. This changes the loss."
    elif wide and output[1] == 2 and loss == "binary_crossentropy":
        edit = change_layer(case, path, units=1, activation="sigmoid")
        fix = f"For two classes, one unit with a sigmoid is enough{f': {edit}' if edit else ''}. This changes the loss."
    return Finding(
        "shape",
        f"{where}: the targets have the shape {tuple(target)} and the outputs of the model have the shape {tuple(output)}.",
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
    path, _ = _last_layer_and_loss(case)
    units = getattr(case.modules.get(path), "units", None)
    has = f" `{path}` has {units} units, so labels are from 0 to {units - 1}." if isinstance(units, int) else ""
    return Finding(
        "target",
        f"{where}: the label {label} is not a class.{has}",
        fix="Labels count from 0, and the last layer needs a unit for each class.",
        evidence={"label": label, **({"units": units, "last": units - 1} if isinstance(units, int) else {})},
    )


def _last_layer_and_loss(case: Case) -> tuple[str, Any]:
    """Return the last layer and the loss of the only compiled model; "" and None if there are several."""
    models = {name: model for name, model in case.models.items() if is_keras_layer(model) and getattr(model, "loss", None)}
    if len(models) != 1:
        return "", None
    ((name, model),) = models.items()
    paths = [path for path, _ in modules_in(name, model)]
    return paths[-1], getattr(model, "loss", None)


RULES: tuple[tuple[str, Callable[[Case, str, re.Match[str]], Finding]], ...] = (
    (SHAPES, _explain_shapes),
    (r"all elements of target should be between 0 and 1", _explain_targets),
    (r"all elements of input should be between 0 and 1", _explain_outputs),
    (r"Target (-?\d+) is out of bounds", _explain_class),
)

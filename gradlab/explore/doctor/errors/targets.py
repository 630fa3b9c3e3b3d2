"""Explain errors of losses and embeddings about targets or indices: their range, their shape, their dtype."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import parenthesize
from gradlab.explore.doctor.context.layer_sources import change_arguments, replace_class
from gradlab.explore.doctor.context.scene import Scene, dtype_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.module_paths import is_model

MAX_NODES = 60  # of the graph behind the scores that are visited to find the last layer
VOID_LABEL = 255  # the label that marks pixels without a class in common data sets
DEFAULT_IGNORED_LABEL = -100  # the default of `ignore_index`


# ---------------------------------------------------------------------------------------------------------- out of range
def explain_class_range(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain labels that are not classes of the scores."""
    scores, target = _scores_and_target(scene)
    label = int(match[1])
    if scores is None:
        return Finding(
            "target",
            f"{scene.code}: the label {label} is not a class.",
            fix="Labels count from 0, and the last layer needs one output for each class.",
            evidence={"label": label},
        )
    shape = list(scores[1].shape)
    classes = shape[1] if len(shape) > 1 else shape[0]
    name = source_of(scores[0])
    message = f"{scene.code}: `{name}` has {classes} classes (its shape is {shape}), so labels must be from 0 to {classes - 1}"
    evidence: dict[str, Any] = {"classes": classes, "last": classes - 1, "shape": shape, "label": label}
    labels = _values_of(target[1]) if target is not None else None
    if target is None or labels is None:
        return Finding(
            "target",
            f"{message}, and one label is {label}.",
            fix="Labels count from 0, and the last layer needs one output for each class.",
            evidence=evidence,
        )
    labels = labels[labels != _ignored_label(scene)]
    low, high = int(labels.min()), int(labels.max())
    out = labels[(labels < 0) | (labels >= classes)]
    return Finding(
        "target",
        f"{message}. The labels in `{source_of(target[0])}` are from {low} to {high}: "
        f"{out.size} of {labels.size} are out of range.",
        fix=_suggest_labels(scene, scores, target, classes, low, high, sorted({int(one) for one in out})),
        evidence={**evidence, "smallest": low, "largest": high, "out of range": int(out.size), "labels": int(labels.size)},
    )


def _suggest_labels(scene: Scene, scores: Any, target: Any, classes: int, low: int, high: int, out: list[int]) -> str:
    """Suggest how to correct labels, depending on the values that are out of range."""
    if low < 0:
        if out == [-1]:
            code = _suggest_ignoring(scene, -1)
            return f"If -1 marks elements without a label, ignore it{f': {code}' if code else ' with ignore_index'}."
        return "Labels count from 0: check where the negative ones come from."
    if out == [VOID_LABEL] and classes < VOID_LABEL:
        code = _suggest_ignoring(scene, VOID_LABEL)
        return f"If {VOID_LABEL} marks elements without a label, ignore it{f': {code}' if code else ' with ignore_index'}."
    code, last = "", _last_layer(scene, scores[1])
    if last is not None:
        path, module = last
        argument = "out_channels" if hasattr(module, "out_channels") else "out_features"
        code = change_arguments(scene, module, path, **{argument: high + 1})
    wider = f"give the last layer {high + 1} outputs{f': {code}' if code else ''}"
    if low >= 1 and high == classes:
        subtracted = scene.replace(f"{parenthesize(source_of(target[0]))} - 1", target[0])
        if subtracted:
            return f"If the labels count from 1, subtract 1: {subtracted}. If 0 is a label too, {wider}."
        return f"If the labels count from 1, subtract 1. If 0 is a label too, {wider}."
    return f"{wider[0].upper()}{wider[1:]}, or correct the labels."


def _suggest_ignoring(scene: Scene, label: int) -> str:
    """Return code with which the loss ignores a label."""
    if scene.call is not None and hasattr(scene.call[1], "ignore_index"):
        return change_arguments(scene, scene.call[1], scene.call[0], ignore_index=label)
    if isinstance(scene.node, ast.Call) and not any(keyword.arg == "ignore_index" for keyword in scene.node.keywords):
        call = ast.Call(
            scene.node.func, scene.node.args, [*scene.node.keywords, ast.keyword("ignore_index", ast.Constant(label))]
        )
        return scene.replace(source_of(call), scene.node)
    return ""


def _ignored_label(scene: Scene) -> int:
    """Return the label that the loss ignores."""
    if scene.call is not None:
        return int(getattr(scene.call[1], "ignore_index", DEFAULT_IGNORED_LABEL))
    node = scene.node
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        if keyword.arg == "ignore_index":
            value = scene.value(keyword.value)
            with_sign = ast.unparse(keyword.value)
            return (
                int(with_sign)
                if re.fullmatch(r"-?\d+", with_sign)
                else value
                if isinstance(value, int)
                else DEFAULT_IGNORED_LABEL
            )
    return DEFAULT_IGNORED_LABEL


def _last_layer(scene: Scene, scores: Any) -> tuple[str, Any] | None:
    """Return the last layer that the scores were computed with: its path and itself."""
    library = library_of(scores)
    leaf = next(_leaves(library, scores), None) if library is not None and scores.requires_grad else None
    node = _scores_and_target(scene)[0][0]
    called: Any = scene.value(node.func) if leaf is None and isinstance(node, ast.Call) else None
    for module in _modules(scene) if leaf is not None else reversed(list(called.modules())) if is_model(called) else ():
        own = list(module.parameters(recurse=False))
        if leaf is not None and not any(one is leaf for one in own):
            continue
        width = getattr(module, "out_features", getattr(module, "out_channels", None))
        if width is not None:
            return (scene.path(module), module) if width == scores.shape[1 if len(scores.shape) > 1 else 0] else None
    return None


def _leaves(library: Library, tensor: Any) -> Iterator[Any]:
    """Yield the leaves that a tensor was computed from, nearest first."""
    waiting, seen = [library.node(tensor)], set[Any]()
    while waiting and len(seen) < MAX_NODES:
        node = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = library.variable(node)
        if leaf is not None:
            yield leaf
        waiting += library.inputs(node)


def _modules(scene: Scene) -> Iterator[Any]:
    seen: set[int] = set()
    for space in (*(step.names for step in reversed(scene.frames)), scene.namespace):
        for value in list(space.values()):
            if is_model(value) and id(value) not in seen:
                seen.add(id(value))
                yield from value.modules()


def explain_index_range(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain an index that is outside an embedding's table."""
    path, module, arguments = scene.call or ("", None, [])
    rows = getattr(module, "num_embeddings", None)
    indices = _values_of(arguments[0]) if arguments else None
    if rows is None or indices is None or not indices.size:
        return Finding(
            "target",
            f"{scene.code}: an index is out of range.",
            fix="Create the table with a row for each index, or check where the index comes from.",
        )
    low, high = int(indices.min()), int(indices.max())
    out = int(((indices < 0) | (indices >= rows)).sum())
    name = next((f"`{source_of(node)}`" for node, one in scene.operands if one is arguments[0]), "its input")
    code = change_arguments(scene, module, path, num_embeddings=high + 1) if low >= 0 else ""
    larger = f"Create the table with a row for each index{f': {code}' if code else ''}, or check where the index comes from."
    return Finding(
        "target",
        f"{scene.code}: {scene.layer(module)} has {rows} rows, so indices must be from 0 to {rows - 1}. The indices in {name} "
        f"are from {low} to {high}: {out} of {indices.size} are out of range.",
        fix=larger if low >= 0 else "Check where the negative indices come from.",
        evidence={
            "rows": rows,
            "last": rows - 1,
            "smallest": low,
            "largest": high,
            "out of range": out,
            "indices": int(indices.size),
        },
    )


def explain_probability_range(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a loss of probabilities that received other numbers."""
    scores, _ = _scores_and_target(scene)
    numbers = _values_of(scores[1]) if scores is not None else None
    name = f"`{source_of(scores[0])}`" if scores is not None else "its input"
    if numbers is None or not numbers.size:
        return Finding(
            "target",
            f"{scene.code}: binary_cross_entropy takes probabilities, from 0 to 1, and got other numbers.",
            fix="Use binary_cross_entropy_with_logits, which applies the sigmoid itself, or apply sigmoid first.",
        )
    nans = int(np.isnan(numbers).sum())
    if nans:
        return Finding(
            "target",
            f"{scene.code}: binary_cross_entropy takes probabilities, and {nans} of {numbers.size} numbers of {name} are NaN.",
            fix="Put `%%doctor` on the first line of the cell to find the operation that made the NaN.",
            evidence={"NaN": nans, "numbers": int(numbers.size)},
        )
    low, high = float(f"{numbers.min():.4g}"), float(f"{numbers.max():.4g}")
    code, node = "", scene.node
    if scene.call is not None and type(scene.call[1]).__name__ == "BCELoss":
        code = replace_class(scene, scene.call[1], scene.call[0], "BCEWithLogitsLoss")
    elif isinstance(node, ast.Call) and source_of(node.func).endswith("binary_cross_entropy"):
        func: Any = ast.parse(f"{source_of(node.func)}_with_logits", mode="eval").body
        code = scene.replace(source_of(ast.Call(func, node.args, node.keywords)), node)
    return Finding(
        "target",
        f"{scene.code}: binary_cross_entropy takes probabilities, from 0 to 1, and {name} has numbers from {low:g} to {high:g}.",
        fix=f"Use the loss that applies the sigmoid itself{f': {code}' if code else ', binary_cross_entropy_with_logits'}.",
        evidence={"smallest": low, "largest": high},
    )


# ---------------------------------------------------------------------------------------------------------------- shapes
def explain_batch_sizes(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain scores and targets with different numbers of rows."""
    scores, target = _scores_and_target(scene)
    fix = "Each row needs a target: take both from the same batch, and keep the batch as the first axis."
    if scores is None or target is None:
        return Finding(
            "shape",
            f"{scene.code}: the input has {match[1]} rows and the target {match[2]}.",
            fix=fix,
            evidence={"rows": int(match[1]), "targets": int(match[2])},
        )
    a, b = list(scores[1].shape), list(target[1].shape)
    code = ""
    if len(b) > 1 and prod(b) == a[0]:
        code = scene.replace(f"{parenthesize(source_of(target[0]))}.flatten()", target[0])
    elif len(a) == 2 and len(b) == 1 and a[1] == b[0]:
        code = scene.replace(f"{parenthesize(source_of(scores[0]))}.T", scores[0])
    return _shape_finding(scene, scores, target, f"{a[0]} rows of scores for {b[0] if b else 0} targets", code, fix)


def explain_target_shape(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain targets whose shape is not that of the scores without their classes."""
    scores, target = _scores_and_target(scene)
    if scores is None or target is None:
        return Finding("shape", f"{scene.code}: the shapes of the scores and of the target do not fit.")
    a, b = list(scores[1].shape), list(target[1].shape)
    name, of = parenthesize(source_of(scores[0])), parenthesize(source_of(target[0]))
    if len(a) > 2 and a[:-1] == b:
        order = [0, len(a) - 1, *range(1, len(a) - 1)]
        permuted = "transpose(1, 2)" if len(a) == 3 else f"permute({', '.join(map(str, order))})"
        code = scene.replace(f"{name}.{permuted}", scores[0])
        return _shape_finding(
            scene, scores, target, f"the classes must be in dimension 1 and are in dimension {len(a) - 1}", code, ""
        )
    if len(a) == 2 and len(b) > 1 and b[1:] != [1] and prod(b) == a[0]:
        return explain_batch_sizes(scene, match)
    if [*a[:1], *a[2:]] == [*b[:1], *b[2:]] and b[1:2] == [1]:
        code = scene.replace(f"{of}.squeeze(1)", target[0])
        return _shape_finding(scene, scores, target, "the target has an extra axis of size 1", code, "")
    wanted = [*a[:1], *a[2:]]
    return _shape_finding(scene, scores, target, f"class labels must have shape {wanted}", "", "", {"expected": wanted})


def explain_elementwise_target(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain an element-wise loss whose target has another shape."""
    scores, target = _scores_and_target(scene)
    if scores is None or target is None:
        found = re.findall(r"Size\((\[[\d, ]*\])\)", str(scene.error))
        shapes = f": the target has shape {found[0]} and the input {found[1]}" if len(found) > 1 else ""
        return Finding("shape", f"{scene.code} needs a target with the shape of its input{shapes}.")
    a, b = list(scores[1].shape), list(target[1].shape)
    code = ""
    for one, own, other, node in ((scores, a, b, scores[0]), (target, b, a, target[0])):
        name = parenthesize(source_of(one[0]))
        for k in range(len(own)):
            if own[k] == 1 and own[:k] + own[k + 1 :] == other:
                code = code or scene.replace(f"{name}.squeeze({k})", node)
        for k in range(len(own) + 1):
            if [*own[:k], 1, *own[k:]] == other:
                wider = scene.replace(f"{name}.unsqueeze({k})", node)
                code = f"{code}, or {wider}" if code and wider else code or wider
    return _shape_finding(scene, scores, target, "they must be equal", code, "")


def _shape_finding(
    scene: Scene, scores: Any, target: Any, why: str, code: str, fix: str, more: dict[str, Any] | None = None
) -> Finding:
    a, b = list(scores[1].shape), list(target[1].shape)
    return Finding(
        "shape",
        f"{scene.code}: `{source_of(scores[0])}` has shape {a} and `{source_of(target[0])}` {b}: {why}.",
        fix=f"Use {code}." if code else fix,
        evidence={"input": a, "target": b, **(more or {})},
    )


# ---------------------------------------------------------------------------------------------------------------- dtypes
def explain_index_dtype(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain class indices, or indices of a table, that are not integers."""
    scores, target = _scores_and_target(scene)
    named = [target] if target is not None else list(reversed(scene.operands))
    odd = next((one for one in named if one is not None and dtype_of(one[1]) not in ("int64", "uint8")), None)
    if odd is None:
        return Finding(
            "dtype", f"{scene.code} takes class labels or indices, which are integers.", fix="Convert them with long()."
        )
    node, tensor = odd
    a, b = list(scores[1].shape) if scores is not None else [], list(tensor.shape)
    one = ".squeeze(1)" if len(a) == len(b) > 1 and b[1] == 1 else ""
    code = scene.replace(f"{parenthesize(source_of(node))}{one}.long()", node)
    return Finding(
        "dtype",
        f"{scene.code} takes class labels or indices, which are integers, and `{source_of(node)}` is {dtype_of(tensor)}.",
        fix=f"Convert it: {code}." if code else "Convert it with long().",
        evidence={source_of(node): dtype_of(tensor)},
    )


def explain_probability_dtype(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain an integer target with the shape of the scores, where probabilities are expected."""
    scores, target = _scores_and_target(scene)
    if scores is None or target is None:
        return Finding(
            "dtype",
            f"{scene.code}: a target with the shape of the input must hold probabilities, which are floats; it holds integers.",
            fix="Class labels have one axis less than the input.",
        )
    numbers, shape = _values_of(target[1]), list(target[1].shape)
    axis = 1 if len(shape) > 1 else 0
    one_hot = numbers is not None and bool(((numbers.sum(axis) == 1) & (numbers.max(axis) == 1) & (numbers.min(axis) >= 0)).all())
    name = parenthesize(source_of(target[0]))
    floats = scene.replace(f"{name}.float()", target[0])
    number = scene.replace(f"{name}.argmax({axis})", target[0])
    fix = f"It is one-hot. Use class labels: {number}; or floats: {floats}." if one_hot and number else ""
    return Finding(
        "dtype",
        f"{scene.code}: `{source_of(target[0])}` has the shape of the scores, {shape}, so it must hold probabilities, "
        f"which are floats; it is {dtype_of(target[1])}.",
        fix=fix or "Class labels have one axis less than the input. For several labels at once use `nn.BCEWithLogitsLoss`.",
        evidence={"shape": shape, "dtype": dtype_of(target[1])},
    )


# ---------------------------------------------------------------------------------------------------------------- pieces
def _scores_and_target(scene: Scene) -> tuple[Any, Any]:
    """Return the scores and the target of the loss that failed, each as an expression and its value, or None if not known."""
    pair = [scene.arguments.get(name) for name in ("input", "target")]
    scores, target = (one if one is not None and library_of(one[1]) is not None else None for one in pair)
    return scores, target


def _values_of(tensor: Any) -> np.ndarray | None:
    """Return the values of a tensor; None if it has none, as on the device "meta"."""
    library = library_of(tensor)
    try:
        return None if library is None else np.asarray(library.array(tensor))
    except Exception:  # noqa: BLE001  (a tensor of another kind)
        return None

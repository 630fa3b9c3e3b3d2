"""What an error of a loss or an embedding says about its targets or indices: out of range, of another shape, of another dtype."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import grouped
from gradlab.explore.doctor.context.layer_sources import changed, renamed
from gradlab.explore.doctor.context.scene import Scene, dtype_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.names import is_model

NEAR = 60  # nodes that are looked at behind the scores, to find the layer that made them
VOID = 255  # the label that marks pixels without a class in common data sets
IGNORED = -100  # what the losses ignore unless they are told otherwise


# ---------------------------------------------------------------------------------------------------------- out of range
def class_out_of_range(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain labels that are not classes of the scores."""
    scores, target = _pair(scene)
    label = int(match[1])
    if scores is None:
        return Finding(
            "target",
            f"{scene.said}: the label {label} is not a class.",
            fix="Labels count from 0, and the last layer must be as wide as there are classes.",
            evidence={"label": label},
        )
    shape = list(scores[1].shape)
    classes = shape[1] if len(shape) > 1 else shape[0]
    name = source_of(scores[0])
    said = f"{scene.said}: `{name}` has {classes} classes (its shape is {shape}), so labels must be from 0 to {classes - 1}"
    evidence: dict[str, Any] = {"classes": classes, "last": classes - 1, "shape": shape, "label": label}
    labels = _numbers(target[1]) if target is not None else None
    if target is None or labels is None:
        return Finding(
            "target",
            f"{said}, and there is a label {label}.",
            fix="Labels count from 0, and the last layer must be as wide as there are classes.",
            evidence=evidence,
        )
    labels = labels[labels != _ignored(scene)]
    low, high = int(labels.min()), int(labels.max())
    out = labels[(labels < 0) | (labels >= classes)]
    return Finding(
        "target",
        f"{said}. Those in `{source_of(target[0])}` are from {low} to {high}: {out.size} of {labels.size} are out of range.",
        fix=_relabel(scene, scores, target, classes, low, high, sorted({int(one) for one in out})),
        evidence={**evidence, "smallest": low, "largest": high, "out of range": int(out.size), "labels": int(labels.size)},
    )


def _relabel(scene: Scene, scores: Any, target: Any, classes: int, low: int, high: int, out: list[int]) -> str:
    """What to do about labels out of range, as far as they tell what was meant."""
    if low < 0:
        if out == [-1]:
            code = _ignoring(scene, -1)
            return f"If -1 marks what has no label, ignore it{f': {code}' if code else ' by ignore_index'}."
        return "Labels count from 0: look at where the negative ones come from."
    if out == [VOID] and classes < VOID:
        code = _ignoring(scene, VOID)
        return f"If {VOID} marks what has no label, ignore it{f': {code}' if code else ' by ignore_index'}."
    code, last = "", _last_layer(scene, scores[1])
    if last is not None:
        path, module = last
        code = changed(scene, module, path, **{"out_channels" if hasattr(module, "out_channels") else "out_features": high + 1})
    wider = f"make the last layer {high + 1} wide{f': {code}' if code else ''}"
    if low >= 1 and high == classes:
        counted = scene.swapped(f"{grouped(source_of(target[0]))} - 1", target[0])
        return f"If the labels count from 1, subtract 1: {counted}. If 0 is a label too, {wider}." if counted else f"{wider}."
    return f"{wider[0].upper()}{wider[1:]}, or correct the labels."


def _ignoring(scene: Scene, label: int) -> str:
    """The loss told to ignore a label."""
    if scene.call is not None and hasattr(scene.call[1], "ignore_index"):
        return changed(scene, scene.call[1], scene.call[0], ignore_index=label)
    if isinstance(scene.node, ast.Call) and not any(keyword.arg == "ignore_index" for keyword in scene.node.keywords):
        call = ast.Call(
            scene.node.func, scene.node.args, [*scene.node.keywords, ast.keyword("ignore_index", ast.Constant(label))]
        )
        return scene.swapped(source_of(call), scene.node)
    return ""


def _ignored(scene: Scene) -> int:
    """The label that the loss ignores."""
    if scene.call is not None:
        return int(getattr(scene.call[1], "ignore_index", IGNORED))
    node = scene.node
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        if keyword.arg == "ignore_index":
            value = scene.value(keyword.value)
            with_sign = ast.unparse(keyword.value)
            return int(with_sign) if re.fullmatch(r"-?\d+", with_sign) else value if isinstance(value, int) else IGNORED
    return IGNORED


def _last_layer(scene: Scene, scores: Any) -> tuple[str, Any] | None:
    """The layer whose weights the scores were computed with last."""
    library = library_of(scores)
    leaf = next(_leaves(library, scores), None) if library is not None and scores.requires_grad else None
    node = _pair(scene)[0][0]
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
    """The leaves that a tensor was computed from, nearest first."""
    waiting, seen = [library.node(tensor)], set[Any]()
    while waiting and len(seen) < NEAR:
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
    for space in (*(step.names for step in reversed(scene.steps)), scene.namespace):
        for value in list(space.values()):
            if is_model(value) and id(value) not in seen:
                seen.add(id(value))
                yield from value.modules()


def index_out_of_range(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain an index that is outside of an embedding's table."""
    path, module, arguments = scene.call or ("", None, [])
    rows = getattr(module, "num_embeddings", None)
    indices = _numbers(arguments[0]) if arguments else None
    if rows is None or indices is None or not indices.size:
        return Finding(
            "target",
            f"{scene.said}: an index is out of range.",
            fix="Make the table as large as there are indices, or look at where the index comes from.",
        )
    low, high = int(indices.min()), int(indices.max())
    out = int(((indices < 0) | (indices >= rows)).sum())
    name = next((f"`{source_of(node)}`" for node, one in scene.operands if one is arguments[0]), "what it was given")
    code = changed(scene, module, path, num_embeddings=high + 1) if low >= 0 else ""
    larger = f"Make the table as large as there are indices{f': {code}' if code else ''}, or look at where the index comes from."
    return Finding(
        "target",
        f"{scene.said}: {scene.layer(module)} has {rows} rows, so indices must be from 0 to {rows - 1}. Those in {name} are "
        f"from {low} to {high}: {out} of {indices.size} are out of range.",
        fix=larger if low >= 0 else "Look at where the negative indices come from.",
        evidence={
            "rows": rows,
            "last": rows - 1,
            "smallest": low,
            "largest": high,
            "out of range": out,
            "indices": int(indices.size),
        },
    )


def no_probabilities(scene: Scene, match: re.Match[str]) -> Finding:
    """A loss of probabilities that was given other numbers."""
    scores, _ = _pair(scene)
    numbers = _numbers(scores[1]) if scores is not None else None
    name = f"`{source_of(scores[0])}`" if scores is not None else "its input"
    if numbers is None or not numbers.size:
        return Finding(
            "target",
            f"{scene.said}: binary_cross_entropy takes probabilities, from 0 to 1, and was given other numbers.",
            fix="Use binary_cross_entropy_with_logits, which applies the sigmoid itself, or apply sigmoid first.",
        )
    nans = int(np.isnan(numbers).sum())
    if nans:
        return Finding(
            "target",
            f"{scene.said}: binary_cross_entropy takes probabilities, and {nans} of {numbers.size} numbers of {name} are NaN.",
            fix="Look for where the NaN arises: `%%doctor` on the first line of the cell finds the operation.",
            evidence={"NaN": nans, "numbers": int(numbers.size)},
        )
    low, high = float(f"{numbers.min():.4g}"), float(f"{numbers.max():.4g}")
    code, node = "", scene.node
    if scene.call is not None and type(scene.call[1]).__name__ == "BCELoss":
        code = renamed(scene, scene.call[1], scene.call[0], "BCEWithLogitsLoss")
    elif isinstance(node, ast.Call) and source_of(node.func).endswith("binary_cross_entropy"):
        func: Any = ast.parse(f"{source_of(node.func)}_with_logits", mode="eval").body
        code = scene.swapped(source_of(ast.Call(func, node.args, node.keywords)), node)
    return Finding(
        "target",
        f"{scene.said}: binary_cross_entropy takes probabilities, from 0 to 1, and {name} has numbers from {low:g} to {high:g}.",
        fix=f"Use the loss that applies the sigmoid itself{f': {code}' if code else ', binary_cross_entropy_with_logits'}.",
        evidence={"smallest": low, "largest": high},
    )


# ---------------------------------------------------------------------------------------------------------------- shapes
def batches(scene: Scene, match: re.Match[str]) -> Finding:
    """Scores and targets of different numbers of rows."""
    scores, target = _pair(scene)
    fix = "Each row needs its target: take both from the same batch, and keep the batch as the first axis."
    if scores is None or target is None:
        return Finding(
            "shape",
            f"{scene.said}: the input has {match[1]} rows and the target {match[2]}.",
            fix=fix,
            evidence={"rows": int(match[1]), "targets": int(match[2])},
        )
    a, b = list(scores[1].shape), list(target[1].shape)
    code = ""
    if len(b) > 1 and prod(b) == a[0]:
        code = scene.swapped(f"{grouped(source_of(target[0]))}.flatten()", target[0])
    elif len(a) == 2 and len(b) == 1 and a[1] == b[0]:
        code = scene.swapped(f"{grouped(source_of(scores[0]))}.T", scores[0])
    return _unlike(scene, scores, target, f"{a[0]} rows of scores for {b[0] if b else 0} targets", code, fix)


def target_size(scene: Scene, match: re.Match[str]) -> Finding:
    """Targets whose shape is not the scores' without their classes."""
    scores, target = _pair(scene)
    if scores is None or target is None:
        return Finding("shape", f"{scene.said}: the shapes of the scores and of the target do not fit.")
    a, b = list(scores[1].shape), list(target[1].shape)
    name, of = grouped(source_of(scores[0])), grouped(source_of(target[0]))
    if len(a) > 2 and a[:-1] == b:
        order = [0, len(a) - 1, *range(1, len(a) - 1)]
        moved = "transpose(1, 2)" if len(a) == 3 else f"permute({', '.join(map(str, order))})"
        code = scene.swapped(f"{name}.{moved}", scores[0])
        return _unlike(scene, scores, target, f"the classes must be in dimension 1 and are in dimension {len(a) - 1}", code, "")
    if len(a) == 2 and len(b) > 1 and b[1:] != [1] and prod(b) == a[0]:
        return batches(scene, match)
    if [*a[:1], *a[2:]] == [*b[:1], *b[2:]] and b[1:2] == [1]:
        code = scene.swapped(f"{of}.squeeze(1)", target[0])
        return _unlike(scene, scores, target, "the target has an axis of size 1 too many", code, "")
    wanted = [*a[:1], *a[2:]]
    return _unlike(scene, scores, target, f"a target of class numbers must have shape {wanted}", "", "", {"expected": wanted})


def other_size(scene: Scene, match: re.Match[str]) -> Finding:
    """A loss by element whose target has another shape."""
    scores, target = _pair(scene)
    if scores is None or target is None:
        found = re.findall(r"Size\((\[[\d, ]*\])\)", str(scene.error))
        shapes = f": the target has shape {found[0]} and the input {found[1]}" if len(found) > 1 else ""
        return Finding("shape", f"{scene.said} needs a target of the shape of its input{shapes}.")
    a, b = list(scores[1].shape), list(target[1].shape)
    code = ""
    for one, own, other, node in ((scores, a, b, scores[0]), (target, b, a, target[0])):
        name = grouped(source_of(one[0]))
        for k in range(len(own)):
            if own[k] == 1 and own[:k] + own[k + 1 :] == other:
                code = code or scene.swapped(f"{name}.squeeze({k})", node)
        for k in range(len(own) + 1):
            if [*own[:k], 1, *own[k:]] == other:
                wider = scene.swapped(f"{name}.unsqueeze({k})", node)
                code = f"{code}, or {wider}" if code and wider else code or wider
    return _unlike(scene, scores, target, "they must be equal", code, "")


def _unlike(scene: Scene, scores: Any, target: Any, why: str, code: str, fix: str, more: dict[str, Any] | None = None) -> Finding:
    a, b = list(scores[1].shape), list(target[1].shape)
    return Finding(
        "shape",
        f"{scene.said}: `{source_of(scores[0])}` has shape {a} and `{source_of(target[0])}` {b}: {why}.",
        fix=f"Write {code}." if code else fix,
        evidence={"input": a, "target": b, **(more or {})},
    )


# ---------------------------------------------------------------------------------------------------------------- dtypes
def target_of_integers(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain class indices, or indices of a table, that are not integers."""
    scores, target = _pair(scene)
    named = [target] if target is not None else list(reversed(scene.operands))
    odd = next((one for one in named if one is not None and dtype_of(one[1]) not in ("int64", "uint8")), None)
    if odd is None:
        return Finding(
            "dtype", f"{scene.said} takes class numbers or indices, which are integers.", fix="Convert them by long()."
        )
    node, tensor = odd
    a, b = list(scores[1].shape) if scores is not None else [], list(tensor.shape)
    one = ".squeeze(1)" if len(a) == len(b) > 1 and b[1] == 1 else ""
    code = scene.swapped(f"{grouped(source_of(node))}{one}.long()", node)
    return Finding(
        "dtype",
        f"{scene.said} takes class numbers or indices, which are integers, and `{source_of(node)}` is {dtype_of(tensor)}.",
        fix=f"Convert it: {code}." if code else "Convert it by long().",
        evidence={source_of(node): dtype_of(tensor)},
    )


def of_probabilities(scene: Scene, match: re.Match[str]) -> Finding:
    """Integers of the shape of the scores, where probabilities are expected."""
    scores, target = _pair(scene)
    if scores is None or target is None:
        return Finding(
            "dtype",
            f"{scene.said}: a target of the shape of the input holds probabilities, which are floats; this one is of integers.",
            fix="Class numbers have one axis less than the input.",
        )
    numbers, shape = _numbers(target[1]), list(target[1].shape)
    axis = 1 if len(shape) > 1 else 0
    one_hot = numbers is not None and bool(((numbers.sum(axis) == 1) & (numbers.max(axis) == 1) & (numbers.min(axis) >= 0)).all())
    name = grouped(source_of(target[0]))
    floats = scene.swapped(f"{name}.float()", target[0])
    number = scene.swapped(f"{name}.argmax({axis})", target[0])
    fix = f"It is one-hot. Give class numbers: {number}; or floats: {floats}." if one_hot and number else ""
    return Finding(
        "dtype",
        f"{scene.said}: `{source_of(target[0])}` has the shape of the scores, {shape}, so it is taken for probabilities, "
        f"which are floats; it is {dtype_of(target[1])}.",
        fix=fix or "Class numbers have one axis less than the input. For several labels at once use `nn.BCEWithLogitsLoss`.",
        evidence={"shape": shape, "dtype": dtype_of(target[1])},
    )


# ---------------------------------------------------------------------------------------------------------------- pieces
def _pair(scene: Scene) -> tuple[Any, Any]:
    """The scores and the target of the loss that failed: an expression and its value each; None where they are not known."""
    pair = [scene.arguments.get(name) for name in ("input", "target")]
    scores, target = (one if one is not None and library_of(one[1]) is not None else None for one in pair)
    return scores, target


def _numbers(tensor: Any) -> np.ndarray | None:
    """The values of a tensor; None where it has none, as on the device "meta"."""
    library = library_of(tensor)
    try:
        return None if library is None else np.asarray(library.array(tensor))
    except Exception:  # noqa: BLE001  (a tensor of another kind)
        return None


def shapes_of(pairs: Sequence[tuple[Any, Any]]) -> dict[str, list[int]]:
    """The shapes of some operands by what they are called."""
    return {source_of(node): list(one.shape) for node, one in pairs}

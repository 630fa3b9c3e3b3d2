"""Explain errors of layers about their input: its width, its channels, images that are not flattened, a missing batch axis."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from math import prod
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import parenthesize
from gradlab.explore.doctor.context.layer_sources import change_arguments, wrap_layer
from gradlab.explore.doctor.context.scene import Scene, numbers_in
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import library_of

CONVOLUTION_ERROR = re.compile(
    r"(?P<transposed>transposed=1, )?weight of size (?P<weight>\[[\d, ]*\]), expected input(?P<given>\[[\d, ]*\]) to have"
)
NORM_NAMES = ("BatchNorm", "InstanceNorm")
WIDTH_ARGUMENTS = ("in_features", "in_channels", "num_features", "input_size", "normalized_shape", "embed_dim")


def explain_layer_input(scene: Scene) -> Finding | None:
    """Explain a layer whose input has another width than it expects. Return None if the error is about something else."""
    if scene.call is None:
        return _explain_convolution(scene)
    path, module, arguments = scene.call
    kind, shape = type(module).__name__, list(arguments[0].shape) if arguments else []
    if not shape:
        return None
    wanted, width, axis, unit = _input_width(module, shape)
    if wanted is None or wanted == width:
        return None
    name = _find_expression(scene, arguments[0])
    message = (
        f"{scene.code}: {scene.layer(module)} takes {count_text(wanted, unit)}, and got {_tensor_name(name)} of shape {shape}"
    )
    evidence = {"layer": path, "wanted": wanted, "given": width, "shape": shape}
    finding = None
    if unit == "channels":
        dims = _spatial_dimensions(module)
        finding = _explain_channels(scene, message, name, shape, wanted, dims, evidence, kind)
    elif kind == "Linear":
        finding = _explain_flattening(scene, message, name, shape, wanted, evidence, module, path) or _explain_missing_batch(
            scene, message, shape, wanted, evidence
        )
    if finding is not None:
        return finding
    return Finding(
        "shape",
        f"{message}: dimension {axis} is {width}.",
        fix=_suggest_width(scene, module, path, shape, wanted, width, name),
        evidence={**evidence, "axis": axis},
    )


def count_text(number: int, unit: str) -> str:
    """ "1 channel", "3 channels"."""
    return f"{number} {unit.removesuffix('s') if number == 1 and unit != 'classes' else unit}"


def _tensor_name(name: Any) -> str:
    return f"`{source_of(name)}`" if name is not None else "a tensor"


def _input_width(module: Any, shape: list[int]) -> tuple[int | None, int, int, str]:
    """Return the expected width of a layer's input, its width, the dimension, and the unit: "features" or "channels"."""
    last = len(shape) - 1
    if (n := getattr(module, "in_features", None)) is not None:
        return n, shape[-1], last, "features"
    if (n := getattr(module, "in_channels", None)) is not None:
        at = len(shape) - _spatial_dimensions(module) - 1
        return n, shape[at] if at >= 0 else 0, max(at, 0), "channels"
    if (n := getattr(module, "num_features", None)) is not None:
        at = 1 if len(shape) > 1 else 0
        return n, shape[at], at, "channels" if len(shape) > 2 else "features"
    if (n := getattr(module, "input_size", getattr(module, "embed_dim", None))) is not None:
        return n, shape[-1], last, "features"
    if (n := getattr(module, "normalized_shape", None)) is not None and len(n) == 1:
        return n[0], shape[-1], last, "features"
    return None, 0, 0, ""


def _spatial_dimensions(module: Any) -> int:
    """Return the number of spatial dimensions of a convolution or a normalisation."""
    found = re.search(r"(\d)d$", type(module).__name__)
    return len(getattr(module, "kernel_size", ()) or ()) or (int(found[1]) if found else 1)


def _find_expression(scene: Scene, tensor: Any) -> Any:
    """Return the expression of the failing call whose value is a tensor; None if it was computed in between."""
    return next((node for node, value in scene.operands if value is tensor), None)


# ------------------------------------------------------------------------------------------------------------- channels
def _explain_channels(
    scene: Scene, message: str, name: Any, shape: list[int], wanted: int, dims: int, evidence: dict[str, Any], kind: str
) -> Finding | None:
    """Explain channels in the last axis, or a missing channel axis."""
    batched = len(shape) == dims + 2
    if shape[-1] == wanted and len(shape) in (dims + 1, dims + 2):
        order = [0, dims + 1, *range(1, dims + 1)] if batched else [dims, *range(dims)]
        return _suggest_permutation(scene, message, name, shape, order, evidence, kind)
    if wanted == 1 and len(shape) == dims + 1 and not kind.startswith(NORM_NAMES):
        fix = "Add a channel axis of size 1 to each image"
        code = scene.replace(f"{parenthesize(source_of(name))}.unsqueeze(1)", name) if name is not None else ""
        return Finding(
            "shape",
            f"{message}: the channel axis is missing, and the first axis of {shape[0]} was taken as the channels.",
            fix=f"{fix}: {code}." if code else f"{fix}: unsqueeze(1).",
            evidence={**evidence, "axis": 1},
        )
    return None


def _suggest_permutation(
    scene: Scene, message: str, name: Any, shape: list[int], order: list[int], evidence: dict[str, Any], kind: str
) -> Finding:
    at = len(shape) - 1
    where = f"the channels are last, in dimension {at}, and {kind} expects them in dimension {order.index(at)}"
    permute = f".permute({', '.join(map(str, order))})"
    code = ""
    if name is not None:
        transposed = f"{parenthesize(source_of(name))}{permute}"
        code = scene.replace(transposed, name)
        if kind.startswith(NORM_NAMES) and len(shape) == 3 and isinstance(scene.node, ast.Call) and name in scene.node.args:
            inner = ast.Call(scene.node.func, [ast.parse(transposed, mode="eval").body], [])
            code = scene.replace(f"{source_of(inner)}{permute}", scene.node)
    words = f"Move the channels before the other axes, {[shape[i] for i in order]}"
    return Finding(
        "shape",
        f"{message}: {where}.",
        fix=f"{words}: {code}." if code else f"{words}.",
        evidence={**evidence, "channels": at, "expected": order.index(at), "ordered": [shape[i] for i in order]},
    )


def _explain_convolution(scene: Scene) -> Finding | None:
    """Explain a convolution that was called as a function, using the sizes in the message of the error."""
    match = CONVOLUTION_ERROR.search(str(scene.error))
    if match is None:
        return None
    weight, shape = numbers_in(match["weight"]), numbers_in(match["given"])
    dims, kind = len(weight) - 2, "conv_transpose" if match["transposed"] else "conv"
    wanted = weight[0] if match["transposed"] else weight[1]
    given: dict[str, Any] = {source_of(node): (node, one) for node, one in scene.operands}
    named = next((node for node, one in given.values() if list(one.shape) in (shape, shape[1:])), None)
    unbatched = named is not None and len(given[source_of(named)][1].shape) == dims + 1
    shape = shape[1:] if unbatched else shape
    at = 0 if unbatched else 1
    given_to = f"{_tensor_name(named)} has shape {shape}"
    message = f"{scene.code}: the weight of shape {weight} takes {count_text(wanted, 'channels')}, and {given_to}"
    evidence = {"weight": weight, "wanted": wanted, "given": shape[at], "shape": shape}
    finding = _explain_channels(scene, message, named, shape, wanted, dims, evidence, f"{kind}{dims}d")
    return finding or Finding("shape", f"{message}: dimension {at} is {shape[at]}.", evidence={**evidence, "axis": at})


# ---------------------------------------------------------------------------------------------------------------- images
def _explain_flattening(
    scene: Scene, message: str, name: Any, shape: list[int], wanted: int, evidence: dict[str, Any], module: Any, path: str
) -> Finding | None:
    """Explain an image that a Linear received without being flattened."""
    rows = prod(shape[1:])
    if len(shape) < 3 and prod(shape) != wanted:
        return None
    if rows == wanted and len(shape) >= 3:
        flat = scene.replace(f"{parenthesize(source_of(name))}.flatten(1)", name) if name is not None else ""
        flat = flat or wrap_layer(scene, module, path, "nn.Sequential(nn.Flatten(), {})")
        return Finding(
            "shape",
            f"{message}: dimension {len(shape) - 1} is {shape[-1]}. Flattened from dimension 1 on, it has {rows} features.",
            fix=f"Flatten it first (`nn.Flatten`): {flat}." if flat else "Flatten it first (`nn.Flatten`).",
            evidence={**evidence, "axis": len(shape) - 1, "features": rows},
        )
    if prod(shape) == wanted and name is not None and all(n > 1 for n in shape):
        flat = scene.replace(f"{parenthesize(source_of(name))}.flatten()", name)
        if len(shape) == 2 and scene.call is not None and path != source_of(getattr(scene.node, "func", ast.Constant(0))):
            return None  # computed in the model: the batch axis is missing
        return Finding(
            "shape",
            f"{message}: dimension {len(shape) - 1} is {shape[-1]}. Flattened, it has {wanted} features.",
            fix=f"Flatten it first: {flat}." if flat else "Flatten it first.",
            evidence={**evidence, "axis": len(shape) - 1},
        )
    if len(shape) < 3:
        return None
    width = shape[-1]
    narrow = change_arguments(scene, module, path, in_features=width)
    flat = change_arguments(scene, module, path, in_features=rows)
    new = re.match(r"`(.*?)` in place of `(.*)`$", flat)
    flattened = ""
    if new is not None and new[2].endswith(")") and "=" not in new[2].split("(")[0]:
        flattened = f"`nn.Sequential(nn.Flatten(), {new[1]})` in place of `{new[2]}`"
    is_image = len(shape) > 3 or shape[-1] == shape[-2] or shape[0] in (1, 3)
    first = f"To make each {'image' if is_image else 'example'} one row of {rows} features, flatten it first (`nn.Flatten`)"
    second = f"To apply the layer to the last axis, create it for {count_text(width, 'features')}"
    parts = [f"{first}: {flattened}." if flattened else f"{first}.", f"{second}: {narrow}." if narrow else f"{second}."]
    return Finding(
        "shape",
        f"{message}: dimension {len(shape) - 1} is {width}.",
        fix=" ".join(parts if is_image else parts[::-1]),
        evidence={**evidence, "axis": len(shape) - 1, "features": rows},
    )


def _explain_missing_batch(scene: Scene, message: str, shape: list[int], wanted: int, evidence: dict[str, Any]) -> Finding | None:
    """Explain a missing batch axis: the other axes were flattened, and the channel axis took its place."""
    if len(shape) != 2 or prod(shape) != wanted or shape[0] == 1:
        return None
    given = next((node for node, value in scene.operands if len(value.shape) == 3), None)
    code = scene.replace(f"{parenthesize(source_of(given))}.unsqueeze(0)", given) if given is not None else ""
    fix = "Add a batch axis of size 1 to a single image"
    return Finding(
        "shape",
        f"{message}: all its {prod(shape)} numbers belong to one example, so the batch axis is missing.",
        fix=f"{fix}: {code}." if code else f"{fix}: unsqueeze(0).",
        evidence={**evidence, "numbers": prod(shape)},
    )


# ----------------------------------------------------------------------------------------------------------------- width
def _suggest_width(scene: Scene, module: Any, path: str, shape: Sequence[int], wanted: int, width: int, name: Any) -> str:
    """Return advice to create the layer for the width of its input."""
    argument = next((one for one in WIDTH_ARGUMENTS if getattr(module, one, None) is not None), "")
    grouped_channels = getattr(module, "groups", 1) != 1
    uneven = width % getattr(module, "num_heads", 1) != 0
    code = "" if grouped_channels or uneven or not argument else change_arguments(scene, module, path, **{argument: width})
    fix = f"Create it for {width}: {code}" if code else f"Create it for {width}"
    if len(shape) == 2 and shape[0] == wanted and name is not None and library_of(scene.value(name)) is not None:
        transposed = scene.replace(f"{parenthesize(source_of(name))}.T", name)
        if transposed:
            return f"{fix}. If its rows are the features, transpose it: {transposed}."
    return f"{fix}; or change its input to {wanted}."

"""What an error of a layer says about its input: another width, channels in the last axis, a picture that is not flattened, no
axis for the batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from math import prod
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import grouped
from gradlab.explore.doctor.context.layer_sources import changed, wrapped
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import library_of

CONVOLUTION = re.compile(
    r"(?P<transposed>transposed=1, )?weight of size (?P<weight>\[[\d, ]*\]), expected input(?P<given>\[[\d, ]*\]) to have"
)
NORMS = ("BatchNorm", "InstanceNorm")
WIDTHS = ("in_features", "in_channels", "num_features", "input_size", "normalized_shape", "embed_dim")


def layer_misfit(scene: Scene) -> Finding | None:
    """The finding on a layer that was given a tensor of another width than it was made for; None if it is not about one."""
    if scene.call is None:
        return _convolution(scene)
    path, module, arguments = scene.call
    kind, shape = type(module).__name__, list(arguments[0].shape) if arguments else []
    if not shape:
        return None
    wanted, width, axis, unit = _width(module, shape)
    if wanted is None or wanted == width:
        return None
    name = _input(scene, arguments[0])
    said = (
        f"{scene.said}: {scene.layer(module)} takes {counted(wanted, unit)}, and it was given {_a_tensor(name)} of shape {shape}"
    )
    evidence = {"layer": path, "wanted": wanted, "given": width, "shape": shape}
    finding = None
    if unit == "channels":
        dims = _dims(module)
        finding = _channels_last(scene, said, name, shape, wanted, dims, evidence, kind)
    elif kind == "Linear":
        finding = _not_flat(scene, said, name, shape, wanted, evidence, module, path) or _no_batch(
            scene, said, shape, wanted, evidence
        )
    if finding is not None:
        return finding
    return Finding(
        "shape",
        f"{said}: dimension {axis} is {width}.",
        fix=_remake(scene, module, path, kind, shape, wanted, width, name),
        evidence={**evidence, "axis": axis},
    )


def counted(number: int, unit: str) -> str:
    """ "1 channel", "3 channels"."""
    return f"{number} {unit.removesuffix('s') if number == 1 and unit != 'classes' else unit}"


def _a_tensor(name: Any) -> str:
    return f"`{source_of(name)}`" if name is not None else "a tensor"


def _width(module: Any, shape: list[int]) -> tuple[int | None, int, int, str]:
    """How wide a layer's input must be, how wide it is, in which dimension, and of what."""
    last = len(shape) - 1
    if (n := getattr(module, "in_features", None)) is not None:
        return n, shape[-1], last, "features"
    if (n := getattr(module, "in_channels", None)) is not None:
        at = len(shape) - _dims(module) - 1
        return n, shape[at] if at >= 0 else 0, max(at, 0), "channels"
    if (n := getattr(module, "num_features", None)) is not None:
        at = 1 if len(shape) > 1 else 0
        return n, shape[at], at, "channels" if len(shape) > 2 else "features"
    if (n := getattr(module, "input_size", getattr(module, "embed_dim", None))) is not None:
        return n, shape[-1], last, "features"
    if (n := getattr(module, "normalized_shape", None)) is not None and len(n) == 1:
        return n[0], shape[-1], last, "features"
    return None, 0, 0, ""


def _dims(module: Any) -> int:
    """Over how many axes a convolution or a norm of channels goes."""
    found = re.search(r"(\d)d$", type(module).__name__)
    return len(getattr(module, "kernel_size", ()) or ()) or (int(found[1]) if found else 1)


def _input(scene: Scene, tensor: Any) -> Any:
    """Return the expression of the failing call whose value is a tensor; None if it was computed on the way."""
    return next((node for node, value in scene.operands if value is tensor), None)


# ------------------------------------------------------------------------------------------------------------- channels
def _channels_last(
    scene: Scene, said: str, name: Any, shape: list[int], wanted: int, dims: int, evidence: dict[str, Any], kind: str
) -> Finding | None:
    """Channels in the last axis, or no axis of channels."""
    batched = len(shape) == dims + 2
    if shape[-1] == wanted and len(shape) in (dims + 1, dims + 2):
        order = [0, dims + 1, *range(1, dims + 1)] if batched else [dims, *range(dims)]
        return _rearranged(scene, said, name, shape, order, evidence, kind)
    if wanted == 1 and len(shape) == dims + 1 and not kind.startswith(NORMS):
        fix = "Give each picture an axis of size 1 for its channel"
        code = scene.swapped(f"{grouped(source_of(name))}.unsqueeze(1)", name) if name is not None else ""
        return Finding(
            "shape",
            f"{said}: an axis for the channel is missing, and its first axis of {shape[0]} was taken for the channels.",
            fix=f"{fix}: {code}." if code else f"{fix}: unsqueeze(1).",
            evidence={**evidence, "axis": 1},
        )
    return None


def _rearranged(
    scene: Scene, said: str, name: Any, shape: list[int], order: list[int], evidence: dict[str, Any], kind: str
) -> Finding:
    at = len(shape) - 1
    where = f"the channels are last, in dimension {at}, and {kind} expects them in dimension {order.index(at)}"
    moved = f".permute({', '.join(map(str, order))})"
    code = ""
    if name is not None:
        turned = f"{grouped(source_of(name))}{moved}"
        code = scene.swapped(turned, name)
        if kind.startswith(NORMS) and len(shape) == 3 and isinstance(scene.node, ast.Call) and name in scene.node.args:
            inner = ast.Call(scene.node.func, [ast.parse(turned, mode="eval").body], [])
            code = scene.swapped(f"{source_of(inner)}{moved}", scene.node)
    words = f"Put the channels before the other axes, {[shape[i] for i in order]}"
    return Finding(
        "shape",
        f"{said}: {where}.",
        fix=f"{words}: {code}." if code else f"{words}.",
        evidence={**evidence, "channels": at, "expected": order.index(at), "ordered": [shape[i] for i in order]},
    )


def _convolution(scene: Scene) -> Finding | None:
    """A convolution that was called as a function, by the sizes in the sentence."""
    match = CONVOLUTION.search(str(scene.error))
    if match is None:
        return None
    weight, shape = sizes(match["weight"]), sizes(match["given"])
    dims, kind = len(weight) - 2, "conv_transpose" if match["transposed"] else "conv"
    wanted = weight[0] if match["transposed"] else weight[1]
    given: dict[str, Any] = {source_of(node): (node, one) for node, one in scene.operands}
    named = next((node for node, one in given.values() if list(one.shape) in (shape, shape[1:])), None)
    unbatched = named is not None and len(given[source_of(named)][1].shape) == dims + 1
    shape = shape[1:] if unbatched else shape
    at = 0 if unbatched else 1
    given_to = f"{_a_tensor(named)} has shape {shape}"
    said = f"{scene.said}: the weight of shape {weight} takes {counted(wanted, 'channels')}, and {given_to}"
    evidence = {"weight": weight, "wanted": wanted, "given": shape[at], "shape": shape}
    finding = _channels_last(scene, said, named, shape, wanted, dims, evidence, f"{kind}{dims}d")
    return finding or Finding("shape", f"{said}: dimension {at} is {shape[at]}.", evidence={**evidence, "axis": at})


def sizes(text: str) -> list[int]:
    """The numbers of "[2, 3]"."""
    return [int(number) for number in re.findall(r"\d+", text)]


# -------------------------------------------------------------------------------------------------------------- pictures
def _not_flat(
    scene: Scene, said: str, name: Any, shape: list[int], wanted: int, evidence: dict[str, Any], module: Any, path: str
) -> Finding | None:
    """A picture that goes into a Linear as it is."""
    rows = prod(shape[1:])
    if len(shape) < 3 and prod(shape) != wanted:
        return None
    if rows == wanted and len(shape) >= 3:
        flat = scene.swapped(f"{grouped(source_of(name))}.flatten(1)", name) if name is not None else ""
        flat = flat or wrapped(scene, module, path, "nn.Sequential(nn.Flatten(), {})")
        return Finding(
            "shape",
            f"{said}: dimension {len(shape) - 1} is {shape[-1]}. Flattened from dimension 1 on, it has {rows} features.",
            fix=f"Flatten it first (`nn.Flatten`): {flat}." if flat else "Flatten it first (`nn.Flatten`).",
            evidence={**evidence, "axis": len(shape) - 1, "features": rows},
        )
    if prod(shape) == wanted and name is not None and all(n > 1 for n in shape):
        flat = scene.swapped(f"{grouped(source_of(name))}.flatten()", name)
        if len(shape) == 2 and scene.call is not None and path != source_of(getattr(scene.node, "func", ast.Constant(0))):
            return None  # it was computed within the model: the batch axis is missing
        return Finding(
            "shape",
            f"{said}: dimension {len(shape) - 1} is {shape[-1]}. Flattened, it has {wanted} features.",
            fix=f"Flatten it first: {flat}." if flat else "Flatten it first.",
            evidence={**evidence, "axis": len(shape) - 1},
        )
    if len(shape) < 3:
        return None
    width = shape[-1]
    narrow = changed(scene, module, path, in_features=width)
    flat = changed(scene, module, path, in_features=rows)
    new = re.match(r"`(.*?)` in place of `(.*)`$", flat)
    whole = ""
    if new is not None and new[2].endswith(")") and "=" not in new[2].split("(")[0]:
        whole = f"`nn.Sequential(nn.Flatten(), {new[1]})` in place of `{new[2]}`"
    picture = len(shape) > 3 or shape[-1] == shape[-2] or shape[0] in (1, 3)
    first = f"To make each {'picture' if picture else 'item'} one row of {rows} features, flatten it first (`nn.Flatten`)"
    second = f"To apply the layer to the last axis, make it for {counted(width, 'features')}"
    parts = [f"{first}: {whole}." if whole else f"{first}.", f"{second}: {narrow}." if narrow else f"{second}."]
    return Finding(
        "shape",
        f"{said}: dimension {len(shape) - 1} is {width}.",
        fix=" ".join(parts if picture else parts[::-1]),
        evidence={**evidence, "axis": len(shape) - 1, "features": rows},
    )


def _no_batch(scene: Scene, said: str, shape: list[int], wanted: int, evidence: dict[str, Any]) -> Finding | None:
    """The axis of the batch is missing: the axis of channels was kept in its place when the rest was flattened."""
    if len(shape) != 2 or prod(shape) != wanted or shape[0] == 1:
        return None
    given = next((node for node, value in scene.operands if len(value.shape) == 3), None)
    code = scene.swapped(f"{grouped(source_of(given))}.unsqueeze(0)", given) if given is not None else ""
    fix = "Give a single picture an axis of size 1 for the batch"
    return Finding(
        "shape",
        f"{said}: all its {prod(shape)} numbers belong to one item, so the axis of the batch is missing.",
        fix=f"{fix}: {code}." if code else f"{fix}: unsqueeze(0).",
        evidence={**evidence, "numbers": prod(shape)},
    )


# --------------------------------------------------------------------------------------------------------------- remakes
def _remake(scene: Scene, module: Any, path: str, kind: str, shape: Sequence[int], wanted: int, width: int, name: Any) -> str:
    """The layer made for the width that it was given."""
    argument = next((one for one in WIDTHS if getattr(module, one, None) is not None), "")
    grouped_channels = getattr(module, "groups", 1) != 1
    uneven = width % getattr(module, "num_heads", 1) != 0
    code = "" if grouped_channels or uneven or not argument else changed(scene, module, path, **{argument: width})
    fix = f"Make it for {width}: {code}" if code else f"Make it for {width}"
    if len(shape) == 2 and shape[0] == wanted and name is not None and library_of(scene.value(name)) is not None:
        turned = scene.swapped(f"{grouped(source_of(name))}.T", name)
        if turned:
            return f"{fix}. If its rows are in the columns, transpose it: {turned}."
    return f"{fix}; or have what comes before it give {wanted}."

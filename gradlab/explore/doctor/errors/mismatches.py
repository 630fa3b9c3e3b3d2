"""What an error about shapes, dtypes and devices says: which tensor or layer does not fit, and what to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import grouped
from gradlab.explore.doctor.context.scene import Scene, dtype_of, fits, operands_of
from gradlab.explore.doctor.errors.joined_shapes import JOINED, misfit
from gradlab.explore.doctor.errors.layer_inputs import layer_misfit
from gradlab.explore.doctor.errors.single_values import one_value
from gradlab.explore.doctor.errors.targets import (
    batches,
    class_out_of_range,
    index_out_of_range,
    no_probabilities,
    of_probabilities,
    other_size,
    target_of_integers,
    target_size,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import library_of

SHOWN = 4
CASTS = {
    "float32": "float()",
    "float64": "double()",
    "int64": "long()",
    "float16": "half()",
    "bfloat16": "bfloat16()",
    "int32": "int()",
}
PRODUCT = "The columns of the first must be as many as the rows of the second."
EQUAL = "From the last axis on, sizes must be equal, or one of them 1."
SMALL = ("float16", "bfloat16")
PRODUCTS = ("matmul", "mm", "bmm", "mv", "dot", "linear", "__matmul__")


declare(
    "shape",
    meaning="shapes that do not fit",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "dtype",
    meaning="dtypes that do not fit",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "device",
    meaning="tensors on two devices",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "target",
    meaning="targets or indices out of range",
    why="",
    remedy="",
    fault="",
    healthy="",
)


# --------------------------------------------------------------------------------------------------------------- shapes
def _product(scene: Scene, match: re.Match[str]) -> Finding:
    """A matrix product, of the user's or of a layer."""
    layer = layer_misfit(scene)
    if layer is not None:
        return layer
    node = scene.node
    sides: list[Any] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and source_of(node.func).rpartition(".")[2] in PRODUCTS and len(scene.operands) >= 2:
        sides = [one for one, _ in scene.operands[:2]]
    shapes = [scene.shape(side) for side in sides]
    if len(sides) == 2 and None not in shapes:
        by_weight = isinstance(node, ast.Call) and source_of(node.func).endswith("linear")
        return _multiplied(scene, sides, [shape or [] for shape in shapes], by_weight)
    return misfit(scene, "Both must have equally many elements." if "inconsistent" in match[0] else PRODUCT)


def _multiplied(scene: Scene, sides: list[Any], shapes: list[list[int]], by_weight: bool) -> Finding:
    """Two operands of a product, the second a weight of shape (out, in) in `F.linear`."""
    (first, second), (left, right) = shapes, [source_of(side) for side in sides]
    rows = -1 if by_weight else -2
    inner = second[rows] if len(second) > 1 else second[0] if second else 0
    code = ""
    turned = f"{grouped(right)}.mT"
    if len(second) >= 2 and first[-1:] == [second[-2 if by_weight else -1]]:
        code = scene.swapped(turned, sides[1])
    elif len(first) >= 2 and second and first[-2] == inner:
        code = scene.swapped(f"{grouped(left)}.mT", sides[0])
    rule = "The weight has a row for each output and a column for each input." if by_weight else PRODUCT
    rule = "Both must have equally many elements." if len(first) == len(second) == 1 else rule
    if first and first[-1] == inner and len(first) > 2 and len(second) > 2:
        a, b = first[:-2], second[:-2]
        return Finding(
            "shape",
            f"{scene.said}: `{left}` has shape {first} and `{right}` {second}. The axes before the last two, {a} and {b}, do not "
            "broadcast.",
            evidence={left: first, right: second, "batch": a, "other": b},
        )
    return Finding(
        "shape",
        f"{scene.said}: `{left}` has shape {first} and `{right}` {second}, and {first[-1] if first else 'a number'} is not "
        f"{inner}.",
        fix=f"{rule} Transpose it: {code}." if code else rule,
        evidence={left: first, right: second},
    )


def _broadcast(scene: Scene, match: re.Match[str]) -> Finding:
    """Two tensors of the failing expression that do not broadcast."""
    node = scene.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _product(scene, match)
    parts = [one for one in operands_of(node or scene.statement) if not isinstance(one, ast.Constant)]
    shapes = [(part, scene.shape(part)) for part in parts]
    for i, (first, a) in enumerate(shapes):
        for second, b in shapes[i + 1 :]:
            if a is not None and b is not None and not fits(a, b):
                left, right = source_of(first), source_of(second)
                return Finding(
                    "shape",
                    f"{scene.said}: `{left}` has shape {a} and `{right}` {b}. {_differs(a, b)} {EQUAL}",
                    fix=_axis(scene, first, a, second, b),
                    evidence={left: a, right: b, **_at(a, b)},
                )
    found = re.search(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", str(scene.error)
    )
    if found is not None and len(parts) == 2:
        names = [f"`{source_of(part)}`{f' of shape {shape}' if shape is not None else ''}" for part, shape in shapes]
        return Finding(
            "shape",
            f"{scene.said}: {names[0]} has size {found[1]} in dimension {found[3]} of the result, and {names[1]} has {found[2]}. "
            f"{EQUAL}",
            evidence={
                "first": int(found[1]),
                "second": int(found[2]),
                "dimension": int(found[3]),
                **{source_of(part): shape for part, shape in shapes if shape is not None},
            },
        )
    return misfit(scene, EQUAL)


def _differs(a: list[int], b: list[int]) -> str:
    at = _at(a, b)
    if len(a) == len(b):
        return f"They differ in dimension {at['first']}: {at['sizes'][0]} and {at['sizes'][1]}."
    return f"{at['sizes'][0]} (dimension {at['first']}) is not {at['sizes'][1]} (dimension {at['second']})."


def _at(a: list[int], b: list[int]) -> dict[str, Any]:
    """Where two shapes do not fit: the dimension of each, counted from its first, and the sizes."""
    back = next(k for k in range(1, min(len(a), len(b)) + 1) if a[-k] != b[-k] and 1 not in (a[-k], b[-k]))
    return {"first": len(a) - back, "second": len(b) - back, "sizes": [a[-back], b[-back]]}


def _axis(scene: Scene, first: Any, a: list[int], second: Any, b: list[int]) -> str:
    """The one axis of size 1 that makes two shapes fit."""
    for node, own, other in ((first, a, b), (second, b, a)):
        if len(own) < len(other):
            places = [k for k in range(len(own) + 1) if fits([*own[:k], 1, *own[k:]], other)]
            codes = [scene.swapped(f"{grouped(source_of(node))}.unsqueeze({k})", node) for k in places]
            if codes and all(codes):
                return f"Add an axis: {', or '.join(codes)}."
    return ""


def _of_layer_or_line(scene: Scene, match: re.Match[str]) -> Finding:
    return layer_misfit(scene) or misfit(scene, "")


# --------------------------------------------------------------------------------------------------------------- dtypes
def _kinds_differ(scene: Scene, match: re.Match[str]) -> Finding:
    """Operands of different dtypes, where one must be converted; of a layer its input."""
    named = operands(scene)
    own = _layer_dtype(scene)
    if own is not None:
        path, dtype = own
        argument = scene.call[2][0] if scene.call is not None and scene.call[2] else None
        got = dtype_of(argument) if argument is not None else ""
        odd = next((node for node, one in named if dtype_of(one) == got != dtype), None)
        more = " Under autocast both are converted for you." if {dtype, got} & set(SMALL) else ""
        code = scene.swapped(f"{grouped(source_of(odd))}.{_cast(dtype)}", odd) if odd is not None else ""
        what = f"`{source_of(odd)}`" if odd is not None else "its input"
        return Finding(
            "dtype",
            f"{scene.said}: the weights of {path} are {dtype}, and {what} is {got}.",
            fix=f"Convert it: {code}.{more}" if code else f"Convert its input to {dtype}.{more}",
            evidence={"weights": dtype, "input": got},
        )
    floats = [dtype_of(one) for _, one in named if dtype_of(one).startswith(("float", "bfloat"))]
    wanted = "float32" if "float32" in floats else floats[0] if floats else ""
    odd = next((node for node, one in named if dtype_of(one) != wanted), None) if wanted else None
    code = scene.swapped(f"{grouped(source_of(odd))}.{_cast(wanted)}", odd) if odd is not None else ""
    return Finding(
        "dtype",
        f"{scene.said}: dtypes differ{_given(scene, dtype_of)}.",
        fix=f"Convert one of them: {code}." if code else "Convert one of them.",
        evidence={source_of(node): dtype_of(one) for node, one in named},
    )


def _wants_floats(scene: Scene, match: re.Match[str]) -> Finding:
    """Integers where floating point is needed."""
    odd = next(((node, one) for node, one in operands(scene) if not _is_float(one)), None)
    if odd is None:
        return Finding("dtype", f"{scene.said} needs floating point.", fix="Convert it by float().")
    node, one = odd
    code = scene.swapped(f"{grouped(source_of(node))}.float()", node)
    return Finding(
        "dtype",
        f"{scene.said} needs floating point, and `{source_of(node)}` is {dtype_of(one)}.",
        fix=f"Convert it: {code}." if code else "Convert it by float().",
        evidence={source_of(node): dtype_of(one)},
    )


def _integers_cannot(scene: Scene, match: re.Match[str]) -> Finding:
    said = f"{scene.said} asks for the gradient of integers, which have none."
    node: Any = scene.node
    if isinstance(node, ast.Call) and any(keyword.arg == "requires_grad" for keyword in node.keywords):
        others = [keyword for keyword in node.keywords if keyword.arg != "dtype"]
        dtype = ast.keyword("dtype", ast.parse(f"{scene.alias}.float32", mode="eval").body)
        code = scene.swapped(source_of(ast.Call(node.func, node.args, [dtype, *others])), node)
        return Finding("dtype", said, fix=f"Make it of floats: {code}." if code else "Make it of floats.")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(scene.statement, ast.Expr):
        name = source_of(node.func.value)
        return Finding("dtype", said, fix=f"Convert it first: `{name} = {name}.float()` before `{source_of(scene.statement)}`.")
    return Finding("dtype", said, fix="Convert it by float() first.")


# -------------------------------------------------------------------------------------------------------------- devices
def _devices(scene: Scene, match: re.Match[str]) -> Finding:
    """Tensors, or a model and its input, on two devices."""
    named = [(node, str(one.device)) for node, one in operands(scene)]
    models = _homes(scene)
    places = list(dict.fromkeys(device for _, device in [*models, *named]))
    fix, odd, home = "", None, ""
    if models:
        path, home = models[0]
        odd = next((node for node, device in named if device != home), None)
        fix = f"Send the input where `{path}` is, on {home}."
    elif len(places) == 2:
        home = max(places, key=lambda place: (place != "cpu", [device for _, device in named].count(place)))
        odd = next(node for node, device in named if device != home)
    code = scene.swapped(f"{grouped(source_of(odd))}.to({home!r})", odd) if odd is not None else ""
    shown = [*models, *((source_of(node), device) for node, device in named)]
    what = [f"`{name}` on {device}" for name, device in shown[: SHOWN + 1]]
    return Finding(
        "device",
        f"{scene.said} brings together what lies on different devices{': ' + ', '.join(what) if what else ''}.",
        fix=f"Send both to one device: {code}." if code else fix or "Send all of them to one device.",
        evidence=dict(shown),
    )


def _homes(scene: Scene) -> list[tuple[str, str]]:
    """The models that the statement calls and the devices of their parameters."""
    homes = []
    for node in ast.walk(scene.statement or ast.Pass()):
        if isinstance(node, ast.Call):
            model = scene.value(node.func)
            if model is not None and not isinstance(model, type) and callable(getattr(type(model), "parameters", None)):
                devices = list(dict.fromkeys(str(p.device) for p in model.parameters()))
                homes += [(source_of(node.func), device) for device in devices]
    return homes


# --------------------------------------------------------------------------------------------------------------- pieces
def operands(scene: Scene) -> list[tuple[Any, Any]]:
    """The tensors of the failing expression; where it is not known, those that its statement names."""
    if scene.operands:
        return scene.operands
    named = dict(scene.tensors(getattr(scene.statement, "value", None) or scene.statement))
    nodes = {source_of(node): node for node in ast.walk(scene.statement or ast.Pass()) if isinstance(node, ast.expr)}
    return [(nodes[name], one) for name, one in named.items() if name in nodes]


def _given(scene: Scene, say: Callable[[Any], str]) -> str:
    named = [f"`{source_of(node)}` {say(one)}" for node, one in operands(scene)[:SHOWN]]
    return f" ({', '.join(named)})" if named else ""


def _is_float(tensor: Any) -> bool:
    return dtype_of(tensor).startswith(("float", "bfloat", "complex"))


def _cast(dtype: str) -> str:
    return CASTS.get(dtype, "float()")


def _layer_dtype(scene: Scene) -> tuple[str, str] | None:
    """The layer that was being called, and the dtype of its weights."""
    if scene.call is None:
        return None
    module = scene.call[1]
    weight = next(iter(module.parameters(recurse=False)), None)
    return None if weight is None else (scene.layer(module), dtype_of(weight))


def _axes_of_layer(scene: Scene, match: re.Match[str]) -> Finding | None:
    """A convolution that was given a tensor of too few or too many axes."""
    if scene.call is None or not scene.call[2]:
        return None
    _, module, (given, *_) = scene.call
    shape, dims = list(given.shape), len(getattr(module, "kernel_size", ()) or ())
    name = next((node for node, one in scene.operands if one is given), None)
    if library_of(given) is None or not dims:
        return None
    said = f"`{source_of(name)}`" if name is not None else "a tensor"
    code = ""
    if len(shape) == dims and name is not None and module.in_channels == 1:
        code = scene.swapped(f"{grouped(source_of(name))}.unsqueeze(0)", name)
    return Finding(
        "shape",
        f"{scene.said}: {scene.layer(module)} takes {dims + 1} axes, or {dims + 2} with the batch, and it was given {said} of "
        f"shape {shape}.",
        fix=f"Add the axis of the channel: {code}." if code else "The axes are batch, channels, and those of the picture.",
        evidence={"axes": dims + 1, "with batch": dims + 2, "shape": shape},
    )


Rule = tuple[str, Callable[[Scene, re.Match[str]], Finding | None]]
MISFITS: list[Rule] = [
    *JOINED,
    (r"shapes cannot be multiplied|^size mismatch, got|inconsistent tensor size|Expected size for first two dim", _product),
    (r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)", batches),
    (
        r"Expected target size|multi-target not supported|only batches of spatial|size mismatch \(got input|spatial sizes don't",
        target_size,
    ),
    (r"[Tt]arget size \(.*\) (that is different to|must be the same as) ", other_size),
    (r"must match the size of tensor b|doesn't match the broadcast shape|Shape mismatch|not broadcastable", _broadcast),
    (r"Expected \d+D \(unbatched\) or \d+D \(batched\) input", _axes_of_layer),
    (
        r"Given groups=|Given transposed=|must be equal to input_size|normalized_shape=|running_mean should contain",
        _of_layer_or_line,
    ),
    (r"expecting embedding dimension of", _of_layer_or_line),
    (
        r"dtype to be Long|scalar type Long but found|scalar types: Long, Int|not implemented for '(?:Float|Int|Double)'",
        target_of_integers,
    ),
    (r"class probabilities, got", of_probabilities),
    (r"only Tensors of floating point.* can require", _integers_cannot),
    (
        r"could not infer output dtype|can't be cast to the desired output type|Found dtype Long but|not implemented for 'Long'",
        _wants_floats,
    ),
    (
        r"(to|must) have the same dtype|should be the same|scalar type \w+ but found|Found dtype \w+ but expected",
        _kinds_differ,
    ),
    (r"same device|is not on the expected device|two devices", _devices),
    (r"Target (-?\d+) is out of bounds", class_out_of_range),
    (r"index out of range in self", index_out_of_range),
    (r"all elements of input should be between 0 and 1", no_probabilities),
    (r"Expected more than 1 (?:value per channel|spatial element) when training", one_value),
]

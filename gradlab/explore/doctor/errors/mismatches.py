"""Explain errors about shapes, dtypes and devices: which tensor or layer does not fit, and what to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import parenthesize
from gradlab.explore.doctor.context.scene import Scene, can_broadcast, dtype_of, is_float, operands_of
from gradlab.explore.doctor.errors.joined_shapes import JOINING_RULES, explain_shapes
from gradlab.explore.doctor.errors.layer_inputs import explain_layer_input
from gradlab.explore.doctor.errors.single_values import explain_single_value
from gradlab.explore.doctor.errors.targets import (
    explain_batch_sizes,
    explain_class_range,
    explain_elementwise_target,
    explain_index_dtype,
    explain_index_range,
    explain_probability_dtype,
    explain_probability_range,
    explain_target_shape,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import declare
from gradlab.explore.libraries import library_of

MAX_SHOWN = 4
CAST_METHODS = {
    "float32": "float()",
    "float64": "double()",
    "int64": "long()",
    "float16": "half()",
    "bfloat16": "bfloat16()",
    "int32": "int()",
}
PRODUCT_RULE = "The first must have as many columns as the second has rows."
BROADCAST_RULE = "From the last axis backwards, sizes must be equal, or one of them 1."
HALF_PRECISION = ("float16", "bfloat16")
PRODUCT_FUNCTIONS = ("matmul", "mm", "bmm", "mv", "dot", "linear", "__matmul__")


declare(
    "shape",
    meaning="The shapes of tensors do not fit the operation or the layer that received them, and it raised an error.",
    why="""
        In a matrix product, the first factor needs as many columns as the second has rows. A layer needs the number of features
        for which it was created, and element-wise operations need shapes that broadcast. The error itself gives sizes; the
        finding names the expressions, their shapes and the dimension.
    """,
    remedy="""
        Use the code in the finding if it does what you mean. Otherwise print the shapes before this line, and transpose, add or
        remove an axis, flatten, or create the layer for the size that arrives.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(8 * 14 * 14, 10),
        )
        images = torch.randn(16, 1, 28, 28)
        labels = torch.randint(10, (16,))
        loss = nn.functional.cross_entropy(model(images), labels)  #!
        loss.backward()
    """,
    healthy={"nn.Linear(8 * 14 * 14, 10),": "nn.Linear(8 * 13 * 13, 10),"},
)

declare(
    "dtype",
    meaning="An operation or a layer received tensors of dtypes that it does not accept, and raised an error.",
    why="""
        Matrix products and layers need operands of one dtype, gradients need floating point, and class labels must be integers.
        NumPy's floating-point arrays are float64 by default, and the weights of layers are float32.
    """,
    remedy="Convert the data once, where it is loaded: `.float()` for inputs and regression targets, `.long()` for class labels.",
    fault="""
        import numpy as np
        import torch
        from torch import nn

        torch.manual_seed(0)
        table = np.random.default_rng(0).normal(size=(32, 5))
        x, y = torch.from_numpy(table[:, :4]), torch.from_numpy(table[:, 4:])
        model = nn.Linear(4, 1)
        loss = nn.functional.mse_loss(model(x), y)  #!
        loss.backward()
    """,
    healthy={"normal(size=(32, 5))": "normal(size=(32, 5)).astype(np.float32)"},
)

declare(
    "device",
    meaning="An operation received tensors on different devices, and raised an error.",
    why="""
        An operation runs on one device, and PyTorch does not move its operands there. `model.to(device)` moves the parameters and
        buffers of a model, but neither the data nor tensors that are plain attributes.
    """,
    remedy="""
        Move each batch to the device of the model: `x, y = x.to(device), y.to(device)`. `Tensor.to` returns a new tensor, so
        assign its result. Register constant tensors of a model by `register_buffer`, and `model.to` moves them.
    """,
    fault="""
        import torch
        from torch import nn

        device = "meta"  # in place of "cuda", so that the example runs without a GPU
        model = nn.Linear(4, 1).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.ones(32, 4), torch.zeros(32, 1)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)  #!
        loss.backward()
        optimizer.step()
    """,
    healthy="""
        import torch
        from torch import nn

        device = "meta"  # in place of "cuda", so that the example runs without a GPU
        model = nn.Linear(4, 1).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.ones(32, 4), torch.zeros(32, 1)
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    """,
    libraries=("torch",),
)

declare(
    "target",
    meaning="""
        A loss or an embedding received labels, indices or probabilities outside the range that it accepts, and raised an error.
    """,
    why="""
        Labels of C classes are 0 to C - 1, indices of an embedding with n rows are 0 to n - 1, and `binary_cross_entropy` takes
        probabilities from 0 to 1. On a GPU the same mistake is a device-side assertion, which may be reported at a later line.
    """,
    remedy="""
        Number the labels from 0, or make the last layer or the embedding large enough for the largest one. Use `ignore_index` for
        elements without a label, and `binary_cross_entropy_with_logits` for scores.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x = torch.randn(30, 4)
        y = torch.arange(30) % 3 + 1  # stars: 1, 2 or 3
        model = nn.Linear(4, 3)
        loss = F.cross_entropy(model(x), y)  #!
        loss.backward()
    """,
    healthy={"loss = F.cross_entropy(model(x), y)": "loss = F.cross_entropy(model(x), y - 1)"},
)


# --------------------------------------------------------------------------------------------------------------- shapes
def _explain_product(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain a matrix product whose sizes differ, in an expression or in a layer."""
    layer = explain_layer_input(scene)
    if layer is not None:
        return layer
    node = scene.node
    sides: list[Any] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and source_of(node.func).rpartition(".")[2] in PRODUCT_FUNCTIONS and len(scene.operands) >= 2:
        sides = [one for one, _ in scene.operands[:2]]
    shapes = [scene.shape(side) for side in sides]
    if len(sides) == 2 and None not in shapes:
        by_weight = isinstance(node, ast.Call) and source_of(node.func).endswith("linear")
        return _compare_factors(scene, sides, [shape or [] for shape in shapes], by_weight)
    return explain_shapes(scene, "Both must have the same number of elements." if "inconsistent" in match[0] else PRODUCT_RULE)


def _compare_factors(scene: Scene, sides: list[Any], shapes: list[list[int]], by_weight: bool) -> Finding:
    """Compare the operands of a product. In `F.linear` the second is a weight of shape (out, in)."""
    (first, second), (left, right) = shapes, [source_of(side) for side in sides]
    rows = -1 if by_weight else -2
    inner = second[rows] if len(second) > 1 else second[0] if second else 0
    code = ""
    transposed = f"{parenthesize(right)}.mT"
    if len(second) >= 2 and first[-1:] == [second[-2 if by_weight else -1]]:
        code = scene.replace(transposed, sides[1])
    elif len(first) >= 2 and second and first[-2] == inner:
        code = scene.replace(f"{parenthesize(left)}.mT", sides[0])
    rule = "The weight has a row for each output and a column for each input." if by_weight else PRODUCT_RULE
    rule = "Both must have the same number of elements." if len(first) == len(second) == 1 else rule
    if first and first[-1] == inner and len(first) > 2 and len(second) > 2:
        a, b = first[:-2], second[:-2]
        return Finding(
            "shape",
            f"{scene.code}: `{left}` has shape {first} and `{right}` {second}. The axes before the last two, {a} and {b}, do not "
            "broadcast.",
            evidence={left: first, right: second, "batch": a, "other": b},
        )
    return Finding(
        "shape",
        f"{scene.code}: `{left}` has shape {first} and `{right}` {second}, and {first[-1] if first else 'a number'} is not "
        f"{inner}.",
        fix=f"{rule} Transpose it: {code}." if code else rule,
        evidence={left: first, right: second},
    )


def _explain_broadcast(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain an expression with two tensors that do not broadcast."""
    node = scene.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _explain_product(scene, match)
    parts = [one for one in operands_of(node or scene.statement) if not isinstance(one, ast.Constant)]
    shapes = [(part, scene.shape(part)) for part in parts]
    for i, (first, a) in enumerate(shapes):
        for second, b in shapes[i + 1 :]:
            if a is not None and b is not None and not can_broadcast(a, b):
                left, right = source_of(first), source_of(second)
                return Finding(
                    "shape",
                    f"{scene.code}: `{left}` has shape {a} and `{right}` {b}. {_describe_difference(a, b)} {BROADCAST_RULE}",
                    fix=_suggest_axis(scene, first, a, second, b),
                    evidence={left: a, right: b, **_find_difference(a, b)},
                )
    found = re.search(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)", str(scene.error)
    )
    if found is not None and len(parts) == 2:
        names = [f"`{source_of(part)}`{f' of shape {shape}' if shape is not None else ''}" for part, shape in shapes]
        return Finding(
            "shape",
            f"{scene.code}: {names[0]} has size {found[1]} in dimension {found[3]} of the result, and {names[1]} has {found[2]}. "
            f"{BROADCAST_RULE}",
            evidence={
                "first": int(found[1]),
                "second": int(found[2]),
                "dimension": int(found[3]),
                **{source_of(part): shape for part, shape in shapes if shape is not None},
            },
        )
    return explain_shapes(scene, BROADCAST_RULE)


def _describe_difference(a: list[int], b: list[int]) -> str:
    at = _find_difference(a, b)
    if len(a) == len(b):
        return f"They differ in dimension {at['first']}: {at['sizes'][0]} and {at['sizes'][1]}."
    return f"{at['sizes'][0]} (dimension {at['first']}) is not {at['sizes'][1]} (dimension {at['second']})."


def _find_difference(a: list[int], b: list[int]) -> dict[str, Any]:
    """Return the dimension of each shape in which the two do not broadcast, and the sizes there."""
    back = next(k for k in range(1, min(len(a), len(b)) + 1) if a[-k] != b[-k] and 1 not in (a[-k], b[-k]))
    return {"first": len(a) - back, "second": len(b) - back, "sizes": [a[-back], b[-back]]}


def _suggest_axis(scene: Scene, first: Any, a: list[int], second: Any, b: list[int]) -> str:
    """Return code that adds an axis of size 1 with which two shapes broadcast."""
    for node, own, other in ((first, a, b), (second, b, a)):
        if len(own) < len(other):
            places = [k for k in range(len(own) + 1) if can_broadcast([*own[:k], 1, *own[k:]], other)]
            codes = [scene.replace(f"{parenthesize(source_of(node))}.unsqueeze({k})", node) for k in places]
            if codes and all(codes):
                return f"Add an axis: {', or '.join(codes)}."
    return ""


def _explain_layer(scene: Scene, match: re.Match[str]) -> Finding:
    return explain_layer_input(scene) or explain_shapes(scene, "")


# --------------------------------------------------------------------------------------------------------------- dtypes
def _explain_mixed_dtypes(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain operands of different dtypes. For a layer, its input is the one to convert."""
    named = operands(scene)
    own = _layer_dtype(scene)
    if own is not None:
        path, dtype = own
        argument = scene.call[2][0] if scene.call is not None and scene.call[2] else None
        got = dtype_of(argument) if argument is not None else ""
        odd = next((node for node, one in named if dtype_of(one) == got != dtype), None)
        more = " Under autocast both are converted automatically." if {dtype, got} & set(HALF_PRECISION) else ""
        code = scene.replace(f"{parenthesize(source_of(odd))}.{_cast_method(dtype)}", odd) if odd is not None else ""
        what = f"`{source_of(odd)}`" if odd is not None else "its input"
        return Finding(
            "dtype",
            f"{scene.code}: the weights of {path} are {dtype}, and {what} is {got}.",
            fix=f"Convert it: {code}.{more}" if code else f"Convert its input to {dtype}.{more}",
            evidence={"weights": dtype, "input": got},
        )
    floats = [dtype_of(one) for _, one in named if dtype_of(one).startswith(("float", "bfloat"))]
    wanted = "float32" if "float32" in floats else floats[0] if floats else ""
    odd = next((node for node, one in named if dtype_of(one) != wanted), None) if wanted else None
    code = scene.replace(f"{parenthesize(source_of(odd))}.{_cast_method(wanted)}", odd) if odd is not None else ""
    return Finding(
        "dtype",
        f"{scene.code}: dtypes differ{_describe_operands(scene, dtype_of)}.",
        fix=f"Convert one of them: {code}." if code else "Convert one of them.",
        evidence={source_of(node): dtype_of(one) for node, one in named},
    )


def _explain_integers(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain integers where floating point is needed."""
    odd = next(((node, one) for node, one in operands(scene) if not is_float(one)), None)
    if odd is None:
        return Finding("dtype", f"{scene.code} needs a floating-point tensor.", fix="Convert it with float().")
    node, one = odd
    code = scene.replace(f"{parenthesize(source_of(node))}.float()", node)
    return Finding(
        "dtype",
        f"{scene.code} needs a floating-point tensor, and `{source_of(node)}` is {dtype_of(one)}.",
        fix=f"Convert it: {code}." if code else "Convert it with float().",
        evidence={source_of(node): dtype_of(one)},
    )


def _explain_integer_leaf(scene: Scene, match: re.Match[str]) -> Finding:
    message = f"{scene.code}: a tensor of integers cannot require a gradient."
    node: Any = scene.node
    if isinstance(node, ast.Call) and any(keyword.arg == "requires_grad" for keyword in node.keywords):
        others = [keyword for keyword in node.keywords if keyword.arg != "dtype"]
        dtype = ast.keyword("dtype", ast.parse(f"{scene.alias}.float32", mode="eval").body)
        code = scene.replace(source_of(ast.Call(node.func, node.args, [dtype, *others])), node)
        return Finding("dtype", message, fix=f"Create it with floats: {code}." if code else "Create it with floats.")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(scene.statement, ast.Expr):
        name = source_of(node.func.value)
        return Finding(
            "dtype", message, fix=f"Convert it first: `{name} = {name}.float()` before `{source_of(scene.statement)}`."
        )
    return Finding("dtype", message, fix="Convert it with float() first.")


# -------------------------------------------------------------------------------------------------------------- devices
def _explain_devices(scene: Scene, match: re.Match[str]) -> Finding:
    """Explain tensors, or a model and its input, on two devices."""
    named = [(node, str(one.device)) for node, one in operands(scene)]
    models = _model_devices(scene)
    places = list(dict.fromkeys(device for _, device in [*models, *named]))
    fix, odd, wanted = "", None, ""
    if models:
        path, wanted = models[0]
        odd = next((node for node, device in named if device != wanted), None)
        fix = f"Move the input to the device of `{path}`, {wanted}."
    elif len(places) == 2:
        wanted = max(places, key=lambda place: (place != "cpu", [device for _, device in named].count(place)))
        odd = next(node for node, device in named if device != wanted)
    code = scene.replace(f"{parenthesize(source_of(odd))}.to({wanted!r})", odd) if odd is not None else ""
    shown = [*models, *((source_of(node), device) for node, device in named)]
    what = [f"`{name}` on {device}" for name, device in shown[: MAX_SHOWN + 1]]
    return Finding(
        "device",
        f"{scene.code} uses tensors on different devices{': ' + ', '.join(what) if what else ''}.",
        fix=f"Move it to the same device: {code}." if code else fix or "Move all of them to one device.",
        evidence=dict(shown),
    )


def _model_devices(scene: Scene) -> list[tuple[str, str]]:
    """Return the models that the statement calls, with the devices of their parameters."""
    found = []
    for node in ast.walk(scene.statement or ast.Pass()):
        if isinstance(node, ast.Call):
            model = scene.value(node.func)
            if model is not None and not isinstance(model, type) and callable(getattr(type(model), "parameters", None)):
                devices = list(dict.fromkeys(str(p.device) for p in model.parameters()))
                found += [(source_of(node.func), device) for device in devices]
    return found


# --------------------------------------------------------------------------------------------------------------- pieces
def operands(scene: Scene) -> list[tuple[Any, Any]]:
    """Return the tensors of the failing expression. If it is not known, return those that its statement names."""
    if scene.operands:
        return scene.operands
    named = dict(scene.tensors(getattr(scene.statement, "value", None) or scene.statement))
    nodes = {source_of(node): node for node in ast.walk(scene.statement or ast.Pass()) if isinstance(node, ast.expr)}
    return [(nodes[name], one) for name, one in named.items() if name in nodes]


def _describe_operands(scene: Scene, describe: Callable[[Any], str]) -> str:
    named = [f"`{source_of(node)}` {describe(one)}" for node, one in operands(scene)[:MAX_SHOWN]]
    return f" ({', '.join(named)})" if named else ""


def _cast_method(dtype: str) -> str:
    return CAST_METHODS.get(dtype, "float()")


def _layer_dtype(scene: Scene) -> tuple[str, str] | None:
    """Return the layer that was being called and the dtype of its weights."""
    if scene.call is None:
        return None
    module = scene.call[1]
    weight = next(iter(module.parameters(recurse=False)), None)
    return None if weight is None else (scene.layer(module), dtype_of(weight))


def _explain_axes_of_layer(scene: Scene, match: re.Match[str]) -> Finding | None:
    """Explain a convolution whose input has too few or too many axes."""
    if scene.call is None or not scene.call[2]:
        return None
    _, module, (given, *_) = scene.call
    shape, dims = list(given.shape), len(getattr(module, "kernel_size", ()) or ())
    name = next((node for node, one in scene.operands if one is given), None)
    if library_of(given) is None or not dims:
        return None
    given_name = f"`{source_of(name)}`" if name is not None else "a tensor"
    code = ""
    if len(shape) == dims and name is not None and module.in_channels == 1:
        code = scene.replace(f"{parenthesize(source_of(name))}.unsqueeze(0)", name)
    return Finding(
        "shape",
        f"{scene.code}: {scene.layer(module)} takes {dims + 1} axes, or {dims + 2} with the batch, and got {given_name} of "
        f"shape {shape}.",
        fix=f"Add the channel axis: {code}." if code else "The axes are batch, channels, and the spatial ones.",
        evidence={"axes": dims + 1, "with batch": dims + 2, "shape": shape},
    )


Rule = tuple[str, Callable[[Scene, re.Match[str]], Finding | None]]
MISMATCH_RULES: list[Rule] = [
    *JOINING_RULES,
    (
        r"shapes cannot be multiplied|^size mismatch, got|inconsistent tensor size|Expected size for first two dim",
        _explain_product,
    ),
    (r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)", explain_batch_sizes),
    (
        r"Expected target size|multi-target not supported|only batches of spatial|size mismatch \(got input|spatial sizes don't",
        explain_target_shape,
    ),
    (r"[Tt]arget size \(.*\) (that is different to|must be the same as) ", explain_elementwise_target),
    (r"must match the size of tensor b|doesn't match the broadcast shape|Shape mismatch|not broadcastable", _explain_broadcast),
    (r"Expected \d+D \(unbatched\) or \d+D \(batched\) input", _explain_axes_of_layer),
    (
        r"Given groups=|Given transposed=|must be equal to input_size|normalized_shape=|running_mean should contain",
        _explain_layer,
    ),
    (r"expecting embedding dimension of", _explain_layer),
    (
        r"dtype to be Long|scalar type Long but found|scalar types: Long, Int|not implemented for '(?:Float|Int|Double)'",
        explain_index_dtype,
    ),
    (r"class probabilities, got", explain_probability_dtype),
    (r"only Tensors of floating point.* can require", _explain_integer_leaf),
    (
        r"could not infer output dtype|can't be cast to the desired output type|Found dtype Long but|not implemented for 'Long'",
        _explain_integers,
    ),
    (
        r"(to|must) have the same dtype|should be the same|scalar type \w+ but found|Found dtype \w+ but expected",
        _explain_mixed_dtypes,
    ),
    (r"same device|is not on the expected device|two devices", _explain_devices),
    (r"Target (-?\d+) is out of bounds", explain_class_range),
    (r"index out of range in self", explain_index_range),
    (r"all elements of input should be between 0 and 1", explain_probability_range),
    (r"Expected more than 1 (?:value per channel|spatial element) when training", explain_single_value),
]

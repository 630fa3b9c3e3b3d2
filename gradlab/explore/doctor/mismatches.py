"""What an error about shapes, dtypes and devices tells: which tensor or layer does not fit, and what to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from gradlab.diagnose.source_locations import before_a_dot, source_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.scene import Scene
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
TRANSPOSED = "The columns of the first must be as many as the rows of the second."
SMALL = ("float16", "bfloat16")


# --------------------------------------------------------------------------------------------------------------- shapes
def _product(scene: Scene, match: re.Match[str]) -> Finding:
    """A matrix product, of the user's or of a layer."""
    layer = _layer(scene)
    if layer is not None:
        return layer
    for node in ast.walk(scene.statement or ast.Pass()):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            pair = [scene.value(side) for side in (node.left, node.right)]
            if all(library_of(one) is not None for one in pair):
                return _multiplied(scene, node, *pair)
    return _misfit(scene, TRANSPOSED)


def _multiplied(scene: Scene, node: ast.BinOp, a: Any, b: Any) -> Finding:
    left, right = source_of(node.left), source_of(node.right)
    first, second = list(a.shape), list(b.shape)
    fix = TRANSPOSED
    if len(second) >= 2 and first[-1:] == second[-1:]:
        fix += f" Transpose it: `{left} @ {before_a_dot(node.right)}.mT`."
    elif len(first) >= 2 and second and first[-2] == (second[-2] if len(second) >= 2 else second[0]):
        fix += f" Transpose it: `{before_a_dot(node.left)}.mT @ {right}`."
    return Finding(
        "shape",
        f"{scene.said}: `{left}` has shape {first} and `{right}` {second}, and {first[-1] if first else 'a number'} is not "
        f"{second[-2] if len(second) > 1 else second[0] if second else 'one'}.",
        fix=fix,
        evidence={left: first, right: second},
    )


def _layer(scene: Scene) -> Finding | None:
    """A layer that was given a tensor of another width than it was made for."""
    if scene.call is None:
        return None
    path, module, arguments = scene.call
    kind, shape = type(module).__name__, list(arguments[0].shape) if arguments else []
    if not shape:
        return None
    wanted, width, unit = _width(module, shape)
    if wanted is None or wanted == width:
        return None
    return Finding(
        "shape",
        f"{scene.said}: `{path}` ({kind}) was made for {wanted} {unit}, and was given a tensor of shape {shape}: {width}.",
        fix=f"Make it for {width}: {_remade(module, kind, width)}; or have what comes before it give {wanted}.",
        evidence={"layer": path, "wanted": wanted, "given": width},
    )


def _width(module: Any, shape: list[int]) -> tuple[int | None, int, str]:
    """How wide a layer's input must be, how wide it is, and of what."""
    if (n := getattr(module, "in_features", None)) is not None:
        return n, shape[-1], "features"
    if (n := getattr(module, "in_channels", None)) is not None:
        dims = len(getattr(module, "kernel_size", ()) or ())
        at = -dims - 1
        return n, shape[at] if len(shape) >= dims + 1 else 0, "channels"
    if (n := getattr(module, "num_features", None)) is not None:
        return n, shape[1] if len(shape) > 1 else shape[0], "channels"
    if (n := getattr(module, "input_size", None)) is not None:
        return n, shape[-1], "features"
    if (n := getattr(module, "normalized_shape", None)) is not None and len(n) == 1:
        return n[0], shape[-1], "features"
    return None, 0, ""


def _remade(module: Any, kind: str, width: int) -> str:
    if kind == "Linear":
        return f"`nn.Linear({width}, {module.out_features})`"
    if kind.startswith("Conv") and len(set(module.kernel_size)) == 1:
        return f"`nn.{kind}({width}, {module.out_channels}, {module.kernel_size[0]})`"
    return f"`nn.{kind}({width}, …)`" if hasattr(module, "input_size") else f"`nn.{kind}({width})`"


def _broadcast(scene: Scene, match: re.Match[str]) -> Finding:
    """Two tensors of the statement that do not broadcast."""
    named = scene.tensors(scene.statement)
    for i, (first, a) in enumerate(named):
        for second, b in named[i + 1 :]:
            if not _goes(list(a.shape), list(b.shape)):
                return Finding(
                    "shape",
                    f"{scene.said}: `{first}` has shape {list(a.shape)} and `{second}` {list(b.shape)}. From the last axis on, "
                    "sizes must be equal, or one of them 1.",
                    fix=_axis(first, list(a.shape), second, list(b.shape)),
                    evidence={first: list(a.shape), second: list(b.shape)},
                )
    return _misfit(scene, "From the last axis on, sizes must be equal, or one of them 1.")


def _axis(first: str, a: list[int], second: str, b: list[int]) -> str:
    """The one axis of size 1 that makes two shapes fit."""
    for name, own, other in ((first, a, b), (second, b, a)):
        if len(own) < len(other):
            for k in range(len(own) + 1):
                if _goes([*own[:k], 1, *own[k:]], other):
                    return f"Add an axis: `{before_a_dot(ast.parse(name, mode='eval').body)}.unsqueeze({k})`."
    return ""


def _goes(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def _misfit(scene: Scene, rule: str) -> Finding:
    return Finding(
        "shape",
        f"{scene.said}: shapes do not fit{_shapes(scene)}.",
        fix=rule,
        evidence={name: list(one.shape) for name, one in _operands(scene)[:SHOWN]},
    )


def _of_layer_or_line(scene: Scene, match: re.Match[str]) -> Finding:
    return _layer(scene) or _misfit(scene, "")


def _batches(scene: Scene, match: re.Match[str]) -> Finding:
    return Finding(
        "shape",
        f"{scene.said}: the input has {match[1]} rows and the target {match[2]}{_shapes(scene)}.",
        fix="Each row needs its target: take both from the same batch, and keep the batch as the first axis.",
        evidence={"rows": int(match[1]), "targets": int(match[2])},
    )


# --------------------------------------------------------------------------------------------------------------- dtypes
def _kinds_differ(scene: Scene, match: re.Match[str]) -> Finding:
    """Operands of different dtypes, where one must be converted; of a layer its input."""
    dtypes = [(name, _dtype(one)) for name, one in _operands(scene)]
    own = _layer_dtype(scene)
    odd = None
    if own is not None:
        path, dtype = own
        argument = scene.call[2][0] if scene.call is not None and scene.call[2] else None
        got = _dtype(argument) if argument is not None else ""
        odd = next(((name, d) for name, d in dtypes if d == got and d != dtype), ("its input", got))
        small = {dtype, got} & set(SMALL)
        more = " Under autocast both are converted for you." if small else ""
        fix = (
            f"Convert it: `{before(odd[0])}.{_cast(dtype)}`.{more}"
            if odd[0] != "its input"
            else f"Convert its input to {dtype}.{more}"
        )
        return Finding(
            "dtype",
            f"{scene.said}: the weights of `{path}` are {dtype}, and {f'`{odd[0]}`' if odd[0] != 'its input' else odd[0]}, "
            f"which it was given, is {odd[1]}.",
            fix=fix,
            evidence={"weights": dtype, "input": odd[1]},
        )
    floats = [(name, d) for name, d in dtypes if d.startswith(("float", "bfloat"))]
    wanted = next((d for _, d in floats if d == "float32"), floats[0][1] if floats else "")
    odd = next(((name, d) for name, d in dtypes if d != wanted), None) if wanted else None
    return Finding(
        "dtype",
        f"{scene.said}: dtypes differ{_given(scene, _dtype)}.",
        fix=f"Convert one of them: `{before(odd[0])}.{_cast(wanted)}`." if odd is not None else "Convert one of them.",
        evidence=dict(dtypes),
    )


def _target_of_integers(scene: Scene, match: re.Match[str]) -> Finding:
    """Class indices, or indices of a table, that are no integers."""
    named = _operands(scene)
    odd = next(((name, one) for name, one in reversed(named) if _dtype(one) not in ("int64", "uint8")), None)
    name, dtype = (odd[0], _dtype(odd[1])) if odd is not None else ("the indices", "")
    return Finding(
        "dtype",
        f"{scene.said} takes class numbers or indices, which are integers{f', and `{name}` is {dtype}' if dtype else ''}.",
        fix=f"Convert it: `{before(name)}.long()`." if dtype else "Convert them: .long().",
        evidence={name: dtype},
    )


def _wants_floats(scene: Scene, match: re.Match[str]) -> Finding:
    """Integers where floating point is needed."""
    named = [(name, one) for name, one in _operands(scene) if not _dtype(one).startswith(("float", "bfloat", "complex"))]
    name, one = named[0] if named else ("", None)
    return Finding(
        "dtype",
        f"{scene.said} needs floating point{f', and `{name}` is {_dtype(one)}' if name else ''}.",
        fix=f"Convert it: `{before(name)}.float()`." if name else "Convert it: .float().",
        evidence={name: _dtype(one)} if name else {},
    )


def _integers_cannot(scene: Scene, match: re.Match[str]) -> Finding:
    fix = f"Write its numbers as 1. and not 1, or give `dtype={scene.alias}.float32`."
    for name, one in _operands(scene):
        if not _dtype(one).startswith(("float", "bfloat", "complex")):
            fix = f"Convert it first: `{before(name)}.float().requires_grad_()`."
            break
    return Finding("dtype", f"{scene.said} asks for the gradient of integers, which have none.", fix=fix)


def _probabilities(scene: Scene, match: re.Match[str]) -> Finding:
    return Finding(
        "dtype",
        f"{scene.said}: a target of the shape of the input holds probabilities, and this one is of integers"
        f"{_given(scene, lambda one: f'{list(one.shape)} {_dtype(one)}')}.",
        fix="Class numbers have one axis less than the input; probabilities are floats.",
    )


# -------------------------------------------------------------------------------------------------------------- devices
def _devices(scene: Scene, match: re.Match[str]) -> Finding:
    """Tensors, or a model and its input, on two devices."""
    named = [(name, str(one.device)) for name, one in _operands(scene)]
    models = [(path, device) for path, device in _homes(scene)]
    places = list(dict.fromkeys(device for _, device in models + named))
    fix = ""
    if models:
        path, home = models[0]
        odd = next((name for name, device in named if device != home), "")
        fix = (
            f"Send it where `{path}` is: `{before(odd)}.to({home!r})`."
            if odd
            else f"Send the input where `{path}` is, on {home}."
        )
    elif len(places) == 2:
        most = max(places, key=lambda place: (place != "cpu", [d for _, d in named].count(place)))
        odd = next((name for name, device in named if device != most), "")
        fix = f"Send it where the others are: `{before(odd)}.to({most!r})`." if odd else ""
    what = [f"`{name}` on {device}" for name, device in [*models, *named][: SHOWN + 1]]
    return Finding(
        "device",
        f"{scene.said} brings together what lies on different devices{': ' + ', '.join(what) if what else ''}.",
        fix=fix or "Send all of them to one device: x.to(device).",
        evidence=dict([*models, *named]),
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


# --------------------------------------------------------------------------------------------------------------- values
def _class_out_of_range(scene: Scene, match: re.Match[str]) -> Finding:
    named = [(name, one) for name, one in _operands(scene) if len(one.shape) >= 2]
    classes = int(named[0][1].shape[1]) if named else None
    has = f", and `{named[0][0]}` has {classes} classes: 0 to {classes - 1}" if classes else ""
    return Finding(
        "target",
        f"{scene.said}: there is a target {match[1]}{has}.",
        fix="Count classes from 0, or make the last layer as wide as there are classes.",
        evidence={"target": int(match[1]), "classes": classes},
    )


def _index_out_of_range(scene: Scene, match: re.Match[str]) -> Finding:
    rows = getattr(scene.call[1], "num_embeddings", None) if scene.call is not None else None
    what = (
        f"`{scene.call[0]}` has {rows} rows: indices are 0 to {rows - 1}"
        if scene.call is not None and rows
        else "an index is too large"
    )
    largest = None
    if scene.call is not None and scene.call[2]:
        library = library_of(scene.call[2][0])
        largest = None if library is None else int(library.array(scene.call[2][0]).max())
    has = f", and the largest given is {largest}" if largest is not None and rows and largest >= rows else ""
    return Finding(
        "target",
        f"{scene.said}: {what}{has}.",
        fix="Make the table as large as there are indices, or look at where the index comes from.",
        evidence={"rows": rows, "largest": largest},
    )


def _no_probabilities(scene: Scene, match: re.Match[str]) -> Finding:
    return Finding(
        "target",
        f"{scene.said}: binary_cross_entropy takes probabilities, from 0 to 1, and was given other numbers.",
        fix="Take binary_cross_entropy_with_logits, which applies the sigmoid itself, or apply sigmoid first.",
    )


# --------------------------------------------------------------------------------------------------------------- pieces
def before(name: str) -> str:
    """A name, or an expression in brackets, such that a method can stand behind it."""
    try:
        return before_a_dot(ast.parse(name, mode="eval").body)
    except SyntaxError:
        return name


def _operands(scene: Scene) -> list[tuple[str, Any]]:
    """The tensors that the statement names, but for the one that it assigns to."""
    node = scene.statement
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)):
        return scene.tensors(node.value)
    if isinstance(node, (ast.For, ast.While, ast.If, ast.With)):
        return scene.tensors(getattr(node, "iter", getattr(node, "test", None)))
    return scene.tensors(node)


def _given(scene: Scene, say: Callable[[Any], str]) -> str:
    named = [f"`{name}` {say(one)}" for name, one in _operands(scene)[:SHOWN]]
    return f" ({', '.join(named)})" if named else ""


def _shapes(scene: Scene) -> str:
    return _given(scene, lambda one: str(list(one.shape)))


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _cast(dtype: str) -> str:
    return CASTS.get(dtype, "float()")


def _layer_dtype(scene: Scene) -> tuple[str, str] | None:
    """The layer that was being called, and the dtype of its weights."""
    if scene.call is None:
        return None
    path, module, _ = scene.call
    weight = next(iter(module.parameters(recurse=False)), None)
    return None if weight is None else (path, _dtype(weight))


Rule = tuple[str, Callable[[Scene, re.Match[str]], Finding | None]]
MISFITS: list[Rule] = [
    (r"shapes cannot be multiplied|^size mismatch, got|inconsistent tensor size|Expected size for first two dim", _product),
    (r"must match the size of tensor b|doesn't match the broadcast shape|Shape mismatch|not broadcastable", _broadcast),
    (r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)", _batches),
    (
        r"Given groups=|Given transposed=|must be equal to input_size|normalized_shape=|running_mean should contain",
        _of_layer_or_line,
    ),
    (r"Sizes of tensors must match except|is invalid for input of size|invalid gradient at index", _of_layer_or_line),
    (
        r"dtype to be Long|scalar type Long but found|scalar types: Long, Int|not implemented for '(?:Float|Int|Double)'",
        _target_of_integers,
    ),
    (r"class probabilities, got", _probabilities),
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
    (r"Target (-?\d+) is out of bounds", _class_out_of_range),
    (r"index out of range in self", _index_out_of_range),
    (r"all elements of input should be between 0 and 1", _no_probabilities),
]

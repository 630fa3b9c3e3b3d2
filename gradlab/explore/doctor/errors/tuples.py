"""Explain errors of a tuple that is used as a tensor: the result of `nn.LSTM`, `nn.MultiheadAttention` or `x.max(1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.program import bound_names
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import library_of
from gradlab.explore.module_paths import is_model

TUPLES_OF_LAYERS = {
    "LSTM": "(output, (h, c))",
    "GRU": "(output, h)",
    "RNN": "(output, h)",
    "LSTMCell": "(h, c)",
    "MultiheadAttention": "(output, weights)",
}
METHODS_WITH_INDICES = ("max", "min", "sort", "topk", "median", "mode", "kthvalue", "cummax", "cummin")
WORTH = 9.0


def explain_tuple(scene: Scene) -> Iterable[Finding]:
    """Explain an error whose message mentions a tuple."""
    message, error = str(scene.error), scene.error
    if not isinstance(error, (AttributeError, TypeError)) or not ("tuple" in message or "return_types" in message):
        return
    for node, maker in _find_tuples(scene):
        what = _describe_tuple(scene, maker)
        if what:
            yield _tuple_finding(scene, node, maker, what)
            return
    siblings = _find_in_sequential(scene)
    if siblings is not None:
        before, kind, after = siblings
        yield Finding(
            "shape",
            f"{scene.code}: `{before}` ({kind}) returns the tuple {TUPLES_OF_LAYERS[kind]}, and the `nn.Sequential` passes it to "
            f"`{after}`.",
            scene.line,
            fix=f"Call the {kind} outside the `nn.Sequential`, and pass only its output to the next layer.",
            worth=WORTH,
        )


def _tuple_finding(scene: Scene, node: Any, maker: ast.Call, what: str) -> Finding:
    """Return the finding on a tuple `node` that the call `maker` returned."""
    own = node is maker
    code = ""
    if own:
        code = scene.replace(f"{source_of(maker)}[0]", maker)
    else:
        alike = [one for one in ast.walk(scene.program.tree) if isinstance(one, ast.Call) and source_of(one) == source_of(maker)]
        code = f"`{source_of(maker)}[0]` in place of `{source_of(maker)}`" if len(alike) == 1 else ""
    name = "" if own else f", and `{source_of(node)}`{scene.on_line(scene.location(maker))} is that tuple"
    needs = f" A tuple has no {scene.error.name}()." if isinstance(scene.error, AttributeError) and scene.error.name else ""
    return Finding(
        "shape",
        f"{scene.code}: `{source_of(maker.func)}` {what}{name}.{needs}",
        scene.line,
        fix=f"Take its first element: {code}." if code else "Take its first element.",
        evidence={} if own else {"line": maker.lineno},
        worth=WORTH,
    )


def _find_tuples(scene: Scene) -> Iterator[tuple[Any, ast.Call]]:
    """Yield the expressions of the failing statement whose value can be a tuple of tensors, and the calls that returned it."""
    parts = [scene.node] if scene.node is not None else [scene.statement]
    if isinstance(scene.error, AttributeError) and isinstance(scene.node, (ast.Attribute, ast.Call)):
        inner = scene.node.func if isinstance(scene.node, ast.Call) else scene.node
        parts = [inner.value] if isinstance(inner, ast.Attribute) else parts
    for part in parts:
        for node in ast.walk(part or ast.Pass()):
            if isinstance(node, ast.Call) and _describe_tuple(scene, node):
                yield node, node
            elif isinstance(node, (ast.Name, ast.Attribute)) and _is_tuple(scene.value(node)):
                maker = _find_call(scene, source_of(node))
                if maker is not None:
                    yield node, maker


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and any(library_of(part) is not None for part in value)


def _find_call(scene: Scene, name: str) -> ast.Call | None:
    """Return the call whose result was last assigned to a name, or None."""
    for node in reversed(scene.scope):
        value = getattr(node, "value", None)
        whole = isinstance(node, ast.Assign) and len(node.targets) == 1 and source_of(node.targets[0]) == name
        if whole and node.lineno <= scene.place.line:
            return value if isinstance(value, ast.Call) else None
        if name in bound_names(node) and node.lineno <= scene.place.line:
            return None
    return None


def _describe_tuple(scene: Scene, call: ast.Call) -> str:
    """Return a phrase on the tuple that a call returns, or "" if it returns none."""
    called = scene.value(call.func)
    kinds = [kind.__name__ for kind in type(called).__mro__] if is_model(called) else []
    kind = next((kind for kind in kinds if kind in TUPLES_OF_LAYERS), "")
    if kind:
        return f"({kind}) returns the tuple {TUPLES_OF_LAYERS[kind]}"
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in METHODS_WITH_INDICES and "return_types" in str(scene.error):
        return "returns the tuple (values, indices)"
    return ""


def _find_in_sequential(scene: Scene) -> tuple[str, str, str] | None:
    """Return the path and the class of a layer in a Sequential that returned a tuple, and the path of the next layer."""
    traceback, call = scene.error.__traceback__, None
    while traceback is not None:
        local = traceback.tb_frame.f_locals
        owner = local.get("self")
        if traceback.tb_frame.f_code.co_name == "forward" and type(owner).__name__ == "Sequential":
            call = (owner, local.get("input"), local.get("module"))
        traceback = traceback.tb_next
    if call is None or not _is_tuple(call[1]):
        return None
    sequential: Any = call[0]
    layers = list(sequential.children())
    at = next((i for i, one in enumerate(layers) if one is call[2]), 0)
    kind = type(layers[at - 1]).__name__
    if at == 0 or kind not in TUPLES_OF_LAYERS:
        return None
    return scene.path(layers[at - 1]), kind, scene.path(layers[at])

"""Errors of a tuple that was taken for a tensor: what `nn.LSTM`, `nn.MultiheadAttention`, `x.max(1)` or a function of the user's
returns."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.program import bound
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_model

RETURNS = {
    "LSTM": "(output, (h, c))",
    "GRU": "(output, h)",
    "RNN": "(output, h)",
    "LSTMCell": "(h, c)",
    "MultiheadAttention": "(output, weights)",
}
PAIRS = ("max", "min", "sort", "topk", "median", "mode", "kthvalue", "cummax", "cummin")  # methods that return values and indices
WORTH = 9.0


def taken_for_a_tensor(scene: Scene) -> Iterable[Finding]:
    """Findings on an error that says that something is a tuple."""
    said, error = str(scene.error), scene.error
    if not isinstance(error, (AttributeError, TypeError)) or not ("tuple" in said or "return_types" in said):
        return
    for node, maker in _tuples(scene):
        what = _returned(scene, maker)
        if what:
            yield _finding(scene, node, maker, what)
            return
    siblings = _within_sequential(scene)
    if siblings is not None:
        before, kind, after = siblings
        yield Finding(
            "shape",
            f"{scene.said}: `{before}` ({kind}) returns the tuple {RETURNS[kind]}, and the `nn.Sequential` gives all of it to "
            f"`{after}`.",
            scene.line,
            fix=f"Call the {kind} outside of the `nn.Sequential`, and give its output alone to the next layer.",
            worth=WORTH,
        )


def _finding(scene: Scene, node: Any, maker: ast.Call, what: str) -> Finding:
    """A tuple that is used, and the call that returned it."""
    own = node is maker
    code = ""
    if own:
        code = scene.swapped(f"{source_of(maker)}[0]", maker)
    else:
        alike = [one for one in ast.walk(scene.program.tree) if isinstance(one, ast.Call) and source_of(one) == source_of(maker)]
        code = f"`{source_of(maker)}[0]` in place of `{source_of(maker)}`" if len(alike) == 1 else ""
    name = "" if own else f", and `{source_of(node)}`{scene.on(scene.at(maker))} is that tuple"
    needs = f" A tuple has no {scene.error.name}()." if isinstance(scene.error, AttributeError) and scene.error.name else ""
    return Finding(
        "shape",
        f"{scene.said}: `{source_of(maker.func)}` {what}{name}.{needs}",
        scene.line,
        fix=f"Take the first of it: {code}." if code else "Take the first of it.",
        evidence={} if own else {"line": maker.lineno},
        worth=WORTH,
    )


def _tuples(scene: Scene) -> Iterator[tuple[Any, ast.Call]]:
    """Return the expressions of the failing statement whose value can be a tuple of tensors, and the calls that returned it."""
    parts = [scene.node] if scene.node is not None else [scene.statement]
    if isinstance(scene.error, AttributeError) and isinstance(scene.node, (ast.Attribute, ast.Call)):
        inner = scene.node.func if isinstance(scene.node, ast.Call) else scene.node
        parts = [inner.value] if isinstance(inner, ast.Attribute) else parts
    for part in parts:
        for node in ast.walk(part or ast.Pass()):
            if isinstance(node, ast.Call) and _returned(scene, node):
                yield node, node
            elif isinstance(node, (ast.Name, ast.Attribute)) and _is_tuple(scene.value(node)):
                maker = _maker(scene, source_of(node))
                if maker is not None:
                    yield node, maker


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and any(library_of(part) is not None for part in value)


def _maker(scene: Scene, name: str) -> ast.Call | None:
    """The call that gave a name its tuple."""
    for node in reversed(scene.scope):
        value = getattr(node, "value", None)
        whole = isinstance(node, ast.Assign) and len(node.targets) == 1 and source_of(node.targets[0]) == name
        if whole and node.lineno <= scene.place.line:
            return value if isinstance(value, ast.Call) else None
        if name in bound(node) and node.lineno <= scene.place.line:
            return None
    return None


def _returned(scene: Scene, call: ast.Call) -> str:
    """What a call returns in a sentence, if that is a tuple."""
    called = scene.value(call.func)
    kinds = [kind.__name__ for kind in type(called).__mro__] if is_model(called) else []
    kind = next((kind for kind in kinds if kind in RETURNS), "")
    if kind:
        return f"({kind}) returns the tuple {RETURNS[kind]}"
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in PAIRS and "return_types" in str(scene.error):
        return "returns the tuple (values, indices)"
    return ""


def _within_sequential(scene: Scene) -> tuple[str, str, str] | None:
    """A layer that returns a tuple, and the one after it in a Sequential."""
    traceback, held = scene.error.__traceback__, None
    while traceback is not None:
        local = traceback.tb_frame.f_locals
        seen = local.get("self")
        if traceback.tb_frame.f_code.co_name == "forward" and type(seen).__name__ == "Sequential":
            held = (seen, local.get("input"), local.get("module"))
        traceback = traceback.tb_next
    if held is None or not _is_tuple(held[1]):
        return None
    sequential: Any = held[0]
    layers = list(sequential.children())
    at = next((i for i, one in enumerate(layers) if one is held[2]), 0)
    kind = type(layers[at - 1]).__name__
    if at == 0 or kind not in RETURNS:
        return None
    return scene.path(layers[at - 1]), kind, scene.path(layers[at])

"""An error of a normalisation that was given one value per channel: its variance is 0.

The batch of one is usually the last one of a loader, or one example that is to be evaluated.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.program import bound
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.names import is_model

UNGRADED = ("no_grad", "inference_mode")


def one_value(scene: Scene, match: re.Match[str]) -> Finding | None:
    """Say which layer was given one value per channel."""
    if scene.call is None:
        return None
    path, module, arguments = scene.call
    shape = list(arguments[0].shape) if arguments else []
    kind = type(module).__name__
    batch = kind.startswith(("BatchNorm", "SyncBatchNorm"))
    return Finding(
        "shape",
        f"{scene.said}: `{path}` ({kind}) takes the mean and the variance of each channel over the "
        f"{'batch' if batch else 'positions'}, and its input has shape {shape}: one value per channel.",
        fix=_larger(scene, module) if batch else "Give it more than one position per channel.",
        evidence={"layer": path, "shape": shape},
    )


def _larger(scene: Scene, module: Any) -> str:
    """How the layer gets more than one example, or needs no more."""
    if _is_evaluation(scene):
        code = before(f"{model}.eval()", source_of(scene.statement)) if (model := _model(scene, module)) else ""
        return f"Evaluate with the running mean and variance: {code}." if code else "Call eval() on the model first."
    call, loader = _loader(scene)
    if call is not None and _leaves_one_over(loader):
        dropping = copy.deepcopy(call)
        dropping.keywords = [
            *(one for one in call.keywords if one.arg != "drop_last"),
            ast.keyword("drop_last", ast.Constant(True)),
        ]
        return f"Leave out the last batch, which has one example: {instead(source_of(dropping), source_of(call))}."
    if loader is not None and loader.batch_size == 1:
        return "Give the DataLoader a batch_size of more than 1, or call eval() on the model if it is to be evaluated."
    how = ", with drop_last=True if a DataLoader makes the batches" if loader is None else ""
    return f"Give it a batch of more than one in training{how}, or call eval() on it first."


def _leaves_one_over(loader: Any) -> bool:
    """Whether the last batch of a DataLoader has one example, and others more."""
    size, data = loader.batch_size, loader.dataset
    count = len(data) if hasattr(type(data), "__len__") else 0
    return bool(size) and not loader.drop_last and count > size > 1 and count % size == 1


def _is_evaluation(scene: Scene) -> bool:
    """Whether the source says that no gradient is wanted where the model is called."""
    for step in scene.steps:
        program, line = scene.programs.get(step.place.filename), step.place.line
        for node in program.statements if program is not None else ():
            if not node.lineno <= line <= (node.end_lineno or node.lineno):
                continue
            switches: list[Any] = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
            if isinstance(node, ast.FunctionDef) and node.name == step.place.function:
                switches += node.decorator_list
            if any(source_of(switch).removesuffix("()").endswith(UNGRADED) for switch in switches):
                return True
    return False


def _model(scene: Scene, module: Any) -> str:
    """The model that the failing statement calls and the layer is in."""
    for node in ast.walk(scene.statement or ast.Pass()):
        model: Any = scene.value(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and is_model(model) and any(part is module for part in model.modules()):
            return source_of(node.func)
    return ""


def _loader(scene: Scene) -> tuple[ast.Call | None, Any]:
    """The call that made the DataLoader of the loop that failed, and the loader; None where they are not known."""
    for step in reversed(scene.steps):
        program, line = scene.programs.get(step.place.filename), step.place.line
        loops = [
            node
            for node in (program.statements if program is not None else ())
            if isinstance(node, (ast.For, ast.AsyncFor)) and node.lineno < line <= (node.end_lineno or 0)
        ]
        for name in [node for loop in reversed(loops) for node in ast.walk(loop.iter) if isinstance(node, ast.Name)]:
            loader = step.names.get(name.id)
            if any(kind.__name__ == "DataLoader" for kind in type(loader).__mro__):
                return _made(scene, name.id), loader
    return None, None


def _made(scene: Scene, name: str) -> ast.Call | None:
    """The call of DataLoader that a name is bound to, if there is one alone."""
    calls = [
        node.value
        for program in scene.programs.values()
        for node in program.statements
        if isinstance(node, ast.Assign) and name in bound(node) and isinstance(node.value, ast.Call)
    ]
    known = [call for call in calls if source_of(call.func).rpartition(".")[2] == "DataLoader"]
    return known[0] if len(known) == 1 else None

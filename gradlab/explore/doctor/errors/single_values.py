"""Explain errors of a normalisation whose input has one value per channel, of which no variance can be computed.

Usually it is the last batch of a loader, with one example left over, or a single example to evaluate.
"""

from __future__ import annotations

import ast
import copy
import re
from typing import Any

from gradlab.diagnose.source_locations import source_of
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.program import bound_names
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.module_paths import is_model

NO_GRAD_SWITCHES = ("no_grad", "inference_mode")


def explain_single_value(scene: Scene, match: re.Match[str]) -> Finding | None:
    """Explain a normalisation whose input has one value per channel."""
    if scene.call is None:
        return None
    path, module, arguments = scene.call
    shape = list(arguments[0].shape) if arguments else []
    kind = type(module).__name__
    batch = kind.startswith(("BatchNorm", "SyncBatchNorm"))
    return Finding(
        "shape",
        f"{scene.code}: `{path}` ({kind}) computes the mean and the variance of each channel over the "
        f"{'batch' if batch else 'positions'}, and its input has shape {shape}: one value per channel.",
        fix=_suggest_batch(scene, module) if batch else "Give it more than one position per channel.",
        evidence={"layer": path, "shape": shape},
    )


def _suggest_batch(scene: Scene, module: Any) -> str:
    """Suggest a larger batch, or evaluation with the running statistics."""
    if _is_evaluation(scene):
        code = before(f"{model}.eval()", source_of(scene.statement)) if (model := _find_model(scene, module)) else ""
        return f"Evaluate with the running mean and variance: {code}." if code else "Call eval() on the model first."
    call, loader = _find_loader(scene)
    if call is not None and _has_last_batch_of_one(loader):
        dropping = copy.deepcopy(call)
        dropping.keywords = [
            *(one for one in call.keywords if one.arg != "drop_last"),
            ast.keyword("drop_last", ast.Constant(True)),
        ]
        return f"Drop the last batch, which has one example: {instead(source_of(dropping), source_of(call))}."
    if loader is not None and loader.batch_size == 1:
        return "Use a batch_size of more than 1 in the DataLoader, or call eval() on the model to evaluate it."
    how = ", with drop_last=True if a DataLoader makes the batches" if loader is None else ""
    return f"Train it with more than one example per batch{how}. To evaluate one example, call eval() on the model first."


def _has_last_batch_of_one(loader: Any) -> bool:
    """Return whether only the last batch of a DataLoader has one example."""
    size, data = loader.batch_size, loader.dataset
    count = len(data) if hasattr(type(data), "__len__") else 0
    return bool(size) and not loader.drop_last and count > size > 1 and count % size == 1


def _is_evaluation(scene: Scene) -> bool:
    """Return whether the model is called under `no_grad` or `inference_mode`."""
    for step in scene.frames:
        program, line = scene.programs.get(step.place.filename), step.place.line
        for node in program.statements if program is not None else ():
            if not node.lineno <= line <= (node.end_lineno or node.lineno):
                continue
            switches: list[Any] = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
            if isinstance(node, ast.FunctionDef) and node.name == step.place.function:
                switches += node.decorator_list
            if any(source_of(switch).removesuffix("()").endswith(NO_GRAD_SWITCHES) for switch in switches):
                return True
    return False


def _find_model(scene: Scene, module: Any) -> str:
    """Return the expression of the model that the failing statement calls and that contains the layer."""
    for node in ast.walk(scene.statement or ast.Pass()):
        model: Any = scene.value(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and is_model(model) and any(part is module for part in model.modules()):
            return source_of(node.func)
    return ""


def _find_loader(scene: Scene) -> tuple[ast.Call | None, Any]:
    """Return the call that created the DataLoader of the failing loop, and the loader; None if they are not known."""
    for step in reversed(scene.frames):
        program, line = scene.programs.get(step.place.filename), step.place.line
        loops = [
            node
            for node in (program.statements if program is not None else ())
            if isinstance(node, (ast.For, ast.AsyncFor)) and node.lineno < line <= (node.end_lineno or 0)
        ]
        for name in [node for loop in reversed(loops) for node in ast.walk(loop.iter) if isinstance(node, ast.Name)]:
            loader = step.names.get(name.id)
            if any(kind.__name__ == "DataLoader" for kind in type(loader).__mro__):
                return _find_loader_call(scene, name.id), loader
    return None, None


def _find_loader_call(scene: Scene, name: str) -> ast.Call | None:
    """Return the call of DataLoader whose result is assigned to a name, if there is exactly one."""
    calls = [
        node.value
        for program in scene.programs.values()
        for node in program.statements
        if isinstance(node, ast.Assign) and name in bound_names(node) and isinstance(node.value, ast.Call)
    ]
    known = [call for call in calls if source_of(call.func).rpartition(".")[2] == "DataLoader"]
    return known[0] if len(known) == 1 else None

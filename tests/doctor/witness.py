"""Run the program of a row without gradlab's explorer, and record every expression, module call and backward pass.

Each expression of the cells is wrapped in a call that keeps its tensor (with `retain_grad()`) and a copy of its numbers.
`backward` and module calls are wrapped to copy the leaves and their gradients before and after. So NumPy can recompute the
numbers of a finding from the program itself, and the trace is only used to find the expression that it points to.
"""

from __future__ import annotations

import ast
import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from symptoms import array
from tracing import VALUE, prelude

CELL = "<a witnessed cell>"


@dataclass
class Seen:
    """A value of an expression or a module: the tensor, a copy of its numbers, the cell, and the number of sweeps before it."""

    tensor: Any
    numbers: np.ndarray
    sweep: int
    cell: int
    line: int
    given: tuple[Any, ...] = ()

    @property
    def grad(self) -> np.ndarray | None:
        return None if getattr(self.tensor, "grad", None) is None else array(self.tensor.grad)


@dataclass
class Sweep:
    """The leaves before and after a call of backward, by identity: (weights, .grad before, .grad after)."""

    cell: int
    loss: float | None
    leaves: dict[int, list[Any]] = field(default_factory=dict)


class Witness:
    """Values, module calls and backward passes of the cells of a row."""

    def __init__(self, library: str, texts: Sequence[str]) -> None:
        self.space = prelude(library)
        self.lib = self.space["torch"]
        self.seen: dict[str, list[Seen]] = {}
        self.modules: list[tuple[Any, Seen]] = []
        self.sweeps: list[Sweep] = []
        self.cell = 0
        self.ran: dict[str, int] = {}
        self.rates: list[float] = []  # learning rates of the optimizers' steps
        self.steps: list[dict[int, tuple[np.ndarray, bool]]] = []  # after each, its parameters, and whether they are frozen
        self.last_cell_steps = 0  # the number of steps before the last cell
        self.statistics: dict[int, list[np.ndarray]] = {}  # of frozen norms, before their first training call in the last cell
        self.kept: list[Any] = []
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"), self.watching():
            warnings.simplefilter("ignore")
            for self.cell, text in enumerate(texts):
                last = self.cell == len(texts) - 1
                if last:
                    self.before_last, self.last_cell_steps = len(self.sweeps), len(self.steps)
                    self.statistics.clear()
                with contextlib.suppress(Exception) if last else contextlib.nullcontext():
                    self.run(text, grad=last or text.startswith("%%grad"))
        self.end = {key: array(leaf).copy() for key, leaf in self.leaves().items()}
        self.space["torch"].set_grad_enabled(True)

    def run(self, text: str, *, grad: bool) -> None:
        text = text.replace("%%grad", "", 1)
        tree = ast.parse(text)
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.copy_location(ast.Assign([ast.Name(VALUE, ast.Store())], tree.body[-1].value), tree.body[-1])
        assigned = [n.targets[0].id for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
        tree = ast.fix_missing_locations(Wrap().visit(tree))
        before = len(self.sweeps)
        self.space.pop(VALUE, None)
        self.space["__saw__"] = self.record_expression
        exec(compile(tree, CELL, "exec"), self.space)
        value = self.space.pop(VALUE, None)
        if not grad or len(self.sweeps) > before:
            return
        if not getattr(value, "requires_grad", False):
            value = next((self.space[n] for n in reversed(assigned) if getattr(self.space.get(n), "requires_grad", False)), None)
        if value is not None:
            (value if value.numel() == 1 else value.sum()).backward()

    def record_expression(self, text: str, line: int, value: Any) -> Any:
        self.ran[text] = self.ran.get(text, 0) + 1
        if text.endswith(".step()"):
            groups = getattr(self.space.get(text.removesuffix(".step()")), "param_groups", ())
            self.rates += [max(group["lr"] for group in groups)] if groups else []
            held = [p for group in groups for p in group["params"]]
            self.steps.append({id(p): (array(p).copy(), not p.requires_grad and p.grad is not None) for p in held})
        if isinstance(value, self.lib.Tensor):
            self.seen.setdefault(text, []).append(self.record(value, line))
        elif isinstance(value, (int, float)):
            self.seen.setdefault(text, []).append(Seen(value, np.asarray(float(value)), len(self.sweeps), self.cell, line))
        return value

    def record(self, value: Any, line: int = 0, given: tuple[Any, ...] = ()) -> Seen:
        if value.requires_grad and not value.is_leaf:
            value.retain_grad()
        self.kept.append(value)
        return Seen(value, array(value).copy(), len(self.sweeps), self.cell, line, given)

    def leaves(self) -> dict[int, Any]:
        """Return the leaves that are reachable from the program's names."""
        found: dict[int, Any] = {}
        waiting = [(value, 3) for name, value in self.space.items() if not name.startswith("__")]
        while waiting:
            value, deep = waiting.pop()
            if isinstance(value, self.lib.Tensor):
                if value.is_leaf and value.requires_grad:
                    found[id(value)] = value
            elif isinstance(value, (list, tuple)):
                waiting += [(one, deep - 1) for one in value] if deep else []
            elif isinstance(value, dict):
                waiting += [(one, deep - 1) for one in value.values()] if deep else []
            elif isinstance(value, self.space["nn"].Module):
                waiting += [(one, 0) for one in value.parameters()]
                waiting += [(one, deep - 1) for one in vars(value).values() if isinstance(one, list)] if deep else []
            elif hasattr(value, "param_groups"):
                waiting += [(one, 0) for group in value.param_groups for one in group["params"]]
            elif type(value).__module__ == "__main__" and deep:
                waiting += [(one, deep - 1) for one in getattr(value, "__dict__", {}).values()]
        self.kept += found.values()
        return found

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        tensor, module = self.lib.Tensor, self.space["nn"].Module
        backward, call = tensor.backward, module.__call__

        def traced_backward(own: Any, *args: Any, **kwargs: Any) -> Any:
            sweep = Sweep(self.cell, float(own.detach().reshape(-1)[0]) if own.numel() == 1 else None)
            before = self.leaves()
            for key, leaf in before.items():
                sweep.leaves[key] = [array(leaf).copy(), None if leaf.grad is None else array(leaf.grad).copy(), None]
            made = backward(own, *args, **kwargs)
            for key, leaf in before.items():
                sweep.leaves[key][2] = None if leaf.grad is None else array(leaf.grad).copy()
            self.sweeps.append(sweep)
            return made

        def traced_call(own: Any, *args: Any, **kwargs: Any) -> Any:
            sweep = len(self.sweeps)
            weight, mean = getattr(own, "weight", None), getattr(own, "running_mean", None)
            if own.training and mean is not None and weight is not None and not weight.requires_grad:
                self.statistics.setdefault(id(own), [array(mean).copy(), array(own.running_var).copy()])
            given = tuple(self.record(one) for one in args if isinstance(one, self.lib.Tensor))
            made = call(own, *args, **kwargs)
            if isinstance(made, self.lib.Tensor):
                seen = self.record(made, given=given)
                seen.sweep = sweep
                self.modules.append((own, seen))
            return made

        tensor.backward, module.__call__ = traced_backward, traced_call
        try:
            yield
        finally:
            tensor.backward, module.__call__ = backward, call

    # ---------------------------------------------------------------------------------------------------- recorded values
    def of(self, source: str) -> list[Seen]:
        """Return the values of an expression before the last sweep, in the order of execution."""
        try:
            text = ast.unparse(ast.parse(source, mode="eval"))
        except SyntaxError:
            return []
        return self.current(self.seen.get(text, []))

    def current(self, found: Sequence[Seen]) -> list[Seen]:
        last = len(self.sweeps) - 1
        return [one for one in found if one.sweep == last] or list(found)

    def calls(self, path: str) -> list[Seen]:
        """Return the outputs of a module, given by its path from a name: "net.0"."""
        own = self.resolve(path)
        return self.current([seen for module, seen in self.modules if module is own])

    def resolve(self, path: str) -> Any:
        """Return the object with a name such as "net[0].weight" in the program."""
        for text in (path, path.replace("].", "]__").replace(".", "]['").replace("__", "."), path):
            with contextlib.suppress(Exception):
                return eval(text, {**self.space})
        first, *rest = path.split(".")
        found = self.space[first]
        for step in rest:
            found = found[int(step)] if step.isdecimal() else getattr(found, step)
        return found

    def key(self, name: str) -> int:
        return id(self.resolve(name))

    def run_of(self, key: int) -> list[dict[str, Any]]:
        """Return for each sweep a leaf's weight, its gradient before and after, their difference, and the step that followed."""
        found = []
        for at, sweep in enumerate(self.sweeps):
            if key not in sweep.leaves or sweep.leaves[key][2] is None:
                continue
            weight, before, after = sweep.leaves[key]
            later = next((s.leaves[key][0] for s in self.sweeps[at + 1 :] if key in s.leaves), self.end.get(key))
            arrived = after if before is None or before.shape != after.shape else after - before
            step = None if later is None else later - weight
            found.append(
                {
                    "at": at,
                    "cell": sweep.cell,
                    "weight": weight,
                    "before": before,
                    "after": after,
                    "arrived": arrived,
                    "step": step,
                }
            )
        return found


class Wrap(ast.NodeTransformer):
    """Wrap every expression that is read as `__saw__("its text", line, expression)`."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.body = [self.visit(one) for one in node.body]
            return node
        if isinstance(node, (ast.JoinedStr, ast.Starred, ast.Slice)) or not isinstance(node, ast.expr):
            return self.generic_visit(node) if not isinstance(node, (ast.JoinedStr, ast.arguments)) else node
        context = getattr(node, "ctx", None)
        text = ast.unparse(node)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)
            node.args = [self.visit(one) for one in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
        else:
            node = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(context, (ast.Store, ast.Del)) or isinstance(node, (ast.Constant, ast.Starred)):
            return node
        call = ast.Call(ast.Name("__saw__", ast.Load()), [ast.Constant(text), ast.Constant(node.lineno), node], [])  # type: ignore[list-item]
        return ast.copy_location(call, node)

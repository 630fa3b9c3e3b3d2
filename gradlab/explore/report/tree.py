"""A model's parameters as a tree of its modules, in call order.

The tree is built from the names of the rows ("model.layers[0].attn.weight") and from the module calls in a trace, which give the
order and the classes. Consecutive blocks with the same parts and shapes are grouped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gradlab.explore.markup import Sentence, code, join_items, say
from gradlab.explore.report.table import TensorRow
from gradlab.explore.trace.data import ModuleCall

MIN_ALIKE = 3  # equal blocks that are grouped
MAX_SINGLE = 6  # parameters of single modules; with more, these modules are shown as models


@dataclass
class ModulePart:
    """A module, or a parameter.

    Attributes
    ----------
    name : str
        The name within the parent: "attn", "0", "weight".
    kind : str
        The module's class; "" for a parameter, or if it is unknown.
    row : TensorRow or None
        The row of a parameter.
    parts : list of ModulePart
        The children in call order, the module's own parameters first.
    alike : bool
        True if this is a group of equal blocks and not a module.
    """

    name: str
    kind: str = ""
    row: TensorRow | None = None
    parts: list[ModulePart] = field(default_factory=list)
    alike: bool = False

    @cached_property
    def rows(self) -> list[TensorRow]:
        """The rows of all parameters below."""
        return [self.row] if self.row is not None else [row for part in self.parts for row in part.rows]

    @property
    def norm(self) -> float | None:
        """The norm of the gradients of all parameters below; NaN if one has NaN, None if none has a gradient."""
        norms = [row.gradient.norm for row in self.rows if row.gradient is not None]
        return _total_norm(norms) if norms else None

    @property
    def weights(self) -> float:
        """The norm of all parameters below."""
        return _total_norm([row.value.norm for row in self.rows if row.value is not None])

    @property
    def ratio(self) -> float | None:
        """‖gradient‖ / ‖weights‖ of the parameters that have a gradient."""
        own = [row for row in self.rows if row.gradient is not None and row.value is not None]
        if not own:
            return None
        weights = _total_norm([row.value.norm for row in own if row.value is not None])
        norm = self.norm
        return None if norm is None or weights == 0 else norm / weights

    @property
    def count(self) -> int:
        """The number of elements of all parameters below."""
        return sum(math.prod(row.shape) for row in self.rows)

    @property
    def without(self) -> list[TensorRow]:
        """The parameters without a gradient."""
        return [row for row in self.rows if row.gradient is None]

    @property
    def marks(self) -> list[str]:
        """The number of gradients that are NaN, infinite, zero or None: "2 of 16 gradients are None"."""
        rows, marks = self.rows, []
        odd = sum(row.gradient is not None and bool(row.gradient.nans or row.gradient.infs) for row in rows)
        zero = sum(row.gradient is not None and row.gradient.all_zero for row in rows)
        for n, what in ((odd, "have NaN or ∞"), (zero, "are exactly 0"), (len(self.without), "are None")):
            if n and self.row is None and not (what == "are None" and n == len(rows)):
                marks.append(f"{n} of {len(rows)} gradients {what}")
        return marks

    @property
    def reason(self) -> str:
        """The reason why no parameter below has a gradient, if it is the same for all; else ""."""
        if self.row is not None or not self.rows or len(self.without) < len(self.rows):
            return ""
        reasons = {"; ".join("".join(span.text for span in note.text) for note in row.notes) for row in self.rows}
        return reasons.pop() if len(reasons) == 1 else ""


def _total_norm(norms: Sequence[float]) -> float:
    if any(norm != norm for norm in norms):
        return math.nan
    return math.hypot(*norms) if norms else 0.0


def steps_of(name: str) -> list[str]:
    """Split "model.layers[0].weight" into model, layers, 0, weight. Other names are returned whole."""
    if not re.fullmatch(r"[^\W\d]\w*(\.\w+|\[\d+\])*", name):
        return [name]
    return re.findall(r"\w+", name)


def grads_of(names: Sequence[str], most: int = 6) -> Sentence:
    """Return "a.grad and b.grad", or with more names ".grad of 150 parameters of model"."""
    if len(names) <= most:
        return join_items([code(f"{name}.grad") for name in names])
    models: dict[str, int] = {}
    for name in names:
        path = steps_of(name)
        key = path[0] if len(path) > 2 else name
        models[key] = models.get(key, 0) + 1
    return join_items(
        [say(code(".grad"), f" of {n} parameters of ", code(key)) if n > 1 else code(f"{key}.grad") for key, n in models.items()]
    )


def forest(rows: Sequence[TensorRow], calls: Sequence[ModuleCall]) -> tuple[list[ModulePart], list[TensorRow]]:
    """Return the trees of the models among the rows, and the other rows.

    A model is a name below which at least two modules hold parameters. If there is one, or if single modules that were called
    have many parameters together, these are models as well.
    """
    owners: dict[str, set[tuple[str, ...]]] = {}
    called = {call.path for call in calls}
    single: dict[str, int] = {}
    for row in rows:
        path = steps_of(row.name)
        if len(path) > 2 and row.is_leaf:
            owners.setdefault(path[0], set()).add(tuple(path[:-1]))
        elif len(path) == 2 and row.is_leaf and path[0] in called:
            single[path[0]] = single.get(path[0], 0) + 1
    models = {name for name, held in owners.items() if len(held) > 1}
    if models or sum(single.values()) > MAX_SINGLE:
        models |= set(single)
    kinds: dict[str, str] = {}
    order: dict[str, int] = {}
    for at, call in enumerate(calls):
        steps = steps_of(call.path)
        kinds.setdefault(".".join(steps), call.kind)
        for i in range(len(steps)):
            order.setdefault(".".join(steps[: i + 1]), at)
    roots: dict[str, ModulePart] = {}
    rest: list[TensorRow] = []
    for row in rows:
        path = steps_of(row.name)
        if path[0] not in models or not row.is_leaf:
            rest.append(row)
            continue
        part = roots.setdefault(path[0], ModulePart(path[0], kinds.get(path[0], "")))
        for i, step in enumerate(path[1:-1], start=2):
            held = next((inner for inner in part.parts if inner.row is None and inner.name == step), None)
            if held is None:
                held = ModulePart(step, kinds.get(".".join(path[:i]), ""))
                part.parts.append(held)
            part = held
        part.parts.append(ModulePart(path[-1], row=row))
    trees = [_join_single_children(_sort_parts(root, root.name, order)) for root in roots.values()]
    return [_group_alike(tree) for tree in trees], rest


def _sort_parts(part: ModulePart, path: str, order: dict[str, int]) -> ModulePart:
    """Sort parameters first, then modules in call order, then modules that were not called."""
    inner = [_sort_parts(child, f"{path}.{child.name}", order) if child.row is None else child for child in part.parts]
    at = {id(child): (child.row is None, order.get(f"{path}.{child.name}", math.inf)) for child in inner}
    return ModulePart(part.name, part.kind, part.row, sorted(inner, key=lambda child: at[id(child)]))


def _join_single_children(part: ModulePart) -> ModulePart:
    """Join modules that hold only one module into one row with it: "encoder.layers"."""
    parts = [_join_single_children(child) for child in part.parts]
    if len(parts) == 1 and part.row is None and parts[0].row is None:
        (only,) = parts
        inner = re.sub(r"^(\d+)", r"[\1]", only.name)
        return ModulePart(f"{part.name}{'' if inner[0] == '[' else '.'}{inner}", only.kind or part.kind, None, only.parts)
    return ModulePart(part.name, part.kind, part.row, parts)


def _signature(part: ModulePart) -> tuple[object, ...]:
    if part.row is not None:
        return part.name, part.row.shape
    return part.kind, tuple((child.name if child.row is None else "", _signature(child)) for child in part.parts)


def _group_alike(part: ModulePart) -> ModulePart:
    """Group consecutive equal blocks."""
    parts = [_group_alike(child) for child in part.parts]
    signatures = [_signature(child) if child.row is None else None for child in part.parts]
    gathered: list[ModulePart] = []
    at = 0
    while at < len(parts):
        end = at + 1
        while end < len(parts) and signatures[at] is not None and signatures[end] == signatures[at]:
            end += 1
        run = parts[at:end]
        if len(run) >= MIN_ALIKE:
            names = (
                f"{run[0].name}–{run[-1].name}"
                if all(child.name.isdigit() for child in run)
                else f"{run[0].name} … {run[-1].name}"
            )
            gathered.append(ModulePart(names, run[0].kind, None, run, alike=True))
        else:
            gathered += run
        at = end
    if len(gathered) == 1 and gathered[0].alike:  # a list that contains only these blocks becomes the group
        return ModulePart(part.name, gathered[0].kind, None, gathered[0].parts, alike=True)
    return ModulePart(part.name, part.kind, part.row, gathered, part.alike)

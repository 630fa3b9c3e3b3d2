"""Compare two runs: match the operations and find numbers that differ by more than rounding.

Operations are matched by name and by their line in the user's code, in order. Numbers a and b are equal if

    |a − b| ≤ (t + 10 r) s,   s = the largest absolute value in b, or in its inputs if that is larger,

element by element, with t by dtype (`TOLERANCE`) and r the relative difference of the inputs. So an operation is not blamed for
rounding errors of its inputs, and a difference of two nearly equal numbers is compared with these. If the libraries take
different steps but have the same results and gradients, the steps are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from gradlab.explore.against.recorded_run import Operation, RecordedRun
from gradlab.explore.trace.data import Line

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 5e-3}
GROWTH = 10.0  # factor by which an operation may increase the relative difference of its inputs


@dataclass(frozen=True)
class Difference:
    """A difference between the two libraries.

    Attributes
    ----------
    what : str
        A description: "the value of SinBackward0".
    operation : str
        "SinBackward0"; "" for an output or an input's gradient.
    line : Line or None
        The line of the operation.
    gradlab, torch : object
        The numbers at the element that differs most; shapes, dtypes, or None if these differ.
    index : tuple of int
        The index of that element.
    """

    what: str
    operation: str
    line: Line | None
    gradlab: object
    torch: object
    index: tuple[int, ...] = ()


@dataclass
class Agreement:
    """The result of a comparison.

    Attributes
    ----------
    values, gradients : int
        The numbers of compared arrays.
    differences : list of Difference
        In the order of the program, then of the backward pass.
    largest : float
        The largest relative difference among those that agree.
    dtypes : set of str
    alone : (list of str, list of str)
        Operations only in gradlab, and only in torch.
    """

    values: int
    gradients: int
    differences: list[Difference]
    largest: float
    dtypes: set[str]
    alone: tuple[list[str], list[str]]


class Judge:
    """A comparison of arrays, with the largest difference and the dtypes so far."""

    def __init__(self) -> None:
        self.largest, self.dtypes = 0.0, set[str]()

    def differ(
        self, a: np.ndarray, b: np.ndarray, scale: float, inherited: float
    ) -> tuple[tuple[object, object, tuple[int, ...]] | None, float]:
        """Return the difference (gradlab's number, torch's, index) or None, and the relative difference."""
        if a.shape != b.shape:
            return (f"shape {a.shape}", f"shape {b.shape}", ()), 0.0
        if a.dtype != b.dtype:
            return (f"dtype {a.dtype}", f"dtype {b.dtype}", ()), 0.0
        self.dtypes.add(str(b.dtype))
        if not a.size:
            return None, 0.0
        if b.dtype.kind not in "fc":
            wrong = a != b
            far = wrong.astype(np.float64)
            allowed = np.zeros(())
        else:
            with np.errstate(all="ignore"):
                far = np.abs(a.astype(np.float64) - b.astype(np.float64))
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            far = np.where(same, 0.0, np.where(np.isfinite(far), far, np.inf))
            scale = max(scale, _largest(b))
            allowed = np.asarray((TOLERANCE.get(str(b.dtype), TOLERANCE["float16"]) + GROWTH * inherited) * scale)
            wrong = far > allowed
        if wrong.any():
            at = tuple(int(k) for k in np.unravel_index(int(np.argmax(np.where(wrong, far, -1.0))), far.shape))
            return (a[at].item(), b[at].item(), at), 0.0
        relative = float(far.max() / scale) if scale else 0.0
        self.largest = max(self.largest, relative)
        return None, float(far.max() / most) if (most := _largest(b)) else relative


def compare(ours: RecordedRun, theirs: RecordedRun, inputs: Sequence[str]) -> Agreement:
    """Compare two runs. `inputs` are the names of the inputs that require grad."""
    judge = Judge()
    differences: list[Difference] = []
    values = gradients = 0
    if ours.error is not None or theirs.error is not None:
        return Agreement(0, 0, differences, 0.0, set(), ([], []))
    pairs, alone = match_operations(ours.operations, theirs.operations)
    number = {k: i for i, (_, k) in enumerate(pairs)}  # torch's operation: which pair
    apart: list[float] = []  # how far the values of each pair are apart, relatively
    for i, k in pairs:
        a, b = ours.operations[i], theirs.operations[k]
        sources = [number[s] for s in b.inputs if s is not None and s in number]
        inherited = max((apart[s] for s in sources), default=0.0)
        apart.append(inherited)
        if a.value is None or b.value is None:
            continue
        values += 1
        scale = max((_largest(theirs.operations[pairs[s][1]].value) for s in sources), default=0.0)
        wrong, apart[-1] = judge.differ(a.value, b.value, scale, inherited)
        if wrong is not None:
            differences.append(Difference(f"the value of {b.name}", b.name, b.line or a.line, *wrong))
    outputs, more = _outputs(judge, ours, theirs)
    values += outputs
    differences += more
    users: dict[int, list[int]] = {}  # by torch's operation, those that hand cotangents to it
    for k, operation in enumerate(theirs.operations):
        for s in operation.inputs:
            if s is not None:
                users.setdefault(s, []).append(k)
    spread: dict[int, float] = {}
    for i, k in sorted(pairs, key=lambda pair: theirs.operations[pair[1]].place):
        a, b = ours.operations[i], theirs.operations[k]
        if b.place < 0 or a.place < 0 or len(a.handed) != len(b.handed):
            continue
        inherited = max((spread.get(u, 0.0) for u in users.get(k, ())), default=0.0)
        inherited = max(inherited, apart[number[k]])
        scale = max((_largest(c) for u in users.get(k, ()) for c in theirs.operations[u].handed), default=0.0)
        worst = 0.0
        for argument, (c, d) in enumerate(zip(a.handed, b.handed, strict=True)):
            what = f"the gradient that {b.name} passes to its argument {argument + 1}"
            if c is None and d is None:
                continue
            gradients += 1
            if c is None or d is None:
                differences.append(Difference(what, b.name, b.line or a.line, *_none(c, d)))
                continue
            wrong, far = judge.differ(c, d, scale, inherited)
            worst = max(worst, far)
            if wrong is not None:
                differences.append(Difference(what, b.name, b.line or a.line, *wrong))
        spread[k] = max(worst, inherited)
    known = max(spread.values(), default=0.0)
    for name, c, d in zip(inputs, ours.gradients, theirs.gradients, strict=False):
        what = f"the gradient of {name}"
        gradients += 1
        if c is None or d is None:
            if c is not d:
                differences.append(Difference(what, "", None, *_none(c, d)))
            continue
        scale = max((_largest(h) for operation in theirs.operations for h in operation.handed if _same_shape(h, d)), default=0.0)
        wrong, _ = judge.differ(c, d, scale, known)
        if wrong is not None:
            differences.append(Difference(what, "", None, *wrong))
    inside = [one for one in differences if one.operation]
    if inside and len(inside) == len(differences) and any(alone):  # different steps with the same results
        for one in inside:
            alone[0].append(one.operation)
            alone[1].append(one.operation)
        differences, values = [], values - sum("value" in one.what for one in inside)
        gradients -= sum("gradient" in one.what for one in inside)
    return Agreement(values, gradients, differences, judge.largest, judge.dtypes, alone)


def _outputs(judge: Judge, ours: RecordedRun, theirs: RecordedRun) -> tuple[int, list[Difference]]:
    """Return the number of results that were compared, and the differences."""
    a, b = dict(ours.outputs), dict(theirs.outputs)
    differences: list[Difference] = []
    if list(a) != list(b):
        first, second = (", ".join(one) or "one value" for one in (a, b))
        differences.append(Difference("what the function returns", "", None, first, second))
    both = [where for where in b if where in a]
    scale = max((_largest(operation.value) for operation in theirs.operations), default=0.0)
    for where in both:
        wrong, _ = judge.differ(a[where], b[where], scale, judge.largest)
        if wrong is not None:
            differences.append(Difference(f"the result{where}", "", None, *wrong))
    return len(both), differences


def match_operations(
    ours: Sequence[Operation], theirs: Sequence[Operation]
) -> tuple[list[tuple[int, int]], tuple[list[str], list[str]]]:
    """Return the pairs of matching operations by index, and the names of the others. If one library takes two steps for one of
    the other, operations match only if the shapes of their results and gradients are equal."""
    a, b = ([(one.name, one.line and one.line.line) for one in run] for run in (ours, theirs))
    if a == b:
        return [(i, i) for i in range(len(a))], ([], [])
    shaped = [[(*key, _shapes(one)) for key, one in zip(keys, run, strict=True)] for keys, run in ((a, ours), (b, theirs))]
    pairs = [
        (block.a + i, block.b + i)
        for block in SequenceMatcher(None, shaped[0], shaped[1], autojunk=False).get_matching_blocks()
        for i in range(block.size)
    ]
    first, second = {i for i, _ in pairs}, {k for _, k in pairs}
    return pairs, (
        [one.name for i, one in enumerate(ours) if i not in first],
        [one.name for k, one in enumerate(theirs) if k not in second],
    )


def _shapes(operation: Operation) -> tuple[object, ...]:
    """Return the shapes of an operation's result and of its gradients."""
    return tuple(None if array is None else array.shape for array in (operation.value, *operation.handed))


def _largest(array: np.ndarray | None) -> float:
    """Return the largest finite absolute value."""
    if array is None or not array.size or array.dtype.kind not in "fciu":
        return 0.0
    moduli = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    finite: Iterable[float] = moduli[np.isfinite(moduli)]
    return float(max(finite, default=0.0)) if moduli.size < 16 else float(np.max(np.where(np.isfinite(moduli), moduli, 0.0)))


def _none(a: np.ndarray | None, b: np.ndarray | None) -> tuple[object, object]:
    return tuple("None" if x is None else x.reshape(-1)[0].item() if x.size == 1 else f"shape {x.shape}" for x in (a, b))  # type: ignore[return-value]


def _same_shape(a: np.ndarray | None, b: np.ndarray) -> bool:
    return a is not None and a.shape == b.shape

"""Run a function in one library and record the result and the gradients of each operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab.explore.libraries import Library, adapters
from gradlab.explore.trace.data import Line
from gradlab.explore.trace.lines import Lines
from gradlab.explore.trace.reading import spine_first
from gradlab.explore.trace.recorder import Recorder

SEED = 0  # of the weights of the outputs


@dataclass
class Operation:
    """One operation.

    Attributes
    ----------
    name : str
        "MulBackward0".
    line : Line or None
        The user's line of the operation.
    inputs : tuple of int
        The operations that computed its arguments, -1 for none, None for arguments that require no gradient.
    value : ndarray or None
        The result; None if it was not stored.
    handed : list of ndarray or None
        The gradient of each argument.
    place : int
        Its position in the backward pass, from 0; -1 if it was not reached.
    """

    name: str
    line: Line | None
    inputs: tuple[int | None, ...]
    value: np.ndarray | None
    handed: list[np.ndarray | None] = field(default_factory=list)
    place: int = -1


@dataclass
class RecordedRun:
    """The record of a run.

    Attributes
    ----------
    operations : list of Operation
        In the order of execution.
    outputs : list of (str, ndarray)
        The results of the function, with their path in it.
    gradients : list of ndarray or None
        The gradients of the inputs that require grad.
    error : Exception or None
        The error of the function, without any of these.
    raised_at : Line or None
    """

    operations: list[Operation] = field(default_factory=list)
    outputs: list[tuple[str, np.ndarray]] = field(default_factory=list)
    gradients: list[np.ndarray | None] = field(default_factory=list)
    error: Exception | None = None
    raised_at: Line | None = None


def run(name: str, lib: Any, f: Callable[..., Any], inputs: Sequence[Any], code: Any) -> RecordedRun:
    """Run a function in one library, whose module is `lib`.

    Parameters
    ----------
    name : str
        "gradlab" or "torch".
    inputs : sequence
        Tensors of the library, and other objects.
    code : code object or None
        The code of the function, which identifies its lines.
    """
    library = next(one for one in adapters() if one.name == name)
    done = RecordedRun()
    with lib.enable_grad(), Recorder(dict) as recorder:
        recorder.examines_every_sweep = True
        try:
            out = f(*inputs)
            named = flat("", out, library)
            outputs = [(where, value) for where, value in named if library.is_tensor(value)]
            done.outputs = [
                (where, _array(library, value) if library.is_tensor(value) else np.asarray(value)) for where, value in named
            ]
            roots = [value for _, value in outputs if value.requires_grad and value.numel()]
            if roots:
                _sweep(library, done, roots, [x for x in inputs if library.is_tensor(x) and x.requires_grad])
        except Exception as error:  # noqa: BLE001  (it is reported)
            done.error = error
            done.raised_at = raised_at(error, code)
    recorder.forget()
    return done


def _sweep(library: Library, done: RecordedRun, roots: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Run the backward pass and fill in the operations and the gradients."""
    nodes, inputs = spine_first(library, list(dict.fromkeys(library.whole(library.node(root)) for root in roots)))
    sources = {node: i for i, node in enumerate(nodes)}
    operations = [
        i for i in range(len(nodes)) if library.variable(nodes[i]) is None and library.name_of(nodes[i]) != "AccumulateGrad"
    ]
    operations.sort(key=lambda i: library.order(nodes[i]))
    place = {i: k for k, i in enumerate(operations)}
    lines = Lines()
    for i in operations:
        output = library.output_of(nodes[i])
        operands = tuple(None if source is None else place.get(sources[source], -1) for source in inputs[i])
        value = None if output is None else _array(library, output)
        done.operations.append(Operation(library.name_of(nodes[i]), lines.line(library.site(nodes[i])), operands, value))
    swept = 0

    def note(node: Any, handed: Sequence[Any]) -> Sequence[Any]:
        nonlocal swept
        operation = done.operations[place[sources[node]]]
        operation.handed = [None if c is None else np.array(_array(library, c)) for c in handed]
        operation.place, swept = swept, swept + 1
        return handed

    numbers = np.random.default_rng(SEED)
    starts = []
    for root in roots:
        shape = tuple(root.shape)
        starts.append(library.tensor(numbers.standard_normal(shape) if root.numel() > 1 else np.ones(shape), like=root))
    with library.handing([nodes[i] for i in operations], note):
        gradients = library.grad(roots, wanted, starts) if wanted else []
    done.gradients = [None if g is None else np.array(_array(library, g)) for g in gradients]


def _array(library: Library, value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        return np.array(library.array(value))
    return np.array(value if isinstance(value, np.ndarray) else value.get())


def flat(where: str, value: Any, library: Library) -> list[tuple[str, Any]]:
    """Return the tensors and numbers in the result of a function, with their paths."""
    if library.is_tensor(value) or isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        return [(where, value)]
    if isinstance(value, dict):
        items = [(f"{where}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (tuple, list)):
        items = [(f"{where}[{i}]", item) for i, item in enumerate(value)]
    else:
        return []
    return [one for inside, item in items for one in flat(inside, item, library)]


def raised_at(error: Exception, code: Any) -> Line | None:
    """Return the line of the user's function that raised an exception."""
    trace, frame = error.__traceback__, None
    while trace is not None and code is not None:
        if trace.tb_frame.f_code.co_filename == code.co_filename:
            frame = trace.tb_frame.f_code, trace.tb_lasti
        trace = trace.tb_next
    return Lines().line(frame)

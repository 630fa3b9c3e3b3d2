"""Runs that write into the user's array, and that another process goes on with where this one stopped.

With `out` the blocks are written into the array as they come. With `resume` the array is a file's, and a record beside it (see
`record`) says what the work is and which blocks are done. `prepare` is called before the user's function, since a call may change
what the function holds; `begin` does the rest, when there is a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab.explore.jacobian.digests import CannotDigestError, Part, array_digest, part_of, parts_of, version_of
from gradlab.explore.jacobian.memory import needs_disk
from gradlab.explore.jacobian.methods import held
from gradlab.explore.jacobian.record import Record, compare, mapped_at, path_beside, read, summary, theirs
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.libraries import Library, library_of

CHUNKS = 20  # a run that can be resumed has at least so many, if the size of a chunk is not said: a kill costs one


@dataclass
class Prepared:
    """What is asked of a run: where its blocks are written, and what it is the work of."""

    out: np.ndarray
    facts: dict[str, Part] | None = None  # what must be the same to go on; None: not to be gone on with
    called: dict[str, str] = field(default_factory=dict)  # what messages call the facts
    found: dict[str, Any] | None = None  # what an earlier run has recorded


def prepare(
    verb: str,
    target: Any,
    inputs: Sequence[Any],
    names: Sequence[str],
    library: Library,
    *,
    out: Any,
    resume: Any,
    key: Any,
) -> Prepared:
    """The run that is asked for, its function and inputs digested if it is to be gone on with."""
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"out= takes a NumPy array or np.memmap that the Jacobian is written into; got {type(out).__name__}")
    if not isinstance(resume, bool):
        raise TypeError(f"resume={resume!r}: it takes True or False")
    if key is not None and not (isinstance(key, (str, bytes)) and key):
        raise TypeError(f"key= takes a string or bytes that name the function; got {key!r}")
    if key is not None and not resume:
        raise ValueError("key= names the function of a run that goes on in another process: give resume=True and out= with it")
    if resume and (library_of(target) is not None or not callable(target)):
        raise TypeError(
            f"resume=True takes a function, which another process can call again; got {type(target).__name__}. "
            f"Give {verb} the function that computes it"
        )
    if resume and not (isinstance(out, np.memmap) and out.filename and out.mode != "c"):
        in_memory = isinstance(out, np.memmap) and out.mode == "c"
        got = "a memmap that never reaches its file (mode='c')" if in_memory else type(out).__name__
        raise TypeError(
            "resume=True takes out=np.memmap(file, dtype, mode, shape=...), mode 'w+' for a new file and 'r+' to go on with one; "
            f"out is {got}"
        )
    assert out is not None
    made = Prepared(out)
    if not resume:
        return made
    assert isinstance(out, np.memmap)
    made.facts = {"what is computed": Part(verb, verb)}
    for k, (x, name) in enumerate(zip(inputs, names, strict=True)):
        array = library.array(x)
        said = f"a {library.name} tensor of shape {array.shape}, {library.dtype_name(x)}"
        made.facts[f"inputs[{k}]"] = Part(f"{said} {array_digest(array).hex()}", said)
        made.called[f"inputs[{k}]"] = f"the input {name}"
    own = getattr(target, "__name__", None)
    if key is not None:
        version = version_of("gradlab")
        made.facts |= {"the key": part_of(key, "the key"), "the version of gradlab": Part(version, version)}
    else:
        try:
            made.facts |= parts_of(target, own if isinstance(own, str) else type(target).__name__)
        except CannotDigestError as error:
            raise CannotDigestError(
                f'{error}. Give the function a name of your own, key="...", and another one whenever it '
                "changes: then that is compared, and not what it is made of"
            ) from error
    path = path_beside(out)
    made.found = read(path)
    if made.found is not None:
        compare(path, made.found, made.facts, made.called, all_of=False)
    return made


def begin(asked: Prepared, runner: Runner, tensors: Sequence[tuple[str, np.ndarray]]) -> None:
    """Check `out`, take over what an earlier run has recorded of it, and lay a record down.

    `tensors` are the arrays of the inputs and the outputs, which `out` must not share memory with, under their names.
    """
    out, store, graph = asked.out, runner.store, runner.graph
    check_out(out, store.shape, store.dtype, tensors)
    if graph is None:
        return
    needs_disk(out)
    if not (isinstance(out, np.memmap) and out.filename):
        return
    path = path_beside(out)
    if asked.facts is None:
        if theirs(path):
            raise ValueError(
                f"{path} records what an earlier run has written into {out.filename}. "
                f"resume=True goes on with it; to start anew, remove {path.name} first"
            )
        return
    if asked.found is not None:
        facts = asked.found["facts"]
        runner.plan_as(facts["the method"][1], int(facts["the chunk size"][1]))
    runner.plan_in_chunks(CHUNKS)
    plan = runner.plan
    for what, value in (
        ("the method", plan.method),
        ("the chunk size", plan.chunk),
        ("the sweeps", f"{plan.sweeps} by {plan.by}"),
        ("the shape", plan.shape),
        ("the dtype", store.dtype),
        ("the place in the file", mapped_at(out)),
    ):
        asked.facts[what] = Part(str(value), str(value))
    if plan.pattern is not None:
        entries = np.stack(plan.pattern)
        asked.facts["the sparsity pattern"] = Part(array_digest(entries).hex(), f"{entries.shape[1]} entries")
    if plan.colours is not None:
        asked.facts["the colouring"] = Part(
            array_digest(plan.colours).hex() + ("" if plan.gather is None else array_digest(plan.gather).hex()),
            f"{plan.sweeps} colours",
        )
    blocks = plan.blocks()
    output = np.concatenate([graph.library.array(y).reshape(-1) for y in graph.outputs])
    weights = np.random.default_rng(0).uniform(0.5, 1.0, store.shape[0]).astype(store.dtype)
    values = {"output": summary(output), "derivative": summary(graph.vjp(weights))}
    record = Record(out, asked.facts, asked.called, values, len(blocks))
    if asked.found is not None:
        record.go_on(asked.found, lambda number: held(plan, out, blocks[number]), all_or_none=plan.colours is not None)
    record.write()
    runner.noted = lambda block: record.mark(block.number, held(plan, out, block))
    runner.take_over(blocks[number] for number in sorted(record.done))


def check_out(out: np.ndarray, shape: tuple[int, int], dtype: np.dtype, others: Sequence[tuple[str, np.ndarray]]) -> None:
    """Refuse an array that the Jacobian cannot be written into, or not without writing over something else."""
    makes = f"np.empty({shape}, np.{dtype}), or np.memmap(file, np.{dtype}, 'w+', shape={shape}), makes one"
    if out.shape != shape:
        sides = "(output elements, input elements)"
        raise ValueError(f"out= must have the Jacobian's shape {shape} {sides}, but has {out.shape}. {makes}")
    if out.dtype != dtype:
        raise TypeError(f"out= must have the Jacobian's dtype {dtype}, but has {out.dtype}. {makes}")
    if not out.flags.writeable:
        raise ValueError(
            "out= is read only" + (f" (opened with mode={out.mode!r}; 'r+' can be written)" if isinstance(out, np.memmap) else "")
        )
    if any(step == 0 and size > 1 for step, size in zip(out.strides, out.shape, strict=True)):
        raise ValueError("out= is a broadcast array, several of whose elements are one in memory; give an array of its own")
    for name, array in others:
        if np.shares_memory(out, array):
            raise ValueError(f"out= shares memory with {name}, which would be overwritten; give an array of its own")

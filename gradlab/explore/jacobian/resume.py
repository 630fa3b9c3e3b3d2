"""Resumable runs: blocks are written to a given place, where another process can continue.

With `out`, blocks are written there as they are computed (see `targets`). With `resume`, it is a file or a zarr store, and a
checkpoint beside it (see `checkpoint`) records the work and the finished blocks. `prepare` is called before the user's function,
since a call may change the function's state; `begin` does the rest, once there is a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab.explore.jacobian.checkpoint import Checkpoint, compare, digest_of, read, summary, theirs
from gradlab.explore.jacobian.fingerprint import (
    CannotFingerprintError,
    FingerprintPart,
    array_digest,
    part_of,
    parts_of,
    version_of,
)
from gradlab.explore.jacobian.plan import Block
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.jacobian.targets.in_memory import ArrayTarget
from gradlab.explore.jacobian.targets.opening import Unmade, open_target
from gradlab.explore.jacobian.targets.target import Target
from gradlab.explore.jacobian.targets.zarr_parts import ZarrParts
from gradlab.explore.jacobian.tracing import DerivativeRequest
from gradlab.explore.libraries import Library

CHUNKS = 20  # minimum number of chunks of a run that can be resumed, unless the chunk size is given: a kill loses one


@dataclass
class Prepared:
    """Request for a run: where its blocks are written, and digests of the work."""

    out: Target | Unmade
    facts: dict[str, FingerprintPart] | None = None  # must be equal to resume; None if the run cannot be resumed
    called: dict[str, str] = field(default_factory=dict)  # descriptions of the facts in messages
    found: dict[str, Any] | None = None  # record of an earlier run


def prepare(question: DerivativeRequest, library: Library, *, out: Any, resume: Any, key: Any) -> Prepared:
    """Prepare a run. If it can be resumed, compute digests of its function and inputs."""
    verb, target = question.verb, question.target
    if not isinstance(resume, bool):
        raise TypeError(f"resume={resume!r}: it takes True or False")
    if key is not None and not (isinstance(key, (str, bytes)) and key):
        raise TypeError(f"key= takes a string or bytes that name the function; got {key!r}")
    if key is not None and not resume:
        raise ValueError("key= identifies the function of a run that can be resumed: pass resume=True and out= with it")
    if resume and not (question.is_function and callable(target)):
        raise TypeError(
            f"resume=True takes a function, which another process can call again; got {type(target).__name__}. "
            f"Give {verb} the function that computes it"
        )
    prepared = None if resume and out is None else Prepared(open_target(out, resume=resume))
    if prepared is not None and not resume:
        return prepared
    place = prepared.out.place() if prepared is not None and isinstance(prepared.out, Target) else None
    unmade = prepared is not None and isinstance(prepared.out, Unmade)
    if prepared is None or not (place or unmade) or (isinstance(out, np.memmap) and out.mode == "c"):
        in_memory = isinstance(out, np.memmap) and out.mode == "c"
        got = "a memmap that never reaches its file (mode='c')" if in_memory else type(out).__name__
        raise TypeError(
            "resume=True takes out=np.memmap(file, dtype, mode, shape=...), mode 'w+' for a new file and 'r+' to go on with one, "
            f"or a zarr array or group; out is {got}"
        )
    prepared.facts = {"the derivative": FingerprintPart(verb, verb)}
    if question.batch is not None:
        prepared.facts["the axis of the samples"] = FingerprintPart(str(question.batch), str(question.batch))
    for k, (x, name) in enumerate(zip(question.inputs, question.input_names, strict=True)):
        array = library.array(x)
        said = f"a {library.name} tensor of shape {array.shape}, {library.dtype_name(x)}"
        prepared.facts[f"inputs[{k}]"] = FingerprintPart(f"{said} {array_digest(array).hex()}", said)
        prepared.called[f"inputs[{k}]"] = f"the input {name}"
    own = getattr(target, "__name__", None)
    if key is not None:
        version = version_of("gradlab")
        prepared.facts |= {"the key": part_of(key, "the key"), "the version of gradlab": FingerprintPart(version, version)}
    else:
        try:
            prepared.facts |= parts_of(target, own if isinstance(own, str) else type(target).__name__)
        except CannotFingerprintError as error:
            raise CannotFingerprintError(
                f'{error}. Identify the function by key="...", and change the key whenever the function '
                "changes. Then the key is compared instead of the function's parts"
            ) from error
    if place is not None:
        prepared.found = read(place)
        if prepared.found is not None:
            compare(place, prepared.found, prepared.facts, prepared.called, all_of=False)
    return prepared


def begin(asked: Prepared, runner: Runner, tensors: Sequence[tuple[str, np.ndarray]]) -> None:
    """Check `out`, adopt the blocks that an earlier run has recorded, and write a checkpoint.

    `tensors`: names and arrays of the inputs and outputs, with which `out` must not share memory.
    """
    store, graph = runner.store, runner.graph
    if isinstance(asked.out, Target):
        asked.out.check(store.shape, store.dtype, tensors)
        _check_way(asked.out, runner.request)
        store.out = asked.out
    if graph is None:
        return
    place = asked.out.place() if isinstance(asked.out, Target) else None
    if asked.facts is None and place is not None and theirs(place):
        raise ValueError(
            f"{place} records the blocks of an earlier run in {store.out.what if store.out else ''}. "
            f"resume=True continues it; to start over, remove {place.name} first"
        )
    planned = asked.facts is not None or not isinstance(asked.out, ArrayTarget)  # the plan determines the format
    if asked.found is not None:
        facts = asked.found["facts"]
        runner.plan_as(facts["the method"][1], int(facts["the chunk size"][1]))
    elif runner.elsewhere is not None and planned:
        runner.elsewhere.size(runner)
    if planned:
        runner.plan_in_chunks(CHUNKS if asked.facts is not None else 1)
    if isinstance(asked.out, Unmade):
        store.out = asked.out.make(runner.plan, store.dtype)
    out = store.out
    assert out is not None
    out.reserve()
    if isinstance(out, ZarrParts):
        out.begin(runner.plan, store.dtype, anew=asked.found is None)
    place = out.place()
    if asked.facts is None or place is None:
        return
    plan = runner.plan
    for what, value in (
        ("the method", plan.method),
        ("the chunk size", plan.chunk),
        ("the sweeps", f"{plan.sweeps} by {plan.by}"),
        ("the shape", plan.shape),
        ("the dtype", store.dtype),
        ("the place in the file", out.lies),
    ):
        asked.facts[what] = FingerprintPart(str(value), str(value))
    if plan.pattern is not None:
        entries = np.stack(plan.pattern)
        asked.facts["the sparsity pattern"] = FingerprintPart(array_digest(entries).hex(), f"{entries.shape[1]} entries")
    if plan.colours is not None:
        asked.facts["the colouring"] = FingerprintPart(
            array_digest(plan.colours).hex() + ("" if plan.gather is None else array_digest(plan.gather).hex()),
            f"{plan.sweeps} colours",
        )
    blocks = plan.blocks()
    values = {"output": summary(graph.output()), "derivative": summary(graph.derivative())}
    checkpoint = Checkpoint(place, out.what, asked.facts, asked.called, values, len(blocks))

    def sums(stretches: Sequence[range]) -> list[int]:
        known_sums = runner.elsewhere.read(runner, stretches) if runner.elsewhere is not None else None
        return known_sums or [
            sum(digest_of(number, out.read_block(plan, blocks[number])) for number in some) for some in stretches
        ]

    if asked.found is not None:
        kept = isinstance(out, ArrayTarget) and plan.colours is not None
        checkpoint.go_on(asked.found, sums, all_or_none=kept)
    checkpoint.write()

    def record_blocks(some: Mapping[Block, int | None]) -> None:
        out.settle()
        checkpoint.mark(
            {
                block.number: digest_of(block.number, out.read_block(plan, block)) if digest is None else digest
                for block, digest in some.items()
            }
        )

    runner.on_stored = record_blocks
    runner.take_over(blocks[number] for number in sorted(checkpoint.finished_blocks))


def _check_way(out: Target, request: dict[str, Any]) -> None:
    """Raise if the method does not fit the target."""
    plan = request.get("plan")
    coloured = request.get("method") == "sparse" or request.get("sparsity") is not None or (plan and plan.colours is not None)
    if out.takes == "dense" and coloured:
        raise ValueError(
            "a sparse Jacobian is written to a zarr group, in CSR parts, not to a zarr array. Give out= zarr.open_group(…) "
            'or a path, or use method="batched" or "columns" for a dense one'
        )

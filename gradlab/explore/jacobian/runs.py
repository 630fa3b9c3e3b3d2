"""Long runs: the loop over a plan's blocks, which tells how far it is, can be stopped, and goes on where it stopped.

Whatever ends the loop early, Ctrl-C or an error of a rule, the blocks that are stored stay, and the exception says how many
they are and that asking again goes on. With `out` the blocks are written into the user's array as they come. With `resume` the
array is a file's, and a record beside it (see `record`) lets another process go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.explore.jacobian.memory import needs_disk
from gradlab.explore.jacobian.methods import scatter
from gradlab.explore.jacobian.plan import METHODS, Block, Plan, make_plan
from gradlab.explore.libraries import Library, library_of

if TYPE_CHECKING:
    from gradlab.explore.jacobian.digests import Part
    from gradlab.explore.jacobian.record import Record

LONG_SECONDS = 2.0  # a run that is expected to take longer shows a bar
FIRST_SECONDS = 0.2  # how long it is watched before anything is expected: the first block may be slow
CHUNKS = 20  # a run that can be resumed has at least so many, if the size of a chunk is not said: a kill costs one
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_noinv_fmt}]"


@dataclass
class Run:
    """How the long run of one Jacobian goes: who is told, where its blocks are written, what is recorded.

    Made by `prepare` before a function is called, since a call may change what the function holds; `begin` does the rest.
    """

    out: np.ndarray | None = None
    progress: Any = None
    facts: dict[str, Part] | None = None  # what must be the same to go on; None: not to be gone on with
    called: dict[str, str] = field(default_factory=dict)  # what messages call the facts
    found: dict[str, Any] | None = None  # what an earlier run has recorded
    record: Record | None = None


# ------------------------------------------------------------------------------------------------------------- the loop
def run(jacobian: Any, blocks: Iterable[Block], progress: Any = None) -> None:
    """Compute and store `blocks` of the plan; `progress` as `jacobian` takes it."""
    blocks = list(blocks)
    plan, asked = jacobian.plan, jacobian._long
    todo = sum(map(_size, blocks))
    known = _known(jacobian)
    whole = known + todo == plan.sweeps
    done, total = (known, plan.sweeps) if whole else (0, todo)
    with _told(asked.progress if progress is None else progress, done, total, plan.kind) as tell:
        try:
            for block in blocks:
                with jacobian._lock:
                    if not jacobian.complete and block.number not in jacobian._done:           # by another thread meanwhile
                        jacobian._store(block, jacobian._values(block))
                        if asked.record is not None:
                            asked.record.mark(block.number, held(plan, asked.out, block))
                done += _size(block)
                tell(done)
        except BaseException as error:
            _explain(error, jacobian)
            raise


def _size(block: Block) -> int:
    return block.stop - block.start


def _known(jacobian: Any) -> int:
    """How many rows, columns or colours the stored blocks have."""
    plan, done = jacobian.plan, jacobian._done
    last = (plan.sweeps - 1) // plan.chunk
    return len(done) * plan.chunk - ((last + 1) * plan.chunk - plan.sweeps if last in done else 0)


def _explain(error: BaseException, jacobian: Any) -> None:
    """Say in the exception what is known, and how to go on."""
    plan = jacobian.plan
    done = _known(jacobian)
    one = plan.sweeps == 1
    name = plan.kind[:-1] if one else plan.kind
    text = (
        f"{done} of {plan.sweeps} {name} of the Jacobian {'is' if one else 'are'} known and kept. "
        "Asking again, np.asarray(J) for example, goes on with the others"
        + ("; so does resume=True in another process." if jacobian._long.record is not None else ".")
    )
    if isinstance(error, KeyboardInterrupt) and not error.args:
        error.args = (text,)  # where notes are not shown too
    else:
        error.add_note(text)


def check_progress(progress: Any) -> None:
    """Refuse what is neither None, a boolean nor callable."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(
            f"progress={progress!r}: it takes None (a bar for runs of over {LONG_SECONDS:.0f} s), True, False, or a function "
            "that is called as progress(done, total)"
        )


@contextmanager
def _told(progress: Any, known: int, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """A function to tell how many are done; it shows a bar, calls `progress`, or does nothing."""
    if progress is False:
        yield lambda done: None
        return
    if callable(progress):
        yield lambda done: progress(done, total)
        return
    start, bar = time.perf_counter(), None

    def tell(done: int) -> None:
        nonlocal bar
        if bar is None:
            spent = time.perf_counter() - start
            expected = spent / max(1, done - known) * (total - known)
            if progress is None and (spent < FIRST_SECONDS or expected < LONG_SECONDS):
                return
            from tqdm.auto import tqdm

            bar = tqdm(total=total, initial=known, unit=f" {unit}", desc="Jacobian", bar_format=BAR)
            bar.start_t -= spent
        bar.update(done - bar.n)

    try:
        if progress:
            tell(known)
        yield tell
    finally:
        if bar is not None:
            bar.close()


# ----------------------------------------------------------------------------------------------------------- before and after
def prepare(
    verb: str,
    target: Any,
    inputs: Sequence[Any],
    names: Sequence[str],
    library: Library,
    *,
    out: Any,
    progress: Any,
    resume: Any,
    key: Any,
) -> Run:
    """The run that is asked for, its function and inputs digested if it is to be gone on with."""
    check_progress(progress)
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"out= takes a NumPy array or np.memmap that the Jacobian is written into; got {type(out).__name__}")
    if not isinstance(resume, bool):
        raise TypeError(f"resume={resume!r}: it takes True or False")
    if key is not None and not (isinstance(key, (str, bytes)) and key):
        raise TypeError(f"key= takes a string or bytes that name the function; got {key!r}")
    if key is not None and not resume:
        raise ValueError("key= names the function of a run that goes on in another process: give resume=True and out= with it")
    made = Run(out, progress)
    if not resume:
        return made
    if library_of(target) is not None or not callable(target):
        raise TypeError(
            f"resume=True takes a function, which another process can call again; got {type(target).__name__}. "
            f"Give {verb} the function that computes it"
        )
    if not (isinstance(out, np.memmap) and out.filename and out.mode != "c"):
        in_memory = isinstance(out, np.memmap) and out.mode == "c"
        got = "a memmap that never reaches its file (mode='c')" if in_memory else type(out).__name__
        raise TypeError(
            "resume=True takes out=np.memmap(file, dtype, mode, shape=...), mode 'w+' for a new file and 'r+' to go on with one; "
            f"out is {got}"
        )
    from gradlab import __version__
    from gradlab.explore.jacobian.digests import CannotDigestError, Part, array_digest, part_of, parts_of
    from gradlab.explore.jacobian.record import compare, path_beside, read

    made.facts = {"what is computed": Part(verb, verb)}
    for k, (x, name) in enumerate(zip(inputs, names, strict=True)):
        array = library.array(x)
        said = f"a {library.name} tensor of shape {array.shape}, {library.dtype_name(x)}"
        made.facts[f"inputs[{k}]"] = Part(f"{said} {array_digest(array).hex()}", said)
        made.called[f"inputs[{k}]"] = f"the input {name}"
    own = getattr(target, "__name__", None)
    if key is not None:
        made.facts |= {"the key": part_of(key, "the key"), "the version of gradlab": Part(__version__, __version__)}
    else:
        try:
            made.facts |= parts_of(target, own if isinstance(own, str) else type(target).__name__)
        except CannotDigestError as error:
            raise CannotDigestError(f"{error}. Give the function a name of your own, key=\"...\", and another one whenever it "
                                    "changes: then that is compared, and not what it is made of") from error
    path = path_beside(out)
    made.found = read(path)
    if made.found is not None:
        compare(path, made.found, made.facts, made.called, all_of=False)
    return made


def begin(jacobian: Any, inputs: Sequence[Any]) -> None:
    """Check `out`, take over what an earlier run has recorded of it, and lay a record down."""
    asked: Run = jacobian._long
    if asked.out is None:
        return
    graph = jacobian._graph
    shared = [(f"the input {name}", x) for name, x in zip(jacobian.input_names, inputs, strict=True)]
    if graph is not None:
        shared += [(f"the output {name}", y) for name, y in zip(jacobian.output_names, graph.outputs, strict=True)]
    check_out(asked.out, jacobian.shape, jacobian.dtype, [(name, jacobian._library.array(one)) for name, one in shared])
    if not jacobian.complete:
        needs_disk(asked.out)
    if not (isinstance(asked.out, np.memmap) and asked.out.filename) or jacobian.complete:
        return
    from gradlab.explore.jacobian.digests import Part, array_digest
    from gradlab.explore.jacobian.record import Record, mapped_at, path_beside, summary, theirs

    path = path_beside(asked.out)
    if asked.facts is None:
        if theirs(path):
            raise ValueError(
                f"{path} records what an earlier run has written into {asked.out.filename}. "
                f"resume=True goes on with it; to start anew, remove {path.name} first"
            )
        return
    found, ask = asked.found, jacobian._ask
    if found is not None:  # what is not asked for is as it was: free memory, of which a chunk is a share, is not
        method = found["facts"]["the method"][1]
        if ask.get("method") == "auto" and ask.get("plan") is None and method in METHODS:
            ask["method"] = method
        if ask.get("chunk_size") in (None, "auto"):
            ask["chunk_size"] = int(found["facts"]["the chunk size"][1])
    if ask.get("chunk_size") in (None, "auto") and ask.get("plan") is None:
        most = max(1, jacobian.plan.sweeps // CHUNKS)
        if jacobian.plan.chunk > most:
            jacobian._plan = make_plan(graph, plan=jacobian.plan, chunk_size=most)
    plan = jacobian.plan
    for what, value in (
        ("the method", plan.method),
        ("the chunk size", plan.chunk),
        ("the sweeps", f"{plan.sweeps} by {plan.by}"),
        ("the shape", plan.shape),
        ("the dtype", jacobian.dtype),
        ("the place in the file", mapped_at(asked.out)),
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
    output = np.concatenate([jacobian._library.array(y).reshape(-1) for y in graph.outputs])
    weights = np.random.default_rng(0).uniform(0.5, 1.0, jacobian.shape[0]).astype(jacobian.dtype)
    values = {"output": summary(output), "derivative": summary(graph.vjp(weights))}
    record = Record(asked.out, asked.facts, asked.called, values, len(blocks))
    if found is not None:
        record.go_on(found, lambda number: held(plan, asked.out, blocks[number]), all_or_none=plan.colours is not None)
    record.write()
    asked.record = record
    jacobian._take_over([blocks[number] for number in sorted(record.done)])


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


def held(plan: Plan, matrix: Any, block: Block) -> np.ndarray:
    """What `matrix` has where the block belongs, a column a row for blocks of columns."""
    across = plan.shape[0 if plan.by == "columns" else 1]
    size = (_size(block), across) if block.kind == "colours" else (0, 0)
    rows, columns, _ = scatter(plan, block, np.empty(size, np.uint8))
    values = np.asarray(matrix[rows, columns])
    return values.T if block.kind == "columns" else values

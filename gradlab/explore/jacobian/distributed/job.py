"""Jobs: the request, the plan and the target, as sent to the workers."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType, MethodType
from typing import Any

from gradlab.explore.jacobian.checkpoint import close, summary
from gradlab.explore.jacobian.graph import DifferentiatedGraph
from gradlab.explore.jacobian.plan import Plan
from gradlab.explore.jacobian.targets.target import Target
from gradlab.explore.jacobian.targets.zarr_store import KeyBeside
from gradlab.explore.jacobian.tracing import DerivativeRequest, record

INSTALL = "pip install 'gradlab[distributed]'"
MARK = "gradlab.mark"  # key in a store that names its job
NAMED = 3  # names in a message on objects that cannot be pickled


class OtherValuesError(RuntimeError):
    """The function returned other values on a worker than where the plan was made."""


@dataclass
class Job:
    """Work of a run, in the process that requested it or on a worker.

    Attributes
    ----------
    question : DerivativeRequest
    plan : Plan
    output : list of float
        Summary of the function's output where the run was requested, for workers to compare.
    target : Target or None
        Where workers write; None if they return the numbers.
    token : str
        A unique name.
    """

    question: DerivativeRequest
    plan: Plan
    output: list[float]
    target: Target | None
    token: str
    here: threading.local = field(default_factory=threading.local)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("here", "reaches")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, here=threading.local())

    def graph(self) -> DifferentiatedGraph:
        """Return the graph, recorded once per thread: a sweep may unpack saved tensors, which is not thread-safe."""
        graph: DifferentiatedGraph | None = getattr(self.here, "graph", None)
        if graph is None:
            graph = record(self.question).graph
            if graph.shape != self.plan.shape or not close(summary(graph.output()), self.output):
                raise OtherValuesError(
                    "the function returns other values on a worker than in the process of the Jacobian: it depends on something "
                    "else, random numbers, a file or a global that only one of them has. Give it everything as arguments or in "
                    "its closure, and random numbers as a tensor that was drawn before"
                )
            self.here.graph = graph
        return graph

    @cached_property
    def reaches(self) -> bool:
        """True if this process can access the same store as the requesting one, according to a key that that process wrote."""
        if self.target is None:
            return False
        place = self.target.place()
        if not isinstance(place, KeyBeside):
            return False
        return KeyBeside(place.base, MARK).read() == self.token.encode()


class Packed:
    """A pickled job that is unpickled on first use. One such object serves all threads of a worker."""

    def __init__(self, token: str, content: bytes) -> None:
        self.token, self.content = token, content
        self.lock = threading.Lock()
        self.opened: Job | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"token": self.token, "content": self.content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __sizeof__(self) -> int:
        return len(self.content)

    @property
    def job(self) -> Job:
        """Return the job itself."""
        with self.lock:
            if self.opened is None:
                self.opened = pickle.loads(self.content)  # noqa: S301  (from our own client)
            return self.opened


def pack(job: Job) -> Packed:
    """Pickle a job.

    Raises
    ------
    TypeError
        If the function or its inputs cannot be pickled.
    """
    return Packed(job.token, bytes_of(job, job.question))


def bytes_of(value: Any, question: DerivativeRequest) -> bytes:
    """Pickle a value by cloudpickle. If parts of the request cannot be pickled, the error names them."""
    try:
        import cloudpickle
    except ImportError:
        raise ImportError(f"functions are sent to other processes by cloudpickle, which is not installed: {INSTALL}") from None

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        """Pickle class methods by name, and code with its file name.

        cloudpickle pickles `Function.apply` by value, as if it were a plain function. Since 3.1.3 it also drops the file name
        of code, and an error on a worker could no longer name the user's line.
        """

        def reducer_override(self, one: Any) -> Any:
            if isinstance(one, CodeType):
                make, parts = self.dispatch_table[CodeType](one)
                return code_with_filename, (make, parts, one.co_filename)
            if isinstance(one, MethodType) and isinstance(one.__self__, type) and getattr(one.__self__, one.__name__, 0) == one:
                return getattr, (one.__self__, one.__name__)
            return super().reducer_override(one)

    content = io.BytesIO()
    try:
        Pickler(content).dump(value)
        return content.getvalue()
    except Exception as error:  # the user's objects may raise anything when they are pickled
        culprits = _culprits(question, cloudpickle)
        raise TypeError(
            f"the function cannot be sent to the workers, and nothing was started: {culprits or 'it'} cannot be pickled "
            f"({type(error).__name__}: {error}). Create such objects inside the function, or give executor= a ThreadPoolExecutor"
        ) from error


def code_with_filename(make: Callable[..., CodeType], parts: tuple[Any, ...], filename: str) -> CodeType:
    """Rebuild a code object with the file name that it had when it was pickled."""
    return make(*parts).replace(co_filename=filename)


def _culprits(question: DerivativeRequest, cloudpickle: Any) -> str:
    """Return the names of the function's parts that cannot be pickled."""
    function = question.target
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    held: dict[str, Any] = {}
    if code is not None:
        for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                held[f"the closure variable {free} of {name}"] = cell.cell_contents
            except ValueError:  # not set yet
                continue
        held |= {
            f"the global {word} in {name}": function.__globals__[word] for word in code.co_names if word in function.__globals__
        }
        held |= {f"a default of {name}": one for one in function.__defaults__ or ()}
    else:
        held |= {f"{name}.{word}": one for word, one in getattr(function, "__dict__", {}).items()}
    names = []
    for said, value in held.items():
        try:
            cloudpickle.dumps(value)
        except Exception:  # noqa: BLE001  (as above)
            names.append(f"{said}, of type {type(value).__name__},")
    return " and ".join(names[:NAMED]) or f"the function {name}"

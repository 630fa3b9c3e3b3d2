"""The first step with a non-finite gradient or loss: its batch, random state and weights, and how to recompute it. If it is not
known how the loss is computed, the step is examined by its own graph."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.examine import examine
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import library_of
from gradlab.explore.markup import say
from gradlab.explore.names import names_in
from gradlab.explore.report import Bounds, Subject, differentiate, differentiate_from, explain, make_report
from gradlab.explore.sources import sources_of
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.saved_values import SavedReader
from gradlab.explore.trace.values import Value
from gradlab.explore.watch.layers import WatchedModel

ORIGIN_KINDS = ("nan-born", "inf-born", "nan-input")  # findings about the origin of a NaN or an infinity


@dataclass
class BadStep:
    """The first step with a non-finite gradient or loss.

    Attributes
    ----------
    step : int
        Counted from 1.
    what : str
        "gradient" or "loss", whichever was not finite.
    parameters : tuple of str
        The parameters whose gradients had NaN or infinities.
    weights_finite : bool
        Whether the weights were still finite.
    batch : tuple or None
        The arguments of `replay`.
    gradients : mapping of str to Value
        A summary of each parameter's gradient in that step: its norm, and how many elements are NaN or infinite.
    sweep : Report or None
        The results and gradients of each operation, if the loss was not finite before its `backward`, or a gradient was not. In
        a PyTorch sweep, only if an operation with a pole made it, and from that operation on.
    """

    step: int
    what: str
    parameters: tuple[str, ...]
    weights_finite: bool
    batch: tuple[Any, ...] | None = None
    state: Any = None
    weights: tuple[Any, ...] = ()
    gradients: Mapping[str, Value] = field(default_factory=dict)
    sweep: Any = None
    causes: tuple[Finding, ...] = ()  # the doctor's findings on that step, recomputed
    unseen: str = ""  # why it could not be recomputed


@dataclass
class SweepResult:
    """A summary of a sweep: the step, counted from 1, a report, the causes, and the gradient of each leaf."""

    step: int
    report: Any
    causes: tuple[Finding, ...]
    gradients: Mapping[str, Value]

    @property
    def bad_parameters(self) -> tuple[str, ...]:
        """The leaves whose gradient is not finite."""
        return tuple(name for name, value in self.gradients.items() if value.odd)


class Replay:
    """Storage of the current batch, and of everything needed to recompute the first bad step."""

    def __init__(self, target: WatchedModel, compute: Callable[..., Any] | None) -> None:
        self.target, self._compute = target, compute
        self.bad_step: BadStep | None = None
        self._batch: tuple[Any, ...] | None = None
        self._state: Any = None

    @property
    def can_compute(self) -> bool:
        """Return whether a function that computes the loss was given."""
        return self._compute is not None

    def compute(self, batch: tuple[Any, ...]) -> Any:
        """Compute the loss of a batch, and remember the batch until the next call."""
        if self._compute is None:
            raise RuntimeError(
                "w.loss(…) needs a function that computes the loss: gl.watch(…, replay=loss_of). Or use w.log(loss)."
            )
        self._batch, self._state = batch, random_state()
        loss = self._compute(*batch)
        if library_of(loss) is None or int(np.prod(tuple(loss.shape))) != 1:
            raise TypeError(
                f"replay(*batch) must return the loss, a tensor of one element, but returned {type(loss).__name__}: {loss!r:.80}."
            )
        return loss

    def keep(self, step: int, what: str) -> None:
        """Keep this step if an element is not finite. A norm alone may be infinite because the squares overflow."""
        library, params = self.target.library, self.target.params
        gradients = [(name, p.grad) for name, p in zip(self.target.names, params, strict=True) if p.grad is not None]
        values = library.values([g for _, g in gradients])
        bad = tuple(name for (name, _), value in zip(gradients, values, strict=True) if value.odd)
        if what == "gradient" and not bad:
            return
        finite = not any(value.odd for value in library.values(list(params)))
        by_name = {name: value for (name, _), value in zip(gradients, values, strict=True)}
        self.bad_step = BadStep(step + 1, what, bad, finite, gradients=by_name)
        if self._batch is not None and finite:
            self.bad_step.batch, self.bad_step.state = self._batch, self._state
            self.bad_step.weights = tuple(np.array(library.array(p)) for p in params)
            try:
                self.bad_step.causes = tuple(one for one in self.report().findings if one.kind in ORIGIN_KINDS)
            except Exception as error:  # noqa: BLE001  (the user's own function, a second time: the training must go on)
                self.bad_step.unseen = f"{type(error).__name__}: {error}"

    def complete(self, bad: Sequence[int]) -> None:
        """Set all parameters with non-finite gradients, once the gradients are complete."""
        assert self.bad_step is not None
        names = [name for i, name in enumerate(self.target.names) if i in bad or name in self.bad_step.parameters]
        self.bad_step.parameters = tuple(names)
        self.bad_step.gradients = {
            name: value for name, value in self.bad_step.gradients.items() if value.odd or name not in names
        }

    def keep_loss(self, step: int, loss: Any) -> None:
        """Keep a step whose loss is not finite, with the result of a sweep through its graph, before its `backward`."""
        finite = not any(value.odd for value in self.target.library.values(list(self.target.params)))
        self.bad_step = BadStep(step + 1, "loss", (), finite)
        result = self.sweep(step, loss)
        if result is not None:
            self.bad_step.gradients, self.bad_step.causes, self.bad_step.sweep = result.gradients, result.causes, result.report
            self.bad_step.parameters = result.bad_parameters

    def sweep(self, step: int, loss: Any, seed: Any = None) -> SweepResult | None:
        """Sweep through the graph of a loss, without writing `.grad`. Return None if the graph has no leaf.

        `seed` is the tensor that the sweep starts with. Default: 1."""
        subject = Subject(self.target.library, self.target.library.node(loss), tuple(loss.shape), "", loss)
        return self._sweep(step, subject, "before it updated the weights", seed, None)

    def sweep_from(self, step: int, node: Any, cotangents: Sequence[Any]) -> SweepResult | None:
        """Sweep from a node on, with these cotangents of its outputs."""
        subject = Subject(self.target.library, node, tuple(next(g for g in cotangents if g is not None).shape), "")
        when = "from the first operation with a non-finite result; the operations between it and the loss had been freed"
        return self._sweep(step, subject, when, None, cotangents)

    def _sweep(self, step: int, subject: Subject, when: str, seed: Any, cotangents: Sequence[Any] | None) -> SweepResult | None:
        names = dict(zip(self.target.names, self.target.params, strict=True))
        sources, reader = sources_of(subject.library, [subject.root], names), SavedReader(dict, called=names)
        if cotangents is None:
            trace = differentiate(subject, sources, seed, names, reader)
        else:
            trace = differentiate_from(subject, sources, cotangents, reader)
        if trace is None:
            return None
        diagnosis = examine(Case(trace, {}))
        report = make_report(
            subject,
            sources,
            say(f"Step {step + 1} of the run, {when}."),
            trace=trace,
            names=names,
            by_hand="",
            bounds=Bounds(),
            findings=diagnosis.findings,
            remarks=diagnosis.remarks,
        )
        gradients = {leaf.name: leaf.arrived for leaf in trace.leaves if leaf.arrived is not None}
        return SweepResult(step + 1, report, tuple(one for one in diagnosis.findings if one.kind in ORIGIN_KINDS), gradients)

    def release_batch(self) -> None:
        """Release the current batch."""
        self._batch = self._state = None

    def report(self) -> Any:
        """Recompute the step, and return a report."""
        if self.bad_step is None:
            raise RuntimeError("there is nothing to replay: all measured gradients and losses are finite.")
        if self.bad_step.batch is None or self._compute is None:
            why = "its weights were already not finite" if not self.bad_step.weights_finite else "its batch was not kept"
            raise RuntimeError(
                f"step {self.bad_step.step} cannot be replayed: {why}. Pass a function that computes the loss of a batch, "
                "gl.watch(…, replay=loss_of), and compute the loss with w.loss(*batch)."
            )
        with self.restored_state():
            return report_on(self._compute, self.bad_step.batch)

    @contextmanager
    def restored_state(self) -> Iterator[None]:
        """Restore the weights and the random state of that step inside a `with` block."""
        assert self.bad_step is not None
        library, params = self.target.library, self.target.params
        now, state = [np.array(library.array(p)) for p in params], random_state()
        try:
            for p, old in zip(params, self.bad_step.weights, strict=True):
                p.data = library.tensor(old, p)
            set_random_state(self.bad_step.state)
            yield
        finally:
            for p, old in zip(params, now, strict=True):
                p.data = library.tensor(old, p)
            set_random_state(state)


def report_on(compute: Callable[..., Any], batch: tuple[Any, ...]) -> Any:
    """Compute a loss under a recorder, and return a report with its lines. No `.grad` is written."""
    inner = inspect.unwrap(compute)
    space = {**getattr(inner, "__globals__", {}), **_closure_names(inner)}
    recorder = Recorder(lambda: space)
    recorder.examines_every_sweep = True
    try:
        recorder.meet_libraries()
        loss = compute(*batch)
        recorder.close()
        report = explain(loss, names=names_in(space))
        diagnosis = examine(Case(report.trace, space))
        return replace(report, findings=diagnosis.findings, remarks=diagnosis.remarks)
    finally:
        recorder.close()
        recorder.forget()


def _closure_names(function: Any) -> dict[str, Any]:
    """Return the names that a function takes from the functions around it."""
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except (TypeError, ValueError):  # not a Python function
        return {}


def random_state() -> dict[str, Any]:
    """Return the states of the random number generators that a step may use."""
    states: dict[str, Any] = {"random": random.getstate(), "numpy": np.random.get_state()}  # noqa: NPY002  (the user's own)
    if (gradlab := sys.modules.get("gradlab.random")) is not None:
        states["gradlab"] = gradlab.get_rng_state()
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_random_state(state: dict[str, Any]) -> None:
    """Set the states of the random number generators."""
    random.setstate(state["random"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    if "gradlab" in state:
        sys.modules["gradlab.random"].set_rng_state(state["gradlab"])
    if "torch" in state:
        sys.modules["torch"].set_rng_state(state["torch"])
    if "cuda" in state:
        sys.modules["torch"].cuda.set_rng_state_all(state["cuda"])

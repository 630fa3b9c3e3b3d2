"""The step at which a number was not finite for the first time: its batch, random state and weights, and the way back to it; or,
where nobody said how a loss is computed, what its own graph tells."""

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

BIRTHS = ("nan-born", "inf-born", "nan-input")  # the doctor's kinds


@dataclass
class KeptStep:
    """What is kept of that step.

    Attributes
    ----------
    step : int
        Counted from 1.
    what : str
        "gradient" or "loss": what was not finite.
    spoilt : tuple of str
        The parameters whose gradients had NaN or infinities.
    intact : bool
        Whether the weights were still finite.
    batch : tuple or None
        What `replay` was given.
    gradients : mapping of str to Value
        What is remembered of each parameter's gradient in that step: its norm, how many elements are NaN or infinite. It has the
        step's gradients where they were seen before the next sweep.
    sweep : Report or None
        What each operation computed and handed on, in numbers: where the loss was not finite before its `backward`, and where
        a gradient was not (of PyTorch's sweeps, if an operation with a pole made it, and from that one on).
    """

    step: int
    what: str
    spoilt: tuple[str, ...]
    intact: bool
    batch: tuple[Any, ...] | None = None
    state: Any = None
    weights: tuple[Any, ...] = ()
    gradients: Mapping[str, Value] = field(default_factory=dict)
    sweep: Any = None
    causes: tuple[Finding, ...] = ()  # what the doctor finds in that step, run again
    unseen: str = ""  # why it could not be looked at


@dataclass
class Look:
    """What was seen of a sweep, in numbers: the step, counted from 1, and what arrived at each leaf."""

    step: int
    report: Any
    causes: tuple[Finding, ...]
    gradients: Mapping[str, Value]

    @property
    def spoilt(self) -> tuple[str, ...]:
        """The leaves at which something arrived that is not finite."""
        return tuple(name for name, value in self.gradients.items() if value.odd)


class Replay:
    """Keeps the batch of the step that runs, and of the first bad one all that it takes to run it again."""

    def __init__(self, of: WatchedModel, compute: Callable[..., Any] | None) -> None:
        self.of, self._compute = of, compute
        self.kept: KeptStep | None = None
        self._batch: tuple[Any, ...] | None = None
        self._state: Any = None

    @property
    def computes(self) -> bool:
        """Whether it was said how a loss is computed."""
        return self._compute is not None

    def compute(self, batch: tuple[Any, ...]) -> Any:
        """The loss of a batch, which is remembered until the next."""
        if self._compute is None:
            raise RuntimeError("w.loss(…) computes what `replay` says: give it, gl.watch(…, replay=loss_of), or use w.log(loss).")
        self._batch, self._state = batch, random_state()
        loss = self._compute(*batch)
        if library_of(loss) is None or int(np.prod(tuple(loss.shape))) != 1:
            raise TypeError(
                f"replay(*batch) returns the loss, a tensor of one element, and returned {type(loss).__name__}: {loss!r:.80}."
            )
        return loss

    def keep(self, step: int, what: str) -> None:
        """A number is not finite: keep this step if it is so when looked at closely: the square of a large norm overflows."""
        library, params = self.of.library, self.of.params
        of = [(name, p.grad) for name, p in zip(self.of.names, params, strict=True) if p.grad is not None]
        values = library.values([g for _, g in of])
        spoilt = tuple(name for (name, _), value in zip(of, values, strict=True) if value.odd)
        if what == "gradient" and not spoilt:
            return
        intact = not any(value.odd for value in library.values(list(params)))
        by_name = {name: value for (name, _), value in zip(of, values, strict=True)}
        self.kept = KeptStep(step + 1, what, spoilt, intact, gradients=by_name)
        if self._batch is not None and intact:
            self.kept.batch, self.kept.state = self._batch, self._state
            self.kept.weights = tuple(np.array(library.array(p)) for p in params)
            try:
                self.kept.causes = tuple(one for one in self.report().findings if one.kind in BIRTHS)
            except Exception as error:  # noqa: BLE001  (the user's own function, a second time: the training must go on)
                self.kept.unseen = f"{type(error).__name__}: {error}"

    def complete(self, odd: Sequence[int]) -> None:
        """All the parameters with gradients that are not finite, once they have arrived."""
        assert self.kept is not None
        spoilt = [name for i, name in enumerate(self.of.names) if i in odd or name in self.kept.spoilt]
        self.kept.spoilt = tuple(spoilt)
        self.kept.gradients = {name: value for name, value in self.kept.gradients.items() if value.odd or name not in spoilt}

    def keep_loss(self, step: int, loss: Any) -> None:
        """A loss is not finite, and its `backward` is yet to come: keep what a sweep through its graph finds."""
        intact = not any(value.odd for value in self.of.library.values(list(self.of.params)))
        self.kept = KeptStep(step + 1, "loss", (), intact)
        look = self.look(step, loss)
        if look is not None:
            self.kept.gradients, self.kept.causes, self.kept.sweep = look.gradients, look.causes, look.report
            self.kept.spoilt = look.spoilt

    def look(self, step: int, loss: Any, seed: Any = None) -> Look | None:
        """What a sweep through the graph of a loss finds; none is written to `.grad`. None if the graph has no leaf.

        `seed`: the tensor that it begins with, if that is not 1."""
        subject = Subject(self.of.library, self.of.library.node(loss), tuple(loss.shape), "", loss)
        return self._look(step, subject, "before it moved the weights", seed, None)

    def look_from(self, step: int, node: Any, cotangents: Sequence[Any]) -> Look | None:
        """What a sweep from a node on finds, which has got these cotangents of its outputs."""
        subject = Subject(self.of.library, node, tuple(next(g for g in cotangents if g is not None).shape), "")
        deed = "from where the first number was not finite; the operations between there and the loss were freed by then"
        return self._look(step, subject, deed, None, cotangents)

    def _look(self, step: int, subject: Subject, when: str, seed: Any, cotangents: Sequence[Any] | None) -> Look | None:
        names = dict(zip(self.of.names, self.of.params, strict=True))
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
        return Look(step + 1, report, tuple(one for one in diagnosis.findings if one.kind in BIRTHS), gradients)

    def let_go(self) -> None:
        """Of the batch of the step that runs."""
        self._batch = self._state = None

    def report(self) -> Any:
        """The step again, as a report."""
        if self.kept is None:
            raise RuntimeError("there is nothing to replay: every gradient and every loss that was looked at is finite.")
        if self.kept.batch is None or self._compute is None:
            why = "its weights were not finite any more" if not self.kept.intact else "its batch was not kept"
            raise RuntimeError(
                f"step {self.kept.step} cannot be replayed: {why}. Give a callable that computes the loss of a batch, "
                "gl.watch(…, replay=loss_of), and compute the loss by w.loss(*batch)."
            )
        with self.then():
            return recorded(self._compute, self.kept.batch)

    @contextmanager
    def then(self) -> Iterator[None]:
        """The weights and the random state of that step, while the block runs."""
        assert self.kept is not None
        library, params = self.of.library, self.of.params
        now, state = [np.array(library.array(p)) for p in params], random_state()
        try:
            for p, old in zip(params, self.kept.weights, strict=True):
                p.data = library.tensor(old, p)
            restore(self.kept.state)
            yield
        finally:
            for p, old in zip(params, now, strict=True):
                p.data = library.tensor(old, p)
            restore(state)


def recorded(compute: Callable[..., Any], batch: tuple[Any, ...]) -> Any:
    """The report of a loss that is computed under a recorder, with its lines. No `.grad` is written."""
    inner = inspect.unwrap(compute)
    space = {**getattr(inner, "__globals__", {}), **_closed_over(inner)}
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


def _closed_over(function: Any) -> dict[str, Any]:
    """The names that a function takes from the functions around it."""
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except (TypeError, ValueError):  # no function of Python's
        return {}


def random_state() -> dict[str, Any]:
    """The states of the generators that a step may draw from."""
    states: dict[str, Any] = {"random": random.getstate(), "numpy": np.random.get_state()}  # noqa: NPY002  (the user's own)
    if (gradlab := sys.modules.get("gradlab.random")) is not None:
        states["gradlab"] = gradlab.get_rng_state()
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def restore(state: dict[str, Any]) -> None:
    """Put them back."""
    random.setstate(state["random"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    if "gradlab" in state:
        sys.modules["gradlab.random"].set_rng_state(state["gradlab"])
    if "torch" in state:
        sys.modules["torch"].set_rng_state(state["torch"])
    if "cuda" in state:
        sys.modules["torch"].cuda.set_rng_state_all(state["cuda"])

"""The step at which a number was not finite for the first time: its batch, random state and weights, and the way back to it; or,
where nobody said how a loss is computed, what its own graph tells."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradlab.explore.doctor.case import Case
from gradlab.explore.doctor.examine import examine
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries import library_of
from gradlab.explore.markup import say
from gradlab.explore.names import names_in
from gradlab.explore.report import Bounds, Subject, differentiate, explain, make_report
from gradlab.explore.sources import sources_of
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.saved_values import SavedReader
from gradlab.explore.trace.values import Value
from gradlab.explore.watch.layers import Watched

BIRTHS = ("nan-born", "inf-born", "nan-input")  # the doctor's kinds


@dataclass
class Kept:
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
        Where the loss was not finite before its `backward`: what each operation computed and handed on, in numbers.
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


class Replay:
    """Keeps the batch of the step that runs, and of the first bad one all that it takes to run it again."""

    def __init__(self, of: Watched, compute: Callable[..., Any] | None) -> None:
        self.of, self._compute = of, compute
        self.kept: Kept | None = None
        self._batch: tuple[Any, ...] | None = None
        self._state: Any = None

    def compute(self, batch: tuple[Any, ...]) -> Any:
        """The loss of a batch, which is remembered until the next."""
        if self._compute is None:
            raise RuntimeError("w.loss(…) computes what `replay` says: give it, gl.watch(…, replay=loss_of), or use w.log(loss).")
        self._batch, self._state = batch, random_state()
        made = self._compute(*batch)
        if library_of(made) is None or int(np.prod(tuple(made.shape))) != 1:
            raise TypeError(
                f"replay(*batch) returns the loss, a tensor of one element, and returned {type(made).__name__}: {made!r:.80}."
            )
        return made

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
        self.kept = Kept(step + 1, what, spoilt, intact, gradients=by_name)
        if self._batch is not None and intact:
            self.kept.batch, self.kept.state = self._batch, self._state
            self.kept.weights = tuple(np.array(library.array(p)) for p in params)
            try:
                self.kept.causes = tuple(one for one in self.report().findings if one.kind in BIRTHS)
            except Exception as error:  # noqa: BLE001  (the user's own function, a second time: the training must go on)
                self.kept.unseen = f"{type(error).__name__}: {error}"

    def keep_loss(self, step: int, loss: Any) -> None:
        """A loss is not finite, and its `backward` is yet to come: keep what a sweep through its graph finds."""
        library, params = self.of.library, self.of.params
        intact = not any(value.odd for value in library.values(list(params)))
        self.kept = Kept(step + 1, "loss", (), intact)
        names = dict(zip(self.of.names, params, strict=True))
        subject = Subject(library, library.node(loss), tuple(loss.shape), "", loss)
        sources = sources_of(library, [subject.root], names)
        trace = differentiate(subject, sources, None, names, SavedReader(dict, called=names))
        if trace is None:
            return
        found = examine(Case(trace, {}))
        self.kept.gradients = {leaf.name: leaf.arrived for leaf in trace.leaves if leaf.arrived is not None}
        self.kept.spoilt = tuple(name for name, value in self.kept.gradients.items() if value.odd)
        self.kept.causes = tuple(one for one in found.findings if one.kind in BIRTHS)
        self.kept.sweep = make_report(
            subject,
            sources,
            say(f"Step {step + 1} of the run, before it moved the weights."),
            trace=trace,
            names=names,
            by_hand="",
            bounds=Bounds(),
            findings=found.findings,
            remarks=found.remarks,
        )

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
    recorder.unhurried = True
    try:
        recorder.meet_libraries()
        made = compute(*batch)
        recorder.close()
        report = explain(made, names=names_in(space))
        found = examine(Case(report.trace, space))
        return replace(report, findings=found.findings, remarks=found.remarks)
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
    found: dict[str, Any] = {"random": random.getstate(), "numpy": np.random.get_state()}  # noqa: NPY002  (the user's own)
    if (gradlab := sys.modules.get("gradlab.random")) is not None:
        found["gradlab"] = gradlab.get_rng_state()
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_rng_state"):
        found["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            found["cuda"] = torch.cuda.get_rng_state_all()
    return found


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

"""What a check holds in its hands: the student's namespace, a source of random numbers, and the means to say what it found.

Nothing of the student's is changed by a check: functions are called on tensors that the check made, and what a call leaves
behind in the library's modes or random numbers is put back. An exception in the student's code ends the exercise with a
finding that quotes it; what was earned before stays earned.
"""
from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradlab.backend.streams import go_on_from, states
from gradlab.core.modes import mode
from gradlab.core.watching import Sweep, Watcher, watching
from gradlab.homework.diagnosis import diagnosis
from gradlab.homework.reading import NoSource, forbidden_uses, function_globals
from gradlab.homework.verdicts import Finding, Verdict, compared, described


class Stopped(Exception):  # noqa: N818  (the way out of an exercise, not an error)
    """An exercise cannot go on; what there is to say has been said."""


@dataclass
class Sweeps(Watcher):
    """How many sweeps a piece of code has made: by `backward`, and by `autograd.grad` and its like."""

    backward: int = 0
    grad: int = 0
    batched: int = 0

    def begin(self, sweep: Sweep) -> None:
        """A sweep starts."""
        if sweep.accumulates:
            self.backward += 1
        else:
            self.grad += 1
        self.batched += bool(sweep.lead)


class Student:
    """A student's work, as the checks of one exercise see it.

    Parameters
    ----------
    namespace : dict
        The notebook's variables.
    verdict : Verdict
        Where findings go.
    seed : int
        Of `random`, from which a check draws shapes and numbers: another seed, another test of the same thing.
    """

    def __init__(self, namespace: dict[str, Any], verdict: Verdict, seed: int) -> None:
        self.namespace, self.verdict = namespace, verdict
        self.random = np.random.default_rng(seed)

    # ------------------------------------------------------------------------------------------------------ saying
    def check(self, points: float, what: str, good: Any, otherwise: str, hint: str = "", words: str = "right") -> bool:
        """Note whether something holds; `otherwise` and `hint` are said if it does not."""
        self._note(Finding(what, bool(good), words if good else otherwise, hint, points))
        return bool(good)

    def close(self, points: float, what: str, got: Any, expected: Any, tolerance: float = 1e-5, hint: str = "") -> bool:
        """Note whether `got` (a tensor, an array, a number, or lists of these) is `expected`, to within `tolerance` of the
        largest entry. What the numbers say about a mistake goes before `hint`."""
        expected = np.asarray(expected)
        good, words = compared(got, expected, tolerance)
        self._note(Finding(what, good, words, "" if good else diagnosis(got, expected) or hint, points))
        return good

    def stop(self, what: str, words: str, hint: str = "") -> Stopped:
        """Note what keeps the exercise from going on. Raise what it returns."""
        self._note(Finding(what, False, words, hint))
        return Stopped()

    def _note(self, finding: Finding) -> None:
        """A hint is given once, and only where something is wrong."""
        given = finding.good or any(finding.hint == one.hint for one in self.verdict.findings)
        self.verdict.findings.append(replace(finding, hint="") if given else finding)

    # ------------------------------------------------------------------------------------------------------ looking
    def value(self, name: str) -> Any:
        """The value of a variable of the notebook."""
        if name not in self.namespace:
            raise self.stop(f"`{name}`", "there is no such name in the notebook yet",
                            "run the cell that makes it, and mind the spelling.")
        return self.namespace[name]

    def function(self, name: str, forbidden: tuple[str, ...] = ()) -> Callable[..., Any]:
        """A function of the notebook, to be called with tensors of the check's own.

        `forbidden` names functions that it must not use; if it does, the exercise ends."""
        function = self.value(name)
        if not callable(function):
            raise self.stop(f"`{name}`", f"a function was expected; it is {described(function)}",
                            "a later cell has given the name to something else.")
        if forbidden:
            self._read(name, function, forbidden)
        return lambda *args, **kwargs: self.call(name, function, *args, **kwargs)

    def _read(self, name: str, function: Callable[..., Any], forbidden: tuple[str, ...]) -> None:
        own = getattr(function, "__name__", "")
        if own in forbidden or function_globals(function) is not self.namespace:
            raise self.stop(f"`{name}`", "it is not a function written in this notebook",
                            f"write it with `def {name}(…):` in a cell.")
        try:
            uses = forbidden_uses(function, forbidden, self.namespace)
        except NoSource as unreadable:
            raise self.stop(f"`{unreadable}`", "its text cannot be read",
                            f"write it with `def {name}(…):` in a cell, and run that cell.") from None
        if uses:
            used, line, text = uses[0]
            raise self.stop(f"`{name}`", f"it uses `{used}` (line {line} of its cell: `{text}`), which this exercise is there to "
                            "replace", "the task says what to build it from.")

    def call(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the student's code; an exception of it ends the exercise and is quoted."""
        before, state = mode.grad, states()
        try:
            return function(*args, **kwargs)
        except NotImplementedError as error:
            raise self.stop(f"`{name}`", f"raised NotImplementedError: {error}" if error.args else "not written yet") from None
        except Exception as error:  # noqa: BLE001  (a student's code may raise anything; it is quoted)
            words = f"raised {type(error).__name__}: {_short(str(error))}"
            raise self.stop(f"`{name}`", words, _where(error, function)) from None
        finally:
            mode.grad = before
            go_on_from(state)

    @contextmanager
    def counted(self) -> Iterator[Sweeps]:
        """Count the reverse sweeps inside the block."""
        sweeps = Sweeps()
        with watching(sweeps):
            yield sweeps


def _short(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[:most] + " …"


def _where(error: BaseException, function: Callable[..., Any]) -> str:
    """The last line of the student's own code that the exception passed through."""
    code = getattr(function, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    return f"line {own[-1].lineno} of its cell: `{own[-1].line}`" if own and own[-1].line else ""

"""What a check holds in its hands: the student's functions, a source of random numbers, and the means to say what it found.

A check calls `student.function(name)` on functions and tensors of its own, and judges plain data that comes back. Where the
student's code runs is not its business: in the same kernel (`%check`), or in another process. What it expects it knows before
the call. An exception in the student's code ends the exercise with a finding that quotes it; what was earned before stays earned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gradlab.core.tensor import Tensor
from gradlab.homework import ways
from gradlab.homework.calling import REFERENCES, perform, unplain
from gradlab.homework.diagnosis import diagnosis
from gradlab.homework.excerpts import abbreviate
from gradlab.homework.forbidden import codes_of
from gradlab.homework.likeness import Likeness, on_tensors
from gradlab.homework.probes import Probe
from gradlab.homework.programs import Program
from gradlab.homework.time_limits import Purse
from gradlab.homework.verdicts import CheckItem, Verdict, compared

SECONDS = 10  # for an exercise
MOST_WORDS, MOST_CODE = 2000, 200  # characters that are shown of a text and of a line of code


class Stopped(Exception):  # noqa: N818  (the way out of an exercise, not an error)
    """An exercise cannot go on; what there is to say has been said."""


class Work(Protocol):
    """Where the student's code is."""

    def call(self, request: dict[str, Any], probes: list[Probe]) -> dict[str, Any]:
        """Perform a request (see `homework.calling`): what came of it."""


class Here:
    """In this process: a notebook's variables."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace

    def call(self, request: dict[str, Any], probes: list[Probe]) -> dict[str, Any]:
        """Perform a request."""
        return perform(self.namespace, request, lambda number, what, arrays: probes[number].answer(what, arrays))


class Nowhere:
    """No code: it notes what a student's functions would have been given, for `case`."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    def call(self, request: dict[str, Any], probes: list[Probe]) -> dict[str, Any]:
        """Say that nothing came back."""
        return {"end": "value", "value": {"none": True}, "changed": []}


@dataclass(frozen=True)
class Answer:
    """What came of a call: the value, and what was done with the function that it was given."""

    value: Any  # tensor, array, number, text, None, lists and dicts of these, or an Other
    uses: Probe  # of the first function among the arguments
    changed: str  # what has become of the tensors handed out, in words; or nothing
    at: np.ndarray  # f(x)
    case: str


class Student:
    """A student's work, as the checks of one exercise see it.

    Parameters
    ----------
    work : Work
        Where the student's functions are.
    verdict : Verdict
        Where findings go.
    seed : int
        Of `random`, from which a check draws shapes and numbers: another seed, another test of the same thing. What is drawn must
        not depend on what came back.
    purse : Purse, optional
        The seconds for all calls.

    Examples
    --------
    >>> from gradlab.homework import Homework
    >>> homework = Homework("A first gradient")
    >>> @homework.exercise(1, "The gradient", points=10)
    ... def gradient(student):
    ...     student.close(10, "of a square", student.function("gradient")(3.0), 6.0)
    >>> homework.check(1, {"gradient": lambda x: 2 * x}).points
    10
    """

    def __init__(self, work: Work, verdict: Verdict, seed: int, purse: Purse | None = None) -> None:
        self.work, self.verdict = work, verdict
        self.random = np.random.default_rng(seed)
        self._purse = Purse(SECONDS, SECONDS, 0.1) if purse is None else purse
        self._calls = 0
        self._case = ""  # of the last call

    # ------------------------------------------------------------------------------------------------------ saying
    def check(
        self,
        points: float,
        what: str,
        good: Any,
        otherwise: str,
        hint: str = "",
        words: str = "right",
        case: str | None = None,
    ) -> bool:
        """Note whether something holds; `otherwise` and `hint` are said if it does not. The case is that of the last call,
        unless another is named."""
        self._note(CheckItem(what, bool(good), words if good else otherwise, hint, points, self._case if case is None else case))
        return bool(good)

    def close(
        self,
        points: float,
        what: str,
        got: Any,
        expected: Any,
        tolerance: float = 1e-5,
        hint: str = "",
        but: str = "",
        says: Callable[[Any, np.ndarray, np.ndarray | None], str] = diagnosis,
    ) -> bool:
        """Note whether `got` (an `Answer`, a tensor or an array) is `expected`, to within `tolerance` of the largest entry.
        What the numbers say about a mistake (`says`, of a Jacobian unless another is given) goes before `hint`; `but` says why
        right numbers do not count. Returns whether they are right."""
        expected, value, case = np.asarray(expected), None, self._case
        if isinstance(got, Answer):
            got, value, case = got.value, got.at, got.case
        good, words = compared(got, expected, tolerance)
        if good and but:
            self._note(CheckItem(what, False, f"the numbers are right, but {but}", hint, points, case))
        else:
            self._note(CheckItem(what, good, words, "" if good else says(got, expected, value) or hint, points, case))
        return good

    def stop(self, what: str, words: str, hint: str = "", case: str = "") -> Stopped:
        """Note what keeps the exercise from going on. Raise what it returns."""
        self._note(CheckItem(what, False, words, hint, 0, case))
        return Stopped()

    def _note(self, finding: CheckItem) -> None:
        """A hint is given once, and so is a case, and only where something is wrong."""
        before = self.verdict.findings
        self.verdict.findings.append(
            replace(
                finding,
                hint="" if finding.good or any(finding.hint == one.hint for one in before) else finding.hint,
                case="" if finding.good or any(finding.case == one.case for one in before) else finding.case,
            )
        )

    # ------------------------------------------------------------------------------------------------------ looking
    def function(
        self,
        name: str,
        forbidden: tuple[str, ...] = (),
        given: Mapping[str, str] | None = None,
        way: str = "",
        late: str = "is there a loop that never ends?",
        names: Sequence[str] = (),
    ) -> Callable[..., Answer]:
        """A function of the notebook, to be called with functions and tensors of the check's own.

        Parameters
        ----------
        forbidden : tuple of str
            Paths of functions or modules of the library ("gradlab.func.jacrev") that it must not call: if it does, the exercise
            ends. They are recognised as objects, by whatever name they are called.
        given : mapping, optional
            Functions of the notebook that are replaced by the library's own meanwhile, so that a slip in an earlier exercise
            is paid once: {"jacobian_by_rows": "rows", "jacobian_by_columns": "columns"}.
        way : str, optional
            A module of `homework.ways`, which says how it is used where calling it on the arguments is not enough. These may
            then be plain data as well.
        late : str
            What to look at next where it does not end in time.
        names : sequence of str, optional
            What a verdict calls the arguments where it names the case. By default f, x, V, …; or as the way says.
        """
        given = dict(given or {})
        for path in forbidden:
            codes_of(path)  # a path that is wrong is the check's mistake
        if unknown := set(given.values()) - set(REFERENCES):
            raise ValueError(f"given={given!r}: there are {sorted(REFERENCES)}, not {sorted(unknown)}.")
        if way:
            ways.named(way)
        return lambda *args: self._call(name, args, forbidden, given, way, late, names)

    def like_gradlab(
        self,
        program: str,
        inputs: Mapping[str, Any],
        calls: Sequence[tuple[str, Any]] = (),
        name: str = "Value",
        forbidden: tuple[str, ...] = ("gradlab.*", "torch.*"),
        given: Mapping[str, str] | None = None,
        late: str = "is there a loop that never ends?",
    ) -> Likeness:
        """A program (see `homework.programs`) run on values of the student's and on tensors, and `backward` called on both.

        Parameters
        ----------
        program : str
            Its lines.
        inputs : mapping of str to array
            Of all of them the gradients are wanted.
        calls : sequence of (name, gradient)
            The calls of `backward`, in order; a gradient of None is none. By default one, on the last line's value.
        name : str
            Of the student's class.
        forbidden, given, late
            As for `function`.
        """
        calls = list(calls) or [(Program(program).names[-1], None)]
        ours = on_tensors(program, inputs, calls)
        run = self.function(name, forbidden=forbidden, given=given, way="engine", late=late)
        answer = run("run", program, dict(inputs), [list(call) for call in calls])
        return Likeness(program, ours, answer.value if isinstance(answer.value, dict) else {})

    def value(self, name: str) -> Any:
        """A variable of the notebook: numbers, text, tensors, lists and dicts of these."""
        if isinstance(self.work, Nowhere):
            return None
        outcome = self.work.call({"name": name, "args": [], "way": "value", "forbidden": [], "given": {}, "seconds": 1}, [])
        if outcome.get("end") != "value":
            raise self._ended(name, str(outcome.get("end")), outcome, 1)
        return self._read(name, outcome["value"])

    def _read(self, name: str, value: Any) -> Any:
        try:
            return unplain(value)
        except (ValueError, KeyError, RecursionError):
            raise self.stop(f"`{name}`", "what came back cannot be read") from None

    def _call(
        self,
        name: str,
        args: tuple[Any, ...],
        forbidden: tuple[str, ...],
        given: dict[str, str],
        way: str,
        late: str,
        called: Sequence[str] = (),
    ) -> Answer:
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        function = next((i for i, arg in enumerate(args) if callable(arg)), 0)
        behind = [arg for arg in args[function:] if isinstance(arg, Tensor)] or tensors
        at = np.array(behind[0].detach().array) if behind else None
        probes = [Probe(arg, at) for arg in args if callable(arg)]
        numbers = iter(range(len(probes)))
        sent = [{"f": next(numbers)} if callable(arg) else _sent(arg) for arg in args]
        self._calls += 1
        shown = ways.shown(way, args) if way else args
        names = list(called) or (list(shown) if isinstance(shown, dict) else _names(shown))
        self._case = f"{', '.join(names)} = case({self.verdict.number}, {self._calls})"
        if isinstance(self.work, Nowhere):
            self.work.given.append(tuple(shown.values()) if isinstance(shown, dict) else shown)
        seconds = self._purse.seconds()
        request = {"name": name, "args": sent, "way": way, "forbidden": list(forbidden), "given": given, "seconds": seconds}
        with self._purse.spending():
            outcome = self.work.call(request, probes)
        end = outcome.get("end")
        if end == "value":
            value = self._read(name, outcome["value"])
            told = outcome.get("changed")
            changed = ", ".join(abbreviate(str(one), MOST_CODE) for one in told) if isinstance(told, list) else ""
            first = probes[0] if probes else Probe(lambda x: x)
            y = first.function(behind[0].detach()) if probes and behind else None
            return Answer(value, first, changed, np.array(y.array) if isinstance(y, Tensor) else np.empty(0), self._case)
        raise self._ended(name, str(end), outcome, seconds, late)

    def _ended(self, name: str, end: str, outcome: dict[str, Any], seconds: float, late: str = "") -> Stopped:
        """Why there is no value, noted."""
        what, words = f"`{name}`", str(outcome.get("words", ""))
        short = abbreviate(words, MOST_WORDS)
        if end == "missing":
            return self.stop(
                what,
                "there is no such name in the notebook yet",
                "run the cell that makes it, to its end, and mind the spelling.",
            )
        if end == "no function":
            return self.stop(
                what, f"a function was expected; it is {short}", "a later cell has given the name to something else."
            )
        if end == "borrowed":
            path, line, text = (*outcome.get("used", []), "", 0, "")[:3]
            where = f" (line {line} of its cell: `{abbreviate(str(text), MOST_CODE)}`)" if line and text else ""
            return self.stop(
                what,
                f"it uses `{abbreviate(str(path), MOST_CODE)}`{where}, which this exercise is there to replace",
                "the task says what to build it from.",
            )
        if end == "time":
            return self.stop(what, f"did not end within {seconds:.0f} s", late, self._case)
        if end == "unwritten":
            if outcome.get("stands") in ("above", "below"):
                return self.stop(
                    what,
                    f"the line `raise NotImplementedError()` still stands {outcome['stands']} your code",
                    "take that line out, and run the cell again.",
                )
            inner = abbreviate(str(outcome.get("in", "")), MOST_CODE)
            unwritten = f"`{inner}` is not written yet" if inner.isidentifier() and inner != name else "not written yet"
            return self.stop(what, f"raised NotImplementedError: {short}" if words else unwritten)
        if end == "raised":
            return self.stop(what, f"raised {short}", abbreviate(str(outcome.get("line", "")), 2 * MOST_CODE), self._case)
        if end == "gone":
            return self.stop(what, short)
        return self.stop(what, "what came back cannot be read")


def _sent(x: Any) -> dict[str, Any]:
    if not isinstance(x, Tensor):
        return {"data": x}
    return {
        "tensor": np.array(x.detach().array),
        "requires_grad": x.requires_grad,
        "grad": None if x.grad is None else np.array(x.grad.array),
    }


def _names(args: tuple[Any, ...]) -> list[str]:
    """What a case's parts are called: the first function f, the first tensor behind it x, the next V; a tensor before it J."""
    functions, tensors, matrices, others = iter("fgh"), iter("xVuw"), iter("JKLM"), iter("abcd")
    function = next((i for i, arg in enumerate(args) if callable(arg)), 0)
    return [
        next(tensors if i >= function else matrices)
        if isinstance(arg, Tensor)
        else next(functions)
        if callable(arg)
        else next(others)
        for i, arg in enumerate(args)
    ]

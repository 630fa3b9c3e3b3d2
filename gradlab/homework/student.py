"""The object that a check receives: the student's functions, random numbers, and methods to record findings.

A check calls `student.function(name)` with its own functions and tensors, and compares the plain data that it returns. The
student's code runs in the same kernel (`%check`) or in another process: the check is the same. It computes its expected values
before the call. An exception in the student's code ends the exercise with a finding that quotes it; points earned before stay.
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
from gradlab.homework.probes import Probe
from gradlab.homework.program_comparison import ProgramComparison, run_on_tensors
from gradlab.homework.programs import Program
from gradlab.homework.time_limits import TimeBudget
from gradlab.homework.verdicts import CheckItem, Verdict, compare_arrays

SECONDS = 10  # time limit of an exercise
MOST_WORDS, MOST_CODE = 2000, 200  # characters shown of a text and of a line of code


class Stopped(Exception):  # noqa: N818  (the way out of an exercise, not an error)
    """Ends an exercise. The finding has been recorded."""


class Work(Protocol):
    """Access to the student's code."""

    def call(self, request: dict[str, Any], probes: list[Probe]) -> dict[str, Any]:
        """Perform a request (see `homework.calling`), and return its outcome."""


class Here:
    """Code in this process: a notebook's variables."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace

    def call(self, request: dict[str, Any], probes: list[Probe]) -> dict[str, Any]:
        """Perform a request."""
        return perform(self.namespace, request, lambda number, what, arrays: probes[number].answer(what, arrays))


class Nowhere:
    """No code: records the arguments of a student's functions, for `case`."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    def call(self, request: dict[str, Any], probes: list[Probe]) -> dict[str, Any]:
        """Return an outcome without a value."""
        return {"end": "value", "value": {"none": True}, "changed": []}


@dataclass(frozen=True)
class Answer:
    """The outcome of a call: the value, and how the function among the arguments was used."""

    value: Any  # tensor, array, number, text, None, lists and dicts of these, or an Other
    uses: Probe  # of the first function among the arguments
    changed: str  # the modified parts of the arguments, in words, or ""
    at: np.ndarray  # f(x)
    case: str


class Student:
    """A student's work, for the checks of one exercise.

    Parameters
    ----------
    work : Work
        Access to the student's functions.
    verdict : Verdict
        Receives the findings.
    seed : int
        Seed of `random`, from which a check draws shapes and numbers. These must not depend on the student's results.
    budget : TimeBudget, optional
        The time budget for all calls.

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

    def __init__(self, work: Work, verdict: Verdict, seed: int, budget: TimeBudget | None = None) -> None:
        self.work, self.verdict = work, verdict
        self.random = np.random.default_rng(seed)
        self._budget = TimeBudget(SECONDS, SECONDS, 0.1) if budget is None else budget
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
        """Record whether something holds, with `otherwise` and `hint` if it does not. The case is by default that of the
        last call."""
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
        """Record whether `got` (an `Answer`, a tensor or an array) equals `expected`, to within `tolerance` of the largest entry.

        `says` recognizes mistakes from the numbers, by default of a Jacobian; its result replaces `hint`. `but` says why right
        numbers do not count. Return whether the numbers are right.
        """
        expected, value, case = np.asarray(expected), None, self._case
        if isinstance(got, Answer):
            got, value, case = got.value, got.at, got.case
        good, words = compare_arrays(got, expected, tolerance)
        if good and but:
            self._note(CheckItem(what, False, f"the numbers are right, but {but}", hint, points, case))
        else:
            self._note(CheckItem(what, good, words, "" if good else says(got, expected, value) or hint, points, case))
        return good

    def stop(self, what: str, words: str, hint: str = "", case: str = "") -> Stopped:
        """Record why the exercise cannot continue. Raise the exception that it returns."""
        self._note(CheckItem(what, False, words, hint, 0, case))
        return Stopped()

    def _note(self, finding: CheckItem) -> None:
        """Record a finding. A hint or a case is shown once, and only for a wrong result."""
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
        """Return a function of the notebook, to call with the check's own functions and tensors.

        Parameters
        ----------
        forbidden : tuple of str
            Paths of functions or modules of the library ("gradlab.func.jacrev"). A call of one of them ends the exercise. They
            are recognized by their code, under any name.
        given : mapping, optional
            Functions of the notebook that the library's own replace during the call, so that a mistake in an earlier exercise
            costs points once: {"jacobian_by_rows": "rows", "jacobian_by_columns": "columns"}.
        way : str, optional
            A module of `homework.ways` that uses the function, if a call on the arguments is not enough. The arguments may then
            be plain data, too.
        late : str
            The hint if it does not end in time.
        names : sequence of str, optional
            Names of the arguments in the verdict's case. By default f, x, V, …, or the names that the way defines.
        """
        given = dict(given or {})
        for path in forbidden:
            codes_of(path)  # raise for a mistake in the check
        if unknown := set(given.values()) - set(REFERENCES):
            raise ValueError(f"given={given!r}: expected names among {sorted(REFERENCES)}, got {sorted(unknown)}.")
        if way:
            ways.get_way(way)
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
    ) -> ProgramComparison:
        """Run a program (see `homework.programs`) on the student's values and on tensors, and call `backward` on both.

        Parameters
        ----------
        program : str
            The lines of the program.
        inputs : mapping of str to array
            The inputs. The gradients of all of them are compared.
        calls : sequence of (name, gradient)
            The calls of `backward`, in order, with a gradient or None. By default one call, on the last line's value.
        name : str
            The name of the student's class.
        forbidden, given, late
            As for `function`.
        """
        calls = list(calls) or [(Program(program).names[-1], None)]
        ours = run_on_tensors(program, inputs, calls)
        run = self.function(name, forbidden=forbidden, given=given, way="engine", late=late)
        answer = run("run", program, dict(inputs), [list(call) for call in calls])
        return ProgramComparison(program, ours, answer.value if isinstance(answer.value, dict) else {})

    def value(self, name: str) -> Any:
        """Return a variable of the notebook: numbers, text, tensors, lists and dicts of these."""
        if isinstance(self.work, Nowhere):
            return None
        outcome = self.work.call({"name": name, "args": [], "way": "value", "forbidden": [], "given": {}, "seconds": 1}, [])
        if outcome.get("end") != "value":
            raise self._stop_for(name, str(outcome.get("end")), outcome, 1)
        return self._read(name, outcome["value"])

    def _read(self, name: str, value: Any) -> Any:
        try:
            return unplain(value)
        except (ValueError, KeyError, RecursionError):
            raise self.stop(f"`{name}`", "the result cannot be read") from None

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
        sent = [{"f": next(numbers)} if callable(arg) else _encode(arg) for arg in args]
        self._calls += 1
        shown = ways.case_arguments(way, args) if way else args
        names = list(called) or (list(shown) if isinstance(shown, dict) else _argument_names(shown))
        self._case = f"{', '.join(names)} = case({self.verdict.number}, {self._calls})"
        if isinstance(self.work, Nowhere):
            self.work.given.append(tuple(shown.values()) if isinstance(shown, dict) else shown)
        seconds = self._budget.seconds()
        request = {"name": name, "args": sent, "way": way, "forbidden": list(forbidden), "given": given, "seconds": seconds}
        with self._budget.spend():
            outcome = self.work.call(request, probes)
        end = outcome.get("end")
        if end == "value":
            value = self._read(name, outcome["value"])
            changes = outcome.get("changed")
            changed = ", ".join(abbreviate(str(one), MOST_CODE) for one in changes) if isinstance(changes, list) else ""
            first = probes[0] if probes else Probe(lambda x: x)
            y = first.function(behind[0].detach()) if probes and behind else None
            return Answer(value, first, changed, np.array(y.array) if isinstance(y, Tensor) else np.empty(0), self._case)
        raise self._stop_for(name, str(end), outcome, seconds, late)

    def _stop_for(self, name: str, end: str, outcome: dict[str, Any], seconds: float, late: str = "") -> Stopped:
        """Record why a call has no value. Return the exception to raise."""
        what, words = f"`{name}`", str(outcome.get("words", ""))
        short = abbreviate(words, MOST_WORDS)
        if end == "missing":
            return self.stop(
                what,
                "this name is not defined in the notebook yet",
                "run the cell that defines it, and check the spelling.",
            )
        if end == "no function":
            return self.stop(
                what, f"a function was expected, got {short}", "does a later cell assign something else to the name?"
            )
        if end == "borrowed":
            path, line, text = (*outcome.get("used", []), "", 0, "")[:3]
            where = f" (line {line} of its cell: `{abbreviate(str(text), MOST_CODE)}`)" if line and text else ""
            return self.stop(
                what,
                f"it uses `{abbreviate(str(path), MOST_CODE)}`{where}, which this exercise does not allow",
                "the task says which functions to use.",
            )
        if end == "time":
            return self.stop(what, f"did not end within {seconds:.0f} s", late, self._case)
        if end == "unwritten":
            if outcome.get("position") in ("above", "below"):
                return self.stop(
                    what,
                    f"the line `raise NotImplementedError()` is still {outcome['position']} your code",
                    "remove that line, and run the cell again.",
                )
            inner = abbreviate(str(outcome.get("in", "")), MOST_CODE)
            unwritten = f"`{inner}` is not written yet" if inner.isidentifier() and inner != name else "not written yet"
            return self.stop(what, f"raised NotImplementedError: {short}" if words else unwritten)
        if end == "raised":
            return self.stop(what, f"raised {short}", abbreviate(str(outcome.get("line", "")), 2 * MOST_CODE), self._case)
        if end == "gone":
            return self.stop(what, short)
        return self.stop(what, "the result cannot be read")


def _encode(x: Any) -> dict[str, Any]:
    if not isinstance(x, Tensor):
        return {"data": x}
    return {
        "tensor": np.array(x.detach().array),
        "requires_grad": x.requires_grad,
        "grad": None if x.grad is None else np.array(x.grad.array),
    }


def _argument_names(args: tuple[Any, ...]) -> list[str]:
    """Name the parts of a case: the first function is f, the first tensor after it x, the next V; a tensor before it J."""
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

"""Kinds of findings, and the checks that report them.

A check is a function that takes a `Case` and yields findings. It is declared where it is defined:

    declare(
        "sum-for-mean",
        meaning="…",  # and why, remedy, fault, healthy: see Kind
    )

    @check("sum-for-mean")
    def find_sums(case: Case) -> Iterable[Finding]: ...

A kind of findings has a name, a severity, the text of its page in the documentation, a program with the fault and a healthy
program next to it. `examine` has the table of contents: the modules that define checks, in the order in which they run.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PROBLEM, NOTE = "Problem", "Note"
RUN, ERROR, STATE = "run", "error", "state"  # what a check looks at


@dataclass(frozen=True)
class Kind:
    """A kind of finding.

    Attributes
    ----------
    name : str
        As it is printed in brackets after a finding, and as it is silenced: "sum-for-mean".
    severity : str
        `PROBLEM` or `NOTE`.
    meaning : str
        What a finding of this kind says, in one sentence.
    why : str
        Why it matters.
    remedy : str
        What to do.
    fault : str
        A program with the fault, for PyTorch or Keras, with its imports. `#!` at the end of a line marks the line that the
        finding names; a fault without a mark has no line.
    healthy : str
        A program like it in which nothing is wrong.
    notes : bool
        Whether a Problem of this kind may also be reported as a Note, where programs do the same on purpose.
    libraries : tuple of str
        The libraries on which both programs run.
    module : str
        The module that declares it.
    """

    name: str
    severity: str
    meaning: str
    why: str
    remedy: str
    fault: str
    healthy: str
    notes: bool
    libraries: tuple[str, ...]
    module: str


@dataclass(frozen=True)
class Check:
    """A check.

    Attributes
    ----------
    find : callable
        Takes a `Case` and yields findings.
    kinds : tuple of str
        The names of the kinds that it reports.
    looks_at : str
        `RUN`, a trace and the namespace; `ERROR`, the error that ended a run; `STATE`, the namespace alone, after a run that was
        not recorded.
    of_each_loss : bool
        Whether it is also applied to the graphs of the other losses of a training.
    keras : bool
        Whether its sentences are right for models of Keras, to which others are not applied.
    """

    find: Callable[[Any], Iterable[Any]]
    kinds: tuple[str, ...]
    looks_at: str = RUN
    of_each_loss: bool = False
    keras: bool = False

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.find.__name__


MARK = re.compile(r"\s*#!$", re.MULTILINE)  # the mark of a line in a program with a fault
KINDS: dict[str, Kind] = {}
CHECKS: list[Check] = []


def declare(
    name: str,
    *,
    meaning: str,
    why: str,
    remedy: str,
    fault: str,
    healthy: str | Mapping[str, str],
    severity: str = PROBLEM,
    notes: bool = False,
    libraries: tuple[str, ...] = ("gradlab", "torch"),
) -> None:
    """Declare a kind of findings. See `Kind` for the arguments.

    `healthy` may also be what to replace in the program with the fault: each text is in it once.

    Raises
    ------
    ValueError
        If another kind has this name, or a text to replace is not in the program exactly once.
    """
    if name in KINDS:
        raise ValueError(f"two kinds of findings are named {name!r}")
    said, reason, advice = (" ".join(text.split()) for text in (meaning, why, remedy))
    fault = inspect.cleandoc(fault)
    programs = fault, inspect.cleandoc(healthy) if isinstance(healthy, str) else _replace_each(name, fault, healthy)
    module = sys._getframe(1).f_globals["__name__"]
    KINDS[name] = Kind(name, severity, said, reason, advice, *programs, notes, libraries, module)


def _replace_each(name: str, fault: str, changes: Mapping[str, str]) -> str:
    """Return a program without its marks in which texts are replaced."""
    program = MARK.sub("", fault)
    for old, new in changes.items():
        if program.count(old) != 1:
            raise ValueError(f"{name}: expected {old!r} once in the program with the fault, found it {program.count(old)} times")
        program = program.replace(old, new)
    return program


def check(
    *kinds: str, looks_at: str = RUN, of_each_loss: bool = False, keras: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a check that reports findings of the given kinds. See `Check` for the arguments.

    A kind may be declared in another module.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if any(one.name == function.__name__ for one in CHECKS):
            raise ValueError(f"two checks are named {function.__name__!r}")
        CHECKS.append(Check(function, kinds, looks_at, of_each_loss, keras))
        return function

    return register


def homes_of(kind: str) -> set[str]:
    """Return what the checks that report a kind look at: some of `RUN`, `ERROR` and `STATE`; nothing for kinds of `gl.watch`."""
    return {one.looks_at for one in CHECKS if kind in one.kinds}


def split_marks(source: str) -> tuple[str, tuple[int, ...]]:
    """Return a program without its marks, and the numbers of the marked lines."""
    marked = tuple(number for number, line in enumerate(source.splitlines(), 1) if MARK.search(line))
    return MARK.sub("", source) + "\n", marked


def require_kinds(names: str | Iterable[str]) -> frozenset[str]:
    """Return the names of kinds as a set.

    Raises
    ------
    ValueError
        If a name is not that of a kind.
    """
    given = [names] if isinstance(names, str) else list(names)
    for name in given:
        if name not in KINDS:
            raise ValueError(unknown_kind(name))
    return frozenset(given)


def unknown_kind(name: object) -> str:
    """Return the message for a name that is not that of a kind."""
    close = difflib.get_close_matches(str(name), KINDS, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"The kinds are {', '.join(sorted(KINDS))}."
    return f"{name!r} is not a kind of finding. {hint}"

"""One test for many cases: it runs them all, and fails with every one that fails, by its name.

A test costs pytest more than a small case takes, and each worker collects all tests. So where there are thousands of cases, those
of one operator are one test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def grouped(cases: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Any, list[Any]]:
    """The cases by their key, in the order in which they come."""
    groups: dict[Any, list[Any]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return groups


def check_each(cases: Iterable[Any], check: Callable[[Any], object]) -> None:
    """Run `check` with each case.

    Raises
    ------
    Exception
        What the one case that failed raised, with a note that names the case.
    ExceptionGroup
        The same of several.
    """
    failures = []
    for case in cases:
        try:
            check(case)
        except Exception as error:  # noqa: BLE001  (whatever it raises, the other cases run)
            error.add_note(f"The case: {case}")
            failures.append(error)
    if len(failures) > 1:
        raise ExceptionGroup(f"{len(failures)} cases fail", failures)
    if failures:
        raise failures[0]


def for_each_sample(check: Callable[[Any], object]) -> Callable[[list[Any]], None]:
    """Make of a check of one sample a test of all that the fixture `samples` gives."""

    def test(samples: list[Any]) -> None:
        check_each(samples, check)

    functools.update_wrapper(test, check)
    del test.__wrapped__  # pytest would look there for the fixtures that the test asks for
    return test


def first_in_the_gate(*values: Any) -> list[Any]:
    """The parameters of a test of which `.ci/run` takes the first, and `.ci/full` the others."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.exhaustive) for value in values[1:])]

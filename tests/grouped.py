"""Run many cases in one test and report every case that fails.

A small case takes less time than pytest's overhead for a test, and each worker collects all tests. Therefore, the thousands of
cases of operators are grouped into one test per operator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def group_by(cases: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Any, list[Any]]:
    """Group cases by their key, in order of appearance."""
    groups: dict[Any, list[Any]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return groups


def check_each(cases: Iterable[Any], check: Callable[[Any], object]) -> None:
    """Run `check` with each case.

    Raises
    ------
    Exception
        The error of the case that failed, with a note that names the case.
    ExceptionGroup
        The errors of all failed cases, if there are several.
    """
    failures = []
    for case in cases:
        try:
            check(case)
        except Exception as error:  # noqa: BLE001  (the other cases must run)
            error.add_note(f"The case: {case}")
            failures.append(error)
    if len(failures) > 1:
        raise ExceptionGroup(f"{len(failures)} cases fail", failures)
    if failures:
        raise failures[0]


def for_each_sample(check: Callable[[Any], object]) -> Callable[[list[Any]], None]:
    """Turn a check of one sample into a test of all samples of the fixture `samples`."""

    def test(samples: list[Any]) -> None:
        check_each(samples, check)

    functools.update_wrapper(test, check)
    del test.__wrapped__  # pytest would take the fixtures from its signature
    return test


def exhaustive_after_first(*values: Any) -> list[Any]:
    """Return test parameters of which all but the first are marked exhaustive."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.exhaustive) for value in values[1:])]

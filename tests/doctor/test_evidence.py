"""Findings are right: every number is recomputed by the row's program without the explorer, and every name refers to the right
object."""

from __future__ import annotations

import copy
import math
import re
from typing import Any

import numpy as np
import pytest
from quoted_names import check_names
from recomputing import POINTERS, RULES, Program
from test_planted import FAULTS, each
from witness import Witness

from gradlab.explore.doctor import session

NUMBER = re.compile(r"(?<![\w.\]])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?%?(?![\w\[])")
# Constants in the messages: "1 / (2 · sqrt(0))", "more than 0.999 on one entry", "exactly 0", "±1", "n - 1".
KNOWN = (0.0, 1.0, 2.0, -1.0, 0.999)


def numbers_in(evidence: Any) -> list[tuple[str, Any]]:
    """Return the numbers of the evidence with their keys, without pointers such as node indices."""
    return [(key, value) for key, value in evidence.items() if key not in POINTERS and is_number(value)]


def is_number(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(is_number(one) for one in value)
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def flat(value: Any) -> list[float]:
    return [x for one in value for x in flat(one)] if isinstance(value, (tuple, list)) else [float(value)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAULTS))
def test_each_name_and_number_matches_the_program(run, monkeypatch, name, library):
    row = FAULTS[name]
    cases: list[Any] = []
    examine = session.examine

    def keep_case(case: Any, *checks: Any) -> Any:
        found = examine(case, *checks)
        if not checks:  # otherwise the case is of another loss
            cases.append(copy.copy(case))  # a copy, since the case is emptied afterwards
        return found

    monkeypatch.setattr(session, "examine", keep_case)
    ran = run(library, row.texts)
    findings, remarks = session.NOTEBOOK.last.findings, session.NOTEBOOK.last.remarks
    program = Program(Witness(library, row.texts), cases[-1])
    for finding in (*findings, *remarks):
        check_names(finding, cases[-1], program.w, ran.shell.ns, row.texts)
    for finding in (*findings, *(remarks if row.is_note else ())):
        stated = numbers_in(finding.evidence)
        text = re.sub(r"`[^`]*`|In\[\d+\]|lines? \d+(?:(?:, | and )\d+)*|and \d+ more", "", finding.message)
        shown = [float(x.rstrip("%")) / (100 if x.endswith("%") else 1) for x in NUMBER.findall(text)]
        shown = [x for x in shown if x not in KNOWN]
        if not stated and not shown:
            continue
        with np.errstate(all="ignore"):
            true = RULES[finding.kind](program, finding)
        for key, value in stated:
            assert key in true, f"no rule recomputes {key} = {value} of a finding of kind {finding.kind!r}"
            np.testing.assert_allclose(
                flat(value),
                flat(true[key]),
                rtol=2e-3,
                atol=1e-6 if key in ("total", "handed") else 0,
                err_msg=f"{key}: {finding}",
            )
        known = [x for value in true.values() if is_number(value) for x in flat(value)]
        for x in shown:
            assert any(math.isclose(x, y, rel_tol=6e-3) for y in known), (x, finding.message, true)


def test_every_kind_that_has_numbers_has_a_rule():
    without = {
        "rebound-leaf",
        "unused-leaf",
        "unused-module",
        "uncalled-method",
        "idle-clipping",
        "evaluation-mode",
    }  # their evidence has only names
    of_errors = {"in-place"}  # reported for errors, which no row is about: tests/doctor/test_after_run.py
    assert {kind for row in FAULTS.values() for kind in row.kinds} | of_errors == set(RULES) | without

"""Every kind of finding: its texts, its faulty and its healthy example. A new check needs no other test."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from gradlab.explore.doctor import examine  # noqa: F401  (registers all checks)
from gradlab.explore.doctor.checks import steps
from gradlab.explore.doctor.examples import diagnose_example, for_library
from gradlab.explore.doctor.registry import CHECKS, KINDS, NOTE, PROBLEM, split_marks

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
MARKS = {"gradlab": (), "torch": pytest.mark.torch, "keras": (pytest.mark.torch, pytest.mark.frameworks)}
EACH_KIND = [
    pytest.param(name, library, id=f"{name}-{library}", marks=MARKS[library])
    for name, kind in KINDS.items()
    for library in kind.libraries
]


@pytest.mark.parametrize(("name", "library"), EACH_KIND)
def test_the_fault_is_found(name, library):
    kind = KINDS[name]
    found = diagnose_example(name, library=library)
    reported = found.remarks if kind.severity == NOTE else found.findings
    assert reported, found
    first = reported[0]
    assert first.kind == name, found
    lines = split_marks(kind.fault)[1]
    assert first.line in lines if lines else first.line is None, f"line {first.line}, {found}"


@pytest.mark.parametrize(("name", "library"), EACH_KIND)
def test_nothing_is_found_in_the_healthy_example(name, library):
    found = diagnose_example(name, healthy=True, library=library)
    assert not found.findings, found
    assert not [one for one in found.remarks if one.kind == name], found


@pytest.mark.parametrize("name", KINDS)
def test_the_texts_are_complete(name):
    kind = KINDS[name]
    assert kind.severity in (PROBLEM, NOTE)
    for text in (kind.meaning, kind.why, kind.remedy):
        assert text[:1].isupper() or text[:1] == "`", text
        assert text.endswith("."), text
    assert kind.meaning.count(". ") == 0, "one sentence"
    for program in (kind.fault, kind.healthy):
        source = split_marks(program)[0]
        ast.parse(source)
        library = kind.libraries[-1]
        assert f"import {library}" in source, "an example runs as printed"
        assert ("gradlab" in kind.libraries) <= (for_library(source, "gradlab") != source)
        assert max(map(len, source.splitlines())) <= 88
    assert kind.fault != kind.healthy


@pytest.mark.skipif(not CONTRIBUTING.is_file(), reason="not a checkout")
def test_the_example_in_contributing_matches_the_code():
    (example,) = re.findall(r"```python\n(declare\(.*?)\n```", CONTRIBUTING.read_text(), re.DOTALL)
    assert example in Path(inspect.getfile(steps)).read_text()


def test_every_kind_that_a_check_reports_is_declared():
    assert {name for one in CHECKS for name in one.kinds} <= set(KINDS)


def test_checks_have_unique_names_and_docstrings():
    assert len({one.name for one in CHECKS}) == len(CHECKS)
    assert all(inspect.getdoc(one.find) for one in CHECKS)

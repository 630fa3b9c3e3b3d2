"""Test `gradlab doctor --explain [KIND]`: the page of each kind, and the list of all kinds."""

from __future__ import annotations

import re

import pytest

from gradlab import cli
from gradlab.explore.doctor.explain import explain, list_kinds, sections
from gradlab.explore.doctor.registry import KINDS, PROBLEM, STATE, homes_of, split_marks

NUMBERED = re.compile(r"  (?P<mark>[> ]) (?P<number>[ \d]\d)(?:  (?P<code>.*))?")


def words_of(text):
    return " ".join(text.split())


def read_programs(page):
    """Return the numbered programs of a page, each as its source and its marked lines."""
    programs = []
    for line in page.splitlines():
        if found := NUMBERED.fullmatch(line):
            number = int(found["number"])
            if number == 1:
                programs.append(([], []))
            source, marked = programs[-1]
            source.append(found["code"] or "")
            marked += [number] * (found["mark"] == ">")
            assert len(source) == number
    return [("\n".join(source) + "\n", tuple(marked)) for source, marked in programs]


@pytest.mark.parametrize("name", KINDS)
def test_the_page_of_a_kind_has_its_text_and_its_programs(name):
    kind, page = KINDS[name], explain(name)
    severity = "Problem or Note" if kind.severity == PROBLEM and kind.notes else kind.severity
    assert page.splitlines()[0] == f"{name} ({severity})"
    for text in (kind.meaning, kind.why, kind.remedy):
        assert words_of(text) in words_of(page)
    if kind.fault:
        fault, healthy = read_programs(page)
        assert fault == split_marks(kind.fault) and healthy == (split_marks(kind.healthy)[0], ())
        assert ("> marks the line" in page) == ("#!" in kind.fault)
    assert "#!" not in page and not any(line != line.rstrip() for line in page.splitlines())


@pytest.mark.parametrize("name", KINDS)
def test_the_page_says_how_to_silence_a_kind_where_that_is_possible(name):
    page, homes = explain(name), homes_of(name)
    assert (f"# gradlab: ignore[{name}]" in page) == bool(homes - {STATE} and "#!" in KINDS[name].fault)
    assert (f"gradlab doctor --ignore {name} " in page) == bool(homes - {STATE})
    assert (f'gl.doctor(ignore=["{name}"])' in page) == bool(homes)
    assert (f'w.findings.without(["{name}"])' in page) == (not homes)


def test_sections_are_data_for_other_formats():
    titles = [section.title for section in sections(KINDS["detached"])]
    assert titles[:2] == ["Why it matters", "What to do"] and len(set(titles)) == len(titles) == 5


def test_the_list_has_each_kind_on_a_line():
    lines = list_kinds().splitlines()
    assert [line.split()[0] for line in lines] == sorted(KINDS)
    assert all(line.split(maxsplit=1)[1] == words_of(KINDS[line.split()[0]].meaning) for line in lines)


def test_the_command_prints_pages_and_the_list(capsys):
    assert cli.main(["doctor", "--explain", "broadcast"]) == 0
    assert capsys.readouterr() == (explain("broadcast") + "\n", "")
    assert cli.main(["doctor", "--explain"]) == 0
    assert capsys.readouterr() == (list_kinds() + "\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--explain", "broadcst"], "'broadcst' is not a kind of finding. Did you mean 'broadcast'?"),
        (["--explain", "train.py"], "'train.py' is not a kind of finding."),
        (["--explain", "broadcast", "train.py"], "--explain takes one kind of finding and no script."),
    ],
)
def test_other_arguments_are_errors(words, said, capsys):
    assert cli.main(["doctor", *words]) == 2
    out, errors = capsys.readouterr()
    assert out == "" and said in errors

"""Check that lessons are short, without outputs, and have cases for each question."""

from __future__ import annotations

import ast
import re

import pytest
from notebooks.cases import lessons
from notebooks.reading import is_stripped, read

from gradlab import cli

LESSONS = lessons()
CELLS, WORDS, PREDICTS = 24, 1200, 3
WORDS_A_MINUTE, MINUTES_A_GUESS = 130, 0.5  # read with thought
FORMULA, CODE = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL), re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


@pytest.fixture(params=LESSONS)
def source(request):
    return LESSONS[request.param]


def words(source):
    """Count the words of a text. A formula or a piece of code counts as one."""
    plain = re.sub(r"<[^>]+>", " ", CODE.sub(" code ", FORMULA.sub(" formula ", source)))
    return len(re.findall(r"[\w'’]+(?:-\w+)*", plain))


def test_each_lesson_has_cases_and_each_question_one(source):
    code = {one.id: one.source for one in read(source.LESSON).cells if one.cell_type == "code"}
    asked = {}
    for name, text in code.items():
        calls = [line for line in text.splitlines() if line.startswith("ask(")]
        asked |= {ast.literal_eval(re.match(r"ask\(\s*([\"'].*?[\"'])", line)[1]): name for line in calls}
    assert asked == {key: case.asks for key, case in source.QUESTIONS.items()}
    for key, case in source.QUESTIONS.items():
        assert f"reveal(guess.{key}," in code[case.reveals], key
        assert "{" not in code[case.reveals].partition("reveal(")[2], "the replies are in homework.replies"
        assert list(code).index(case.asks) < list(code).index(case.reveals)
    assert {*source.SHOWS, *getattr(source, "ONCE", {})} <= set(code)
    assert len(asked) >= PREDICTS + 3


def test_no_lesson_is_without_cases():
    assert sorted(f"lessons/{path.name}" for path in (cli.notebooks() / "lessons").glob("*.ipynb")) == sorted(
        module.LESSON for module in LESSONS.values()
    )


def test_the_source_is_stripped(source):
    is_stripped(source.LESSON)


def test_it_is_short(source):
    notebook = read(source.LESSON).cells
    count = sum(words(one.source) for one in notebook if one.cell_type == "markdown")
    assert count <= getattr(source, "WORDS", WORDS)
    assert sum(one.cell_type == "code" for one in notebook) <= CELLS
    assert count / WORDS_A_MINUTE + MINUTES_A_GUESS * len(source.QUESTIONS) <= source.MINUTES <= 25
    assert f"{source.MINUTES} minutes" in notebook[0].source
    assert "<details>" in "".join(one.source for one in notebook), "the whys are folded"

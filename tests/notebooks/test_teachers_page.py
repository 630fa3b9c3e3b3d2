"""The page for teachers is one page, and what it says is so."""

from __future__ import annotations

import re

from notebooks.cases import lessons
from notebooks.reading import read

import gradlab as gl
from gradlab import cli
from gradlab.homework import central_differences, load, predictions

PAGE = (cli.notebooks() / "README.md").read_text(encoding="utf-8")
LESSON = re.compile(r"^\| (\d) ([^|]+?) \| (\d+) \|", re.MULTILINE)
HOMEWORK = re.compile(r"^\| `(\w+)` \| (\d+) \| (\d) \|", re.MULTILINE)
CODE = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)
WORDS = 1100


def test_it_is_one_page():
    assert len(PAGE.split()) <= WORDS


def test_it_names_the_lessons_as_they_are():
    told = {int(number): (title, int(minutes)) for number, title, minutes in LESSON.findall(PAGE)}
    assert sorted(told) == list(range(1, 10))
    for module in lessons().values():
        number, title = re.match(r"# (\d)\. (.+)", read(module.LESSON).cells[0].source).groups()
        assert told[int(number)] == (title, module.MINUTES)


def test_it_names_the_homework_as_it_is():
    told = {name: int(minutes) for name, minutes, _ in HOMEWORK.findall(PAGE)}
    assert [name[:3] for name in told] == [f"hw{n}" for n in range(1, 6)]
    for path in (cli.notebooks() / "homework").glob("*/*.ipynb"):
        minutes = re.search(r"about (\d+) minutes", read(str(path)).cells[0].source)[1]
        assert told[path.stem] == int(minutes)


def test_its_names_are_those_of_the_library():
    for name in re.findall(r"`gl\.([\w.]+)`", PAGE):
        value = gl
        for part in name.split("."):
            value = getattr(value, part)
    for variable in re.findall(r"`(GRADLAB_\w+)=", PAGE):
        assert variable in (predictions.READING, predictions.FILE)


def test_its_exercise_runs_and_tells_right_from_wrong(tmp_path):
    """Run the exercise of the page in a checks.py."""
    (block,) = [code for code in CODE.findall(PAGE) if "@homework.exercise" in code]
    head = "import gradlab as gl\nfrom gradlab.homework import Homework, central_differences\nhomework = Homework('Tried')\n"
    (tmp_path / "checks.py").write_text(head + re.sub("^    ", "", block, flags=re.MULTILINE), encoding="utf-8")
    homework = load(tmp_path)

    def gradient(f, x):
        x = x.detach().clone().requires_grad_()
        f(x).backward()
        return x.grad

    def by_differences(f, x):
        return gl.tensor(central_differences(f, x).reshape(-1))

    def twice_the_gradient(f, x):
        return 2 * gradient(f, x)

    def forbidden_call(f, x):
        return gl.func.grad(f)(x)

    for answer, points in ((gradient, 10), (by_differences, 6), (twice_the_gradient, 4), (forbidden_call, 0)):
        assert homework.check(6, {"gradient": answer}).points == points, answer.__name__

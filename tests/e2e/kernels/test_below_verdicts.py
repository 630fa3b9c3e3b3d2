"""Outputs of lessons 6 and 8 below a verdict after a guess: pictures, and numbers that the tests compute in another way."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from e2e.kernels.running import nbclient, read
from notebooks.cases import lessons

from gradlab.homework.replies import lesson_6, lesson_8


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.exhaustive) for name in ("lesson_6", "lesson_8")])
def lesson_with_guesses(request):
    """Run a lesson with the right guesses, and return its name and its code cells by id."""
    lesson = lessons()[request.param]
    notebook = read(lesson.LESSON)
    code = {one.id: one for one in notebook.cells if one.cell_type == "code"}
    for key, case in lesson.QUESTIONS.items():
        code[case.asks].source += f"\nguess.{key} = {case.right}"
    client = nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False, coalesce_streams=True)
    client.execute()
    return request.param, code


def below(one):
    """Return the text of a cell's last output and the MIME types of its pictures."""
    data = one.outputs[-1].data
    return data["text/plain"], {kind for kind in data if kind.startswith("image/")}


def test_pictures_and_figures(lesson_with_guesses):
    name, cells = lesson_with_guesses
    (check_products if name == "lesson_6" else check_own_rule)(cells)


def check_products(cells):
    assert below(cells["reveal3"])[1] == {"image/png"}
    text, pictures = below(cells["reveal6"])
    assert text.startswith("Jacobian of y (12) with respect to x (14)") and pictures
    costs = {
        size: {way: [float(number) for number in re.findall(r"\d[-+.e\d]*", text)] for way, text in ways.items()}
        for size, ways in ast.literal_eval(below(cells["reveal5"])[0]).items()
    }
    counts = {size: (ways["rows"][0], ways["columns"][0]) for size, ways in costs.items()}
    assert counts == {"1000 to 1": (1, 1000), "1 to 1000": (1000, 1), "50 to 50": (50, 50)}
    assert all(calls_of_f > 0 for ways in costs.values() for _, calls_of_f in ways.values()), "calls of f are measured"


def check_own_rule(cells):
    said = "".join(output.get("text", "") for output in cells["reveal1"].outputs)
    assert "the gradients are NOT" in said and "This may be rounding" in said
    text, pictures = below(cells["reveal2"])
    assert "With these six points it fails" in text and "7.39" in text and pictures

    shown = ast.literal_eval(below(cells["reveal5"])[0])
    valley = lambda x, y: (1 - x) ** 2 + 100 * (y - x**2) ** 2  # noqa: E731
    slope = lambda x, y: np.array([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])  # noqa: E731
    bend = lambda x, y: np.array([[2 - 400 * (y - 3 * x**2), -400 * x], [-400 * x, 200]])  # noqa: E731
    at, values = np.array([-1.2, 1.0]), []
    for _ in shown["Newton"]:
        values.append(valley(*at))
        at = at - np.linalg.solve(bend(*at), slope(*at))
    assert shown["Newton"][:5] == pytest.approx(values[:5], rel=5e-3) and max(values[5:]) < 1e-10
    at, steps = np.array([-1.2, 1.0]), 0
    while valley(*at) > 1e-3:
        at, steps = at - 1e-3 * slope(*at), steps + 1
    assert abs(shown["steps of gradient descent to 0.001"] - steps) <= 1

    off = ast.literal_eval(below(cells["answer2"])[0])
    assert off["what backward says"] < 1e-6 < 1e-3 < off["the differences"]


def test_the_replies_of_lesson_6_are_right():
    J = np.array([[2, 3], [1, 2], [0, 4]])
    along, twice = lesson_6.along, lesson_6.twice
    assert "column 0" in along[tuple(J[:, 0])] and "the sum of both columns" in along[tuple(J @ [1, 1])]
    assert all(f"that is row {i}" in along[tuple(row)] for i, row in enumerate(J))
    assert "g for v = (1, 1, 1)" in twice[tuple([1, 1, 1] @ J)] and "column 1 alone" in twice[tuple(J[:, 1])]
    assert "can be nonzero" in lesson_6.colours[3 * 998] and "the number of entries of J" in lesson_6.fewest[5 * 2000]


def test_the_replies_of_lesson_8_are_right():
    x = 3
    derivatives = {3 * x**2: "the first", 6: "the third", x**2: "x²", 2 * x**3: "2x³"}
    assert all(said in lesson_8.second[value] for value, said in derivatives.items()) and len(lesson_8.second) == 4
    assert "the number of entries of H" in lesson_8.sweeps[1000 * 1000]

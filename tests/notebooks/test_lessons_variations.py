"""Check statements of lessons 1 and 2 that have no cell: "Change one thing", and the numbers in their replies."""

from __future__ import annotations

import pytest
from notebooks.reading import read

import gradlab as gl

TENSORS, GRAPH = "lessons/01_tensors.ipynb", "lessons/02_graph.ipynb"


def source(lesson, name):
    return next(one.source for one in read(lesson).cells if one.id == name)


def ran(text):
    space = {"gl": gl}
    exec(text, space)
    return space


def test_without_the_cut_the_gradient_has_the_tax_in_it():
    torn = source(TENSORS, "torn").removeprefix("%%grad\n")
    assert ran(torn)["price"].grad.item() == 2 and ran(torn)["total"].item() == pytest.approx(7.2)
    assert ran(torn.replace("cost.detach()", "cost"))["price"].grad.item() == pytest.approx(2.4)
    dearer = ran(torn.replace("price = gl.tensor(3.0", "price = gl.tensor(4.0"))
    assert dearer["total"].item() - 7.2 == pytest.approx(2.4, abs=1e-5)


def test_a_masked_product_remembers():
    t = gl.tensor([1.0, -2.0, 3.0], requires_grad=True)
    assert ((t > 0) * t).requires_grad


def test_what_is_rebuilt_from_a_number_has_a_gradient_of_its_own():
    text = source(TENSORS, "reveal4").partition("reveal(")[0]
    space = ran(text)
    assert space["loss"].item() == 9.0 and space["again"].is_leaf and space["again"].grad.item() == 1


def test_x_times_y_plus_1_has_one_arrow_to_x():
    below = source(GRAPH, "reveal1").partition("s = x")[0]
    space = ran(source(GRAPH, "walk") + "\n" + below + "\ns = x * (y + 1)")
    arrows = {(space["short"](one), space["short"](other)) for one, other in space["walk"](space["s"])[1]}
    assert arrows == {("Mul", "leaf x"), ("Mul", "Add"), ("Add", "leaf y")}


def test_a_power_and_its_products_have_the_same_derivative():
    x = gl.tensor(2.0, requires_grad=True)
    space = ran(source(GRAPH, "reveal1").partition("s = x")[0])
    kinds = [type(node).__name__ for node in space["walk"](x * x * x)[0]]
    assert kinds.count("MulBackward0") == 2 and space["walk"](x**3)[0][0]._saved_exponent == 3
    assert gl.autograd.grad(x**3, x)[0] == gl.autograd.grad(x * x * x, x)[0]


def test_a_gradient_that_is_retained_is_2():
    before = source(GRAPH, "reveal6").rpartition("middle = x * y")[2].partition("found")[0]
    space = ran(source(GRAPH, "walk") + "\nmiddle = x * y" + before)
    assert space["middle"].grad.item() == 2


def test_without_no_grad_the_update_in_place_is_refused():
    lines = source(GRAPH, "repairs").partition("\n\n")[0]
    assert lines.count("    with gl.no_grad():\n    ") == 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        ran(lines.replace("    with gl.no_grad():\n    ", ""))

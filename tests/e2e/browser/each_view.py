"""Every view in a browser: `VIEWS` maps names to a function that creates the view and one that shows most of its parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from lab import expect

import gradlab as gl
from gradlab.explore.explorer import Explorer
from gradlab.explore.jacobian import jacobian
from gradlab.explore.names import names_in
from gradlab.homework.predictions import Guesses
from gradlab.homework.questions import question


def idle(page: Any) -> None:
    expect(page.locator(".gl-view[aria-busy=true]")).to_have_count(0)


# --------------------------------------------------------------------------------------------------------------------- views
def zscores() -> dict[str, Any]:
    gl.manual_seed(1)
    with gl.tracing():
        a, b = gl.randn(6, 4, requires_grad=True), gl.randn(6, 4, requires_grad=True)
        z1 = (a - a.mean(0)) / a.std(0)
        z2 = (b - b.mean(0)) / b.std(0)
        c = (z1.T @ z2) / 6
        loss = -gl.diagonal(c).sum()
    return {"a": a, "b": b, "z1": z1, "z2": z2, "c": c, "loss": loss}


def encoder() -> dict[str, Any]:
    gl.manual_seed(0)
    model = gl.nn.TransformerEncoder(gl.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3)
    x, t = gl.randn(2, 3, 8), gl.randn(2, 3, 8)
    with gl.tracing():
        loss = ((model(x) - t) ** 2).mean()
    return {"model": model, "loss": loss}


def scalars() -> dict[str, Any]:
    with gl.tracing():
        a, b = (gl.tensor(x, dtype=gl.float64, requires_grad=True) for x in (2.0, -1.0))
        d = a * b
        e = a - d
        loss = d * e + e
    return {"a": a, "b": b, "d": d, "e": e, "loss": loss}


def explorer(names: dict[str, Any]) -> Any:
    from gradlab.notebook.graph_widget import GraphWidget

    return GraphWidget(Explorer.of([names["loss"]], names, names_in(names)))


def stepper(out: Any) -> Any:
    from gradlab.notebook.stepper_widget import StepperWidget

    return StepperWidget(gl.step_through(out))


def long_chain() -> Any:
    x = gl.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(200):
        y = y * 1.01 + x
    return y


def derivatives(rows: int, columns: int) -> Any:
    x = gl.tensor(np.linspace(-1, 2, columns)).requires_grad_()
    w = gl.tensor(np.sin(np.arange(1.0, 1 + rows * columns)).reshape(rows, columns))
    z = w @ (x * x)
    return jacobian(z, x).widget()


def diagonal() -> Any:
    x = gl.tensor(np.linspace(-1, 2, 8)).requires_grad_()
    y = x**3
    return jacobian(y, x).widget()


def curve() -> Any:
    return gl.playground(lambda x: x**3 / 3 - x, x=(-2.4, 2.4), at={"x": 1.6}).widget()


def bowl() -> Any:
    def bowl(p):
        return p[0] ** 2 / 2 + 2 * p[1] ** 2

    return gl.playground(bowl, p=[(-5, 5), (-2, 2)], at={"p": [-4, 1.8]}, lr=0.4).widget()


def watch_training(steps: int = 60) -> Any:
    """Run a watched training that has a finding."""
    gl.manual_seed(0)
    net = gl.nn.Sequential(gl.nn.Linear(4, 8), gl.nn.ReLU(), gl.nn.Linear(8, 1))
    opt = gl.optim.SGD(net.parameters(), lr=0.05)
    rng = np.random.default_rng(0)
    x, y = (gl.tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((32, 4), (32, 1)))
    with gl.watch(net, opt) as watch:
        for step in range(steps):
            opt.zero_grad()
            loss = ((net(x) - y) ** 2).mean() * (float("nan") if step == steps - 5 else 1)
            loss.backward()
            opt.step()
            watch.log(loss)
    return watch


def training() -> Any:
    from gradlab.notebook.watch_widget import WatchWidget

    return WatchWidget(watch_training())


def question_widget(key: str, numbers: Any = None, choices: Any = None, rows: Any = None) -> Any:
    from gradlab.notebook.question_widget import QuestionWidget

    one, guesses = question(key, numbers, choices, rows), Guesses()
    guesses.register(one)
    widget = QuestionWidget(one, guesses)
    guesses.set_view(one.key, widget)
    return widget


# ------------------------------------------------------------------------------------------------------------------- actions
def level(name: str) -> Callable[[Any], None]:
    def turn(page: Any) -> None:
        page.get_by_role("radio", name=name).click()
        rows = page.get_by_role("treeitem", expanded=False)
        if name != "Operations" and rows.count():
            rows.first.locator(".gl-twist").click()
        idle(page)

    return turn


def operations(page: Any) -> None:
    """Choose a node, search for others, and colour all."""
    page.get_by_role("radio", name="Operations").click()
    page.get_by_role("button", name=re.compile("^÷, ")).first.click()
    page.get_by_label("find by name").fill("mean")
    page.get_by_label("colour by").select_option(label="‖grad‖")
    idle(page)
    for summary in page.locator(".gl-panel summary").all():
        summary.click()


def paths(page: Any) -> None:
    page.get_by_label("paths to").select_option(label="b")
    idle(page)


def unfold(page: Any) -> None:
    page.get_by_role("radio", name="Operations").click()
    page.get_by_role("button", name="unfold").click()
    idle(page)


def step(times: int) -> Callable[[Any], None]:
    def walk(page: Any) -> None:
        for _ in range(times):
            page.get_by_role("button", name="next (→)").click()

    return walk


def fill(page: Any) -> None:
    page.get_by_role("button", name="step").click()
    idle(page)
    page.get_by_role("button", name="fill").click()
    idle(page)


def colours(page: Any) -> None:
    fill(page)
    toggle = page.get_by_role("button", name="which rows or columns share a sweep")
    if toggle.is_visible():
        toggle.click()
    idle(page)


def descend(page: Any) -> None:
    idle(page)
    page.get_by_role("button", name=re.compile("^(step|descend|run)")).first.click()
    idle(page)


def nothing(page: Any) -> None:
    idle(page)


VIEWS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "explorer-code": (lambda: explorer(zscores()), level("Code")),
    "explorer-modules": (lambda: explorer(encoder()), level("Modules")),
    "explorer-operations": (lambda: explorer(zscores()), operations),
    "explorer-folds": (lambda: explorer(encoder()), unfold),
    "explorer-paths": (lambda: explorer(scalars()), paths),
    "stepper": (lambda: stepper(scalars()["loss"]), step(3)),
    "stepper-large": (lambda: stepper(long_chain()), step(2)),
    "jacobian": (lambda: derivatives(4, 3), fill),
    "jacobian-large": (lambda: derivatives(60, 90), fill),
    "jacobian-colours": (diagonal, colours),
    "playground": (curve, nothing),
    "playground-descent": (bowl, descend),
    "watch": (training, nothing),
    "question-choices": (
        lambda: question_widget("path", choices=("Mul", "Add", "Pow")),
        lambda page: page.get_by_role("button", name="Add").click(),
    ),
    "question-rows": (lambda: question_widget("who", choices=("True", "False"), rows=("x", "x * 2")), nothing),
    "question-field": (lambda: question_widget("rows", 2), nothing),
}

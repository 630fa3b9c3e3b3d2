"""The graph of Python in a live view, whose nodes and edges are changed one by one."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

import gradlab as gl
from gradlab.explore.graph.painting import figure, paint
from gradlab.explore.report import explain
from gradlab.notebook.bundle import script, styles


def example_trace():
    with gl.tracing():
        a = gl.tensor(2.0, requires_grad=True)
        b = gl.tensor([1.0, -3.0, 2.0], requires_grad=True)
        w = gl.tensor([[0.5] * 7] * 3, requires_grad=True)
        d = a * b
        frozen = d.detach() * 3
        loss = (d**2 + frozen * a).sum() + (w * a + 0 * w).sum()
    return explain(loss, names={"a": a, "b": b, "w": w, "d": d}).trace


@pytest.fixture
def open_figure(browser):
    """Function `open_figure(trace)` that returns a page with the figure as `drawn`."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})

    def open_(trace):
        page.set_content(f"<style>{styles('kit/kit.css')}</style><div id=live class=gl-view></div>")
        page.evaluate(
            """async ([text, figure]) => {
                 const { graph } = (await import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})))).default;
                 window.drawn = graph(figure); document.getElementById('live').append(drawn.root); }""",
            [script("kit/graph.js"), figure(trace.nodes, trace.edges)],
        )
        return page

    yield open_
    page.close()


def test_the_live_drawing_has_a_size_a_name_and_every_text_of_the_static_one(open_figure):
    trace = example_trace()
    page = open_figure(trace)
    still = ET.fromstring(paint(trace.nodes, trace.edges, note="", text="", alt="").svg())
    texts = ["".join(text.itertext()) for text in still.iter("{http://www.w3.org/2000/svg}text")]
    own = [text for text in texts if not text.startswith(("bar under", "on a log scale"))]
    assert page.locator(".gl-figure text").all_text_contents() == own and len(own) > 30
    assert (
        page.locator(".gl-figure > title").text_content() == f"graph of {len(trace.nodes) + 1} nodes"
    )  # and the upstream gradient
    box = page.locator(".gl-figure").bounding_box()
    assert box["width"] > 100 and box["height"] > 100


def test_names_of_users_are_escaped(open_figure):
    with gl.tracing():
        a = gl.tensor(2.0, requires_grad=True)
        loss = a * 3
    page = open_figure(explain(loss, names={"<script>x</script>": a, "loss": loss}).trace)
    assert page.locator("script").count() == 0
    assert any("<script>" in text for text in page.locator(".gl-figure text").all_text_contents())


def test_nodes_and_edges_have_their_indices_in_the_graph(open_figure):
    trace = example_trace()
    page = open_figure(trace)
    at = next(i for i, node in enumerate(trace.nodes) if node.label == "**")
    edge = next(i for i, edge in enumerate(trace.edges) if edge.target == at)
    page.evaluate(
        "([at, edge]) => { drawn.choose(at); drawn.label(new Map([[edge, '+3.1']])); "
        "drawn.weigh(new Map([[edge, {width: 3, sign: -1}]])); }",
        [at, edge],
    )
    assert page.locator(".gl-chosen > text").first.text_content() == "**"
    assert page.locator(".gl-minus title").all_text_contents() == ["d to **, 3"]
    assert page.locator(".gl-labels text").all_text_contents() == ["+3.1"]
    assert page.locator(".gl-shares text").count() and not page.locator(".gl-shares").is_visible()
    away = page.evaluate(
        """edge => { const path = document.querySelector(`[data-edge='${edge}']`), turn = path.getScreenCTM();
             const { x, y, width, height } = document.querySelector('.gl-labels rect').getBoundingClientRect();
             return Math.min(...Array.from({ length: 101 }, (_, i) => {
               const there = path.getPointAtLength((i * path.getTotalLength()) / 100).matrixTransform(turn);
               return Math.hypot(there.x - x - width / 2, there.y - y - height / 2); })); }""",
        edge,
    )
    assert away < 10  # the label is on the line
    page.evaluate("() => { drawn.label(null); drawn.weigh(null); drawn.choose(null); }")
    assert (
        page.locator(".gl-chosen, .gl-minus, .gl-near, .gl-labels text").count() == 0 and page.locator(".gl-shares").is_visible()
    )
    page.evaluate("edge => drawn.light([], [edge], 'the cotangent', true)", edge)
    assert page.locator(".gl-lines .gl-lit").count() == page.locator(".gl-head-arrow").count() == 1


def test_a_gradient_arrives_at_a_port_and_fits_its_room(open_figure):
    trace = example_trace()
    page = open_figure(trace)
    at = next(i for i, node in enumerate(trace.nodes) if node.name == "a")
    room = page.locator(f"[data-node='{at}'] .gl-orange")
    wide = room.bounding_box()["width"]
    for text in ("7", "−1.234e−5"):
        page.evaluate("([at, text]) => drawn.arrive(at, [text])", [at, text])
        assert room.locator("text").text_content() == text and room.locator("text").bounding_box()["width"] < wide
        assert page.locator(".gl-waiting").count() == 0
    page.evaluate("at => drawn.arrive(at, [])", at)
    assert room.locator("text").text_content() == "" and page.locator(".gl-waiting").count() == 1

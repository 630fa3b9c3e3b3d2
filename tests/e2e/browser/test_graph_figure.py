"""The live drawing of a graph says what the static picture says, in the same places; nodes and edges answer one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np

import gradlab as gl
from gradlab.explore.graph.painting import figure, paint
from gradlab.explore.report import explain
from gradlab.notebook.bundle import script, styles

WORDS = """root => [...root.querySelectorAll('text')].filter(t => t.getBoundingClientRect().width).map(t => {
  const own = [...t.childNodes].filter(n => n.nodeName !== 'title').map(n => n.textContent).join('');
  const { left, top, right, bottom } = t.getBoundingClientRect();
  return [own, [left, top, right, bottom]]; })"""


def traced():
    with gl.tracing():
        a = gl.tensor(2.0, requires_grad=True)
        b = gl.tensor([1.0, -3.0, 2.0], requires_grad=True)
        w = gl.tensor([[0.5] * 7] * 3, requires_grad=True)
        d = a * b
        frozen = d.detach() * 3
        loss = (d**2 + frozen * a).sum() + (w * a + 0 * w).sum()
    return explain(loss, names={"a": a, "b": b, "w": w, "d": d}).trace


def shown(browser, trace, scheme="light"):
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1300, "height": 900})
    still = paint(trace.nodes, trace.edges, note="", text="", alt="").svg()
    page.set_content(f"<style>{styles('kit/kit.css')}</style><div id=still>{still}</div><div id=live class=gl-view></div>")
    page.evaluate(
        """async ([text, figure]) => {
             const { graph } = (await import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})))).default;
             window.drawn = graph(figure); document.getElementById('live').append(drawn.root);
             drawn.root.setAttribute('width', figure.width); drawn.root.setAttribute('height', figure.height); }""",
        [script("kit/graph.js"), figure(trace.nodes, trace.edges)],
    )
    return page


def test_the_live_drawing_says_what_the_static_one_says_where_it_says_it(browser):
    page = shown(browser, traced())
    still, live = page.evaluate(f"['still', 'live'].map(id => ({WORDS})(document.getElementById(id)))")
    assert len(still) > 30
    still = [
        text for text in still if not text[0].startswith(("bar under", "on a log scale"))
    ]  # the view's own caption says this
    assert sorted(text for text, _ in live) == sorted(text for text, _ in still)
    often = Counter(text for text, _ in still)
    here, there = ({text: np.array(box).reshape(2, 2) for text, box in boxes if often[text] == 1} for boxes in (still, live))
    assert len(here) > 10
    away = np.median([there[text].mean(0) - here[text].mean(0) for text in here], axis=0)  # from one drawing to the other
    for text, box in here.items():  # whatever the fonts: the middle of each lies in the other's box
        for one, other in ((box + away, there[text]), (there[text], box + away)):
            assert (other[0] <= one.mean(0)).all() and (one.mean(0) <= other[1]).all(), text
    page.close()


def test_nodes_and_edges_are_addressed_by_their_numbers_in_the_graph(browser):
    trace = traced()
    page = shown(browser, trace)
    at = next(i for i, node in enumerate(trace.nodes) if node.label == "**")
    edge = next(i for i, edge in enumerate(trace.edges) if edge.target == at)
    page.evaluate(
        "([at, edge]) => { drawn.choose(at); drawn.label(edge, '+3.1'); drawn.weigh(new Map([[edge, {width: 3, sign: -1}]])); }",
        [at, edge],
    )
    assert page.locator(".gl-chosen .gl-what").all_text_contents() == ["**"]
    assert page.locator(".gl-minus title").all_text_contents() == ["d to **, 3"]
    assert "+3.1" in page.locator(".gl-labels text").all_text_contents()
    page.evaluate("edge => { drawn.label(edge); drawn.weigh(null); drawn.choose(null); }", edge)
    assert page.locator(".gl-chosen, .gl-minus, .gl-near").count() == 0
    assert "+3.1" not in page.locator(".gl-labels text").all_text_contents()
    page.evaluate("at => drawn.port(at, {name: 'q', blue: '7', orange: '1.5', left: 30, right: 30, bar: 0, quiet: false})", at)
    assert page.locator(".gl-node").nth(at).locator(".gl-port text").all_text_contents() == ["q\u20027", "1.5"]
    page.evaluate("edge => drawn.light([], [edge], 'the cotangent', true)", edge)
    assert page.locator(".gl-lines .gl-lit").count() == page.locator(".gl-head-arrow").count() == 1
    page.close()

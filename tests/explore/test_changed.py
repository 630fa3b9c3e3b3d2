"""Comparison of two graphs in one picture, for programs with known insertions, removals and changes."""

from __future__ import annotations

import random

import pytest

import gradlab as gl
from gradlab.explore.report.changed import drawing_of, merge_graphs

NAMES = {}


def report_of(make, **values):
    """Return the report of a function of leaves."""
    names = {name: gl.tensor(value, dtype=gl.float64).requires_grad_() for name, value in values.items()}
    out = make(**names)
    return gl.explain(out, names={**names, "loss": out})


def states_and_texts(before, after):
    """Return the state and the text of each node."""
    both = merge_graphs(before.trace, after.trace)
    return {
        (node.name or node.label): (state, words) for node, state, words in zip(both.nodes, both.states, both.words, strict=True)
    }


def test_new_removed_and_changed_nodes():
    before = report_of(lambda x, w: (x * w).sin().sum(), x=[1.0, 2.0], w=[0.5, 0.25])
    after = report_of(lambda x, v: ((x * v).tanh() * 2).sum(), x=[1.0, 2.0], v=[0.5, 0.25])
    states = states_and_texts(before, after)
    assert states["w"][0] == "gone" and states["v"][0] == "new" and states["x"][0] == "changed"
    assert states["sin"][0] == "gone" and states["tanh"][0] == "new"
    both = merge_graphs(before.trace, after.trace)
    assert [node.label for node, state in zip(both.nodes, both.states, strict=True) if state == "same"] == ["sum"]
    assert set(both.edge_states) == {"same", "new", "gone"}


def test_numbers_before_and_after():
    before = report_of(lambda s: s * 4, s=2.0)
    after = report_of(lambda s: s * 2, s=2.0)
    assert states_and_texts(before, after)["s"] == ("changed", "gradient 4 → 2")
    assert states_and_texts(before, after)["loss"] == ("changed", "value 8 → 4")
    assert set(states_and_texts(before, before).values()) == {("same", "")}
    assert "nothing changed" in before.compare(before).drawing.svg()
    picture = before.compare(after).drawing.svg()
    assert "gradient 4 → 2" in picture and "2 changed" in picture


@pytest.mark.parametrize("seed", range(60))
def test_two_random_graphs_are_merged(seed):
    """The merged graph has no cycle, each node and edge of both once, and the state of each edge."""
    draw = random.Random(seed)

    def program(number):
        def make(**leaves):
            made, steps = (
                list(leaves.values()),
                [lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a.sin(), lambda a, b: a.exp()],
            )
            for _ in range(number):
                a, b = draw.choice(made), draw.choice(made)
                made.append(draw.choice(steps)(a, b))
            return sum(made[1:], made[0]).sum()

        return make

    before = report_of(program(draw.randint(1, 9)), x=[1.0, 0.5], y=[0.1, 0.2]).trace
    after = report_of(program(draw.randint(1, 9)), x=[1.0, 0.5], z=[0.1, 0.2]).trace
    both = merge_graphs(before, after)
    assert all(edge.source < edge.target for edge in both.edges)
    assert len(both.nodes) == len(before.nodes) + sum(state == "new" for state in both.states)
    assert len(both.nodes) == len(after.nodes) + sum(state == "gone" for state in both.states)
    assert len(both.edges) == len(before.edges) + both.edge_states.count("new")
    assert len(both.edges) == len(after.edges) + both.edge_states.count("gone")
    assert drawing_of(before, after, "").svg()


def test_the_picture_is_shown_with_the_table():
    before = report_of(lambda s: (s * 4).exp(), s=0.5)
    after = report_of(lambda s: (s * 4).sin(), s=0.5)
    comparison = before.compare(after)
    bundle = comparison._repr_mimebundle_()
    assert bundle["text/html"].count("<img") >= 1 and "‖gradient‖ before" in bundle["text/html"] and "text/latex" in bundle
    assert 'opacity="0.5"' in comparison.drawing.svg() and "faded, dashed: gone" in comparison.drawing.svg()
    assert bundle["text/plain"] == comparison.text()


def test_a_removed_edge_is_in_the_legend():
    """Replacing `x` by `x.sin()` removes no node."""
    before = report_of(lambda x: (x * 2).sum(), x=[1.0, 2.0])
    after = report_of(lambda x: (x.sin() * 2).sum(), x=[1.0, 2.0])
    assert "gone" not in merge_graphs(before.trace, after.trace).states
    assert "heavy: new · faded, dashed: gone" in before.compare(after).drawing.svg()
    assert "faded" not in before.compare(before).drawing.svg()


def test_hostile_names_are_escaped():
    name = "<script>x</script>"
    w = gl.ones(2).requires_grad_()
    one = gl.explain((w * w).sum(), names={name: w})
    other = gl.explain((w * 2).sum(), names={"w": w})
    assert "<script" not in one.compare(other)._repr_mimebundle_()["text/html"]
    assert "<script" not in one.compare(other).drawing.svg()


def test_without_a_graph_there_is_no_picture():
    one = report_of(lambda s: s * 4, s=0.5)
    bare = gl.explain(gl.ones(2).requires_grad_() * 2, names={})
    assert one.compare(bare).drawing is None or one.compare(bare).drawing.svg()


def test_a_large_graph_is_folded():
    def deep(kind):
        def make(w):
            h = w
            for _ in range(60):
                h = getattr(h * 0.9, kind)()
            return h.sum()

        return make

    comparison = report_of(deep("sin"), w=[0.5, 0.2]).compare(report_of(deep("tanh"), w=[0.5, 0.2]))
    assert comparison.drawing.height < 3000 and len(comparison.html()) < 200_000

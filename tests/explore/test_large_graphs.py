"""Very large graphs are cut, which bounds time and memory, and say so."""

from __future__ import annotations

import re

import pytest

import gradlab as gl
from gradlab.explore.graph import graphs as module
from gradlab.explore.trace import making
from gradlab.explore.trace.reading import spine_first, trace_of


def chain(n):
    """Apply y ← y · 1.0001 or y + x, n times, and sum."""
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y = x
    for i in range(n):
        y = y * 1.0001 if i % 2 else y + x
    return x, y.sum()


def count_reads(monkeypatch):
    """Return a list that grows with each read of a node's inputs."""
    from gradlab.explore.libraries.library_gradlab import Gradlab

    calls, inner = [], Gradlab.inputs
    monkeypatch.setattr(Gradlab, "inputs", lambda self, node: calls.append(1) or inner(self, node))
    return calls


def test_a_large_graph_is_cut_and_says_so(monkeypatch):
    _, out = chain(3000)
    calls = count_reads(monkeypatch)
    g = gl.graph(out, most=100)
    assert g.cut and len(g.nodes) == 102 and len(calls) < 210, "nodes further away were not read"
    said = "The graph has more: these are the 102 nodes nearest to the output. graph(…, most=…) reads on."
    assert g.text().endswith(said) and g.dot().endswith(f"// {said}\n")
    note = "The 102 nodes nearest to the output. graph(…, most=…) reads on."
    assert note in " ".join(re.sub(r"<[^>]+>", " ", g.svg()).split())
    assert said in " ".join(g.drawing().text.split())
    assert sum(node.kind == "operation" for node in g.nodes) == 100


def test_the_nearest_nodes_are_kept():
    _, out = chain(50)
    whole, part = gl.graph(out), gl.graph(out, most=20)
    assert not whole.cut and part.cut
    assert [node.label for node in part.nodes if node.kind == "operation"] == [
        node.label for node in whole.nodes if node.kind == "operation"
    ][-20:]


def test_the_bound_is_exact():
    _, out = chain(30)  # 31 operations and a leaf
    assert not gl.graph(out, most=32).cut and gl.graph(out, most=31).cut
    assert gl.graph(out, most=32).text() == gl.graph(out).text()


def test_other_functions_read_the_whole_graph():
    _, out = chain(200)
    library = module.library_of(out)
    assert len(spine_first(library, [out.node])[0]) == 202 and len(trace_of([out], {}).nodes) == 203


def test_a_report_of_a_large_graph_has_all_gradients(monkeypatch):
    x, out = chain(400)
    monkeypatch.setattr(making, "MAX_NODES", 50)
    report = gl.explain(out, names={"x": x, "out": out})
    said = " ".join(report._repr_mimebundle_()["text/plain"].split())
    assert "The graph has more: these are the 52 nodes nearest" in said and "not in the graph" not in said


def test_too_few():
    _, out = chain(5)
    with pytest.raises(ValueError, match=r"graph\(most=3\): there must be room for at least 8 nodes"):
        gl.graph(out, most=3)

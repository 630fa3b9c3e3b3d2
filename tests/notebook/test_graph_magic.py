"""`%graph` in a real IPython shell, `%%grad -i` without a front end, and the widget's messages."""

from __future__ import annotations

import gc
import re
import weakref

import pytest

import gradlab as gl
from gradlab.explore.explorer import Explorer
from gradlab.explore.graph import Graph

SETUP = """
x = gl.tensor([1., 2., 3.], requires_grad=True)
w = gl.tensor(2., requires_grad=True)
z = (w * x).exp()
loss = z.sum()
"""


@pytest.fixture
def cell(shell):
    shell.ok(SETUP)
    return shell


def test_names_of_the_user_and_saving_the_graph(cell):
    (bundle,) = cell.ok("%graph loss -o g").outputs
    assert "on 2 leaves, w and x" in bundle["text/plain"] and "text/html" in bundle
    assert isinstance(cell.ns["g"], Graph) and cell.ns["g"].level == "operations"
    assert cell.ns["x"].grad is None
    assert cell.ok("%graph loss -q -o h").outputs == [] == cell.ok("%graph loss;").outputs
    assert cell.ok("%graph [z,loss] -o two -q") and len(cell.ns["two"].trace.outputs) == 2
    cell.ok("%graph loss --level code -o rows -q")
    assert cell.ns["rows"].level == "code"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "%graph takes one expression, got nothing"),
        ("loss z", "%graph takes one expression, got 2 expressions, loss, z"),
        ("loss --level lines", "--level must be one of code, modules, operations, got 'lines'."),
        ("3", "3: graph(out) draws the graph of a tensor"),
        ("x.detach()", "x.detach(): element 0 of tensors does not require grad"),
        ("loss --lvel code", "%graph has no option --lvel. Did you mean --level?"),
    ],
)
def test_errors_are_one_sentence(cell, line, part):
    ran = cell.run(f"%graph {line}")
    assert type(ran.error).__name__ == "UsageError" and part in str(ran.error)
    assert ran.stderr.startswith("UsageError: ") and ran.stdout == ""


def test_help_and_completion(cell):
    text = cell.ns["get_ipython"]().find_line_magic("graph").__doc__
    assert "%graph OUT [options]" in text and "-i, --interactive" in text and max(map(len, text.splitlines())) <= 130
    _, found = cell.ns["get_ipython"]().complete("mod", "%graph z --level mod", 20)
    assert "modules" in found


def test_cuts_keep_their_place_when_rows_open(cell):
    cell.ok("\n" * 20 + "def f(t):\n    u = t * 2\n    for _ in range(60):\n        u = u * 1.01 + t\n    return u * u")
    lines = ["y = f(x)", "d = (y * 2).detach()", "loss = (y.exp() * d).sum()"]
    cell.ok("\n".join(["%%grad -q -o report", *lines]))
    made = Explorer(cell.ns["report"].trace)

    def show(**wish):
        rows = made.answer("rows", {"level": "code", **wish})["rows"]["rows"]
        return [(row["spoken"].partition(", ")[0], row["depth"]) for row in rows]

    closed = show(open=[])
    assert ("d = (y * 2).detach()", 0) in closed
    for depth in (1, 2):
        opened = show(depth=depth)
        assert len(opened) > len(closed) and [row for row in opened if not row[1] and row[0] != "x"] == closed
        after = [inner for _, inner in opened[opened.index(("d = (y * 2).detach()", 0)) + 1 :]]
        assert after[0] == 0, "the cut is not among the lines of the function"
    assert any(label.endswith(" more") for label, _ in opened)


def test_rows_of_code_are_the_lines_of_the_cell(cell):
    lines = [
        "def f(t):",
        "    u = t * 2",
        "    return u + 1",
        "y = f(x)",
        "s = y.exp()",
        "total = (s * y).sum()",
        "total.backward()",
    ]
    cell.ok("\n".join(["%%grad -q -o report", *lines]))
    trace = cell.ns["report"].trace
    about = Explorer(trace).about()
    rows = about["rows"]["code"]["rows"]
    labels = [row["spoken"].split(", ") for row in rows]
    assert [label[0] for label in labels] == ["u = t * 2", "return u + 1", "s = y.exp()", "total = (s * y).sum()", "total"]
    assert [next(text for text in label if text.startswith("line")) for label in labels[:-1]] == [
        f"line {n}" for n in (3, 4, 6, 7)
    ]
    assert labels[0][1] == "in f"
    inside = sorted(
        i for row in rows[:-1] for a, n in zip(*(row["members"][k::2] for k in (0, 1)), strict=True) for i in range(a, a + n)
    )
    assert inside == [i for i, node in enumerate(trace.nodes) if node.kind == "operation"]
    (source,) = about["sources"]
    assert source["title"] == "the cell" and source["lines"][5] == [6, "s = y.exp()"]
    exp = next(i for i, node in enumerate(trace.nodes) if node.operation == "ExpBackward0")
    _, first, last, start, end, text = about["spans"][about["nodes"]["place"][exp]]
    assert (first, last) == (6, 6) and source["lines"][5][1][start:end] == text == "y.exp()"


# ---------------------------------------------------------------------------------------------------------- the widget
@pytest.fixture
def widget():
    pytest.importorskip("anywidget")
    made = []

    def make(graph):
        one = graph.widget()
        one.said = []
        one.send = lambda content, buffers=(): one.said.append(content)
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def ask(widget, what, **more):
    widget._handle_custom_msg({"ask": what, "id": "t", **more}, [])
    answer = widget.said[-1]
    assert answer["answer"] == "t" and answer["ask"] == what
    return answer


def test_the_widget_of_a_graph_has_the_callers_names_and_answers(widget):
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    view = widget(gl.graph(y))
    assert view.about["head"]["out"] == "y" and view.about["head"]["by"] == ["x"] and view.about["sweep"]
    panel = ask(view, "node", node=0)["panel"]
    shown = re.findall(r"<title>\[0, \d\] (.+?)</title>", panel["gradient"]["map"])
    assert shown == ["2", "4"] and x.grad is None
    assert "got 99" in ask(view, "node", node=99)["error"]
    assert "steps" in ask(view, "steps") and "paths" in ask(view, "paths", node=0)
    assert "a request must be" in ask(view, "everything")["error"]
    assert "a list of numbers" in ask(view, "steps", numbers="1")["error"]


def graph_of_a_freed_tensor(view=lambda graph: graph):
    """Return the view of a graph whose output has no other reference, and a weak reference to its node."""
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    return view(gl.graph(y)), weakref.ref(y.grad_fn)


def test_close_releases_the_graph(widget):
    view, held = graph_of_a_freed_tensor(widget)
    gc.collect()
    assert held() is not None
    ask(view, "gone")
    gc.collect()
    assert held() is None and view.ended
    assert "not held. Run the cell again" in ask(view, "steps")["error"]
    assert ask(view, "node", node=0)["panel"]["title"] and ask(view, "fold", open=[])["figure"]["svg"]


def test_a_graph_holds_no_tensor(widget):
    shown, held = graph_of_a_freed_tensor()
    gc.collect()
    assert held() is None
    assert "not held" in " ".join(widget(shown).about["head"]["parts"])


def test_a_report_with_its_graph_opens_with_its_sweep(widget):
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    report = gl.explain((x * x).sum())
    view = widget(report.graph())
    assert view.about["nodes"]["norm"][0] == pytest.approx(20**0.5, rel=1e-3)

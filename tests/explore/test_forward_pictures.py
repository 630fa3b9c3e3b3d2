"""Picture and table of a run: folds, counts, shares, files, and errors."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

import gradlab as gl
from gradlab import nn
from gradlab.explore.forward.forward_graph import ForwardGraph
from gradlab.explore.forward.summary import cost_text, flops_text, percent_text, time_text
from gradlab.explore.markup import size_text


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln, self.fc, self.out = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.out(self.fc(self.ln(x)).relu())


class Stack(nn.Module):
    def __init__(self, depth, width=4):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.unused = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        for _ in range(3):
            x = self.cell(x)
        return {"x": x, "s": x.sum()}


@pytest.fixture
def x():
    return gl.randn(5, 4)


def labels(graph):
    return [node.label for node in graph.visible_graph[0]]


def test_equal_blocks_are_drawn_once_with_a_count(x):
    model = Stack(12)
    graph = gl.graph(model, x)
    shown = {node.label: node for node in graph.visible_graph[0]}
    assert len(shown) <= 25 and graph.drawing().height <= 1360
    assert "11 alike · Block" in shown["blocks[1–11]"].detail
    each = sum(p.numel() for p in model.blocks[0].parameters())
    assert f"{11 * each} parameters" in shown["blocks[1–11]"].detail.replace("\N{NARROW NO-BREAK SPACE}", "")
    assert labels(gl.graph(model, x, limit=8)) == ["x", "blocks[0–11]", "head", "output"]
    every = gl.graph(model, x, limit=1000)
    assert sum(label.endswith(".fc") for label in labels(every)) == 12


def test_totals_of_the_table(x):
    model = Stack(12)
    table = gl.graph(model, x).table()
    rows = {row.name: row for row in table.rows}
    assert table.parameters == table.trainable == sum(p.numel() for p in model.parameters()) == rows["model"].parameters
    assert rows["blocks[0–11]"].alike == 12
    assert rows["blocks[0–11]"].parameters == 12 * sum(p.numel() for p in model.blocks[0].parameters())
    assert table.mult_adds == 5 * (12 * (4 * 8 + 8 * 4) + 4 * 2) == rows["model"].mult_adds
    assert rows["blocks[0–11]"].mult_adds + rows["head"].mult_adds == table.mult_adds
    assert rows["head"].shapes == rows["model"].shapes == "5×2"
    assert table.parameter_bytes == 4 * table.parameters and table.input_bytes == 5 * 4 * 4
    assert gl.graph(model, x).table(depth=1).rows[-1].name == "head"
    assert "table(depth=2) shows all" in gl.graph(model, x).table(depth=1).text()
    text, page = table.text(), table._repr_mimebundle_()["text/html"]
    for word in ("Output shape", "Mult-adds", "12 alike", "100 %", "Not counted"):
        assert word in text and word in page
    assert len({len(line) for line in text.splitlines() if set(line) == {"─"}}) == 1


def test_frozen_parameters_are_shown(x):
    model = Stack(2)
    model.head.weight.requires_grad_(False)
    table = gl.graph(model, x).table()
    assert table.parameters - table.trainable == 8
    assert "of which 8 do not require grad" in table.text()


def test_calls_of_one_module_are_numbered_and_its_parameters_counted_once(x):
    graph = gl.graph(Loop(), x)
    assert [label for label in labels(graph) if "call" in label] == ["cell, call 1", "cell, call 2", "cell, call 3"]
    assert [node.label for node in graph.nodes if node.kind == "output"] == ["output['x']", "output['s']"]
    table = graph.table()
    (cell,) = (row for row in table.rows if row.name.startswith("cell"))
    assert (cell.name, cell.remark, cell.parameters, cell.mult_adds) == ("cell, calls 1–3", "Linear · 3 calls", 20, 3 * 5 * 16)
    unused = next(row for row in table.rows if row.name == "unused")
    assert not unused.called and "not called" in unused.remark and unused.parameters == 15
    assert table.parameters == 35


@pytest.mark.torch
def test_times_of_calls(monkeypatch):
    import torch

    moments = iter(range(10_000))
    monkeypatch.setattr("gradlab.clock.now", lambda: float(next(moments)))
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    table = gl.graph(net, torch.ones(2, 4), time=True).table()
    assert [row.seconds for row in table.rows] == [2.0, 1.0, 1.0] and table.seconds == 2.0
    assert gl.graph(net, torch.ones(2, 4)).table().seconds is None


def test_values_of_results(x):
    graph = gl.graph(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), x, values=True)
    relu = next(node for node in graph.nodes if node.operation == "relu")
    assert relu.value.statistics.minimum == 0.0 and relu.value.shape == (5, 8)
    assert "mean" in graph.svg()
    assert all(node.value is None for node in gl.graph(nn.Linear(4, 8), x).nodes)


def test_saving_in_every_format(x, tmp_path):
    graph = gl.graph(Stack(2), x)
    for name in ("run.svg", "run.png", "run.html", "run.dot", "run.txt"):
        assert graph.save(tmp_path / name) == tmp_path / name
    ElementTree.fromstring((tmp_path / "run.svg").read_text())
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "run.html").read_text()
    assert "Content-Security-Policy" in page and "Mult-adds" in page and "data:image/svg+xml" in page
    dot = (tmp_path / "run.dot").read_text()
    assert dot.count("->") == len(graph.edges) and "5×2" in dot
    assert (tmp_path / "run.txt").read_text() == graph.text() + "\n"
    with pytest.raises(ValueError, match=r"\.svg, \.png, \.pdf, \.html, \.dot or \.txt; got '\.gif'"):
        graph.save(tmp_path / "run.gif")
    w = gl.ones(3, requires_grad=True)
    gl.graph((w * w).sum()).save(tmp_path / "loss.html")
    assert "data:image/svg+xml" in (tmp_path / "loss.html").read_text()


def test_a_large_model_is_folded(x):
    model = Stack(300)
    graph = gl.graph(model, x)
    assert len(graph.run.trace.calls) == 1 + 300 * 4 + 1
    assert len(graph.visible_graph[0]) <= 25 and "299 alike" in " ".join(node.detail for node in graph.visible_graph[0])


def test_a_run_with_too_many_calls_is_cut(x, monkeypatch):
    monkeypatch.setattr("gradlab.explore.forward.run.MOST", 10)
    graph = gl.graph(Stack(4), x)
    assert graph.run.truncated and "Only the first" in graph.table().text() and "were recorded" in graph.svg()


def test_text_of_users_is_escaped(x):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({"<b>one</b>": nn.Linear(4, 2)})

        def extra_repr(self):
            return "<script>"

        def forward(self, x):
            return {"<i>y</i>": self.heads["<b>one</b>"](x["<u>x</u>"])}

    graph = gl.graph(Odd(), {"<u>x</u>": x})
    for page in (graph.svg(), graph.drawing().html(), graph.table().html(), graph._page()):
        assert not re.search("<(b>one|i>y|u>x|script>)", page)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: gl.graph(nn.Linear(4, 2)), r"needs an input: call graph\(model, input\).* takes a tensor of shape \(…, 4\)\."),
        (lambda x: gl.graph(nn.Linear(4, 2), x, x), r"do not fit Linear\.forward\(input\): too many positional arguments"),
        (lambda x: gl.graph(nn.Linear(4, 2), y=x), r"do not fit Linear\.forward\(input\)"),
        (lambda x: gl.graph(nn.Linear), "got the class Linear. Create the model first"),
        (lambda x: gl.graph(lambda: 3), "no tensor of gradlab or PyTorch took part in the run"),
        (lambda x: gl.graph((x * gl.ones(4, requires_grad=True)).sum(), width=3), "of a tensor takes no width"),
        (lambda x: gl.graph(nn.Embedding(7, 2)), "integers from 0 to 6"),
        (
            lambda x: gl.graph(nn.Sequential(nn.Conv2d(3, 4, 3))),
            r"`0`, Conv2d, takes a tensor of shape \(batch, 3, height, width\)",
        ),
    ],
)
def test_wrong_arguments_are_explained(x, call, message):
    with pytest.raises(TypeError, match=message):
        call(x)


def test_methods_of_graphs_that_a_run_does_not_have(x):
    graph = gl.graph(Stack(1), x)
    assert isinstance(graph, ForwardGraph)
    with pytest.raises(RuntimeError, match="static picture"):
        graph.widget()
    with pytest.raises(RuntimeError, match="no gradients"):
        graph.paths("x")
    with pytest.raises(ValueError, match=r"\.table\(\) has its modules"):
        gl.graph(Stack(1), x, level="modules")
    with pytest.raises(ValueError, match="at least 8"):
        gl.graph(Stack(1), x, limit=3)


def test_two_runs_side_by_side(x):
    first, second = gl.graph(Stack(1), x), gl.graph(Stack(2), x)
    both = gl.graphs(one=first, two=second)
    assert "one" in both.svg() and both.drawing().width > first.drawing().width


def test_the_models_name_and_the_arguments_are_the_heading(x):
    net = Stack(1).eval()
    assert repr(gl.graph(net, x)).startswith("<Graph of net(x): Stack, ")
    assert "evaluation mode" in repr(gl.graph(net, x)) and "training mode" in repr(gl.graph(net.train(), x))
    assert repr(gl.graph(lambda: net(x))).startswith("<Graph of the run: Stack")


def test_numbers_as_texts():
    assert [flops_text(n) for n in (0, 812, 3_640_000_000)] == ["0 FLOPs", "812 FLOPs", "3.64 GFLOPs"]
    assert [cost_text(n) for n in (0, 812, 3_640_000_000)] == ["0", "812", "3.64 G"]
    assert [size_text(n) for n in (0, 1, 12_500_000)] == ["0 bytes", "1 byte", "12.5 MB"]
    assert [time_text(s) for s in (2.5, 0.00125, 1.5e-5)] == ["2.5 s", "1.25 ms", "15 µs"]
    assert [percent_text(*pair) for pair in ((1, 1), (1, 3), (1, 500), (1, 5000), (0, 3), (1, 0))] == [
        "100 %",
        "33 %",
        "0.2 %",
        "≈ 0 %",
        "",
        "",
    ]

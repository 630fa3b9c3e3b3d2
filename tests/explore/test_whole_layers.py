"""A layer that runs many operations is one node with the user's name, shapes and inputs."""

from __future__ import annotations

import itertools

import pytest
from cell_traces import trace_cell

import gradlab as gl
from gradlab.explore.explorer.model import Explorer
from gradlab.explore.graph.graphs import Graph
from gradlab.explore.graph.rows import module_rows
from gradlab.explore.labels import sign

KINDS = ("LSTM", "GRU", "RNN")
CHOICES = [
    dict(zip(("num_layers", "bidirectional", "batch_first", "state"), choice, strict=True))
    for choice in itertools.product((1, 2), (False, True), (False, True), (False, True))
]


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def library(request):
    return gl if request.param == "gradlab" else pytest.importorskip("torch")


def layer_in(trace):
    """Return the only folded node of a picture, and its inputs by name with their shapes."""
    nodes, edges = Graph(trace).visible_graph
    [at] = [i for i, node in enumerate(nodes) if node.kind == "folded"]
    return nodes[at], {nodes[edge.source].label: edge.shape for edge in edges if edge.target == at}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "choice", CHOICES, ids=lambda choice: "-".join(key for key, value in choice.items() if value not in (1, False))
)
def test_a_recurrent_layer_has_its_name_its_shapes_and_its_inputs(library, kind, choice):
    options = {key: value for key, value in choice.items() if key != "state"}
    library.manual_seed(0)
    net = getattr(library.nn, kind)(4, 3, **options)
    shape = (2, 5, 4) if options["batch_first"] else (5, 2, 4)
    space = {"net": net, "x": library.randn(*shape, requires_grad=True)}
    first = (options["num_layers"] * (1 + options["bidirectional"]), 2, 3)
    names = {"LSTM": ("h0", "c0")}.get(kind, ("h0",)) if choice["state"] else ()
    space |= {name: library.zeros(*first, requires_grad=True) for name in names}
    given = {0: "x", 1: "x, h0", 2: "x, (h0, c0)"}[len(names)]
    trace = trace_cell(f"out, last = net({given})\nloss = out.sum()\nloss.backward()", space)
    node, inputs = layer_in(trace)
    assert (node.label, node.detail, node.name) == ("net", kind, "out")
    assert node.shape == (*shape[:2], 3 * (1 + options["bidirectional"]))
    assert inputs == {"x": shape, **dict.fromkeys(names, first)}
    assert {trace.nodes[i].name for i in node.members if trace.nodes[i].kind == "leaf"} == {
        f"net.{name}" for name, _ in net.named_parameters()
    }
    [row] = [row for row in module_rows(trace) if row.kind == "module"]
    assert (row.label, row.small, row.made) == ("net", kind, "×".join(map(str, node.shape)))


@pytest.mark.torch
@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_sequence_is_an_input_of_the_layer(kind):
    torch = pytest.importorskip("torch")
    space = {"net": getattr(torch.nn, kind)(4, 3, batch_first=True), "x": torch.randn(2, 5, 4, requires_grad=True)}
    space["pack"] = torch.nn.utils.rnn.pack_padded_sequence
    trace = trace_cell("p = pack(x, [5, 3], batch_first=True)\nloss = net(p)[0].data.sum()\nloss.backward()", space)
    node, inputs = layer_in(trace)
    assert (node.label, node.detail, node.shape) == ("net", kind, (8, 3))
    assert inputs == {"pack_padded_sequence": (8, 4)} and not trace.cuts


MORE = {
    "LSTMCell": ("net(x)[0]", (2, 4), (2, 3)),
    "GRUCell": ("net(x)", (2, 4), (2, 3)),
    "RNNCell": ("net(x)", (2, 4), (2, 3)),
    "MultiheadAttention": ("net(x, x, x)[0]", (5, 2, 4), (5, 2, 4)),
}


@pytest.mark.parametrize("kind", MORE)
def test_cells_and_attention_are_one_node(library, kind):
    call, shape, made = MORE[kind]
    net = getattr(library.nn, kind)(4, 2 if kind == "MultiheadAttention" else 3)
    space = {"net": net, "x": library.randn(*shape, requires_grad=True)}
    node, inputs = layer_in(trace_cell(f"loss = {call}.sum()\nloss.backward()", space))
    assert (node.label, node.detail, node.shape, inputs) == ("net", kind, made, {"x": shape})


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(2, 5, 8), (2, 1, 5, 8)], ids=["in many operations", "in one"])
def test_attention_without_a_module_has_the_name_of_its_function(shape):
    torch = pytest.importorskip("torch")
    space = {name: torch.randn(*shape, requires_grad=True) for name in "qkv"} | {"F": torch.nn.functional}
    trace = trace_cell("loss = F.scaled_dot_product_attention(q, k, v).sum()\nloss.backward()", space)
    nodes, edges = Graph(trace).visible_graph
    at = next(i for i, node in enumerate(nodes) if node.label == "scaled_dot_product_attention")
    assert {nodes[edge.source].label: edge.shape for edge in edges if edge.target == at} == dict.fromkeys("qkv", shape)


@pytest.mark.torch
def test_a_layer_of_thousands_of_operations_is_one_node():
    torch = pytest.importorskip("torch")
    net = torch.nn.GRU(4, 3, num_layers=2, bidirectional=True)
    trace = trace_cell("loss = net(x)[0].sum()\nloss.backward()", {"net": net, "x": torch.randn(40, 2, 4, requires_grad=True)})
    assert sum(node.kind == "operation" for node in trace.nodes) > 1500
    assert {node.module for node in trace.nodes if node.kind == "operation"} == {"net", ""}
    node, inputs = layer_in(trace)
    assert (node.label, node.detail, inputs) == ("net", "GRU", {"x": (40, 2, 4)})


def test_a_layer_opens_and_its_parameters_are_shown_on_demand(library):
    space = {"net": library.nn.LSTM(4, 3, batch_first=True), "x": library.randn(2, 5, 4, requires_grad=True)}
    trace = trace_cell("loss = net(x)[0].sum()\nloss.backward()", space)
    explorer = Explorer(trace)
    shut = explorer.answer("fold", {"open": []})["figure"]
    [address] = [node["opens"] for node in shut["nodes"] if node.get("opens")]
    assert len(explorer.answer("fold", {"open": [address]})["figure"]["nodes"]) > len(shut["nodes"])
    assert len(Graph(trace, limit=len(trace.nodes)).visible_graph[0]) == len(trace.nodes)
    assert "net.weight_ih_l0" in {node.name for node in Graph(trace, unfold=["net.weight_ih_l0"]).visible_graph[0]}


def test_a_class_of_the_user_with_such_a_name_is_not_folded(library):
    class LSTM(library.nn.Module):
        def forward(self, x):
            return x.tanh() * 2

    trace = trace_cell("loss = net(x).sum()\nloss.backward()", {"net": LSTM(), "x": library.ones(3, requires_grad=True)})
    assert [node.label for node in Graph(trace).visible_graph[0]] == ["x", "tanh", "×", "sum", "loss"]


BACKENDS = ("cudnn", "mkldnn", "miopen", "mps", "nnpack", "native", "thnn", "slow", "flash", "efficient", "overrid", "legit")


@pytest.mark.torch
def test_labels_do_not_name_the_backend():
    torch = pytest.importorskip("torch")
    names = [name for name in dir(torch._C._functions) if "Backward" in name and name.count("Backward") == 1]
    composite = [name for name in names if any(word in name.lower() for word in (*BACKENDS, "rnn", "attention"))]
    assert len(composite) > 30
    wrong = {name: sign(name) for name in composite if not name.startswith("ToMkldnn")}
    assert {name: label for name, label in wrong.items() if any(word in label for word in BACKENDS)} == {}

"""Objects of plain classes that compute like modules are drawn like modules: `layers[0]`, a Linear, in `layers`."""

from __future__ import annotations

import gc
import linecache
import weakref

import pytest

import gradlab as gl
from gradlab.diagnose.source_locations import cells
from gradlab.explore.explorer.outline import module_outline
from gradlab.explore.graph.folding import fold
from gradlab.explore.trace.recorder import Recorder

LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
LINEAR = """\
import {library} as torch


def leaf(*shape):
    made = torch.randn(*shape)
    made.requires_grad = True
    return made


class Linear:
    def __init__(self, a, b):
        self.weight, self.bias = leaf(a, b), leaf(b)

    def __call__(self, x):
        self.out = x @ self.weight + self.bias
        return self.out


class Tanh:
    def __call__(self, x):
        return torch.tanh(x)

"""
NEURONS = """
class Neuron:
    def __init__(self, n):
        self.w = [leaf(1) for _ in range(n)]

    def __call__(self, x):
        return torch.tanh(sum(w * v for w, v in zip(self.w, x)))


class Layer:
    def __init__(self, n, m):
        self.neurons = [Neuron(n) for _ in range(m)]

    def __call__(self, x):
        return [neuron(x) for neuron in self.neurons]


class MLP:
    def __init__(self):
        self.layers = [Layer(2, 3), Layer(3, 1)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x[0]


net = MLP()
"""
LOOP = """
for layer in layers:
    x = layer(x)
x.sum().backward()
"""


def run(library, before, cell):
    """Return the trace of a cell and the namespace after it."""
    space = {"__name__": "__main__"}
    exec(compile((LINEAR + before).replace("{library}", library), "<before>", "exec"), space)
    linecache.cache["<cell>"] = len(cell), None, cell.splitlines(keepends=True), "<cell>"
    try:
        cells.current = "<cell>"
        with Recorder(lambda: space) as recorder:
            exec(compile(cell, "<cell>", "exec"), space)
    finally:
        cells.current = None
    trace = recorder.trace()
    recorder.forget()
    return trace, space


def objects(trace):
    return {one.path: one.kind for one in trace.objects}


def operations(trace, path):
    """Return the operations computed by an object itself, not by objects that it calls."""
    return [node.label for node in trace.nodes if node.object == path]


def paths(rows):
    return [(row[1], row[2].partition(" · ")[0], paths(row[6])) for row in rows if row[0] == "module"]


DATACLASS = """
from dataclasses import dataclass


@dataclass
class Scale:
    by: object

    def forward(self, x):
        return x * self.by


scale = Scale(leaf(3))
"""
CONTAINERS = [
    ("layers = [Linear(3, 4), Tanh(), Linear(4, 3)]", LOOP, ["layers[0]", "layers[1]", "layers[2]"]),
    (
        "blocks = [[Linear(3, 3), Tanh()], [Linear(3, 3)]]",
        "for block in blocks:\n    for layer in block:\n        x = layer(x)\nx.sum().backward()",
        ["blocks[0][0]", "blocks[0][1]", "blocks[1][0]"],
    ),
    (
        "net = {'in': Linear(3, 4), 'act': Tanh()}",
        "for layer in net.values():\n    x = layer(x)\nx.sum().backward()",
        ["net['in']", "net['act']"],
    ),
    (
        "class Net: pass\nnet = Net()\nnet.blocks = [Linear(3, 3), Tanh()]",
        "for layer in net.blocks:\n    x = layer(x)\nx.sum().backward()",
        ["net.blocks[0]", "net.blocks[1]"],
    ),
    (
        DATACLASS,
        "scale.forward(x).sum().backward()",
        ["scale"],
    ),
    ("fc, act = Linear(3, 3), Tanh()", "act(fc(x)).sum().backward()", ["fc", "act"]),
]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("before", "cell", "wanted"), CONTAINERS, ids=[wanted[0] for _, _, wanted in CONTAINERS])
def test_objects_are_named_by_their_containers(library, before, cell, wanted):
    trace, space = run(library, f"{before}\nx = torch.ones(2, 3)\n", cell)
    assert objects(trace) == {path: type(eval(path, space)).__name__ for path in wanted}
    made = {"Linear": ["@", "+"], "Tanh": ["tanh"], "Scale": ["×"]}
    for path in wanted:
        assert operations(trace, path) == made[objects(trace)[path]]
    assert [node.label for node in trace.nodes if node.kind == "operation" and not node.layer] == ["sum"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_outline_of_neurons_is_the_tree_of_objects(library):
    trace, _ = run(library, NEURONS, "y = net([torch.ones(1), torch.ones(1)])\nloss = ((y - 1) ** 2).sum()\nloss.backward()")
    assert objects(trace) == {
        "net": "MLP",
        **{f"net.layers[{i}]": "Layer" for i in range(2)},
        **{f"net.layers[0].neurons[{i}]": "Neuron" for i in range(3)},
        "net.layers[1].neurons[0]": "Neuron",
    }
    (net,) = paths(module_outline(trace))
    assert net[:2] == ("net", "MLP")
    ((label, _, layers),) = net[2]
    assert (label, [layer[:2] for layer in layers]) == ("layers", [("[0]", "Layer"), ("[1]", "Layer")])


@pytest.mark.parametrize("library", LIBRARIES)
def test_folded_graph_shows_layers_with_their_parameters(library):
    cell = "for layer in layers:\n    x = layer(x)\nloss = x.sum()\nloss.backward()"
    trace, _ = run(library, "layers = [Linear(3, 4), Tanh(), Linear(4, 3)]\nx = torch.ones(2, 3)\n", cell)
    nodes, _ = fold(trace.nodes, trace.edges, 5, trace.layers)
    shown = {node.label: node for node in nodes if node.kind != "output"}
    assert list(shown) == ["layers[0]", "layers[1]", "layers[2]", "sum"]
    assert {label: node.detail.partition(" · ")[0] for label, node in shown.items()} == {
        "layers[0]": "Linear",
        "layers[1]": "Tanh",
        "layers[2]": "Linear",
        "sum": "",
    }
    assert set(shown["layers[0]"].inside) == {"layers[0].weight", "layers[0].bias"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_cell_of_a_recurrent_network_is_one_object(library):
    before = """
class Cell:
    def __init__(self, n):
        self.u, self.v = Linear(n, n), Linear(n, n)

    def __call__(self, x, h):
        return torch.tanh(self.u(x) + self.v(h))


cell, h = Cell(3), torch.zeros(2, 3)
"""
    trace, _ = run(library, before, "for _ in range(4):\n    h = cell(torch.ones(2, 3), h)\nh.sum().backward()")
    assert objects(trace) == {"cell": "Cell", "cell.u": "Linear", "cell.v": "Linear"}
    assert sorted(operations(trace, "cell")) == ["+"] * 4 + ["tanh"] * 4
    assert sorted(operations(trace, "cell.v")) == ["+"] * 4 + ["@"] * 4


@pytest.mark.parametrize("library", LIBRARIES)
def test_objects_in_a_function_that_has_returned(library):
    """The objects no longer exist when the trace is made."""
    before = "def train():\n    layers = [Linear(3, 3), Tanh()]\n    x = torch.ones(2, 3)\n"
    trace, _ = run(library, before + "".join(f"    {line}\n" for line in LOOP.strip().splitlines()), "train()")
    assert objects(trace) == {"layers[0]": "Linear", "layers[1]": "Tanh"}
    assert operations(trace, "layers[0]") == ["@", "+"]


OTHERS = {
    "a trainer whose call runs backward": """
class Trainer:
    def __init__(self):
        self.w = leaf(3)

    def __call__(self):
        (self.w * 2).sum().backward()


trainer = Trainer()
#---
trainer()
""",
    "a value": """
class Value:
    def __init__(self, data):
        self.data = data

    def __mul__(self, other):
        return Value(self.data * other.data)


a, b = Value(leaf(1)), Value(leaf(1))
#---
(a * b).data.sum().backward()
""",
    "a test case": """
import unittest


class Case(unittest.TestCase):
    def test(self):
        (leaf(3) * 2).sum().backward()


case = Case("test")
#---
case()
""",
    "a function of parameters": """
class Params:
    pass


def forward(params, x):
    return x @ params.weight


params = Params()
params.weight = leaf(3, 2)
#---
forward(params, torch.ones(2, 3)).sum().backward()
""",
    "a closure": """
def layer(w):
    def forward(x):
        return x @ w

    return forward


f = layer(leaf(3, 2))
#---
f(torch.ones(2, 3)).sum().backward()
""",
    "an object without weak references": """
class Slotted:
    __slots__ = ("w",)

    def __call__(self, x):
        return x @ self.w


layer = Slotted()
layer.w = leaf(3, 2)
#---
layer(torch.ones(2, 3)).sum().backward()
""",
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", OTHERS)
def test_other_objects_are_not_layers(library, name):
    trace, _ = run(library, *OTHERS[name].split("#---\n"))
    assert len([node for node in trace.nodes if node.kind == "operation"]) == 2
    assert not trace.objects
    assert not any(node.layer for node in trace.nodes)


@pytest.mark.parametrize("library", LIBRARIES)
def test_object_that_a_module_calls(library):
    """The object has its own name, and the module's other operations belong to the module."""
    before = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = torch.nn.Linear(3, 3), Tanh()

    def forward(self, x):
        return self.act(self.fc(x)) * 2


net = Net()
"""
    trace, _ = run(library, before, "net(torch.ones(2, 3)).sum().backward()")
    assert objects(trace) == {"net.act": "Tanh"}
    assert [(node.label, node.layer, node.module) for node in trace.nodes if node.kind == "operation"][-3:] == [
        ("tanh", "net.act", "net"),
        ("×", "net", "net"),
        ("sum", "", ""),
    ]


HOSTILE = """
class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError("no " + name)


class Hostile(Linear, metaclass=Meta):
    __hash__ = None

    def __getattr__(self, name):
        raise RuntimeError("no " + name)

    def __eq__(self, other):
        raise RuntimeError("no ==")

    def __bool__(self):
        raise RuntimeError("no bool")

    def __call__(self, x):
        return x @ self.weight + self.bias


layers = [Hostile(3, 3)]
x = torch.ones(2, 3)
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_code_of_the_object_runs(library):
    trace, _ = run(library, HOSTILE, "layers[0](x).sum().backward()")
    assert objects(trace) == {"layers[0]": "Hostile"}
    assert operations(trace, "layers[0]") == ["@", "+"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_is_kept_alive(library):
    trace, space = run(library, "layers = [Linear(3, 3), Tanh()]\nx = torch.ones(2, 3)\n", LOOP)
    alive = [weakref.ref(layer) for layer in space["layers"]] + [weakref.ref(space["layers"][0].weight)]
    space.clear()
    gc.collect()
    assert not any(ref() is not None for ref in alive)
    assert objects(trace) == {"layers[0]": "Linear", "layers[1]": "Tanh"}


def test_frames_keep_no_tensor_after_a_note():
    """A tensor that a running method has released is freed, although its names were read."""
    gone = []

    class Layer:
        def __call__(self, x):
            y = x * 2
            ref = weakref.ref(y)
            y = y.sum()
            gone.append(ref)
            return y

    layer, x = Layer(), gl.ones(300, requires_grad=True)
    with Recorder(lambda: {"layer": layer, "x": x}) as recorder:
        layer(x)
        gc.collect()
        assert gone[0]() is None
    recorder.forget()

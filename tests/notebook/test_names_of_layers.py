"""Weights of layers written by hand in a list are named by the list, as in `layers[3].gamma`, wherever they are named.

The layers are those of the makemore lectures (karpathy/nn-zero-to-hero): plain classes, a flat list of all parameters, and loops
whose variables remain defined.
"""

from __future__ import annotations

import re

import pytest

import gradlab as gl
from gradlab import cli
from gradlab.explore.explorer.model import Explorer
from gradlab.explore.graph.rows import module_rows
from gradlab.explore.module_paths import attribute, last_step, prefixes
from gradlab.explore.names import module_names, names_in

LAYERS = """\
import {library} as torch
F = torch.nn.functional
torch.manual_seed(1)


class Linear:
    def __init__(self, fan_in, fan_out, bias=True):
        self.weight = torch.randn(fan_in, fan_out) / fan_in**0.5
        self.bias = torch.zeros(fan_out) if bias else None

    def __call__(self, x):
        self.out = x @ self.weight
        if self.bias is not None:
            self.out = self.out + self.bias
        return self.out

    def parameters(self):
        return [self.weight] + ([] if self.bias is None else [self.bias])


class BatchNorm1d:
    def __init__(self, dim):
        self.gamma, self.beta = torch.ones(dim), torch.zeros(dim)
        self.running_mean, self.running_var = torch.zeros(dim), torch.ones(dim)

    def __call__(self, x):
        mean, var = x.mean(0, keepdim=True), x.var(0, keepdim=True)
        self.out = self.gamma * (x - mean) / torch.sqrt(var + 1e-5) + self.beta
        with torch.no_grad():
            self.running_mean = 0.9 * self.running_mean + 0.1 * mean
            self.running_var = 0.9 * self.running_var + 0.1 * var
        return self.out

    def parameters(self):
        return [self.gamma, self.beta]


class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x)
        return self.out

    def parameters(self):
        return []

"""
MADE = """\
C = torch.randn(27, 4)
layers = [Linear(12, 16), BatchNorm1d(16), Tanh(), Linear(16, 27), BatchNorm1d(27)]
parameters = [C] + [p for layer in layers for p in layer.parameters()]
for p in parameters:
    p.requires_grad = True
X, Y = torch.randint(0, 27, (32, 3)), torch.randint(0, 27, (32,))
"""
STEPS = """\
for i in range(3):
    x = C[X].view(32, -1)
    for layer in layers:
        x = layer(x)
    loss = F.cross_entropy(x, Y)
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.1 * p.grad
"""
WANTED = ["C", "layers[0].weight", "layers[0].bias", "layers[1].gamma", "layers[1].beta", "layers[3].weight", "layers[3].bias"]
WANTED += ["layers[4].gamma", "layers[4].beta"]
LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]


def program(library, *parts):
    return "".join(parts).replace("{library}", library)


def leaves(space):
    return {name: tensor for name, tensor in names_in(space).items() if tensor.requires_grad and tensor.is_leaf}


def run(library, *parts):
    """Run a program as a module of the user, and return its names."""
    space = {"__name__": "__main__"}
    exec(program(library, *parts), space)
    return space


@pytest.mark.parametrize("library", LIBRARIES)
def test_leaves_are_named_by_their_layers(library):
    space = run(library, LAYERS, MADE, STEPS)
    found = leaves(space)
    assert sorted(found) == sorted(WANTED)
    assert all(eval(name, space) is tensor for name, tensor in found.items())


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("net = {'in': Linear(4, 4), 'out': [Linear(4, 4)]}", ["net['in'].weight", "net['out'][0].weight"]),
        (
            "class Net: pass\nnet = Net(); net.layers = [Linear(4, 4), Linear(4, 4)]",
            ["net.layers[0].weight", "net.layers[1].weight"],
        ),
        ("blocks = [[Linear(4, 4)], [Linear(4, 4)]]", ["blocks[0][0].weight", "blocks[1][0].weight"]),
        ("w = torch.randn(4, 4); heads = [torch.randn(4, 4), w]", ["heads[0]", "w"]),
    ],
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_containers_of_other_kinds(library, made, wanted):
    """The object that contains the layers gives the name, not the list of all parameters, which a loop may overwrite."""
    space = run(library, LAYERS, f"{made}\n")
    tensors = [eval(name, space) for name in wanted]
    space["parameters"] = tensors
    space["p"] = space["q"] = tensors[-1]
    for tensor in tensors:
        tensor.requires_grad = True
    found = {name: tensor for name, tensor in leaves(space).items() if any(tensor is one for one in tensors)}
    assert sorted(found) == sorted(wanted)
    assert all(eval(name, space) is tensor for name, tensor in found.items())


def test_a_second_name_that_is_not_a_loop_variable_is_kept():
    space = run("gradlab", LAYERS, MADE)
    space["head"] = space["layers"][3].weight
    assert "head" in names_in(space, loops=frozenset())
    assert "head" not in names_in(space, loops=frozenset({"head"})), "a loop variable is not a name"


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_a_cell(shell, library):
    """Each leaf has one row, and a running mean has none."""
    shell.ok(program(library, LAYERS, MADE))
    ran = shell.ok(program(library, "%%grad -o report\n", STEPS))
    report = shell.ns["report"]
    assert sorted(row.name for row in report.rows) == sorted(WANTED)
    text = ran.stdout + report.text()
    assert not re.search(r"running_|parameters\[|\bp\.grad w|\blayer\.", text.partition("The cell, and")[0]), text


@pytest.mark.parametrize("library", LIBRARIES)
def test_layers_are_drawn_like_modules(shell, library):
    """Each is one node of the picture and one row of the explorer's modules; the table is a tree of layers with classes."""
    shell.ok(program(library, LAYERS, MADE))
    shell.ok(program(library, "%%grad -o report\n", STEPS))
    report = shell.ns["report"]
    kinds = {
        "layers[0]": "Linear",
        "layers[1]": "BatchNorm1d",
        "layers[2]": "Tanh",
        "layers[3]": "Linear",
        "layers[4]": "BatchNorm1d",
    }
    assert {one.path: one.kind for one in report.trace.objects} == kinds
    rows = {row.label: row for row in module_rows(report.trace) if row.kind == "module"}
    assert [label for label in rows if label.startswith("layers")] == list(kinds)
    assert Explorer(report.trace).graph.level == "modules"
    drawn = report._repr_mimebundle_()["text/html"]
    assert all(path in drawn for path in kinds)
    tree = re.search(r"layers .*?leaf", report.text(), re.DOTALL)[0]
    assert re.findall(r"^ +(\d)  (\w+)", tree, re.MULTILINE) == [
        (path[7], kind) for path, kind in kinds.items() if kind != "Tanh"
    ]


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_a_function_of_an_earlier_cell(shell, library):
    body = "".join(f"    {line}\n" for line in (MADE + STEPS).splitlines())
    shell.ok(program(library, LAYERS, "def train():\n", body))
    shell.ok("%%grad -o report\ntrain()")
    assert sorted(row.name for row in shell.ns["report"].rows) == sorted(WANTED)


@pytest.mark.parametrize("library", LIBRARIES)
def test_findings_of_a_script(library, tmp_path, monkeypatch, capsys):
    """The bias before the normalisation is named by its layer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(program(library, LAYERS, MADE, STEPS))
    cli.main(["doctor", "train.py"])
    said = capsys.readouterr().err
    assert "layers[0].bias" in said, said
    assert not re.search(r"parameters\[|`p`|layer\.", said), said


# --------------------------------------------------------------------------------------------------------- paths of modules
@pytest.mark.parametrize("library", LIBRARIES)
def test_paths_of_modules_are_code(library):
    nn = gl.nn if library == "gradlab" else pytest.importorskip("torch").nn
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh(), nn.Linear(2, 2)))
    net.heads = nn.ModuleDict({"a": nn.Linear(2, 2), "1": nn.Linear(2, 2), "last one": nn.Linear(2, 2)})
    net.scales = nn.ParameterList([nn.Parameter(net[0].bias.detach().clone())])
    space = {"net": net}
    names = module_names([space])
    assert {"net", "net[0]", "net[1][0]", "net[1][1]", "net.heads.a", "net.heads['1']", "net.heads['last one']"} <= set(
        names.values()
    )
    assert all(id(eval(name, space)) == key for key, name in names.items())
    found = names_in(space)
    assert "net.scales[0]" in found
    assert all(eval(name, space) is tensor for name, tensor in found.items())


def test_steps_of_a_path():
    assert attribute("net", "1.0.conv") == "net[1][0].conv"
    assert prefixes("net[1][0].conv") == ["net", "net[1]", "net[1][0]", "net[1][0].conv"]
    assert prefixes("") == []
    assert [last_step(path) for path in ("net", "net.conv", "net.heads['a.b']")] == ["net", "conv", "['a.b']"]


def test_the_variable_of_a_loop_over_modules_is_not_a_name():
    layers = [gl.nn.Linear(2, 2), gl.nn.Linear(2, 2)]
    assert set(module_names([{"layers": layers, "layer": layers[-1]}]).values()) == {"layers[0]", "layers[1]"}
    net = gl.nn.Sequential(*layers)
    assert set(module_names([{"net": net, "m": layers[-1]}]).values()) == {"net", "net[0]", "net[1]"}

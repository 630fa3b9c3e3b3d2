"""Models in a list or a dictionary: their parameters have names that can be typed, and their own rows."""

from __future__ import annotations

import gradlab as gl
from gradlab.explore.names import names_in


def test_parameters_of_models_in_containers():
    layers, heads = [gl.nn.Linear(2, 2), gl.nn.Sequential(gl.nn.Linear(2, 1))], {"out": gl.nn.Linear(1, 1)}
    found = names_in({"layers": layers, "heads": heads})
    assert found["layers[0].weight"] is layers[0].weight and found["layers[1][0].bias"] is layers[1][0].bias
    assert found["heads['out'].weight"] is heads["out"].weight
    assert all(eval(name, {"layers": layers, "heads": heads}) is tensor for name, tensor in found.items())


def test_a_model_with_a_name_comes_first():
    layers = [gl.nn.Linear(2, 2), gl.nn.Linear(2, 2)]
    net = gl.nn.Sequential(*layers)
    assert list(names_in({"layers": layers, "net": net})) == [f"net[{i}].{part}" for i in (0, 1) for part in ("weight", "bias")]


class Neuron:
    def __init__(self, size):
        self.w, self.b = [gl.ones((), requires_grad=True) for _ in range(size)], gl.zeros((), requires_grad=True)
        self._cache = gl.ones((), requires_grad=True)


def test_tensors_in_objects_are_named_by_attributes():
    space = {"neuron": Neuron(2), "layers": [Neuron(1), Neuron(1)]}
    found = names_in(space)
    assert list(found) == [
        "neuron.b",
        "neuron.w[0]",
        "neuron.w[1]",
        "layers[0].b",
        "layers[1].b",
        "layers[0].w[0]",
        "layers[1].w[0]",
    ]
    assert all(eval(name, space) is tensor for name, tensor in found.items())
    assert next(iter(names_in({**space, "mine": space["neuron"].b}))) == "mine", "its own name has priority"


def test_no_code_runs_for_attributes():
    class Hostile:
        def __getattribute__(self, name):
            raise ZeroDivisionError(name)

    class Property:
        __dict__ = property(lambda self: 1 / 0)

    class Slots:
        __slots__ = ("w",)

    hostile, loop, slots = Hostile(), Neuron(1), Slots()
    object.__setattr__(hostile, "w", gl.ones((), requires_grad=True))
    slots.w = loop.itself = loop
    assert list(names_in({"hostile": hostile, "p": Property(), "slots": slots, "loop": loop})) == [
        "hostile.w",
        "loop.b",
        "loop.w[0]",
    ]


def test_the_variable_of_a_finished_loop_is_not_a_name():
    net, params = gl.nn.Linear(2, 2), {"a": gl.ones(1), "b": gl.ones(2)}
    space = {"net": net, "params": params, "p": net.bias, "q": params["b"]}
    assert list(names_in(space)) == ["net.weight", "net.bias", "params['a']", "params['b']"]
    assert list(names_in(space, first=["p"])) == ["p", "net.weight", "params['a']", "params['b']"], "unless the cell uses it"
    assert list(names_in({"a": params["a"], **space}))[:2] == ["a", "q"], "other names have priority"


def test_leaves_without_names_have_their_own_gradients():
    def loss():
        hidden = [gl.tensor([float(k)], requires_grad=True) for k in range(1, 4)]
        return sum((x**2).sum() for x in hidden)

    with gl.tracing() as traced:
        out = loss()
        out.backward()
    assert sorted(leaf.gradient.numbers for leaf in traced.trace.leaves) == [(2.0,), (4.0,), (6.0,)]
    report = gl.explain(loss())
    assert sorted(row.gradient.maximum for row in report.rows) == [2, 4, 6]
    assert not any("None" in str(note) for row in report.rows for note in row.notes)


def test_the_last_tensor_of_a_line_has_its_name():
    x, t = gl.randn(4, 3, requires_grad=True), gl.tensor([0, 1, 2, 0])
    with gl.tracing() as traced:
        loss = gl.nn.functional.cross_entropy(x * 2, t)
        loss.backward()
    named = {node.name for node in traced.trace.nodes if node.kind == "operation"}
    assert "loss" not in named  # it is the name of the output
    assert traced.trace.nodes[-1].name == "loss"

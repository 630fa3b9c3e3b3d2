"""A forward pass that raises is drawn up to the failing call, with the shapes of its arguments."""

from __future__ import annotations

from contextlib import suppress

import pytest

import gradlab as gl


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def library(request):
    return gl if request.param == "gradlab" else pytest.importorskip("torch")


def failing_programs(library):
    """Return failing programs by name as (model, arguments, facts of the error): its type, part of its message, the arguments of
    the failing call, the nodes that computed them, and the module."""
    nn, F, r = library.nn, library.nn.functional, library.randn
    library.manual_seed(0)
    found = {}

    def program(*args, **about):
        def add(kind):
            found[kind.__name__] = kind() if isinstance(kind, type) else kind, args, about

        return add

    @program(
        r(2, 3),
        kind="RuntimeError",
        message="mat1 and mat2 shapes cannot be multiplied (2x4 and 5x6)",
        given="given 2×4, 6×5 and 6",
        sources=["relu", "second.weight", "second.bias"],
        module="second",
    )
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(5, 6)

        def forward(self, x):
            return self.second(F.relu(self.first(x)))

    @program(
        r(2, 3, 8, 8),
        kind="RuntimeError",
        message="expected input[2, 4, 6, 6] to have 5 channels, but got 4 channels instead",
        given="given 2×4×6×6, 6×5×3×3 and 6",
        sources=["conv2d", "net[1].weight", "net[1].bias"],
        module="net[1]",
    )
    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(5, 6, 3))

        def forward(self, x):
            return self.net(x)

    @program(
        r(2, 3),
        r(3, 3),
        kind="RuntimeError",
        message="Sizes of tensors must match",
        given="given 2×3 and 3×3",
        sources=["exp", "y"],
    )
    class Cat(nn.Module):
        def forward(self, x, y):
            return library.cat([x.exp(), y], dim=1)

    @program(
        r(2, 3), kind="RuntimeError", message="shape '[4, 2]' is invalid for input of size 6", given="given 2×3", sources=["exp"]
    )
    class View(nn.Module):
        def forward(self, x):
            return x.exp().view(4, 2)

    @program(r(2, 3), kind="RuntimeError", message="invalid for input of size 6", given="given 2×3", sources=["exp"])
    class Reshape(nn.Module):
        def forward(self, x):
            return x.exp().reshape(-1, 4)

    @program(
        library.ones(2, 3).long(),
        kind="RuntimeError",
        message="dtype",
        given="given 2×3 int64",
        sources=["+ 1", "fc.weight", "fc.bias"],
        module="fc",
    )
    class Dtype(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 4)

        def forward(self, x):
            return self.fc(x + 1)

    @program(
        library.tensor([[1, 7]]),
        kind="IndexError",
        message="index out of range",
        given="given",
        sources=["+ 0", "embed.weight"],
        module="embed",
    )
    class Embedding(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 3)

        def forward(self, ids):
            return self.embed(ids + 0)

    @program(
        r(1, 3),
        kind="ValueError",
        message="Expected more than 1 value per channel when training",
        given="given 1×3",
        sources=["exp"],
        module="norm",
    )
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(x.exp())

    @program(
        r(4, 3), library.tensor([0, 1, 2]), kind="ValueError", message="batch_size", given="given 4×3", sources=["exp", "target"]
    )
    class Target(nn.Module):
        def forward(self, x, target):
            return F.cross_entropy(x.exp(), target)

    @program(r(2, 3), kind="AssertionError", message="too narrow", given="given 2×3", sources=["exp"])
    class Assertion(nn.Module):
        def forward(self, x):
            hidden = x.exp()
            assert hidden.shape[1] == 4, "too narrow"
            return hidden

    @program(
        r(2, 3),
        kind="AttributeError",
        message="'Attribute' object has no attribute 'missing'",
        given="given 2×3",
        sources=["exp"],
    )
    class Attribute(nn.Module):
        def forward(self, x):
            hidden = x.exp()
            return self.missing(hidden)

    @program(r(2, 3), kind="TypeError", message="positional argument", given="given 2×3", sources=["exp"], module="fc")
    class Arguments(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 4)

        def forward(self, x):
            hidden = x.exp()
            return self.fc(hidden, hidden)

    @program(r(2, 3), r(2, 4), kind="RuntimeError", message="must match", given="given 2×3 and 2×4", sources=["exp", "y"])
    class Sum(nn.Module):
        def forward(self, x, y):
            return x.exp() + y

    @program(
        r(3, 4),
        kind="TypeError",
        message="unexpected keyword argument 'axis_of_time'",
        given="given 3×4",
        sources=["exp"],
        module="norm",
    )
    class Keyword(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, x):
            hidden = x.exp()
            return self.norm(hidden, axis_of_time=1)

    @program(r(2, 3), kind="ValueError", message="no tensor", given="", sources=[])
    class OwnError(nn.Module):
        def forward(self, x):
            x.exp()
            raise ValueError("no tensor has to do with it")

    return found


NAMES = list(failing_programs(gl))


# gradlab's convolutions have other names, and a layer transposes its weight before the product.
IN_GRADLAB = {"Linear": ["relu", "second.bias", "permute(−1, −2)"], "Conv": ["conv_bias", "net[1].weight", "net[1].bias"]}


def label(node):
    return node.name if node.kind == "leaf" else node.label


@pytest.mark.parametrize("name", NAMES)
def test_the_failing_call_is_last_and_shows_its_arguments(library, name):
    model, args, about = failing_programs(library)[name]
    graph = gl.graph(model, *args)
    assert graph.error.kind == about["kind"]
    assert about["message"] in graph.error.message
    last = len(graph.nodes) - 1
    assert graph.run.failed == last
    failed = graph.nodes[last]
    assert failed.kind == "operation"
    assert about["given"] in failed.detail
    made = [label(graph.nodes[edge.source]).removeprefix("model.") for edge in graph.edges if edge.target == last]
    expected = IN_GRADLAB.get(name, about["sources"]) if library is gl else about["sources"]
    assert made[: len(expected)] == expected
    assert not [node for node in graph.nodes if node.kind == "output"]
    assert failed.module == ("model" if "module" not in about else f"model.{about['module']}")
    ran = {node.label.partition(" ")[0] for node in graph.nodes[:last]}
    assert ran & {"exp", "linear", "conv2d", "conv_bias", "relu", "+"}  # operations that ran before
    assert "failed here" in graph.svg()
    assert f"failed: {about['kind']}" in graph.text()
    table = graph.table()
    assert [row.failed for row in table.rows].count(True) > 0
    for text in (table.text(), table.html()):
        assert "The run failed" in text


@pytest.mark.torch
def test_tensors_on_different_devices():
    torch = pytest.importorskip("torch")

    def function(x, y):
        return x.exp() + y.exp()

    graph = gl.graph(function, torch.ones(2, 3), torch.ones(2, 3, device="meta"))
    assert graph.error.kind in ("RuntimeError", "NotImplementedError")
    assert graph.nodes[-1].detail == "given 2×3 on cpu and 2×3 on meta"
    assert graph.run.failed == len(graph.nodes) - 1


def test_a_caught_error_is_not_a_failure(library):
    nn = library.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.wrong, self.right = nn.Linear(5, 2), nn.Linear(3, 2)

        def forward(self, x):
            try:
                return self.wrong(x)
            except RuntimeError:
                return self.right(x)

    graph = gl.graph(Net(), library.randn(4, 3))
    assert graph.error is None
    [output] = [node for node in graph.nodes if node.kind == "output"]
    assert output.shape == (4, 2)
    rows = {row.name: row for row in graph.table().rows}
    assert not rows["right"].failed
    assert rows["right"].shapes == "4×2"
    assert "The run failed" not in graph.text()
    assert graph.run.failed is None
    assert "failed here" not in graph.svg()


def test_only_the_last_of_two_errors_failed_the_run(library):
    def function(x):
        with suppress(RuntimeError):
            x @ x
        return x.exp().view(7)

    graph = gl.graph(function, library.randn(2, 3))
    last = len(graph.nodes) - 1
    assert graph.run.failed == last
    assert graph.nodes[last].label.startswith("view")
    assert graph.nodes[last].detail == "given 2×3"


def test_an_error_of_python_after_a_caught_one(library):
    def function(x):
        hidden = x.exp()
        with suppress(RuntimeError):
            x @ x
        assert hidden.shape == (3, 3), "too small"
        return hidden

    graph = gl.graph(function, library.randn(2, 3))
    last = len(graph.nodes) - 1
    assert graph.run.failed == last
    assert graph.error.kind == "AssertionError"
    assert graph.nodes[last].label.startswith("assert hidden.shape")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exceptions_that_stop_the_program_propagate(library, stop):
    def function(x):
        y = x + 1
        raise stop

    with pytest.raises(stop):
        gl.graph(function, library.ones(2))


def test_an_error_without_tensors(library):
    def function():
        raise ZeroDivisionError("first")

    graph = gl.graph(function)
    assert graph.error.kind == "ZeroDivisionError"
    assert graph.nodes[-1].label == 'raise ZeroDivisionError("first")'


def test_the_cause_of_an_error(library):
    """The call that raised first failed, even if the program raises another error because of it."""

    def function(x):
        try:
            return x.exp() @ x
        except RuntimeError as error:
            raise ValueError("wrong input") from error

    graph = gl.graph(function, library.randn(2, 3))
    assert (graph.error.kind, graph.error.message) == ("ValueError", "wrong input")
    assert graph.run.failed == len(graph.nodes) - 1
    if library is not gl:
        assert graph.nodes[-1].detail == "given 2×3 and 2×3"


def test_wrong_arguments_are_errors_before_anything_runs(library):
    class Net(library.nn.Module):
        def forward(self, x, mask=None):
            raise NotImplementedError

    with pytest.raises(TypeError, match=r"Net\.forward\(x, mask=None\)"):
        gl.graph(Net(), library.ones(2), library.ones(2), library.ones(2))
    with pytest.raises(TypeError, match=r"it needs an input: call graph\(model, x\)"):
        gl.graph(Net())

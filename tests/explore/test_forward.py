"""The graph of a run matches the program: which outputs change with a tensor, and the shapes and dtypes that hooks see."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections import defaultdict

import pytest
from forward_programs import programs

import gradlab as gl

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

PROGRAMS = programs(torch)
# Programs in which one call has several results, or reads a tensor that has no effect in this mode: the statistics of batch norm
# in training, attention weights, which do not depend on the values, the steps of a recurrent layer before the last.
COARSE = {"Normalized", "Attention", "AttentionInEvaluation", "Packed"}


def flat(value):
    """Return the tensors in a value, in order, without using gradlab."""
    if isinstance(value, torch.Tensor):
        return [value]
    if dataclasses.is_dataclass(value):
        return [one for field in dataclasses.fields(value) for one in flat(getattr(value, field.name))]
    if isinstance(value, dict):
        return [one for item in value.values() for one in flat(item)]
    if isinstance(value, (list, tuple)):
        return [one for item in value for one in flat(item)]
    return []


def own_name(label):
    """Return the name of a parameter in its model: "list.0.weight" for "model.list[0].weight"."""
    return re.sub(r"\[(?:'([^']*)'|(\d+))\]", r".\1\2", label).partition(".")[2]


def leaves_in(graph, kind):
    return [i for i, node in enumerate(graph.nodes) if node.kind == "leaf" and node.operation == kind]


def outputs_of(graph):
    return [i for i, node in enumerate(graph.nodes) if node.kind == "output"]


def reached_from(graph, start):
    after = defaultdict(list)
    for edge in graph.edges:
        after[edge.source].append(edge.target)
    seen, waiting = {start}, [start]
    while waiting:
        for target in after[waiting.pop()]:
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def results_with(name, change):
    """Return the results of a program on copies, one of which `change` has modified."""
    model, args, kwargs = copy.deepcopy(PROGRAMS[name])
    with torch.no_grad():
        change(model, args, kwargs)
    torch.manual_seed(1)
    return [one.detach().clone() for one in flat(model(*args, **kwargs))]


def shift(tensor):
    if not tensor.dtype.is_floating_point:
        tensor.add_(1)
        return
    generator = torch.Generator().manual_seed(2)
    tensor.add_(0.05 * torch.rand(tensor.shape, generator=generator) + 0.02)


def graph_of_run(name, **options):
    model, args, kwargs = copy.deepcopy(PROGRAMS[name])
    return gl.graph(model, *args, **kwargs, **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_paths_exist_exactly_if_the_output_depends(name):
    graph = graph_of_run(name)
    assert graph.error is None
    plain = results_with(name, lambda *_: None)
    ends = outputs_of(graph)
    assert len(ends) == len(plain)
    inputs = leaves_in(graph, "input")
    model, args, kwargs = PROGRAMS[name]
    given = flat([args, kwargs])
    assert [graph.nodes[i].shape for i in inputs] == [tuple(one.shape) for one in given]

    def compare(what, at, change):
        moved = results_with(name, change)
        reached = reached_from(graph, at) if at is not None else set()
        for k, (end, before, after) in enumerate(zip(ends, plain, moved, strict=True)):
            depends = not torch.equal(before, after)
            if depends:
                assert end in reached, f"output {k} depends on {what}, but there is no path"
            elif name not in COARSE:
                assert end not in reached, f"output {k} does not depend on {what}, but there is a path"

    for k, at in enumerate(inputs):
        compare(graph.nodes[at].name, at, lambda model, args, kwargs, k=k: shift(flat([args, kwargs])[k]))
    if isinstance(model, torch.nn.Module):
        for kind, named in (("parameter", model.named_parameters), ("buffer", model.named_buffers)):
            at_name = {own_name(graph.nodes[i].name): i for i in leaves_in(graph, kind)}
            assert set(at_name) <= {key for key, _ in named()}
            for key, _ in named():

                def change(model, args, kwargs, key=key, kind=kind):
                    shift(dict(getattr(model, f"named_{kind}s")())[key])

                compare(key, at_name.get(key), change)


def generic_programs(library):
    """Return programs for both libraries, as functions of x (2×3) and y (3)."""

    def in_place(x, y):
        h = x.clone()
        h.add_(y)
        h *= 2
        return h, x + 1

    def through_a_view(x, y):
        h = x.clone()
        h[0].mul_(y)
        return h

    def set_item(x, y):
        h = library.zeros(2, 3)
        h[0] = y
        before = h.clone()
        h[1] = x[1]
        return before, h.sum()

    def add_to_an_item(x, y):
        h = x.clone()
        h[0] += y
        return 1 - h, x - 1

    def view_made_before(x, y):
        h = x.clone()
        row = h.view(6)[3:]
        h += y
        return row * 2

    def rows_apart(x, y):
        h = library.zeros(2, 3)
        a, b = h[0], h[1]
        a += x[0]
        b += y
        return a * 2, b * 2, h

    def through_detach(x, y):
        h = x.clone()
        h.detach()[1] = y
        return h.exp(), x.detach() * 2

    def set_data(x, y):
        h = x + 1
        before = h * 2
        h.data = library.stack([y, y]) * 2
        return before, h + 1

    def out(x, y):
        place = library.empty(2, 3)
        library.add(x, y, out=place)
        return place * 2, place.sum()

    def copies(x, y):
        h = x.clone()
        h.copy_(library.stack([y, y]))
        k = x.clone()
        k[:, 0] = y[:2]
        return h, k

    def casts(x, y):
        return x.double(), y.half().float()

    def without_gradients(x, y):
        with library.no_grad():
            h = x * y
        return h + 1, y - 1

    def parts(x, y):
        values, _ = x.max(dim=0)
        first, second = x.unbind()
        return values, first + y, x.chunk(2, dim=0)[1], library.cat([first, second])

    def masks(x, y):
        h = library.where(x > 0, x, y)
        return h, x.masked_fill(y > 100, 1.0).sum()

    def activations_in_place(x, y):
        h = x + 0
        library.nn.functional.leaky_relu(h[:1], inplace=True)
        return h * y

    functions = (in_place, through_a_view, set_item, add_to_an_item, view_made_before, rows_apart, through_detach, set_data)
    functions += (out, copies, casts, without_gradients, parts, masks, activations_in_place)
    return {function.__name__: function for function in functions}


@pytest.mark.parametrize("name", generic_programs(gl))
@pytest.mark.parametrize("library", [gl, torch], ids=["gradlab", "torch"])
def test_paths_in_both_libraries(library, name):
    function = generic_programs(library)[name]
    x, y = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], [0.75, -0.5, 1.25]

    def run(x, y):
        results = function(library.tensor(x), library.tensor(y))
        return [one.tolist() for one in (results if isinstance(results, tuple) else (results,))]

    plain = run(x, y)
    graph = gl.graph(function, library.tensor(x), library.tensor(y))
    inputs, ends = leaves_in(graph, "input"), outputs_of(graph)
    assert [graph.nodes[i].name for i in inputs] == ["x", "y"]
    assert len(ends) == len(plain)
    moved = run([[value + 0.01 for value in row] for row in x], y), run(x, [value + 0.01 for value in y])
    for at, other in zip(inputs, moved, strict=True):
        reached = reached_from(graph, at)
        assert [end in reached for end in ends] == [a != b for a, b in zip(plain, other, strict=True)] or (
            # a mask that does not change; a tensor that copy_ writes over
            (name, graph.nodes[at].name) in (("masks", "y"), ("copies", "x"))
        )
    shapes = [graph.nodes[end].shape for end in ends]
    assert shapes == [tuple(library.tensor(one).shape) for one in plain]


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_have_the_shapes_and_types_that_hooks_see(name):
    model, args, kwargs = copy.deepcopy(PROGRAMS[name])
    if not isinstance(model, torch.nn.Module) or name in ("Scripted", "InPlaceArgument", "Packed"):
        pytest.skip("no module, or one that accepts no hook or is created in the run")
    seen = []

    def hook(module, args, result):
        tensors = flat(result)
        if tensors:
            seen.append((type(module).__name__, [tuple(one.shape) for one in tensors], tensors[0].dtype))

    for module in model.modules():
        module.register_forward_hook(hook, always_call=False)
    torch.manual_seed(1)
    model(*args, **kwargs)
    graph = graph_of_run(name)
    parts, waiting = [], list(graph.run.tree)
    while waiting:
        part = waiting.pop()
        if part.kind and part.called and part.shapes and not part.failed:
            parts.append((part.kind, part.shapes))
        waiting += part.parts
    expected = sorted((kind, shape_words(shapes)) for kind, shapes, _ in seen)
    assert sorted(parts) == expected
    operations = {node.dtype for node in graph.nodes if node.kind != "leaf"}
    assert {str(dtype).rpartition(".")[2] for _, _, dtype in seen} <= operations


def shape_words(shapes):
    """Return shapes as tables write them: "2×3"; "2 of 2×3"; "2×3 and 4"."""
    texts = ["×".join(map(str, shape)) or "scalar" for shape in shapes]
    if len(texts) > 1 and len(set(texts)) == 1:
        return f"{len(texts)} of {texts[0]}"
    return " and ".join(texts) if len(texts) < 3 else f"{', '.join(texts[:2])} and {len(texts) - 2} more"


@pytest.mark.parametrize("name", PROGRAMS)
def test_totals(name):
    model, args, kwargs = PROGRAMS[name]
    graph = graph_of_run(name)
    table = graph.table()
    tensors = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    held = tensors + (list(model.buffers()) if isinstance(model, torch.nn.Module) else [])
    assert table.parameters == table.trainable == sum(one.numel() for one in tensors)
    assert table.parameter_bytes == sum(one.numel() * one.element_size() for one in held)
    assert table.input_bytes == sum(one.numel() * one.element_size() for one in flat([args, kwargs]))
    from torch.utils.flop_counter import FlopCounterMode

    if "Attention" not in name and "Encoder" not in name and name not in ("Recurrent", "Packed", "Scripted"):
        model, args, kwargs = copy.deepcopy(PROGRAMS[name])
        with FlopCounterMode(display=False) as counter:
            model(*args, **kwargs)
        assert graph.flops == counter.get_total_flops() or name == "transforms"  # it counts a product with a vector as none


def test_bytes_of_results_count_new_memory():
    x = torch.ones(4, 5)

    def function(x):
        h = x + 1  # 80 bytes
        v = h.view(20)[3:]
        h.mul_(2)
        d = h.detach()
        d.data.add_(1)
        with torch.inference_mode():
            k = h.double()  # 160 bytes
            k = k.T[1:]
        return v, k

    assert gl.graph(function, x).table().result_bytes == 240


def test_buffers_and_calls_that_write_them():
    graph = graph_of_run("OwnBuffers")
    writes = {node.label: node.detail for node in graph.nodes if "writes" in node.detail}
    assert writes == {"lerp_": "writes mean", "+ 1": "writes steps"}
    graph = graph_of_run("Normalized")
    assert any("writes running_mean, running_var" in node.detail for node in graph.nodes)


def test_control_flow_shows_the_branch_taken():
    taken, other = graph_of_run("BranchTaken"), graph_of_run("BranchNotTaken")
    assert [node.name for node in taken.nodes if node.operation == "parameter"] == ["model.a.weight", "model.a.bias"]
    assert [node.name for node in other.nodes if node.operation == "parameter"] == ["model.b.weight", "model.b.bias"]
    assert [node.label for node in taken.nodes if node.operation == "__bool__"] == ["if x.sum() > 0"]
    assert [row.called for row in taken.table().rows if row.name == "b"] == [False]
    assert sum(node.label == "× 2" for node in graph_of_run("LoopOfThree").nodes) == 3
    assert sum(node.label == "× 2" for node in graph_of_run("LoopOfNone").nodes) == 0


def test_modules_that_are_called_several_times_or_never():
    graph = graph_of_run("ThreeTimes")
    rows = {row.name: row for row in graph.table().rows}
    assert not rows["never"].called
    assert graph.table().parameters == 2 * (9 + 3)
    assert sum(row.alike for row in graph.table().rows if row.kind == "Linear" and row.called) == 3
    assert graph.flops == 3 * 2 * 4 * 3 * 3
    assert graph_of_run("Tied").table().parameters == 15


def test_dropout_on_and_off():
    on, off = graph_of_run("Dropped"), graph_of_run("DroppedOff")
    assert [node.label for node in on.nodes if "dropout" in node.label] == ["dropout(p=0.5)", "dropout(p=0.3)"]
    assert not any("off" in node.detail for node in on.nodes)
    assert [node.detail for node in off.nodes if "dropout" in node.label] == ["off: not training"] * 2


def test_a_model_that_returns_no_tensors():
    class Net(torch.nn.Module):
        def __init__(self, result):
            super().__init__()
            self.result = result

        def forward(self, x):
            x.exp()
            return self.result

    for result in (None, 3, "text", [], {"a": None}):
        graph = gl.graph(Net(result), torch.ones(2))
        assert not outputs_of(graph)
        assert graph.error is None
        assert graph.svg()


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "complex64"])
def test_precisions(dtype):
    kind = getattr(torch, dtype)
    graph = gl.graph(torch.nn.Linear(3, 2, dtype=kind), torch.ones(4, 3, dtype=kind))
    assert {node.dtype for node in graph.nodes} == {dtype}
    assert graph.table().parameter_bytes == 8 * kind.itemsize


def test_on_the_meta_device():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).to("meta")
    graph = gl.graph(model, torch.empty(4, 3, device="meta"))
    assert graph.error is None
    assert graph.flops == 2 * 4 * 3 * 2
    assert [graph.nodes[end].shape for end in outputs_of(graph)] == [(4, 2)]
    assert reached_from(graph, leaves_in(graph, "input")[0]) >= set(outputs_of(graph))


def test_lazy_modules():
    model = torch.nn.Sequential(torch.nn.LazyLinear(2), torch.nn.LazyBatchNorm1d())
    graph = gl.graph(model, torch.ones(4, 3))
    names = {graph.nodes[i].name for i in leaves_in(graph, "parameter")}
    assert names == {"model[0].weight", "model[0].bias", "model[1].weight", "model[1].bias"}
    assert graph.table().parameters == 8 + 4


@pytest.mark.slow
def test_compiled_models():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.compile(torch.nn.Linear(3, 2), backend="eager")

        def forward(self, x):
            return compiled(self.inner(x))

    compiled = torch.compile(lambda x: x.sin() + 1, backend="eager")
    for model in (Net(), torch.compile(Net(), backend="eager")):
        graph = gl.graph(model, torch.ones(4, 3))
        labels = [node.label for node in graph.nodes if node.kind == "operation"]
        assert labels == ["linear", "sin", "+ 1"]
        assert reached_from(graph, leaves_in(graph, "input")[0]) >= set(outputs_of(graph))
    assert torch.equal(compiled(torch.zeros(2)), torch.ones(2))


def test_values_are_those_at_the_time_of_the_call():
    def function(x):
        h = x + 1
        h.mul_(10)
        return h

    graph = gl.graph(function, torch.ones(2), values=True)
    numbers = {node.label: list(node.value.numbers) for node in graph.nodes if node.value is not None}
    assert numbers["+ 1"] == [2.0, 2.0]
    assert numbers["× 10"] == [20.0, 20.0]

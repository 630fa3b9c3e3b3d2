"""The graph of a run, against what the program does: which outputs change when one of its tensors does, and what hooks see."""

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
# In these a single call makes several results, or reads a tensor that does not matter in this mode: batch norm's statistics in
# training, the weights of attention, which do not depend on the values, the steps of a recurrent layer before the last.
COARSE = {"Normalized", "Attention", "AttentionInEvaluation", "Packed"}


def flat(value):
    """The tensors in a value, in order. Written without gradlab."""
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
    """The name of a parameter in its model: "list.0.weight" of "model.list[0].weight"."""
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
    """The results of a program on copies, of which `change` has changed one."""
    model, args, kwargs = copy.deepcopy(PROGRAMS[name])
    with torch.no_grad():
        change(model, args, kwargs)
    torch.manual_seed(1)
    return [one.detach().clone() for one in flat(model(*args, **kwargs))]


def shifted(tensor):
    if not tensor.dtype.is_floating_point:
        tensor.add_(1)
        return
    generator = torch.Generator().manual_seed(2)
    tensor.add_(0.05 * torch.rand(tensor.shape, generator=generator) + 0.02)


def drawn(name, **options):
    model, args, kwargs = copy.deepcopy(PROGRAMS[name])
    return gl.graph(model, *args, **kwargs, **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_there_is_a_path_where_and_only_where_the_output_depends(name):
    graph = drawn(name)
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
                assert end in reached, f"output {k} depends on {what}, and there is no path"
            elif name not in COARSE:
                assert end not in reached, f"output {k} does not depend on {what}, and there is a path"

    for k, at in enumerate(inputs):
        compare(graph.nodes[at].name, at, lambda model, args, kwargs, k=k: shifted(flat([args, kwargs])[k]))
    if isinstance(model, torch.nn.Module):
        for kind, named in (("parameter", model.named_parameters), ("buffer", model.named_buffers)):
            at_name = {own_name(graph.nodes[i].name): i for i in leaves_in(graph, kind)}
            assert set(at_name) <= {key for key, _ in named()}
            for key, _ in named():

                def change(model, args, kwargs, key=key, kind=kind):
                    shifted(dict(getattr(model, f"named_{kind}s")())[key])

                compare(key, at_name.get(key), change)

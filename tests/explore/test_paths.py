"""Contributions of paths, against numbers by hand, paths enumerated in plain Python, and gradients after cutting edges."""

from __future__ import annotations

import gc
import json
import math
import random
from collections import defaultdict
from html.parser import HTMLParser

import numpy as np
import pytest
from random_programs import SHAPES, Run, program
from test_jacobian_programs import names_of

import gradlab as gl
from gradlab.explore.graph import contributions
from gradlab.explore.graph.contributions import arriving, by_structure, flow_of, leaf_paths
from gradlab.explore.graph.paths import Paths
from gradlab.explore.libraries import library_of
from gradlab.explore.trace.reading import spine_first


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def t(request):
    return pytest.importorskip(request.param)


def ends(paths):
    """Return the contributions by (operation that made the tensor, operation that uses it)."""
    nodes, edges = paths.trace.nodes, paths.trace.edges
    found = defaultdict(float)
    for i, amount in paths.amounts.items():
        found[nodes[edges[i].source].label, nodes[edges[i].target].label] += amount
    return dict(found)


def assert_conserved(paths, tolerance=1e-9):
    """Check that contributions add up to the gradient at the leaf and are conserved at each tensor."""
    assert set(paths.amounts) == set(paths.on)
    edges, scale = paths.trace.edges, max(map(abs, paths.amounts.values()), default=0.0) + abs(paths.total)
    gone, came = defaultdict(float), defaultdict(float)
    for i, amount in paths.amounts.items():
        came[edges[i].source] += amount
        gone[edges[i].target] += amount
    assert came.pop(paths.leaf) == pytest.approx(paths.total, abs=tolerance * scale)
    for node, amount in came.items():
        assert gone[node] == pytest.approx(amount, abs=tolerance * scale)
    assert sum(gone[i] for i in paths.trace.outputs) == pytest.approx(paths.total, abs=tolerance * scale)


def test_a_scalar_by_hand(t):
    """The expression x (x w - x²) + sin(x w) at x = 3, w = 2 has four products of the chain rule."""
    x, w = (t.tensor(v, dtype=t.float64).requires_grad_() for v in (3.0, 2.0))
    a, b = x * w, x**2
    loss = (a - b) * x + a.sin()
    paths = gl.graph(loss, {"x": x, "w": w, "loss": loss}).paths("x")
    cos = math.cos(6)
    assert paths.scalar and paths.count == 4
    assert [path.amount for path in paths.paths] == pytest.approx([-18, 6, -3, 2 * cos])
    assert [path.text.split(" → ")[1] for path in paths.paths] == ["**", "×", "×", "×"]
    assert paths.total == pytest.approx(-15 + 2 * cos)
    assert [path.share for path in paths.paths] == pytest.approx([part / paths.total for part in (-18, 6, -3, 2 * cos)])
    assert_conserved(paths)
    assert x.grad is None and w.grad is None


def test_a_residual_by_hand(t):
    """In Σ (x + 2x)·v, a third passes by the block and two thirds pass through it."""
    x = t.tensor([1.0, -2.0], dtype=t.float64).requires_grad_()
    loss = (x + x * 2).sum()
    paths = gl.graph(loss, {"x": x, "loss": loss}).paths(x)
    assert not paths.scalar and paths.total == pytest.approx(math.sqrt(18))
    assert sorted(path.share for path in paths.paths) == pytest.approx([1 / 3, 2 / 3])
    assert ends(paths)["x", "+"] == pytest.approx(math.sqrt(18) / 3)
    assert paths.paths[0].text == "x → × → + → sum → loss" and "+67 %" in paths.text()


def test_contributions_that_cancel_are_reported(t):
    s = t.tensor(2.0, dtype=t.float64).requires_grad_()
    loss = s * 3.1 - 3.1 * s
    paths = gl.graph(loss, {"s": s, "loss": loss}).paths("s")
    (meeting,) = [meeting for meeting in paths.meetings if meeting.cancels]
    assert paths.total == 0 and sorted(meeting.amounts) == [-3.1, 3.1] and meeting.cosine == pytest.approx(-1)
    assert meeting.remains == 0 and meeting.node == paths.leaf and paths.shares == {}
    assert "+3.1 meets −3.1" in paths.text() and "+3.1 meets −3.1" in paths.svg()
    assert "stroke-dasharray" in paths.svg()


def test_contributions_to_a_tensor_that_cancel_have_norms_and_a_cosine(t):
    w = t.tensor([3.0, 4.0], dtype=t.float64).requires_grad_()
    loss = (w * 2 - (w + w)).sum()
    paths = gl.graph(loss, {"w": w, "loss": loss}).paths("w")
    assert paths.total == 0 and paths.amounts == {} and "shares are undefined" in paths.why_not
    assert sorted(path.norm for path in paths.paths) == pytest.approx([math.sqrt(2), math.sqrt(2), 2 * math.sqrt(2)])
    assert any(meeting.cancels for meeting in paths.meetings)
    other = (w * 2 - w * 2).sum()
    (meeting,) = gl.graph(other, {"w": w, "other": other}).paths("w").meetings
    assert meeting.norms == pytest.approx((math.sqrt(8), math.sqrt(8))) and meeting.cosine == pytest.approx(-1)


@pytest.mark.parametrize("seed", range(40))
def test_scalar_programs_against_every_path(seed):
    """A program of scalar operations. The test enumerates its paths, each with the product of its derivatives."""
    draw = random.Random(seed)
    x = gl.tensor(draw.uniform(0.5, 1.5), dtype=gl.float64).requires_grad_()
    values, ways_to = [x], [[1.0]]  # for each number, the products along all paths from x
    for _ in range(draw.randint(2, 6)):
        i, j = draw.randrange(len(values)), draw.randrange(len(values))
        a, b = values[i], values[j]
        kind = draw.choice(["add", "sub", "mul", "sin", "exp", "square"])
        made, slopes = {
            "add": (a + b, (1, 1)),
            "sub": (a - b, (1, -1)),
            "mul": (a * b, (b.item(), a.item())),
            "sin": (a.sin(), (math.cos(a.item()),)),
            "exp": ((a / 4).exp(), (math.exp(a.item() / 4) / 4,)),
            "square": (a**2, (2 * a.item(),)),
        }[kind]
        values.append(made)
        ways_to.append([slope * part for k, slope in zip((i, j), slopes, strict=False) for part in ways_to[k]])
    paths = gl.graph(values[-1], {"x": x}).paths("x")
    assert paths.count == len(ways_to[-1]) and paths.total == pytest.approx(math.fsum(ways_to[-1]), abs=1e-12)
    assert_conserved(paths)
    if paths.paths:
        assert sorted(path.amount for path in paths.paths) == pytest.approx(sorted(ways_to[-1]))
        for i in paths.on:
            through = math.fsum(path.amount for path in paths.paths if i in path.edges)
            assert paths.amounts[i] == pytest.approx(through, abs=1e-9)


def cut(out, leaf, node, argument):
    """Return the leaf's gradient if one edge passes no gradient."""
    lib = gl if isinstance(out, gl.Tensor) else pytest.importorskip("torch")

    def without(handed, _):
        return tuple(None if i == argument else c for i, c in enumerate(handed))

    with node.register_hook(without):
        (g,) = lib.autograd.grad([out], [leaf], retain_graph=True, allow_unused=True)
    return np.zeros(tuple(leaf.shape)) if g is None else np.asarray(g.detach().numpy())


def assert_cuts(out, leaf, names):
    """Check that the contribution of each edge is the change of the gradient when the edge is cut."""
    paths = gl.graph(out, names).paths(leaf)
    library = library_of(out)
    nodes, _ = spine_first(library, [library.whole(library.node(out))])
    (g,) = library.grad([out], [leaf])
    g = np.asarray(g.detach().numpy())
    unit = np.ones_like(g) if g.size == 1 else g / np.linalg.norm(g)
    assert paths.total == pytest.approx(float((g * unit).sum()))
    scale = max(map(abs, paths.amounts.values()))
    for i in paths.on:
        edge = paths.trace.edges[i]
        if edge.target < len(nodes):
            lost = g - cut(out, leaf, nodes[edge.target], edge.argument)
            assert paths.amounts[i] == pytest.approx(float((lost * unit).sum()), abs=1e-9 * scale)
    if paths.paths:
        assert math.fsum(path.amount for path in paths.paths) == pytest.approx(paths.total, abs=1e-9 * scale)
    return paths


def test_cut_edges(t):
    t.manual_seed(0)
    x, w = t.randn(4, 3, dtype=t.float64).requires_grad_(), t.randn(3, 3, dtype=t.float64).requires_grad_()
    h = (x @ w).tanh()
    h = h + (h @ w).softmax(-1)
    z = (h - h.mean(0)) / h.std(0)
    out = (z * z[:, :1] + h.exp()).sum() + (w**2).sum()
    assert_cuts(out, w, {"x": x, "w": w, "out": out})
    assert_cuts(out, x, {"x": x, "w": w, "out": out})


def test_several_outputs_of_one_operation_do_not_add_up(t):
    x = t.tensor([1.0, 2.0, 3.0, 4.0], dtype=t.float64).requires_grad_()
    a, b = x.split(2)
    out = (a * 2 - b * 2 + a).sum()
    paths = assert_cuts(out, x, {"x": x, "out": out})
    assert not any(meeting.cancels and meeting.node != paths.leaf and meeting.remains == 0 for meeting in paths.meetings)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(120))
def test_random_programs_are_conserved(seed):
    """For programs of views, writes and indexing, contributions add up to the gradient."""
    _, names = names_of(seed)
    made = [t for name, t in names.items() if name not in "xyz" and t.requires_grad and t.numel()]
    if not made:
        pytest.skip("no tensor was computed")
    out = made[-1].sum() if seed % 2 else made[-1]
    graph = gl.graph(out, names)
    for name in "xyz":
        if not any(node.kind == "leaf" and name in node.name.split(", ") for node in graph.nodes):
            continue
        try:
            paths = graph.paths(name)
        except RuntimeError as error:
            if "modified by an inplace operation" not in str(error):
                raise
            continue
        (g,) = gl.autograd.grad([out], [names[name]], gl.ones_like(out), retain_graph=True, allow_unused=True)
        norm = 0.0 if g is None else float(np.linalg.norm(g.numpy()))
        assert abs(paths.total) == pytest.approx(norm, abs=1e-12)
        if norm and math.isfinite(norm):
            assert paths.why_not == ""
            if norm > 1e-12:  # otherwise it is rounding error
                assert_conserved(paths, 1e-8)


def test_the_graph_is_unchanged(t):
    t.manual_seed(3)
    x = t.ones(3, dtype=t.float64).requires_grad_()
    h = x * 2
    h.retain_grad()
    loss = (h.sin() * h).sum()
    x.grad = t.full((3,), 7.0, dtype=t.float64)
    state, version = t.get_rng_state(), x._version
    seen = []
    handle = h.register_hook(lambda g: seen.append(1))
    graph = gl.graph(loss, {"x": x, "loss": loss})
    with t.no_grad():
        graph.paths("x")
    handle.remove()
    assert x.grad.tolist() == [7, 7, 7] and h.grad is None and x._version == version
    assert bool((t.get_rng_state() == state).all())
    loss.backward()  # the graph is kept
    assert h.grad is not None and h.grad.grad_fn is None
    hooked = [node for node in (loss.grad_fn,) if t is gl and node.hooks is not None]
    assert not hooked


def test_the_result_holds_no_tensor():
    x = gl.ones(3).requires_grad_()
    loss = (x * x).sum()
    graph = gl.graph(loss, {"x": x})
    paths = graph.paths("x")
    del loss
    gc.collect()
    with pytest.raises(RuntimeError, match="Keep it in a variable"):
        graph.paths("x")
    assert paths.text()


def test_a_starting_gradient_and_several_outputs(t):
    x = t.tensor([1.0, 2.0], dtype=t.float64).requires_grad_()
    y, z = x * 3, x**2
    both = gl.graph([y, z], {"x": x, "y": y, "z": z})
    v = t.tensor([1.0, 0.0], dtype=t.float64)
    paths = both.paths("x", [v, v])
    assert paths.total == pytest.approx(5) and sorted(path.amount for path in paths.paths) == pytest.approx([2, 3])
    assert gl.graph(y, {"x": x}).paths("x", [0.0, -1.0]).total == pytest.approx(3)
    with pytest.raises(ValueError, match="shape 2, got shape 3"):
        gl.graph(y, {"x": x}).paths("x", [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="2 outputs, and 1 gradients"):
        both.paths("x", [v])


def test_tensors_that_are_not_leaves(t):
    x = t.ones(2).requires_grad_()
    h = x * 2
    graph = gl.graph(h, {"x": x, "h": h})
    with pytest.raises(ValueError, match=r"no leaf of this graph is called 'w'; there are x"):
        graph.paths("w")
    for stranger in (h, t.ones(2), t.ones(2).requires_grad_()):
        with pytest.raises(ValueError, match="this tensor is not a leaf of the graph\\. Its leaves are x"):
            graph.paths(stranger)
    with pytest.raises(TypeError, match="got int"):
        graph.paths(3)
    h.sum().backward()


def test_a_graph_that_was_freed(t):
    x = t.ones(2).requires_grad_()
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        gl.graph(loss, {"x": x}).paths("x")


@pytest.mark.torch
def test_a_rule_without_a_second_derivative(monkeypatch):
    import torch

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    v = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = Twice.apply(v)
    few = (y.sin() * y + v).sum()
    paths = gl.graph(few, {"v": v}).paths("v")  # path by path
    assert paths.why_not == ""
    assert_conserved(paths)
    many = v
    for _ in range(5):
        many = Twice.apply(many) + many.sin()
    many = many.sum()
    paths = gl.graph(many, {"v": v}).paths("v")  # edge by edge
    assert paths.count == 32 and paths.paths == () and paths.why_not == ""
    assert_conserved(paths)
    assert_cuts(many, v, {"v": v})
    monkeypatch.setattr(contributions, "SECONDS", 0.0)
    paths = gl.graph(many, {"v": v}).paths("v")
    assert "TwiceBackward has no second derivative" in paths.why_not and "?" in paths.svg()
    leaving = [i for i in paths.on if paths.trace.edges[i].source == paths.leaf]
    assert sum(paths.amounts[i] for i in leaving) == pytest.approx(paths.total)


@pytest.mark.torch
def test_fused_attention():
    """PyTorch's attention has no second derivative, so edges are cut. The results match attention written out."""
    import torch

    torch.manual_seed(0)
    x, w = torch.randn(2, 5, 8, dtype=torch.float64), torch.randn(8, 8, dtype=torch.float64, requires_grad=True)

    def attend(h, fused):
        if fused:
            return torch.nn.functional.scaled_dot_product_attention(h, h, h)
        return (h @ h.transpose(-1, -2) / 8**0.5).softmax(-1) @ h

    shares = []
    for fused in (True, False):
        h = x @ w
        for _ in range(3):
            h = h + attend(h[:, None], fused)[:, 0] if fused else h + attend(h, fused)
        loss = h.square().mean()
        paths = gl.graph(loss, {"w": w}).paths("w")
        assert paths.why_not == ""
        assert_conserved(paths)
        nodes, edges = paths.trace.nodes, paths.trace.edges
        shares.append(
            [share for i, share in paths.shares.items() if nodes[edges[i].source].label == nodes[edges[i].target].label == "+"]
        )
    assert len(shares[0]) == 2 and shares[0] == pytest.approx(shares[1])


@pytest.mark.parametrize("seed", range(30))
def test_contributions_of_a_trace_match(seed):
    """A trace without its graph gives fewer contributions, which match those of the sweeps."""
    draw = random.Random(seed)
    x = gl.tensor([draw.uniform(0.5, 1.5) for _ in range(draw.choice([1, 3]))], dtype=gl.float64).requires_grad_()
    made = [x]
    for _ in range(6):
        a, b = draw.choice(made), draw.choice(made)
        made.append(draw.choice([lambda a, b: a + b.sin(), lambda a, b: a * b, lambda a, b: a.sum() * b])(a, b))
    out = made[-1].sum()
    with gl.tracing() as traced:
        out.backward(retain_graph=True)
    leaf = next((i for i, node in enumerate(traced.trace.nodes) if node.kind == "leaf"), None)
    known = flow_of(traced.trace, leaf)
    paths = gl.graph(out, {"x": x}).paths("x")
    assert known.total == pytest.approx(paths.total)
    assert known.amounts
    for i, amount in known.amounts.items():
        assert amount == pytest.approx(paths.amounts[i], abs=1e-9 * max(map(abs, paths.amounts.values())))


def test_a_trace_gives_all_contributions_of_scalars():
    x = gl.tensor(3.0, dtype=gl.float64).requires_grad_()
    a = x * 2
    loss = (a - x**2) * x + a.sin()
    paths = gl.graph(loss, {"x": x}).paths("x")
    with gl.tracing() as traced:
        loss.backward()
    known = Paths(traced.trace, 0, flow_of(traced.trace, 0))
    assert known.why_not == "" and known.amounts == pytest.approx(paths.amounts)
    assert {path.edges: path.amount for path in known.paths} == pytest.approx({path.edges: path.amount for path in paths.paths})
    found = leaf_paths(traced.trace, 0)
    assert by_structure(traced.trace, 0, found, None, {}, {}) == {} and arriving(traced.trace, found)[0]


class Tags(HTMLParser):
    """Collect tags and their attributes."""

    def __init__(self):
        super().__init__()
        self.tags = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)


def test_names_are_escaped_and_the_data_is_json():
    x = gl.ones(2).requires_grad_()
    loss = (x * x).sum()
    name = '<script>alert("1")</script>'
    paths = gl.graph(loss, {name: x, "loss": loss}).paths(name)
    reader = Tags()
    reader.feed(paths.html())
    assert "script" not in reader.tags and "<script" not in paths.svg()
    data = json.loads(json.dumps(paths.to_dict(), allow_nan=False))
    assert data["name"] == name and sum(edge["share"] for edge in data["edges"][:2]) == pytest.approx(1)
    bundle = paths._repr_mimebundle_()
    assert {"text/html", "text/plain", "text/latex"} <= set(bundle) and "<script" not in bundle["text/html"]


def test_a_large_graph_is_folded_with_its_contributions():
    w = gl.full((4, 4), 0.1, dtype=gl.float64).requires_grad_()
    h = gl.ones(2, 4, dtype=gl.float64)
    for _ in range(40):
        h = (h @ w).tanh() + h
    loss = h.sum()
    paths = gl.graph(loss).paths("w")
    assert_conserved(paths)
    nodes, edges, where = paths._visible_graph
    assert len(nodes) <= 25 and set(where.values()) <= set(range(len(edges)))
    assert paths.paths == () and "way out of the leaf" in paths.text()


def test_a_gradient_that_is_not_finite():
    x = gl.tensor([0.0, 1.0]).requires_grad_()
    loss = (x.log() * x).sum()
    paths = gl.graph(loss).paths("x")
    assert "NaN or ∞" in paths.why_not and not math.isfinite(paths.total)
    json.dumps(paths.to_dict(), allow_nan=False)


def test_a_report_has_paths(t):
    """The graph still exists in one case and was freed in the other."""
    x = t.tensor([1.0, -2.0], dtype=t.float64).requires_grad_()
    h = x * 2
    loss = (h * h + h + x).sum()
    names = {"x": x, "loss": loss}
    whole = gl.explain(loss, names=names).paths("x")
    assert whole.why_not == "" and whole.amounts == pytest.approx(gl.graph(loss, names).paths("x").amounts)
    with gl.tracing() as traced:
        h = x * 2
        loss = (h * h + h + x).sum()
        loss.backward()
    known = Paths(traced.trace, 0, flow_of(traced.trace, 0))
    assert "freed" in known.why_not and known.total == pytest.approx(whole.total)
    for i, amount in known.amounts.items():
        assert amount == pytest.approx(whole.amounts[i])
    with pytest.raises(ValueError, match="there are x"):
        gl.explain(loss.detach() + (x * 1).sum(), names=names).paths("y")


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_of_torch(seed):
    """The contributions are conserved in PyTorch, too, and equal those of gradlab."""
    import torch

    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    leaves = {name: np.asarray(numbers.normal(size=rng.choice(SHAPES))) for name in "xyz"}
    texts = list(program(rng))
    found = []
    for library in (torch, gl):
        run = Run(library, leaves)
        for text, _ in texts:
            run.line(text)
        made = [one for name, one in run.tensors().items() if name[0] == "t" and one.requires_grad and one.numel()]
        if not made:
            pytest.skip("no tensor was computed")
        out = sum((one.sum() for one in made[1:]), start=made[0].sum())
        names = {name: run.names[name] for name in "xyz"}
        graph, totals = gl.graph(out, names), {}
        for name in "xyz":
            try:
                paths = graph.paths(name)
            except (ValueError, RuntimeError) as error:
                totals[name] = type(error).__name__
                continue
            if paths.total and math.isfinite(paths.total) and abs(paths.total) > 1e-9:
                assert paths.why_not == "", paths.why_not
                assert_conserved(paths, 1e-8)
            totals[name] = paths.total
        found.append(totals)
    assert found[0] == pytest.approx(found[1], nan_ok=True, abs=1e-9)

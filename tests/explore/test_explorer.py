"""The model of the live explorer without a front end: numbers against `retain_grad`, folds and rows as sets of nodes."""

from __future__ import annotations

import gc
import json
import math
import re
import weakref
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import gradlab as gl
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.explorer import Explorer
from gradlab.explore.explorer.columns import ranges
from gradlab.explore.explorer.outline import module_outline
from gradlab.explore.graph import Graph
from gradlab.explore.rule_math import math_of

try:
    import torch
except ImportError:
    torch = None

both = pytest.mark.parametrize("lib", [gl, pytest.param(torch, marks=pytest.mark.torch)], ids=["gradlab", "torch"])


def zscores(lib):
    """Return the named tensors of a program that standardises two matrices and computes the trace of their correlation."""
    gl.manual_seed(1)
    numbers = [gl.randn(6, 4, dtype=gl.float64).numpy() for _ in range(2)]
    with gl.tracing():
        a, b = (lib.tensor(x, requires_grad=True) for x in numbers)
        mean = a.mean(0)
        z1 = (a - mean) / a.std(0)
        z2 = (b - b.mean(0)) / b.std(0)
        c = (z1.T @ z2) / 6
        loss = -lib.diagonal(c).sum()
    return {"a": a, "mean": mean, "z1": z1, "b": b, "z2": z2, "c": c, "loss": loss}


def explorer(names, out="loss", **more):
    return Explorer.of([names[out]], names, names, **more)


def node_of(made, name):
    return next(i for i, node in enumerate(made.trace.nodes) if name in node.name.split(", "))


def numbers(part):
    """Return the matrix in a panel's map, from the tooltips of its cells, "[1, 2] −0.5"."""
    cells = [
        re.fullmatch(r"\[(\d+), (\d+)\] (.+)", title) for title in re.findall("<rect[^>]*><title>(.*?)</title>", part["map"])
    ]
    wide = 1 + max(int(cell[2]) for cell in cells)
    assert [(int(cell[1]), int(cell[2])) for cell in cells] == [divmod(k, wide) for k in range(len(cells))]
    return np.array([float(cell[3].replace("−", "-")) for cell in cells]).reshape(-1, wide)


def flat(ranges):
    return [i for start, many in zip(ranges[::2], ranges[1::2], strict=True) for i in range(start, start + many)]


# -------------------------------------------------------------------------------------------------------------- numbers
@both
def test_values_and_gradients_match_retain_grad(lib):
    names = zscores(lib)
    made = explorer(names)
    assert all(names[leaf].grad is None for leaf in "ab"), "no gradient is written"
    tensors = {name: tensor for name, tensor in names.items() if name not in "ab"}
    for tensor in tensors.values():
        tensor.retain_grad()
    found = {name: made.answer("node", {"node": node_of(made, name)})["panel"] for name in names if name != "loss"}
    assert all(tensor.grad is None for tensor in names.values()), "the sweep of a panel writes no gradient either"
    names["loss"].backward()
    for name, panel in found.items():
        want = names[name].grad.numpy()
        np.testing.assert_allclose(numbers(panel["gradient"]).reshape(want.shape), want, rtol=1e-3, atol=1e-3 * abs(want).max())
        held = names[name].detach().numpy()
        np.testing.assert_allclose(numbers(panel["value"]).reshape(held.shape), held, rtol=1e-3, atol=1e-3 * abs(held).max())
        said = float(panel["gradient"]["norm"].replace("−", "-"))
        assert said == pytest.approx(np.linalg.norm(want), rel=5e-3, abs=1e-12)
        column = made.about()["nodes"]["norm"][node_of(made, name)]
        assert column == pytest.approx(np.linalg.norm(want), rel=1e-3, abs=1e-12)


@both
def test_local_jacobians_match_the_single_operation(lib):
    x = lib.tensor([0.5, -1.0, 2.0], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]], dtype=lib.float64, requires_grad=True)
    with gl.tracing():
        h = w @ x
        y = lib.tanh(h)
        out = (y * y).sum()
    made = explorer({"x": x, "w": w, "h": h, "y": y, "out": out}, "out")
    local = {entry["to"]: entry for entry in made.answer("node", {"node": node_of(made, "y")})["panel"]["local"]}
    ((_, tanh),) = local.items()
    want = np.diag(1 - np.tanh(h.detach().numpy()) ** 2)
    np.testing.assert_allclose(numbers(tanh), want, rtol=1e-3, atol=1e-6)
    assert tanh["words"] == "a diagonal"
    by = {entry["node"]: entry for entry in made.answer("node", {"node": node_of(made, "h")})["panel"]["local"]}
    found = by[node_of(made, "x")]
    np.testing.assert_allclose(numbers(found), w.detach().numpy(), rtol=1e-3)


@both
def test_shares_and_sums_of_gradients_that_meet(lib):
    with gl.tracing():
        x = lib.tensor(2.0, requires_grad=True)
        y = x * 3
        z = y * y - y  # 6² − 6; ∂z/∂y = 12 − 1, of which −1 comes from the difference
    made = explorer({"x": x, "y": y, "z": z}, "z")
    came = made.answer("node", {"node": node_of(made, "y")})["panel"]["came"]
    assert sorted(norm for _, _, norm, _ in came["rows"]) == ["1", "6", "6"]
    assert sorted(share for *_, share in came["rows"]) == sorted(["55 %", "55 %", "−9 %"])
    assert came["sum"].endswith("= 11") and came["sum"].count("6") == 2
    assert sum(edge.share for edge in made.trace.edges if edge.source == node_of(made, "y")) == pytest.approx(1)


def test_saved_tensors_and_their_bytes():
    x = gl.tensor([[1.0, 2.0, 3.0]], dtype=gl.float64, requires_grad=True)
    w = gl.tensor([[4.0, 5.0, 6.0]], dtype=gl.float64, requires_grad=True)
    y = x * w
    out = y.sum()
    made = explorer({"x": x, "w": w, "y": y, "out": out}, "out")
    saved = made.answer("node", {"node": node_of(made, "y")})["panel"]["saved"]
    assert [row[1:] for row in saved["tensors"]] == [["1×3", "float64", "24 bytes"]] * 2 and saved["bytes"] == "48 bytes"
    assert made.live.bytes() == 24 + 24 + 8, "x and w are both saved and leaves; the output is saved, too"


def test_the_code_by_hand_gives_the_gradient():
    names = zscores(gl)
    made = explorer(names)
    panel = made.answer("node", {"node": node_of(made, "z1")})["panel"]
    space = dict(names)
    exec(panel["code"]["code"], space)
    np.testing.assert_allclose(numbers(panel["gradient"]), space["gradients"][0].numpy(), rtol=1e-3, atol=1e-4)
    nameless = next(i for i, node in enumerate(made.trace.nodes) if node.label == "std(0)")
    assert "has no name" in made.answer("node", {"node": nameless})["panel"]["code"]["says"]


def test_a_non_scalar_output_and_several_outputs_are_summed():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y, z = x**2, x * 3
    made = explorer({"x": x, "y": y}, "y")
    assert "sum of its 2 elements" in " ".join(made.about()["head"]["parts"])
    assert numbers(made.answer("node", {"node": node_of(made, "x")})["panel"]["gradient"]).tolist() == [[2, 4]]
    made = Explorer.of([y, z], {}, {"x": x, "y": y, "z": z})
    assert "sum of all outputs" in " ".join(made.about()["head"]["parts"])
    assert numbers(made.answer("node", {"node": node_of(made, "x")})["panel"]["gradient"]).tolist() == [[5, 7]]


@both
def test_a_freed_graph_shows_its_structure(lib):
    x = lib.tensor(2.0, requires_grad=True)
    y = (x * x).exp()
    y.backward()
    made = explorer({"x": x, "y": y}, "y")
    assert "without gradients: backward has freed it" in made.about()["head"]["parts"] and made.live is None
    assert {node.operation for node in made.trace.nodes} >= {"ExpBackward0", "MulBackward0"}
    panel = made.answer("node", {"node": 1})["panel"]
    assert panel["gradient"] is None and "saved" not in panel


def test_nan_and_infinity_can_be_sent():
    x = gl.tensor([0.0, 1.0], requires_grad=True)
    y = (x.log() * x).sum()
    made = explorer({"x": x, "y": y}, "y")
    about = made.about()
    assert "NaN" in json.dumps(about["nodes"]["norm"], allow_nan=False) and about["nodes"]["odd"]
    for i in range(len(made.trace.nodes)):
        json.dumps(made.answer("node", {"node": i}), allow_nan=False)


# ---------------------------------------------------------------------------------------------------------------- folds
def encoder(layers=3):
    gl.manual_seed(0)
    model = gl.nn.TransformerEncoder(gl.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), layers)
    x, t = gl.randn(2, 3, 8), gl.randn(2, 3, 8)
    with gl.tracing():
        loss = ((model(x) - t) ** 2).mean()
    return explorer({"model": model, "loss": loss})


def chain(n):
    x = gl.randn(4, requires_grad=True)
    with gl.tracing():
        y = x
        for _ in range(n):
            y = y * 1.001 + 0.1 * x
        loss = (y**2).sum()
    return explorer({"x": x, "loss": loss})


def check_figure(made, figure):
    """Check that each node of the trace is in one box, and that edges point forward. Return the figure."""
    inside = sorted(i for node in figure["nodes"] if "members" in node for i in flat(node["members"]))
    assert inside == list(range(len(made.trace.nodes)))
    assert all(source < target for source, target, *place in figure["edges"] if place)
    return figure


@pytest.mark.parametrize("program", [encoder, lambda: chain(40)], ids=["modules", "lines"])
def test_folds_open_and_close_and_contain_every_node_once(program):
    made = program()
    first = check_figure(made, made.about()["figure"])
    assert len(first["nodes"]) <= 25 and first["folded"] == len(made.trace.nodes)
    address = next(node["opens"] for node in first["nodes"] if "opens" in node)
    opened = check_figure(made, made.answer("fold", {"open": [address]})["figure"])
    assert opened["open"] == [address] and len(opened["nodes"]) > len(first["nodes"])
    assert any(node.get("within") == address for node in opened["nodes"])
    deep = [len(made.answer("fold", {"depth": depth})["figure"]["nodes"]) for depth in range(5)]
    assert deep[0] == len(first["nodes"]) and all(a <= b for a, b in pairwise(deep)) and deep[-1] <= 240
    check_figure(made, made.answer("fold", {"depth": 4})["figure"])
    again = made.answer("fold", {"open": []})["figure"]
    assert again == first


def test_folds_open_to_show_a_node_inside():
    made = encoder()
    for i in range(0, len(made.trace.nodes), 37):
        figure = check_figure(made, made.answer("fold", {"open": [], "node": i})["figure"])
        box = next(node for node in figure["nodes"] if i in flat(node["members"]))
        assert "opens" not in box


def test_unknown_addresses_are_ignored():
    made = encoder()
    first = made.about()["figure"]
    assert made.answer("fold", {"open": ["99", "0.99.3", "", "x"]})["figure"] == first


def test_invalid_requests():
    made = chain(3)
    with pytest.raises(ValueError, match=r"'fold', 'rows', 'node', 'steps' or 'paths'.*'code'"):
        made.answer("code", {})
    for node in (-1, len(made.trace.nodes), "3", None):
        with pytest.raises(ValueError, match=r"node must be from 0 to \d+, got"):
            made.answer("node", {"node": node})


# ----------------------------------------------------------------------------------------------------------------- rows
def test_rows_of_modules_stack_equal_layers():
    made = encoder()
    about, trace = made.about(), made.trace
    assert about["levels"] == ["code", "modules", "operations"] and about["level"] == "modules"
    outline = module_outline(trace)
    stack = outline[0]
    assert stack[0] == "stack" and stack[1] == "model.layers[0–2]" and len(stack[6]) == 3
    assert {"self_attn", "norm1", "linear1"} <= {row[1] for row in stack[6][0][6]}
    operations = [i for i, kind in enumerate(about["nodes"]["kinds"]) if kind == "o"]
    assert sorted(i for row in outline for i in flat(row[5]) if about["nodes"]["kinds"][i] == "o") == operations
    first = about["rows"]["modules"]
    assert sum(bool(row["open"]) for row in first["rows"]) == 2 and len(first["rows"]) <= 18, "the stack and one of its layers"


def rows_of(made, level="modules", **wish):
    figure = made.answer("rows", {"level": level, **wish})["rows"]
    assert figure["svg"].count("data-row=") == len(figure["rows"]) and figure["level"] == level
    return figure


@pytest.mark.parametrize(("program", "level"), [(encoder, "modules"), (encoder, "code"), (lambda: chain(40), "code")])
def test_rows_open_and_close_and_contain_every_operation_once(program, level):
    made = program()
    operations = {i for i, node in enumerate(made.trace.nodes) if node.kind != "leaf"}

    def check_figure(**wish):
        figure = rows_of(made, level, **wish)
        closed = [i for row in figure["rows"] if not row["open"] for i in flat(row["members"])]
        counts = Counter(i for i in closed if i in operations)
        assert set(counts) == operations and set(counts.values()) == {1}
        assert len({row["key"] for row in figure["rows"]}) == len(figure["rows"])
        assert set(figure["open"]) == {row["key"] for row in figure["rows"] if row["open"]}
        return figure

    first = check_figure(open=[])
    key = next(row["key"] for row in first["rows"] if row["open"] is False)
    opened = check_figure(open=[key])
    inner = [row for row in opened["rows"] if row["key"].startswith(f"{key}.")]
    assert opened["open"] == [key] and inner and {row["depth"] for row in inner} == {1}
    assert {row["depth"] for row in check_figure(depth=3)["rows"]} >= {0, 1}
    assert check_figure(open=["99", "0.99.3", "", "x"]) == first, "unknown addresses are ignored"
    for node in sorted(operations)[::17]:
        around = check_figure(open=[], node=node)
        alone = [operations.intersection(flat(row["members"])) for row in around["rows"] if row["open"] is None]
        assert {node} in alone


@both
def test_rows_have_the_norms_of_retain_grad_and_their_origin(lib):
    with gl.tracing():
        x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
        h = x * 3
        u = h * h
        v = h * 2
        loss = (u - v).sum()  # ∂/∂h = 2h − 2 = (4, 10): of the square 2h = (6, 12), of the double −2
    made = explorer({"x": x, "h": h, "u": u, "v": v, "loss": loss})
    spoken = {row["spoken"].partition(" = ")[0]: row["spoken"] for row in rows_of(made, "code", open=[])["rows"]}
    assert f"norm of the gradient {math.hypot(4, 10):.3g}" in spoken["h"] or "gradient 10.8" in spoken["h"]
    share = (6 * 4 + 12 * 10) / (4**2 + 10**2)  # of what arrived, along it
    lines = {row["spoken"].partition(" = ")[0]: row for row in rows_of(made, "code", open=[])["rows"]}
    number = {name: re.search(r"line (\d+)", row["spoken"])[1] for name, row in lines.items() if "line" in row["spoken"]}
    assert f"came from {share:.0%}".replace("%", " %") + f" line {number['u']}" in spoken["h"]
    assert f"−{share - 1:.0%}".replace("%", " %") + f" line {number['v']}" in spoken["h"]
    leaf = re.search(r'data-leaf="(\d+)".*?>x</tspan>', rows_of(made, "code", open=[], width=1000)["svg"])
    assert int(leaf[1]) == node_of(made, "x")


@pytest.mark.parametrize("width", [360, 480, 600, 760, 1000, 1400])
def test_rows_fit_the_available_width(width):
    made = encoder()
    for wish in ({"open": []}, {"depth": 1}, {"depth": 3}, {"depth": 9}):
        figure = rows_of(made, width=width, **wish)
        assert figure["width"] <= max(width, 480)
        if width == 1400:
            assert not figure["cut"]


def test_the_heading_of_the_parameters_names_the_numbers_below_it():
    made = encoder()
    seen = set()
    for width in range(480, 1200, 20):
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", rows_of(made, width=width, depth=3)["svg"])
        heads = {"‖∇W‖", "‖∇W‖ ÷ ‖W‖"}.intersection(texts)
        assert len(heads) <= 1 and (heads == {"‖∇W‖ ÷ ‖W‖"}) == any(" ÷ " in text and " = " in text for text in texts)
        seen |= heads
    assert len(seen) == 2


def test_a_row_of_many_nodes_shows_more_of_them_on_request():
    made = chain(300)
    key = max(rows_of(made, "code", open=[])["rows"], key=lambda row: sum(row["members"][1::2]))["key"]
    members = flat(next(row for row in made.about()["rows"]["code"]["rows"] if row["key"] == key)["members"])
    total = sum(made.trace.nodes[i].kind == "operation" for i in members)
    wish = {}
    for many in (100, 300):
        figure = rows_of(made, "code", open=[key], **wish)
        wish = {"more": figure["more"], "extend": key}
        shown = [row for row in figure["rows"] if re.fullmatch(rf"{key}\.n\d+", row["key"])]
        [rest] = [row for row in figure["rows"] if row["key"] == f"{key}.more"]
        assert len(shown) == many and rest["spoken"].startswith(f"{total - many:,} more")


def test_an_unknown_level_of_rows_is_an_error():
    with pytest.raises(ValueError, match="rows must be 'code' or 'modules', got 'operations'"):
        encoder(1).answer("rows", {"level": "operations"})


def test_columns_match_the_graph():
    made = encoder(1)
    about, trace = made.about(), made.trace
    table, texts = about["nodes"], about["texts"]
    edges = [(i - back, i) for i, one in enumerate(table["inputs"]) for back in (one if isinstance(one, list) else [one])]
    assert edges == [(edge.source, edge.target) for edge in trace.edges]
    assert [texts[k] for k in table["label"]] == [node.label for node in trace.nodes]
    assert [texts[k] for k in table["module"]] == [node.module for node in trace.nodes]
    floats = [i for i, node in enumerate(trace.nodes) if node.kind == "leaf"]
    assert [table["bytes"][i] for i in floats] == [4 * math.prod(trace.nodes[i].shape) for i in floats]


def test_ranges():
    assert ranges([]) == [] and ranges([3]) == [3, 1] and ranges([1, 2, 3, 7, 9, 10]) == [1, 3, 7, 1, 9, 2]


@pytest.mark.slow
def test_ten_thousand_nodes_take_less_than_half_a_megabyte():
    made = chain(3300)
    assert len(made.trace.nodes) > 9_900
    about = json.dumps(made.about(), separators=(",", ":"), ensure_ascii=False).encode()
    assert len(about) < 500_000
    assert len(made.about()["figure"]["nodes"]) <= 25


# ------------------------------------------------------------------------------------------------------ groups of nodes
@both
def test_inputs_and_outputs_of_a_line(lib):
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([3.0, -1.0], dtype=lib.float64, requires_grad=True)
    t = lib.tensor([0.5, 0.5], dtype=lib.float64)
    with gl.tracing():
        h = x * w
        loss = ((h - t) ** 2).sum()  # ∂/∂h = 2 (h − t) = (5, −5); ∂/∂x = (15, 5), ∂/∂w = (5, −10)
    made = explorer({"x": x, "w": w, "t": t, "h": h, "loss": loss})
    rows = rows_of(made, "code", open=[])["rows"]
    first = made.answer("node", {"node": rows[0]["at"], "members": rows[0]["members"]})["panel"]["fold"]
    assert first["inputs"] == [
        [node_of(made, "x"), "x", "2", f"‖gradient‖ {math.hypot(15, 5):.3g}"],
        [node_of(made, "w"), "w", "2", f"‖gradient‖ {math.hypot(5, 10):.3g}"],
    ]
    assert first["parameters"] == [] and ["size", "1 operation"] in first["about"]
    last = made.answer("node", {"node": rows[1]["at"], "members": rows[1]["members"]})["panel"]["fold"]
    assert last["inputs"][0][:2] == [node_of(made, "h"), "h = ×"] and last["inputs"][0][3] == f"‖gradient‖ {math.hypot(5, 5):.3g}"
    assert last["inputs"][1][0] == -1 and last["inputs"][1][1].startswith("t"), "a tensor that does not require grad"
    assert ["size", "3 operations"] in last["about"]


def test_the_parameters_of_a_module_add_up():
    made = encoder(2)
    row = next(row for row in rows_of(made, depth=2)["rows"] if row["label"] == "linear1")
    fold = made.answer("node", {"node": row["at"], "members": row["members"]})["panel"]["fold"]
    names = [name for _, name, *_ in fold["parameters"]]
    assert names == ["weight", "bias", "all"] and ["module", "model.layers[0].linear1"] in fold["about"]
    weight, bias, whole = ([float(text) for text in cells[3:5]] for cells in fold["parameters"])
    assert whole[0] == pytest.approx(math.hypot(weight[0], bias[0]), rel=1e-2)
    assert whole[1] == pytest.approx(math.hypot(weight[1], bias[1]), rel=1e-2)
    for i, *_ in fold["parameters"][:2]:
        assert made.trace.nodes[i].kind == "leaf"
    whole = encoder(3).about()["whole"]
    assert len(whole["parameters"]) == 25 and whole["parameters"][-1][1] == "all 36, of which 12 are not listed"
    assert whole["of"] == "model.layers" and whole["parameters"][0][1].startswith("[0].")


@both
def test_an_input_that_needs_a_gradient_is_not_a_parameter_of_the_module(lib):
    net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Linear(3, 1))
    x = lib.ones(4, 2, requires_grad=True)
    with gl.tracing():
        loss = net(x).sum()
    made = explorer({"net": net, "x": x, "loss": loss})
    inside = [i for i, node in enumerate(made.trace.nodes) if node.layer == "net[0]"]
    fold = made.answer("node", {"node": inside[-1], "members": ranges(inside)})["panel"]["fold"]
    assert [row[1] for row in fold["inputs"]] == ["x"]
    assert sorted(row[1] for row in fold["parameters"]) == ["all", "bias", "weight"]


def test_the_gradient_of_one_element_has_a_sign():
    x = gl.tensor(2.0, requires_grad=True)
    with gl.tracing():
        y = x * -3.0
    assert explorer({"x": x, "y": y}, "y").about()["whole"]["inputs"] == [[0, "x", "scalar", "gradient −3"]]


@pytest.mark.parametrize("members", [[0], [0, 10_000], [-1, 2], ["0", 1], "01"])
def test_members_that_are_not_ranges_are_errors(members):
    with pytest.raises(ValueError, match="members must be ranges"):
        chain(2).answer("node", {"node": 1, "members": members})


# -------------------------------------------------------------------------------------------------------- references
def test_close_releases_the_graph_and_keeps_plain_data():
    names = zscores(gl)
    made = explorer(names)
    held = weakref.ref(names["z1"].grad_fn)
    names.clear()
    gc.collect()
    assert held() is not None and "holds" not in str(made.about()["head"]["parts"]) and made.about()["head"]["held"]
    made.close()
    gc.collect()
    assert held() is None
    panel = made.answer("node", {"node": 2})["panel"]
    assert panel["gradient"] and "saved" not in panel and made.about()["head"]["held"] == ""


def test_a_graph_without_tensors_is_shown_as_recorded():
    x = gl.tensor(3.0, requires_grad=True)
    shown = Graph(gl.graph(x * x).trace)
    made = Explorer.around(shown, [], {}, {})
    assert made.live is None and "not held" in " ".join(made.about()["head"]["parts"])


# ------------------------------------------------------------------------------------------------------------- formulas
def texts_of(formula):
    return "".join(part if isinstance(part, str) else "" if isinstance(part, float) else texts_of(part) for part in formula[1:])


def test_every_formula_has_a_text_without_latex():
    for name in PRIMITIVES:
        for line in gl.formula(name).lines():
            left = set(texts_of(math_of(line)).replace(" ", "")) & {"\\", "{", "}", "_"}
            assert not left - ({"{", "}"} if r"\{" in line else set()) - ({"_"} if r"\_" in line else set()), (name, line)


def test_a_formula_as_lists():
    fraction = math_of(r"\bar{b} = \bar{y}\,\frac{a^{2}}{-b}")
    over = ["mover", ["mi", "b"], ["mo", "¯"]]
    assert fraction[:3] == ["mrow", over, ["mo", "="]]
    assert fraction[5] == ["mfrac", ["msup", ["mi", "a"], ["mn", "2"]], ["mrow", ["mo", "−"], ["mi", "b"]]]


@both
def test_a_sweep_that_freed_its_graph_is_shown_as_recorded(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with gl.tracing() as seen:
        y = x * x
        loss = (y * y).sum()
        loss.backward()
    made = Explorer.around(Graph(seen.trace), [loss], {}, {"x": x, "loss": loss})
    assert made.live is None and "backward() has freed the graph" in " ".join(made.about()["head"]["parts"])
    panel = made.answer("node", {"node": 0})["panel"]
    assert numbers(panel["gradient"]).tolist() == [[4, 32]] and numbers(panel["value"]).tolist() == [[1, 2]]
    with pytest.raises(RuntimeError, match="the graph is not held"):
        made.answer("paths", {"node": 0})


@both
def test_steps_and_paths_end_in_the_gradient(lib):
    a, b = (lib.tensor(x, dtype=lib.float64, requires_grad=True) for x in (2.0, -1.0))
    with gl.tracing():
        d = a * b
        e = a - d
        loss = d * e + e
    names = {"a": a, "b": b, "d": d, "e": e, "loss": loss}
    made = explorer(names)
    paths = made.answer("paths", {"node": node_of(made, "b")})["paths"]
    leaving = [one["amount"] for one in paths["edges"] if made.trace.edges[one["edge"]].source == node_of(made, "b")]
    loss.backward(retain_graph=True)
    assert sum(leaving) == pytest.approx(b.grad.item()) == paths["total"]
    assert made.answer("steps", {})["steps"] and made.answer("steps", {"numbers": [2.0]})["steps"]
    with pytest.raises(ValueError, match="paths lead to a leaf"):
        made.answer("paths", {"node": node_of(made, "d")})
    with pytest.raises(TypeError, match="a list of numbers"):
        made.answer("steps", {"numbers": "2"})

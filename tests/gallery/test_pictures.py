"""The pictures of the gallery's graphs: their numbers against torch, formulas and worked examples; their folds and rows."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest
from program_traces import namespace_of, trace_of
from programs import PROGRAMS, marks_of

from gradlab.explore.graph import Graph
from gradlab.explore.graph.ports import Scale, elements, port_of, scale_of, short_number
from gradlab.explore.graph.rows import code_rows, lanes, module_rows
from gradlab.explore.trace.data import GraphNode
from gradlab.explore.trace.values import Value

SVG = "{http://www.w3.org/2000/svg}"
LARGE = ("lstm", "conv", "encoder", "gpt", "encoder_gradlab")


def of_programs(*names):
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in names])


def drawn_texts(drawing):
    return ["".join(element.itertext()) for element in ET.fromstring(drawing.svg()).iter(f"{SVG}text")]


def node_texts(drawing, label):
    """All texts of the node of that label, in the order of drawing."""
    for group in ET.fromstring(drawing.svg()).iter(f"{SVG}g"):
        texts = ["".join(t.itertext()) for t in group.iter(f"{SVG}text")]
        if label in texts and group.get("data-node"):
            yield texts


def rows_by(rows):
    return {row.label: row for row in rows}


# ----------------------------------------------------------------------------------------------------- worked by hand
def test_every_node_of_a_scalar_cell_shows_its_value_and_its_gradient():
    """Check out = 2·relu(a·b + b³) at a = −3, b = 2."""
    drawing = Graph(trace_of("scalar")).drawing()
    assert next(node_texts(drawing, "a")) == ["a", "−3", "4"]
    assert next(node_texts(drawing, "b")) == ["b", "2", "18"]
    times, doubled = node_texts(drawing, "×")
    assert times == ["×", "MulBackward0", "c\u2002−6", "2", "4"]  # the last is its line: `%%grad` is line 1
    assert doubled[:3] == ["2", "×", "MulBackward0"] or "2" in doubled  # the constant, and no port: the output stands for it
    assert next(node_texts(drawing, "**")) == ["3", "**", "PowBackward0", "8", "2", "5"]
    assert next(node_texts(drawing, "+")) == ["+", "AddBackward0", "d\u20022", "2", "5"]
    assert next(node_texts(drawing, "relu")) == ["relu", "ReluBackward0", "e\u20022", "2", "6"]
    assert next(node_texts(drawing, "out")) == ["out", "4", "1"]
    shares = [text for text in drawn_texts(drawing) if "%" in text]
    assert sorted(shares) == ["133 %", "−33 %"]  # of 18: 24 through b³, −6 through a·b


def test_up_to_five_elements_stand_value_over_gradient():
    drawing = Graph(trace_of("five")).drawing()
    assert next(node_texts(drawing, "x"))[1:] == ["0", "1", "2", "3", "4", "0", "−9", "−72", "−243", "888"]
    power = next(node_texts(drawing, "**"))
    assert power[3:14] == ["y", "0", "1", "8", "27", "64", "−0.5", "−3", "−6", "−9", "18.5"]
    assert {"[1:]", "[:-1]"} <= set(drawn_texts(drawing))
    assert next(node_texts(drawing, "sum"))[2:4] == ["1780", "0.25"]
    assert next(node_texts(drawing, "÷"))[0] == "4"
    assert next(node_texts(drawing, "loss")) == ["loss", "445", "1"]


def test_a_cut_is_torn_and_what_lies_behind_says_no_gradient():
    drawing = Graph(trace_of("cut")).drawing()
    assert "cut by .detach(), line 3" in drawn_texts(drawing)
    assert next(node_texts(drawing, "no gradient")) == ["×", "no gradient", "target", "2", "4", "6", "3"]
    assert next(node_texts(drawing, "w"))[4:] == ["−2", "−4", "−6"]
    dotted = [path for path in ET.fromstring(drawing.svg()).iter(f"{SVG}path") if path.get("stroke-dasharray")]
    assert len(dotted) == 1
    assert "cut by .detach(), line 3" in drawing.text and "cut by .detach(), line 3" in Graph(trace_of("cut")).dot()


def test_a_constant_written_as_a_name_has_it():
    drawing = Graph(trace_of("fan_out")).drawing()
    assert "N = 6" in drawn_texts(drawing) and "3" in next(t for t in node_texts(drawing, "×") if "3" in t)
    assert "(N = 6)" in drawing.text


def test_two_parts_of_one_size_that_cancel():
    import gradlab as gl
    from gradlab.explore.trace.recorder import Recorder

    x = gl.tensor([1.5, -2.0], requires_grad=True)
    with Recorder(dict) as recorder:
        ((x * 3.0).sum() - (x * 3.0).sum()).backward()
    drawing = Graph(recorder.trace()).drawing()
    norm = short_number(3 * math.sqrt(2))
    assert f"{norm} and {norm} cancel" in drawn_texts(drawing)
    assert not [text for text in drawn_texts(drawing) if "%" in text], "of 0 there are no shares"


def test_a_leaf_that_got_no_gradient_says_so():
    """Check an output that passes no gradient: its leaf is in the graph, but receives none."""
    import gradlab as gl
    from gradlab.explore.trace.data import Leaf, Trace

    x = gl.tensor([1.0, 2.0], requires_grad=True)
    trace = gl.graph((x * 2).sum(), {"x": x}).trace
    leaf = Leaf("x", 0, (2,), "float32", "cpu", Value((2,), "float32", (1.0, 2.0)), None)
    swept = Trace("gradlab", trace.nodes, trace.edges, (leaf,), sweep=1, sweeps=1)
    assert "no gradient" in drawn_texts(Graph(swept).drawing()) and "no gradient" not in drawn_texts(Graph(trace).drawing())


# ------------------------------------------------------------------------------------------------------ against torch
@pytest.mark.torch
def test_shares_are_projections_of_what_each_use_hands_back():
    """Each use of h gets its own copy of it as a leaf; its gradient is that use's part."""
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.5, -1.0, 2.0])
    copies = [x.tanh().requires_grad_() for _ in range(6)]
    p = copies[0] * copies[1]
    q = 3 * copies[2] + x[0] - copies[3].mean()
    r = copies[4].exp() / 6
    ((p + q - r).sum() + copies[5].sum()).backward()
    parts = [copy.grad for copy in copies]
    whole = sum(parts)
    expected = [float(part @ whole / (whole @ whole)) for part in parts]
    trace = trace_of("fan_out")
    h = next(i for i, node in enumerate(trace.nodes) if node.name == "h")
    assert sorted(e.share for e in trace.edges if e.source == h) == pytest.approx(sorted(expected), abs=1e-5)
    from gradlab.explore.graph.painting import share_text

    wanted = {share_text(expected[0] + expected[1]), *map(share_text, expected[2:])}
    assert wanted <= set(drawn_texts(Graph(trace).drawing()))


@pytest.mark.torch
def test_rows_of_code_have_the_norms_that_retain_grad_gives():
    pytest.importorskip("torch")
    space = namespace_of("batch_norm")
    for line in PROGRAMS["batch_norm"].cell.splitlines():
        exec(line, space)
        name = line.partition(" = ")[0]
        if " = " in line and space[name].requires_grad:
            space[name].retain_grad()
    rows = code_rows(trace_of("batch_norm"))
    assert [row.label for row in rows if row.kind == "line"] == PROGRAMS["batch_norm"].cell.splitlines()[:-1]
    assert [row.line for row in rows if row.kind == "line"] == [str(i) for i in range(2, 20)]
    for row in rows:
        if row.kind == "line":
            tensor = space[row.label.partition(" = ")[0]]
            assert row.gradient.norm == pytest.approx(float(tensor.grad.norm()), rel=1e-4, abs=1e-7)
        for parameter in row.parameters:
            assert parameter.gradient == pytest.approx(float(space[parameter.name].grad.norm()), rel=1e-4, abs=1e-7)
    hprebn = rows[0]
    assert sum(share for _, share in hprebn.came_from) == pytest.approx(1, abs=1e-5)
    assert [rows[target].where for target, _ in hprebn.came_from] == ["line 3", "line 4"]


@pytest.mark.torch
def test_rows_of_modules_have_the_norms_that_hooks_give():
    pytest.importorskip("torch")
    space, seen, outs = namespace_of("encoder"), {}, []

    def keep(name):
        def hook(module, inputs, output):
            output.retain_grad()
            outs.append((name, output))

        return hook

    for name, module in space["model"].named_modules():
        if name:
            module.register_forward_hook(keep(name) if not name.endswith("self_attn") else (lambda *a: None))
    exec(PROGRAMS["encoder"].cell, space)
    seen = {name: float(output.grad.norm()) for name, output in outs if output.grad is not None}
    rows = rows_by(module_rows(trace_of("encoder")))
    for name in ("layers[0].norm1", "layers[0].linear1", "layers[0].linear2", "layers[0].norm2"):
        assert rows[name].gradient.norm == pytest.approx(seen[name.replace("[0]", ".0")], rel=1e-4)
    stack = rows["layers[1–11]"]
    assert stack.norms == pytest.approx([seen[f"layers.{i}"] for i in range(1, 12)], rel=1e-4)
    norm = math.hypot(*(float(p.grad.norm()) for n, p in space["model"].named_parameters() if n.startswith("layers.0.norm1.")))
    assert math.hypot(*(p.gradient for p in rows["layers[0].norm1"].parameters)) == pytest.approx(norm, rel=1e-4)


@pytest.mark.torch
def test_a_cell_of_fifty_steps_is_one_row_with_fifty_norms():
    torch = pytest.importorskip("torch")
    space, steps = namespace_of("lstm"), []
    h = c = torch.zeros(8, 16)
    for x in space["X"]:
        h, c = space["cell"](x, (h, c))
        h.retain_grad()
        steps.append(h)
    torch.nn.functional.mse_loss(space["head"](h), space["t"]).backward()
    rows = module_rows(trace_of("lstm"))
    [cell] = [row for row in rows if row.label == "cell"]
    assert cell.small.startswith("50 calls · LSTMCell") and len(cell.norms) == 50
    wanted = [float(h.grad.norm()) for h in steps]
    assert cell.norms == pytest.approx(wanted, rel=1e-3, abs=1e-12)
    [line] = [row for row in code_rows(trace_of("lstm")) if row.label.startswith("h, c = cell(")]
    assert line.small == "50 times" and line.norms == pytest.approx(wanted, rel=1e-3, abs=1e-12)


# --------------------------------------------------------------------------------------------------------------- folds
@of_programs(*LARGE)
@pytest.mark.parametrize("level", ["operations", "modules"])
def test_a_model_folds_to_what_is_read_at_a_glance(name, level):
    found = Graph(trace_of(name), level=level)
    drawing = found.drawing()
    assert drawing.height <= 900 and drawing.width <= 1000
    nodes, edges = found.visible_graph
    assert 4 <= len(nodes) <= 25
    assert sorted(m for node in nodes for m in node.members) == list(range(len(found.nodes)))
    assert all(edge.source < edge.target for edge in edges)
    for node in nodes:
        assert not re.fullmatch(r"\d+ nodes", node.label)
        if node.kind == "folded":
            assert re.match(r"[A-Za-z_]", node.label) and node.gradient is not None


@of_programs("encoder", "encoder_gradlab", "gpt")
def test_blocks_that_are_alike_are_one_stack(name):
    nodes, _ = Graph(trace_of(name), level="operations").visible_graph
    blocks = "blocks" if name == "gpt" else "layers"
    [stack] = [node for node in nodes if node.norms]
    assert stack.label == f"{blocks}[1–11]" and stack.detail.startswith("11 alike · ") and len(stack.norms) == 11
    assert {f"{blocks}[0].{'attn' if name == 'gpt' else 'self_attn'}"} <= {node.label for node in nodes}


@of_programs("encoder", "encoder_gradlab")
def test_unfold_opens_the_module_that_holds_a_leaf(name):
    trace, wanted = trace_of(name), "model.layers[7].linear1.weight"
    found = Graph(trace, level="operations", unfold=[wanted])
    labels = [node.label for node in found.visible_graph[0]]
    assert wanted in labels and wanted not in [node.label for node in Graph(trace, level="operations").visible_graph[0]]
    assert wanted in drawn_texts(found.drawing()) or wanted[-20:] in " ".join(drawn_texts(found.drawing()))
    with pytest.raises(ValueError, match=r"no leaf is called 'nothing'; there are "):
        Graph(trace, unfold=["nothing"])


def test_functions_are_folds_where_there_are_no_modules():
    nodes, _ = Graph(trace_of("by_functions"), level="operations", limit=16).visible_graph
    [layer] = [node for node in nodes if node.label == "layer()"]
    assert layer.count > 20 and "X" in [operand.text for operand in layer.operands]


def test_the_level_is_chosen_by_what_was_run():
    assert Graph(trace_of("scalar")).level == "operations"
    assert Graph(trace_of("by_functions")).level == "code"
    assert Graph(trace_of("encoder_gradlab")).level == "modules"
    assert Graph(trace_of("encoder_gradlab"), limit=60).level == "operations"
    with pytest.raises(ValueError, match="the levels are 'operations', 'code', 'modules'"):
        Graph(trace_of("scalar"), level="lines")


@of_programs(*PROGRAMS)
def test_rows_lose_no_node_and_rails_run_down(name):
    trace = trace_of(name)
    for rows in (code_rows(trace), module_rows(trace)):
        members = [m for row in rows for m in row.members]
        assert len(members) == len(set(members))
        there = {i for i in members if trace.nodes[i].kind == "operation"}
        assert there == {i for i, node in enumerate(trace.nodes) if node.kind == "operation"}
        lane, many = lanes(rows)
        assert max(lane) == many - 1
        last = [max((t for t, _ in row.came_from if t > at), default=at) for at, row in enumerate(rows)]
        for at in range(len(rows)):  # two tensors that are both still needed have two lanes
            for other in range(at):
                if last[other] > at and lane[other] == lane[at] and last[at] > at:
                    pytest.fail(f"{rows[other].label} and {rows[at].label} share a rail")


@of_programs(*PROGRAMS)
def test_text_and_alt_carry_the_numbers_of_the_picture(name):
    found = Graph(trace_of(name))
    drawing = found.drawing()
    norms = [node.gradient for node in found.nodes if node.kind == "operation" and node.gradient is not None]
    texts = found.text()
    for value in norms:
        few = elements(value)
        wanted = (few[0] if len(few) == 1 else f"[{', '.join(few)}]") if few else short_number(value.norm)
        assert f"gradient {wanted}" in texts or f"‖gradient‖ {wanted}" in texts
    assert "gradient" in drawing.alt or found.level != "operations"


# ---------------------------------------------------------------------------------------------------------------- ports
def test_one_scale_for_a_picture():
    scale = scale_of([0.0182, 0.5, 3e-8, 0.0, math.nan, math.inf])
    assert (scale.low, scale.high) == (0.01, 1.0)
    assert scale.part(3e-8) == 0 and scale.part(0.0) == 0 and scale.part(math.nan) == 0 and scale.part(1.0) == 1
    assert 0 < scale.part(0.01) < scale.part(0.1) < scale.part(0.9) < 1
    assert scale_of([]) is None and scale_of([0.0]) is None and str(Scale(1e-3, 1.0)) == "0.001 to 1"


def test_what_a_port_says():
    three = Value((3,), "float32", (1.0, 2.0, 4.0))
    assert port_of(three, Value((3,), "float32", (0.5, 0.0, -1.0)), "d", "3").gradients == ("0.5", "0", "−1")
    matrix = Value((2, 2), "float32", (1.0, 2.0, 3.0, 4.0))
    assert port_of(matrix, None, "", "2×2").shape == "2×2", "one row of numbers does not say it"
    assert not port_of(None, None, "", "3") and port_of(None, None, "", "3", always=True).shape == "3"
    assert (
        short_number(-0.0) == "0"
        and short_number(True) == "True"
        and short_number(1 + 2j) == "1+2j"
        and short_number(-243.0) == "−243"
    )
    assert short_number(math.nan) == "NaN" and short_number(-math.inf) == "−∞" and short_number(3e-8) == "3e−8"


def test_a_graph_that_nobody_looked_at_has_a_picture_without_gradients():
    import gradlab as gl

    x = gl.ones(3, 2, requires_grad=True)
    found = gl.graph((x * 2).sum(), {"x": x})
    texts = drawn_texts(found.drawing())
    assert found.level == "operations" and {"x", "×", "sum"} <= set(texts)
    assert not [text for text in texts if "gradient" in text or "%" in text]
    assert isinstance(found.nodes[0], GraphNode) and found.trace.sweep == 0

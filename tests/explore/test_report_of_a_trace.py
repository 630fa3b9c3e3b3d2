"""The report of a trace: its numbers against those of the libraries, its tree, lines, findings, files and comparisons."""

import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cell_traces import trace_cell

import gradlab as gl
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.drawing import text_width
from gradlab.explore.markup import number, say, to_text
from gradlab.explore.report import make_report, report_of, tree_view
from gradlab.explore.report.bars import DECADES, Scale
from gradlab.explore.report.cell_lines import cell_lines, shorten
from gradlab.explore.report.comparison import changed_lines
from gradlab.explore.report.plain_data import stats
from gradlab.explore.report.rows import rows_of
from gradlab.explore.report.tree import forest, steps_of
from gradlab.explore.report.tree_view import TreeView
from gradlab.explore.sources import Source
from gradlab.explore.statistics import statistics
from gradlab.explore.trace.values import Value

ZSCORE = """
z1 = (a - a.mean(0)) / a.std(0)
z2 = (b - b.mean(0)) / b.std(0)
loss = -lib.diagonal((z1.T @ z2) / 6).sum()
loss.backward()
"""
STEP = """
w = gl.tensor([1., 2., 3.], requires_grad=True)
target = (w * 2).detach()
loss = ((w - target) ** 2).sum()
loss.backward()
opt = gl.optim.SGD([w], lr=.1)
opt.step()
"""
LOOP = """
x = gl.tensor([2.], requires_grad=True)
for step in range(3):
    loss = (x ** 2).sum()
    loss.backward()
"""


def zscore(lib):
    rng = np.random.default_rng(0)
    return {name: lib.tensor(rng.normal(size=(6, 4)), requires_grad=True) for name in "ab"} | {"lib": lib}


def model_and_trace():
    gl.manual_seed(0)

    class Block(gl.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.fc = gl.nn.LayerNorm(4), gl.nn.Linear(4, 4)

        def forward(self, x):
            return x + self.fc(self.norm(x)).relu()

    class Net(gl.nn.Module):
        def __init__(self):
            super().__init__()
            self.aux = gl.nn.Linear(4, 1)
            self.head = gl.nn.Linear(4, 2)
            self.blocks = gl.nn.ModuleList([Block() for _ in range(5)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    space = {"gl": gl, "Net": Net, "X": gl.randn(7, 4)}
    trace = trace_cell("model = Net()\nloss = (model(X) ** 2).mean()\nloss.backward()", space)
    return space["model"], trace


def report_of_model():
    model, trace = model_and_trace()
    known = {leaf.name for leaf in trace.leaves}
    names = {re.sub(r"\.(\d+)", r"[\1]", f"model.{name}"): tensor for name, tensor in model.named_parameters()}
    sources = [Source(name, tensor, True, name in known, True) for name, tensor in names.items()]
    return model, report_of(trace, rows=rows_of(trace.leaves, sources, {}))


# --------------------------------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize("lib", [gl, pytest.param("torch", marks=pytest.mark.torch)])
def test_to_dict_has_the_numbers_of_retain_grad(lib):
    lib = pytest.importorskip(lib) if isinstance(lib, str) else lib
    report = report_of(trace_cell(ZSCORE, zscore(lib)))
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert list(found) == ["version", "scale", "leaves", "nodes", "edges", "rows", "findings", "remarks"]
    a, b = (zscore(lib)[name] for name in "ab")
    z1, z2 = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
    product = z1.T @ z2
    diagonal = lib.diagonal(product / 6)
    loss = -diagonal.sum()
    kept = {"z1": z1, "z2": z2, "@": product, "diagonal": diagonal}
    for tensor in kept.values():
        tensor.retain_grad()
    loss.backward()
    nodes = {node["name"] or node["label"]: node for node in found["nodes"]}
    for name, tensor in (kept | {"a": a, "b": b}).items():
        node, value, gradient = nodes[name], tensor.detach().numpy(), tensor.grad.numpy()
        assert node["shape"] == list(value.shape) and node["dtype"] == "float64", name
        assert node["gradient_stats"]["norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-9), name
        assert node["gradient_stats"]["maximum"] == pytest.approx(gradient.max(), rel=1e-9), name
        assert node["value_stats"]["mean"] == pytest.approx(value.mean(), rel=1e-6, abs=1e-12), name
        if value.size <= 16:
            np.testing.assert_allclose(node["value"], value, rtol=1e-9)
            np.testing.assert_allclose(node["gradient"], gradient, rtol=1e-9)
        else:
            assert node["value"] is node["gradient"] is None
    assert nodes["loss"]["value"] == pytest.approx(loss.item()) and nodes["loss"]["gradient"] == 1
    assert (
        nodes["z1"]["line"] == 2 and nodes["z1"]["source"] == "(a - a.mean(0)) / a.std(0)" and nodes["z1"]["columns"] == [5, 31]
    )
    for leaf in found["leaves"]:
        assert found["nodes"][leaf["node"]]["name"] == leaf["name"]
    for row, tensor in zip(found["rows"], (a, b), strict=True):
        assert row["gradient_stats"]["norm"] == pytest.approx(np.linalg.norm(tensor.grad.numpy()), rel=1e-9)
    assert all(found["nodes"][edge["target"]]["id"] == edge["target"] for edge in found["edges"])


def test_to_dict_writes_nonfinite_numbers_as_text():
    trace = trace_cell(
        "x = gl.tensor([0., 4.], requires_grad=True)\n(x.sqrt() * gl.tensor([1., float('nan')])).sum().backward()", {"gl": gl}
    )
    finding = Finding("k", "m", line=3, evidence={"norm": math.inf, "n": np.int64(3)}, lines=(4, 9), remark=True)
    found = json.loads(json.dumps(report_of(trace, findings=[finding]).to_dict(), allow_nan=False))
    assert found["rows"][0]["gradient"] == ["Infinity", "NaN"] and found["rows"][0]["gradient_stats"]["norm"] == "NaN"
    assert float(found["rows"][0]["gradient"][0]) == math.inf
    assert found["findings"] == [
        {
            "kind": "k",
            "severity": "note",
            "message": "m",
            "fix": "",
            "line": 3,
            "lines": [4, 9],
            "node": None,
            "model": "",
            "times": 1,
            "evidence": {"norm": "Infinity", "n": 3},
        }
    ]


@pytest.mark.parametrize(
    "numbers", [(), (0.0, -2.5, 7.0), (math.nan, 1.0), (math.inf, -3.0, 0.0), (math.nan,), (True, False), (3, -4), (3 + 4j, 0j)]
)
def test_statistics_of_few_numbers_match_numpy(numbers):
    value = Value((len(numbers),), "", numbers)
    found, expected = stats(value), stats(statistics(np.array(numbers)))
    assert found.pop("norm") == pytest.approx(expected.pop("norm")) or math.isnan(value.norm) or math.isinf(value.norm)
    assert found == pytest.approx(expected)


def test_values_are_those_during_backward():
    report = report_of(trace_cell(STEP, {"gl": gl}))
    assert report["w"].value_numbers == (1, 2, 3) and report["w"].gradient_numbers == (-2, -4, -6)
    assert report.sentence == (
        "loss = 14, with respect to w. Values and gradients are those of this backward pass. Since then, opt.step() "
        "(line 7) has changed w."
    )


def test_the_last_sweep_and_an_earlier_one():
    trace = trace_cell(LOOP, {"gl": gl})
    report = report_of(trace)
    assert report["x"].gradient_numbers == (12,) and "sweep" not in report.sentence
    assert [to_text(note.text) for note in report["x"].notes] == [
        "added to the gradient already in .grad: ‖gradient‖ was 8, this backward pass added 4"
    ]
    assert "Sweep 3 of 300 is shown" in report_of(replace(trace, sweeps=300)).sentence


# ----------------------------------------------------------------------------------------------------------------- lines
def test_lines_have_the_largest_norm_of_their_gradients():
    space = zscore(gl)
    lines = {line.number: line for line in cell_lines(trace_cell(ZSCORE, space))}
    assert [line.text for line in lines.values()][:2] == ["%%grad", ZSCORE.splitlines()[1]]
    assert lines[1].norm is None and lines[5].norm is None
    a = gl.tensor(space["a"].detach().numpy(), requires_grad=True)
    centred, deviation = a - a.mean(0), a.std(0)
    z1 = centred / deviation
    z2 = (space["b"].detach() - space["b"].detach().mean(0)) / space["b"].detach().std(0)
    for tensor in (centred, deviation, z1):
        tensor.retain_grad()
    (-gl.diagonal((z1.T @ z2) / 6).sum()).backward()
    seen = [np.linalg.norm(t.grad.numpy()) for t in (centred, deviation, z1)] + [np.linalg.norm(centred.grad.numpy().sum(0))]
    assert lines[2].norm == pytest.approx(max(seen), rel=1e-6)


def test_the_lines_of_a_cut_and_a_leaf():
    lines = cell_lines(trace_cell(STEP, {"gl": gl}))
    assert [(line.number, line.note) for line in lines if line.note] == [(2, "7.483"), (3, "cut"), (4, "7.483")]


def test_a_long_cell_shows_only_relevant_lines():
    quiet = "\n".join(f"n{i} = {i}" for i in range(40))
    lines = cell_lines(trace_cell(f"x = gl.ones(3, requires_grad=True)\n{quiet}\n(x * 2).sum().backward()", {"gl": gl}))
    assert [line.number for line in shorten(lines)] == [1, 2, 0, 43]
    many = "\n".join(f"y = y * {1 + i / 100}" for i in range(60))
    lines = cell_lines(trace_cell(f"y = gl.ones(3, requires_grad=True)\n{many}\ny.sum().backward()", {"gl": gl}))
    assert len([line for line in shorten(lines) if line.number]) <= 16


# ------------------------------------------------------------------------------------------------------------------ tree
def test_a_model_is_a_tree_in_call_order():
    model, report = report_of_model()
    (tree,), rest = forest(report.rows, report.trace.calls)
    assert rest == [] and (tree.name, tree.kind) == ("model", "Net")
    assert [(part.name, part.kind, part.alike) for part in tree.parts] == [
        ("blocks", "Block", True),
        ("head", "Linear", False),
        ("aux", "", False),
    ]
    blocks = tree.parts[0]
    assert [part.name for part in blocks.parts] == list("01234") and [p.name for p in blocks.parts[0].parts] == ["norm", "fc"]
    for at, block in enumerate(blocks.parts):
        own = list(model.blocks[at].parameters())
        gradients, weights = (
            np.concatenate([t.numpy().ravel() for t in ts]) for ts in ([p.grad for p in own], [p.detach() for p in own])
        )
        assert block.norm == pytest.approx(np.linalg.norm(gradients), rel=1e-5)
        assert block.weights == pytest.approx(np.linalg.norm(weights), rel=1e-5)
        assert block.ratio == pytest.approx(np.linalg.norm(gradients) / np.linalg.norm(weights), rel=1e-5)
        assert block.count == gradients.size
    aux = tree.parts[2]
    assert aux.norm is None and aux.count == 5
    assert aux.reason == "not in the graph of the result, so the gradient is None"
    assert tree.marks == ["2 of 24 gradients are None"]
    assert "the parameters of model: 22 of 24 tensors got a gradient" in report.sentence


def test_every_format_has_the_tree():
    _, report = report_of_model()
    card = report.parts()[0]
    assert card.html.count("<details") > 8
    text = [line.split() for line in card.text.splitlines()]
    assert ["aux", "None"] in [line[:2] for line in text]
    row = next(line for line in text if line[:1] == ["blocks"])
    assert row[1:4] == ["5", "alike,", "Block"] and len(row[5]) == 5, "a bar for each block"
    assert r"\texttt{blocks}  5 alike, Block" in card.latex and card.latex.count(r"\begin{tabular}") >= 2


def test_folds_are_open_if_there_is_room():
    _, report = report_of_model()
    (tree,), _ = forest(report.rows, report.trace.calls)
    view = TreeView([tree])
    opened = [view.html(room).count("<details open") for room in range(0, 6000, 100)]
    assert opened[0] == 1 and opened == sorted(opened) and opened[-1] == view.html().count("<details")
    rows = re.findall(r"<details open><summary[^>]*><samp>(\w+)", view.html(400))
    assert rows[:2] == ["model", "blocks"], "levels are opened from the top"


def test_a_flat_table_if_there_is_no_tree():
    layer = gl.nn.Linear(2, 1)
    report = report_of(trace_cell("layer(X).sum().backward()", {"layer": layer, "X": gl.ones(3, 2)}))
    assert forest(report.rows, report.trace.calls) == ([], list(report.rows))
    assert steps_of("model.seq[1].weight") == ["model", "seq", "1", "weight"] and steps_of("d['a.b']") == ["d['a.b']"]


def test_nan_none_and_zero_are_marked():
    model, report = report_of_model()
    rows = list(report.rows)
    at = next(i for i, row in enumerate(rows) if row.name == "model.head.bias")
    rows[at] = replace(rows[at], gradient=replace(rows[at].gradient, nans=1, norm=math.nan))
    (tree,), _ = forest(rows, report.trace.calls)
    head = next(part for part in tree.parts if part.name == "head")
    assert math.isnan(head.norm) and math.isnan(tree.norm) and head.marks == ["1 of 2 gradients have NaN or ∞"]


def test_code_has_its_font_without_styles():
    """A notebook that is not trusted drops `font-family:var(…)`, so code is in `<code>` elements."""
    card = report_of(trace_cell(STEP, {"gl": gl})).parts()[0].html
    bare = re.sub(' (style|title|class)="[^"]*"', "", card)
    assert "<samp>loss = ((w - target) ** 2).sum()</samp>" in bare
    assert "<code>[−2, −4, −6]</code>" in bare and "<code>w</code>" in bare


def test_bars_are_logarithmic_on_one_scale():
    scale = Scale.of([1e-3, 1.0, 0.0, math.inf, math.nan])
    assert (scale.low, scale.high) == (-4, 0)
    assert [scale.share(norm) for norm in (1e-4, 1e-2, 1.0, 0.0, math.nan)] == pytest.approx([0, 0.5, 1, 0, 0])
    assert Scale.of([0.0, math.nan]) is None
    assert Scale.of([1e-30, 1.0]).low == -6, "rounding errors have no bar"


# --------------------------------------------------------------------------------------------------------------- findings
def finding(n, **facts):
    known = {"kind": "k", "message": f"Number {n} of `x`.", "line": n, "node": None, "fix": "Do `y`.", "evidence": {"norm": 0.5}}
    return SimpleNamespace(**known | facts)


def split_fold(html):
    """Return the visible text of an HTML fragment, the title of its fold, and the text in the fold."""
    found = re.search("<details[^>]*><summary[^>]*>(.*?)</summary>(.*?)</details>", html, re.DOTALL)
    assert found is not None
    return html[: found.start()] + html[found.end() :], *(re.sub("<[^>]*>", "", part) for part in found.groups())


def test_three_findings_come_before_the_table():
    trace = trace_cell(STEP, {"gl": gl})
    report = report_of(trace, findings=[finding(i) for i in range(2)], remarks=[finding(i) for i in range(2, 6)])
    card = report.parts()[0]
    shown, title, rest = split_fold(card.html)
    for text in (card.text, shown, card.latex):
        assert text.index("Number 0") < text.index("Number 1") < text.index("Number 2") < text.rindex("gradient")
        assert text.count("Problem") == 2 and text.count("Note") == 1 and "Number 3" not in text and "Rests on" not in text
    assert "3 more notes: report.remarks" in card.text
    assert title == "3 more notes" and all(f"Number {i} of x.  line {i}  [k]Do y." in rest for i in (3, 4, 5))
    assert not re.search("Problem|Note", report_of(trace).parts()[0].text)


def test_three_findings_need_no_fold():
    report = report_of(trace_cell(STEP, {"gl": gl}), findings=[finding(i) for i in range(3)])
    assert "<details" not in report.parts()[0].html and "more" not in report.parts()[0].text


def test_a_page_has_every_finding(tmp_path):
    """None is in a closed fold, because pages are also printed."""
    report = report_of(
        trace_cell(STEP, {"gl": gl}), findings=[finding(i) for i in range(6)], remarks=[finding(i) for i in range(6, 9)]
    )
    page = report.save(tmp_path / "r.html").read_text(encoding="utf-8")
    assert all(f"Number {i} of" in page for i in range(9)) and "report.findings" not in page and "more problems" not in page
    assert split_fold(report.parts()[0].html)[1] == "3 more problems, 3 more notes"
    assert "3 more problems, 3 more notes: report.findings and report.remarks" in report.parts()[0].text


def test_the_model_comes_before_the_finding_and_is_escaped():
    report = report_of(trace_cell(STEP, {"gl": gl}), findings=[finding(1, model="act=<b>_"), finding(2)])
    card = report.parts()[0]
    assert "■ Problem  act=<b>_: Number 1 of x." in card.text and "■ Problem  Number 2" in card.text
    assert (
        "act=&lt;b&gt;_" in card.html
        and "<b>_" not in card.html
        and r"act=<b>\_" in card.latex.replace(r"\textless{}", "<").replace(r"\textgreater{}", ">")
    )


# ------------------------------------------------------------------------------------------------------ saved and compared
def test_a_saved_page_names_its_contents_and_can_omit_them(tmp_path):
    trace = trace_cell(
        "secret = gl.tensor([0.12345, 7.], requires_grad=True)\nloss = (secret[1:] * 31).sum() ** 2\nloss.backward()", {"gl": gl}
    )
    report = report_of(trace, say("norm 98.76"), by_hand="loss.backward()", findings=[finding(98.76)])
    page = report.save(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "This page contains values and gradients of" in page and "4 lines of the cell" in page
    bare = report.save(tmp_path / "bare.html", values=False).read_text(encoding="utf-8")
    assert "It contains no values, no gradients and no source." in bare and "secret" in bare
    picture = report.save(tmp_path / "bare.svg", values=False).read_text(encoding="utf-8")
    for text in (bare, picture):
        assert not re.search(r"0\.123|98\.76|\b31\b|1:|4709|Number|backward\(\)", text)
    assert "31" in page and "0.1235" in page


def test_a_page_allows_only_its_own_style(tmp_path):
    import base64
    import hashlib

    page = report_of(trace_cell(ZSCORE, zscore(gl))).save(tmp_path / "r.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    css = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy and "style=" not in page.partition("<body>")[2]
    assert base64.b64encode(hashlib.sha256(css.encode()).digest()).decode() in policy
    assert "prefers-color-scheme:dark" in css


def test_two_reports_are_compared():
    first = report_of(trace_cell(STEP, {"gl": gl}), findings=[finding(1)])
    second = report_of(trace_cell(STEP.replace("3.]", "5.]"), {"gl": gl}), findings=[finding(2)])
    found = first.compare(second)
    (change,) = found.changes
    assert (change.name, change.before, change.after) == ("w", pytest.approx(56**0.5), pytest.approx(120**0.5))
    assert change.value_change == pytest.approx(2) and change.factor == pytest.approx((120 / 56) ** 0.5)
    text = found.text()
    assert "the norm of the gradient increased for 1" in text and "Gone: Number 1 of x." in text and "New: Number 2 of x." in text
    assert number(change.after) in text and "the value changed by 2" in text
    assert "no norm has changed" in first.compare(first).text()
    other = report_of(trace_cell(LOOP, {"gl": gl}))
    assert first.compare(other).gone == ("w",) and first.compare(other).new == ("x",)
    with pytest.raises(TypeError, match="expects another report"):
        first.compare(3)


def test_a_comparison_shows_the_lines_that_differ():
    first, second = (report_of(trace_cell(source, {"gl": gl})) for source in (STEP, STEP.replace("3.]", "5.]") + "print()"))
    found = first.compare(second)
    before, after = (f"w = gl.tensor([1., 2., {x}.], requires_grad=True)" for x in (3, 5))
    assert found.lines == (f"- {before}", f"+ {after}", "+ print()")
    assert f"− {before}\n+ {after}\n+ print()\n" in found.text() and f"+ {after}" in to_text(say(*found.table().head))
    assert first.compare(first).lines == ()
    source = "".join(f"a{i} = {i}\n" for i in range(9)) + STEP
    assert "9 lines of code differ." in first.compare(report_of(trace_cell(source, {"gl": gl}))).text()
    loss = (gl.ones(3, requires_grad=True) * 2).sum()
    assert first.compare(gl.explain(loss)).lines == (), "the source of one report is unknown"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (["x = 1"], ["x = 1"], ()),
        (["x = 1", "--y"], ["x = 1"], ("- --y",)),  # "--y" is not a header of a diff
        (["x = 1", "", "y"], ["x = 1", "y"], ()),
        (["    a()", "    b()"], ["    a()", "    c()"], ("- b()", "+ c()")),
        (["for i in x:", "    a()", "    b()"], ["for i in x:", "    a()", "b()"], ("-     b()", "+ b()")),
        (["x = '\x0c'"], ["x = '\x0b'"], ("- x = '\x0c'", "+ x = '\x0b'")),
    ],
)
def test_lines_that_differ(before, after, lines):
    assert changed_lines(before, after) == lines


@pytest.mark.parametrize("high", range(-30, 31))
def test_the_ends_of_a_scale_have_room_above_the_bars(high):
    for low in range(high - DECADES, high):
        least, greatest = Scale(low, high).ends
        assert float(least.replace("−", "-")) == pytest.approx(10.0**low) and float(greatest.replace("−", "-")) == pytest.approx(
            10.0**high
        )
        assert text_width(least, 10) + text_width(greatest, 10) + 4 <= tree_view.BAR


# ----------------------------------------------------------------------------------------------------------- the columns
def test_the_gradient_is_the_second_column_and_different_dtypes_are_shown():
    report = report_of(trace_cell(ZSCORE, zscore(gl)))
    assert [to_text(column.heading) for column in report.table().columns] == ["leaf", "gradient", "value", "shape"]
    mixed = "x = gl.ones(2, requires_grad=True)\ny = gl.ones(2, dtype=gl.float64, requires_grad=True)\n(x * y).sum().backward()"
    table = report_of(trace_cell(mixed, {"gl": gl})).table()
    assert [to_text(column.heading) for column in table.columns] == ["leaf", "gradient", "value", "shape", "dtype"]


def test_few_numbers_are_listed_and_many_shown_as_a_histogram():
    report = report_of(
        trace_cell(
            "x = gl.arange(5., requires_grad=True)\nm = gl.ones(2, 3, requires_grad=True)\n"
            "big = gl.ones(13, requires_grad=True)\n"
            "((x ** 3 / 4).sum() + (m * 7).sum() + (big * 2).sum()).backward()",
            {"gl": gl},
        )
    )
    lines = report.table().text().splitlines()
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert "[0, 0.75, 3, 6.75, 12]" in rows["x"] and "[0, 1, 2, 3, 4]" in rows["x"]
    assert "[[7, 7, 7], [7, 7, 7]]" in rows["m"]
    assert f"2 … 2  ‖{number(2 * 13**0.5)}‖" in rows["big"] and "█" in rows["big"]
    html = report.table().html()
    assert html.count("<img") == 2


def test_a_missing_gradient_has_the_text_colour():
    x, y = gl.ones(2, requires_grad=True), gl.ones(2, requires_grad=True)
    trace = trace_cell("(x * 2).sum().backward()", {"x": x})
    sources = [Source("x", x, True, True, True), Source("y", y, True, False, True)]
    report = report_of(trace, rows=rows_of(trace.leaves, sources, {}))
    html = report.table().html()
    cell = re.search(r"<th[^>]*><code[^>]*>y</code></th><td[^>]*>(.*?)</td>", html)[1]
    assert cell == "None" and "not in the graph of the result" in html


def test_equivalent_code_runs_as_printed():
    from gradlab.explore.equivalent_code import EquivalentCode

    x, w = gl.tensor([1.0, 2.0], requires_grad=True), gl.tensor(3.0, requires_grad=True)
    h = x * w
    loss = (h**2).sum()
    code = EquivalentCode("gl", "gradlab", "loss").backward(["x", "w"], everything=True, replace=True).gradients(["h"]).text()
    assert code.count("retain_graph=True") == 1, "only the first sweep retains the graph"
    space = {"x": x, "w": w, "h": h, "loss": loss}
    exec(code, space)
    assert x.grad.tolist() == [18, 36] and w.grad.item() == 30 and space["gradients"][0].tolist() == [6, 12]
    assert "retain_graph" not in EquivalentCode("gl", "gradlab", "loss").backward(["x"], everything=True, replace=True).text()
    net = gl.nn.Sequential(*(gl.nn.Linear(2, 2) for _ in range(7)))
    names = [re.sub(r"^(\d+)", r"net[\1]", name) for name, _ in net.named_parameters()]
    of_a_model = EquivalentCode("gl", "gradlab", "out").backward([*names, "x"], everything=True, replace=True).text()
    assert of_a_model == "net.zero_grad()\nx.grad = None\nout.backward()"
    out = net(x).sum()
    out.backward(retain_graph=True)
    once = [p.grad.numpy().copy() for p in net.parameters()]
    exec(of_a_model, {"net": net, "x": x, "out": out})
    for before, parameter in zip(once, net.parameters(), strict=True):
        np.testing.assert_array_equal(parameter.grad.numpy(), before)
    with_weights = (
        EquivalentCode("gl", "gradlab", "y", "v").backward(["x"], everything=True, replace=True).gradients(["h"]).text()
    )
    assert "y.backward(v, retain_graph=True)" in with_weights
    y, v = x * 2, gl.tensor([1.0, 10.0])
    exec(with_weights.replace("[h]", "[x]"), {"x": x, "y": y, "v": v, "gl": gl})
    assert x.grad.tolist() == [2, 20]


def test_texts():
    report = report_of(trace_cell(STEP, {"gl": gl}), by_hand="loss.backward()")
    whole = report.text() + report.html() + report._repr_mimebundle_()["text/latex"]
    assert "with respect to" in whole and "Equivalent code" in whole
    assert not re.search("differentiated by|set afresh|by hand|seed", whole)
    assert make_report.__doc__ and "starting" not in whole

"""The report: its content, its bounded size, and that all text of users is escaped."""

import base64
import gc
import html.parser
import io
import re
import sys
import types
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.markup import code, escape_latex, four_digits, join_items, number, say, to_html, to_latex, to_text
from gradlab.explore.names import names_in
from gradlab.explore.report import Bounds, explain
from gradlab.explore.report.parts import Appendix, Remark
from gradlab.explore.report.table import Table

EVIL = [
    "<script>alert(1)</script>",
    '"]]><img src=x onerror=alert(1)>',
    "$\\int$ \\input{/etc/passwd}",
    "a\\\\b{}%&#_^~",
    "'\"><svg/onload=x>",
    "`x` \x00\x1b[31m\u202e",
    "\\end{tabular}",
    "</code></td></table>",
    "{{config}} ${x}",
]


def loss_and_leaves():
    rng = np.random.default_rng(0)
    a = gl.tensor(rng.normal(size=(6, 4)).astype(np.float32), requires_grad=True)
    b = gl.tensor(rng.normal(size=(6, 4)).astype(np.float32), requires_grad=True)
    z1, z2 = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
    return -gl.diagonal((z1.T @ z2) / 6).sum(), a, b


# ------------------------------------------------------------------------------------------------------------- explain
def test_explain_writes_no_grad_and_uses_the_callers_names():
    loss, a, b = loss_and_leaves()
    report = explain(loss)
    assert a.grad is None and b.grad is None
    assert report.sentence == f"loss = {number(loss.item())}, with respect to a and b. No .grad was written."
    expected = gl.autograd.grad(loss, [a, b], retain_graph=True)
    for row, tensor, gradient in zip(report.rows, (a, b), expected, strict=True):
        assert (row.shape, row.dtype, row.device, row.is_leaf) == ((6, 4), "float32", "cpu", True)
        assert row.gradient.norm == pytest.approx(np.linalg.norm(gradient.numpy()), rel=1e-6)
        assert row.value.norm == pytest.approx(np.linalg.norm(tensor.detach().numpy()), rel=1e-6)
    loss.backward()
    np.testing.assert_allclose(a.grad.numpy(), expected[0].numpy())


def test_explain_by_non_leaves_and_mappings():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    y = (h**2).sum()
    assert explain(y, wrt=h)["h"].gradient.maximum == 12
    assert [row.name for row in explain(y, wrt=[x, h]).rows] == ["x", "h"]
    assert explain(y, {"my name": h})["my name"].gradient.minimum == 6
    assert explain(y, wrt=h).table().columns[0].heading[0].text == "tensor"
    with pytest.raises(KeyError, match="this report has 'x'"):
        explain(y)["nix"]


def test_explain_with_weights_is_vjp():
    x = gl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    v = [1.0, 10.0, 100.0]
    report = explain(y, weights=v)
    assert report["x"].gradient.maximum == 600 and "weighted by v = [1, 10, 100]" in report.sentence
    scope = {"x": x, "y": y, "v": gl.tensor(v)}
    exec(report.by_hand, scope)
    assert scope["gradients"][0].tolist() == [2, 40, 600]


def test_the_card_above_a_jacobian_alone_is_narrow():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    alone, both = explain(x * 2), explain((x * 2).sum())
    assert "max-width:640px" in alone.parts()[0].html and "max-width:640px" not in both.parts()[0].html


def test_explain_without_weights_gives_a_small_output_its_jacobian():
    x = gl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    report = explain(y)
    assert report.jacobian_picture is not None and report["x"].gradient is None and not report["x"].notes
    scope = {"x": x, "y": y}
    exec(report.by_hand, scope)
    assert scope["J"].tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: explain(3), TypeError, "expects a tensor"),
        (lambda x: explain(x.detach()), RuntimeError, "does not require grad and does not have a grad_fn"),
        (lambda x: explain(gl.arange(3)), RuntimeError, "int64"),
        (lambda x: explain(x.sum(), wrt=[3]), TypeError, "wrt must be tensors"),
        (lambda x: explain(x.sum(), wrt="x"), TypeError, "wrt must be tensors"),
        (lambda x: explain(x * 1, weights=[1.0]), RuntimeError, "Mismatch in shape"),
        (lambda x: explain(x * 1, weights="abc"), TypeError, "must be numbers"),
        (lambda x: explain(x.expand(50, 3)), RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (lambda x: explain(x[:0]), RuntimeError, "no elements"),
    ],
)
def test_errors_of_explain(call, error, message):
    with pytest.raises(error, match=re.escape(message) if "(" in message else message):
        call(gl.tensor([1.0, 2.0, 3.0], requires_grad=True))


def test_explain_of_a_leaf_and_of_a_nameless_result():
    x = gl.tensor(2.0, requires_grad=True)
    assert explain(x)["x"].gradient.mean == 1
    leaves = [gl.tensor([1.0], requires_grad=True)]
    assert explain(leaves[0].sum(), names={}).rows[0].name == "(unnamed 1)"
    gone = gl.tensor([1.0], requires_grad=True).sum()
    assert explain(gone).sentence.startswith("gone = 1, with respect to nothing: every leaf of its graph is gone.")


# ---------------------------------------------------------------------------------------------------------------- rows
def test_notes_state_only_facts():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    other = gl.tensor([1.0], requires_grad=True)
    whole = gl.arange(3)
    nan = gl.tensor([float("nan"), 1.0, float("inf")], requires_grad=True)
    report = explain((x * 0).sum() + (nan * nan).sum() * 1, {"x": x, "other": other, "whole": whole, "nan": nan})
    notes = {row.name: [to_text(note.text) for note in row.notes] for row in report.rows}
    assert notes == {
        "x": ["every element of the gradient is exactly 0"],
        "other": ["not in the graph of the result, so the gradient is None"],
        "whole": ["no gradient: int64 is not a floating-point dtype"],
        "nan": ["the value has 1 NaN and 1 infinite", "the gradient has 1 NaN and 1 infinite"],
    }
    assert all(row.serious for row in report.rows)
    tiny = gl.tensor([1e-30], requires_grad=True)
    assert not explain((tiny**2).sum())["tiny"].notes, "small numbers are not noted"


def test_rows_are_bounded_with_warnings_first():
    leaves = [gl.tensor([float(i)], requires_grad=True) for i in range(200)]
    total = sum((leaf * (0 if i in (77, 150) else 1)).sum() for i, leaf in enumerate(leaves))
    report = explain(total, names={f"p[{i}]": leaf for i, leaf in enumerate(leaves)} | {"total": total})
    table = report.table()
    assert len(table.rows) == 25 and [row[0][0].text for row in table.rows[:3]] == ["p[77]", "p[150]", "p[0]"]
    assert to_text(table.foot) == "175 more tensors, without warnings. All of them: report.table(limit=None)"
    assert len(report.table(limit=None).rows) == 200 and not report.table(limit=None).foot
    assert "p[0], p[1], p[2], p[3], p[4] and 195 more" in report.sentence


def size_of_outputs(report):
    return sum(len(value) for part in report.parts() for value in part._repr_mimebundle_().values())


def test_a_cell_stays_under_300_kb():
    rng = np.random.default_rng(0)
    for size in (20, 64, 300):
        names = {f"w{i}": gl.tensor(rng.normal(size=(size, size)).astype(np.float32), requires_grad=True) for i in range(8)}
        x = gl.tensor(rng.normal(size=(4, size)).astype(np.float32))
        for w in names.values():
            x = (x @ w).tanh()
        report = explain(x.sum(), names=names)
        assert size_of_outputs(report) < 300_000 and size_of(report) < 1_000_000, size
        assert len(report.maps) == 6 and report.picture is not None
        assert "more matrix-shaped gradient" in report.picture.text


# -------------------------------------------------------------------------------------------------------------- references
def test_a_report_refers_to_no_tensor_node_or_array():
    loss, a, b = loss_and_leaves()
    report = explain(loss)
    assert size_of(report) < 1_000_000
    report.plot("norms")


def size_of(report):
    """Return the bytes of all objects that a report refers to, after checking that none is a tensor, a node or an array."""
    seen, stack, total = set(), [report], 0
    while stack:
        value = stack.pop()
        if id(value) in seen or isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        assert not isinstance(value, (gl.Tensor, np.ndarray))
        assert not {"grad_fn", "next_functions"} & set(dir(value))
        stack.extend(gc.get_referents(value))
    return total


def test_the_graph_is_drawn_after_the_output_was_freed():
    loss, a, b = loss_and_leaves()
    report = explain(loss, names={"loss": loss, "a": a, "b": b})
    del loss, a, b
    gc.collect()
    graph = report.graph()
    assert {node.name for node in graph.nodes} >= {"loss", "a", "b"} and "MmBackward0" in graph.text()


# --------------------------------------------------------------------------------------------------------------- formats
def test_parts_are_separate_outputs():
    loss, a, b = loss_and_leaves()
    report = explain(loss)
    card, below = (part._repr_mimebundle_() for part in report.parts())
    assert sorted(card) == ["text/html", "text/latex", "text/plain"]  # LaTeX uses the text of this output
    assert sorted(below) == ["image/png", "text/html", "text/plain"]  # and the picture of this one
    assert base64.b64decode(below["image/png"]).startswith(b"\x89PNG")
    assert len(base64.b64decode(below["image/png"])) <= 100_000
    assert "Equivalent code" in card["text/latex"] and "Equivalent code" not in card["text/html"]
    assert "Equivalent code" in below["text/html"] and "<details open" not in below["text/html"]
    assert "Graph as text" in below["text/html"] and "MmBackward0" in below["text/plain"]
    whole = report._repr_mimebundle_()
    assert sorted(whole) == ["image/png", "text/html", "text/latex", "text/plain"]
    assert repr(report) == f"<Report: loss = {number(loss.item())}, with respect to a and b.>"


def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    plt.close("all")  # figures that other tests left open
    matplotlib.use("Agg")
    return plt


def test_plots():
    plt = pyplot()

    loss, a, b = loss_and_leaves()
    report = explain(loss)
    axes = report.plot("heat")
    assert [ax.get_title() for ax in axes] == ["a.grad", "b.grad"]
    gradient = gl.autograd.grad(loss, a, retain_graph=True)[0].numpy()
    np.testing.assert_allclose(axes[0].images[0].get_array(), gradient, rtol=1e-6)
    ax = report.plot("norms")
    assert [patch.get_width() for patch in ax.patches] == pytest.approx([row.gradient.norm for row in report.rows])
    figure, mine = plt.subplots()
    assert report.plot("hist", ax=mine) is mine and mine.figure is figure
    assert [text.get_text() for text in mine.get_legend().get_texts()] == ["a", "b"]
    single = gl.tensor([[1.0, 2.0]], requires_grad=True)
    assert explain((single**2).sum()).plot("heat", ax=plt.subplots()[1]).get_title() == "single.grad"
    with pytest.raises(ValueError, match="'heat', 'hist', 'norms'"):
        report.plot("pie")
    with pytest.raises(ValueError, match="2 heat maps"):
        report.plot("heat", ax=mine)
    vector = gl.tensor([1.0], requires_grad=True)
    with pytest.raises(ValueError, match="no matrix-shaped gradient"):
        explain(vector.sum()).plot("heat")
    plt.close("all")


def test_a_page_has_the_pictures_of_the_notebook(tmp_path):
    weights = gl.randn(40, 40, requires_grad=True)  # enough numbers for a bitmap, which has its own style
    report = gl.explain((weights**2).sum(), names={"weights": weights})
    page = report.save(tmp_path / "r.html").read_text(encoding="utf-8")
    pictures = re.findall(r"src='data:[^']*'", report.html(every_finding=True))
    assert any("image-rendering:pixelated" in picture for picture in pictures)
    assert re.findall(r"src='data:[^']*'", page) == pictures


def test_save(tmp_path):
    loss, a, b = loss_and_leaves()
    report = explain(loss)
    page = report.save(tmp_path / "r.html").read_text(encoding="utf-8")
    assert check_page(page).count("img") == 7  # four histograms, the graph, two maps
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    svg = ET.parse(report.save(tmp_path / "r.svg")).getroot()
    assert svg.tag.endswith("svg") and "with respect to" in "".join(svg.itertext())
    assert report.save(str(tmp_path / "r.png")).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"\.html, \.svg, \.png or \.pdf"):
        report.save(tmp_path / "r.gif")


def test_table_text_lines_up():
    loss, a, b = loss_and_leaves()
    head, rows = explain(loss).table().text().splitlines()[2], explain(loss).table().text().splitlines()[3:]
    assert head.split() == ["leaf", "gradient", "value", "shape"]
    assert {row.index("6×4") for row in rows} == {head.index("shape")} and len({len(row) for row in rows}) == 1


# -------------------------------------------------------------------------------------------------------------- escaping
class Parser(html.parser.HTMLParser):
    """Collect tags, and raise for everything that a report must not contain."""

    ALLOWED = frozenset(
        [
            "abbr",
            "div",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "span",
            "code",
            "b",
            "img",
            "pre",
            "br",
            "details",
            "summary",
            "html",
            "head",
            "body",
            "meta",
            "title",
            "style",
        ]
    )
    VOID = frozenset({"img", "meta", "br"})

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.without_math = None  # depth of the element in which MathJax ignores formulas

    def handle_starttag(self, tag, attributes):
        assert tag in self.ALLOWED, tag
        if "mathjax_ignore tex2jax_ignore" in (dict(attributes).get("class") or ""):
            self.without_math = len(self.open)
        for name, value in attributes:
            assert name in {
                "class",
                "tabindex",
                "data-gradlab-term",
                "style",
                "title",
                "alt",
                "src",
                "width",
                "height",
                "scope",
                "lang",
                "charset",
                "name",
                "content",
                "colspan",
                "open",
                "http-equiv",
            }, name
            assert name != "src" or value.startswith("data:image/svg+xml,")
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "src":
                inert(unquote(value.partition(",")[2]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if len(self.open) == self.without_math:
            self.without_math = None

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)
            assert "$" not in data or self.without_math is not None or self.open in ([], ["code"], ["html", "head", "title"])


def check_page(page):
    parser = Parser()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser.tags


def inert(svg):
    """Check that an SVG is well-formed and has only drawing elements."""
    for element in ET.fromstring(svg).iter():
        assert element.tag.rpartition("}")[2] in {
            "svg",
            "style",
            "g",
            "path",
            "rect",
            "text",
            "tspan",
            "title",
            "circle",
            "desc",
            "line",
            "polygon",
            "polyline",
            "ellipse",
            "image",
        }
        assert not any(name.lower().startswith("on") for name in element.attrib)
        for name, value in element.attrib.items():
            assert not name.endswith("href") or value.startswith("data:image/png;base64,")


def latex_is_inert(text, allowed):
    """Check that all LaTeX commands are allowed and all special characters are escaped."""
    commands = set(re.findall(r"\\([a-zA-Z]+|.)", text))
    assert commands <= set(allowed), commands - set(allowed)
    bare = re.sub(r"\\([a-zA-Z]+|.)", "", text, flags=re.DOTALL)
    depth = 0
    for char in bare:
        depth += (char == "{") - (char == "}")
        assert depth >= 0
    assert depth == 0 and not set("#%^") & set(bare.replace("$^{}$", ""))


ESCAPES = {
    "textbackslash",
    "{",
    "}",
    "$",
    "&",
    "#",
    "_",
    "%",
    "textasciitilde",
    "textasciicircum",
    "textless",
    "textgreater",
    "textbar",
    "textquotedbl",
    "textasciigrave",
    "times",
    "|",
    "top",
    "infty",
    "cdot",
    "to",
    "ldots",
    "div",
    "Delta",
    "bullet",
    "circ",
    "allowbreak",
}
TABLES = {"begin", "end", "linewidth", "\\", "hline", "setlength", "tabcolsep", "raggedright", "multicolumn"}
ALLOWED_COMMANDS = TABLES | {"noindent", "texttt", "textbf", "par", "footnotesize", ",", "\n"}


@pytest.mark.parametrize("evil", EVIL)
def test_names_and_strings_are_escaped_in_every_output(evil, tmp_path):
    x = gl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    out = (x**2).sum()
    for report in (
        explain(out, {f"d[{evil!r}]": x, evil: x}, names={evil: x, f"o{evil}": out}),
        explain(x * 2, names={evil: x, f"y{evil}": out}),
    ):
        parts = [*report.parts(), Remark(say("why: ", evil, code(evil))), Appendix(evil, None, 0), report.table(limit=1)]
        for part in parts:
            bundle = part._repr_mimebundle_()
            check_page(bundle["text/html"])
            if "text/latex" in bundle:
                latex_is_inert(bundle["text/latex"], ESCAPES | ALLOWED_COMMANDS)
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", bundle["text/plain"])
        page = report.save(tmp_path / "r.html").read_text(encoding="utf-8")
        check_page(page)
        inert(report.save(tmp_path / "r.svg").read_text(encoding="utf-8"))
        assert report.save(tmp_path / "r.png").stat().st_size > 0
    check_page(report._repr_mimebundle_()["text/html"])
    figure = report_plot(explain(out, {evil: x}, names={}))
    figure.savefig(io.BytesIO())


def report_plot(report):
    plt = pyplot()

    figure, axes = plt.subplots(3)
    for kind, ax in zip(("heat", "hist", "norms"), axes, strict=True):
        report.plot(kind, ax=ax)
    plt.close(figure)
    return figure


@pytest.mark.parametrize("evil", EVIL)
def test_spans_have_the_same_text_in_every_format(evil):
    sentence = say("before ", code(evil), " after")
    parser = Parser()
    parser.feed(to_html(sentence))
    assert "".join(parser.text) == to_text(sentence)
    latex_is_inert(to_latex(sentence), ESCAPES | {"texttt"})


# ---------------------------------------------------------------------------------------------------------------- texts
def test_numbers():
    assert [number(x) for x in (-0.27489, 1.5e-6, 12345678.0, 3.0, float("nan"), float("-inf"), 0.0)] == [
        "−0.2749",
        "1.5e−6",
        "1.235e7",
        "3",
        "NaN",
        "−∞",
        "0",
    ]
    assert [four_digits(x) for x in (1.01, 0.7601, 1234.0, 0.0, 5.0)] == ["1.010", "0.7601", "1234", "0", "5.000"]


def test_lists():
    assert [to_text(join_items(list("abcdefgh")[:n])) for n in (1, 2, 3, 6, 8)] == [
        "a",
        "a and b",
        "a, b and c",
        "a, b, c, d, e and f",
        "a, b, c, d, e and 3 more",
    ]


def test_latex_of_code_keeps_dashes_apart():
    assert escape_latex("--dry a_b^2") == r"{-}{-}dry a\_b\textasciicircum{}2"


def test_an_empty_table():
    assert Table((), (), (say("only a sentence"),)).text() == "only a sentence"
    check_page(Table((), (), (say("only a sentence"),)).html())


# ----------------------------------------------------------------------------------------------------------------- names
def test_names_in_a_namespace():
    class Model:
        def __init__(self):
            self.weight = gl.tensor([1.0], requires_grad=True)

        def named_parameters(self):
            yield "fc.0.weight", self.weight

    class Broken:
        def named_parameters(self):
            raise RuntimeError("not built yet")

    a, b, c = (gl.tensor([float(i)]) for i in range(3))
    model = Model()
    space = {
        "_hidden": a,
        "first": a,
        "second": a,
        "many": [b, "text", a],
        "table": {"key": c, 3: b},
        "model": model,
        "broken": Broken(),
        "Model": Model,
        "In": [a],
        "n": 3,
    }
    assert {name: id(tensor) for name, tensor in names_in(space).items()} == {
        "first": id(a),
        "many[0]": id(b),
        "table['key']": id(c),
        "model.fc[0].weight": id(model.weight),
    }
    assert "second" in names_in(space, first=["second"])


# --------------------------------------------------------------------------------------------------------------- bounds
def test_bounds_are_settable():
    x = gl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (x @ x).sum()
    assert explain(y, bounds=Bounds(heat_maps=0)).maps == ()
    with pytest.raises(RuntimeError, match="up to 2"):
        explain(x @ x, bounds=Bounds(jacobian_rows=2))


@pytest.mark.torch
def test_reports_of_torch_tensors_are_equal():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(6, 4)).astype(np.float32) for _ in range(2)]
    reports = []
    for lib in (gl, torch):
        a, b = (lib.tensor(array, requires_grad=True) for array in arrays)
        z1, z2 = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
        loss = -lib.diagonal((z1.T @ z2) / 6).sum()
        reports.append(explain(loss))
        assert a.grad is None
    ours, theirs = reports
    assert ours.sentence == theirs.sentence
    for mine, other in zip(ours.rows, theirs.rows, strict=True):
        assert (mine.name, mine.shape, mine.dtype, mine.device) == (other.name, other.shape, other.dtype, other.device)
        assert mine.gradient.norm == pytest.approx(other.gradient.norm, rel=1e-5)
    assert theirs.by_hand == "import torch\ngradients = torch.autograd.grad(loss, [a, b])"


def test_the_norm_of_a_nan_gradient_is_not_zero():
    plt = pytest.importorskip("matplotlib.pyplot")
    a, b, c = (gl.ones(2, requires_grad=True) for _ in range(3))
    report = explain((a * float("nan")).sum() + (b * 3).sum() + (c * float("inf")).sum(), names={"a": a, "b": b, "c": c})
    lines = report.table().text().splitlines()
    rows = {line.split()[0]: line for line in lines if "[1, 1]" in line}
    assert "[NaN, NaN]" in rows["a"] and "[3, 3]" in rows["b"] and "[∞, ∞]" in rows["c"]
    assert np.isnan(report["a"].gradient.norm) and report["c"].gradient.norm == np.inf
    axes = report.plot("norms")
    assert [text.get_text() for text in axes.texts] == ["NaN", "inf"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0, 4.2426, 0], abs=1e-3)
    plt.close(axes.figure)

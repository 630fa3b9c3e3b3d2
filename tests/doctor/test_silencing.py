"""Findings are silenced by kind and by comments, in the same way everywhere."""

from __future__ import annotations

import pytest

import gradlab as gl
from gradlab import cli
from gradlab.explore.doctor.after_run import diagnose_after_run
from gradlab.explore.doctor.registry import KINDS, declare, require_kinds
from gradlab.explore.doctor.session import NOTEBOOK

LEAVES = "w = gl.ones(2, requires_grad=True); b = gl.zeros(2, requires_grad=True)"
CUT = "loss = ((w * 2).detach() + b).sum()"


def kinds():
    return [one.kind for one in NOTEBOOK.last.findings]


@pytest.fixture
def cell(shell):
    """Function that runs a cell under `%%doctor` with new leaves, and returns the reported kinds."""

    def run(text, magic="%%doctor"):
        shell.ok(LEAVES)
        shell.run(f"{magic}\n{text}")
        return kinds()

    return run


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        (CUT, ["detached"]),
        (f"{CUT}  # gradlab: ignore[detached]", []),
        (f"{CUT}  # it is meant so; gradlab: ignore[detached]", ["detached"]),
        (f"{CUT}  # noqa: E501  # gradlab: ignore[detached]", []),
        (f"{CUT}  #gradlab:ignore[ item , detached ]", []),
        (f"{CUT}  # gradlab: ignore", []),
        (f"{CUT}  # gradlab: ignore[item]", ["detached"]),
        (f"{CUT}  # gradlab: ignored", ["detached"]),
        (f"text = '# gradlab: ignore[detached]'; {CUT}", ["detached"]),
        (f"{CUT}  # gradlab: ignore[item]  # gradlab: ignore[detached]", []),
        (f"text = '''\n%d\n'''; {CUT}  # gradlab: ignore[detached]", []),
        (f"# gradlab: ignore[detached]\n{CUT}", ["detached"]),
        (f"%pwd\n{CUT}  # gradlab: ignore[detached]", []),
        ("loss = (  # gradlab: ignore[detached]\n    (w * 2).detach()\n    + b\n).sum()", []),
        ("loss = (\n    # gradlab: ignore[detached]\n    (w * 2).detach()\n    + b\n).sum()", []),
        ("for a in [(w * 2).detach()]:\n    # gradlab: ignore[detached]\n    loss = (a + b).sum()", ["detached"]),
        ("for a in [(w * 2).detach()]:  # gradlab: ignore[detached]\n    loss = (a + b).sum()", []),
        ("match (w * 2).detach():\n    case a:  # gradlab: ignore[detached]\n        loss = (a + b).sum()", ["detached"]),
        ("loss = (\n    (w * 2).detach()  # gradlab: ignore[detached]\n    + b\n).sum()", []),
        ("loss = (\n    (w * 2).detach()\n    + b\n).sum()  # gradlab: ignore[detached]", []),
        (f"if True:  # gradlab: ignore[detached]\n    {CUT}", ["detached"]),
        (f"if True:\n    {CUT}  # gradlab: ignore[detached]", []),
    ],
)
def test_comments(cell, line, reported):
    assert cell(f"{line}\nloss.backward()") == reported
    assert NOTEBOOK.last.ignored == (not reported)


@pytest.mark.parametrize("where", ["@torch.no_grad()", "def f(w):"])
def test_a_comment_on_a_decorator_or_below_it(shell, where):
    shell.ok(LEAVES.replace("gl.", "torch.").join(["import gradlab as torch; ", ""]))
    text = "@torch.no_grad()\ndef f(w):\n    return w * 2\nloss = (f(w) + b).sum()\nloss.backward()"
    shell.ok(f"%%doctor\n{text}")
    assert kinds() == ["no_grad"]
    shell.ok("b.grad = None")
    shell.ok(f"%%doctor\n{text.replace(where, where + '  # gradlab: ignore[no_grad]')}")
    assert kinds() == [] and NOTEBOOK.last.ignored == 1


@pytest.mark.parametrize(
    "comment",
    [
        "ignore[detached",
        "ignore(detached)",
        "ignore: detached",
        "ignore detached",
        "ignore[]",
        "ignore[] # gradlab: ignore[item]",
    ],
)
def test_a_comment_of_another_form_has_no_effect_and_is_reported(cell, comment):
    assert cell(f"{CUT}  # gradlab: {comment}\nloss.backward()") == ["detached"]
    assert "The comment on line 2 has no effect: write # gradlab: ignore[KIND]" in NOTEBOOK.last.unseen[0]


def test_a_comment_in_the_text_of_another_one_has_no_effect(cell):
    assert cell(f"{CUT}  # see '# gradlab: ignore'\nloss.backward()") == ["detached"]
    assert not NOTEBOOK.last.unseen


def test_a_comment_on_its_own_line_is_reported(cell):
    assert cell(f"# gradlab: ignore[detached]\n{CUT}\nloss.backward()") == ["detached"]
    assert "at the end of the line" in NOTEBOOK.last.unseen[0]


def test_a_comment_silences_only_its_line(cell):
    text = "a = (w * 2).detach()  # gradlab: ignore[detached]\nc = (w * 3).detach()\nloss = (a * b).sum() + (c * b).sum()"
    assert cell(f"{text}\nloss.backward()") == ["detached"]
    assert NOTEBOOK.last.findings[0].line == 3 and NOTEBOOK.last.ignored == 1


def test_an_unknown_kind_in_a_comment_is_reported(cell):
    assert cell(f"{CUT}  # gradlab: ignore[detach]\nloss.backward()") == ["detached"]
    assert "line 2" in NOTEBOOK.last.unseen[0] and "Did you mean 'detached'?" in NOTEBOOK.last.unseen[0]


@pytest.mark.parametrize("magic", ["%%doctor", "%%grad"])
def test_the_option(cell, magic):
    assert cell(f"{CUT}\nloss.backward()", magic) == ["detached"]
    assert cell(f"{CUT}\nloss.backward()", f"{magic} --ignore detached") == []
    assert cell(f"{CUT}\nloss.backward()", f"{magic} --ignore item --ignore nan-born, detached") == []


@pytest.mark.parametrize("line", ["%%doctor --ignore detach\nx = 1", "%doctor --ignore detach", "%%grad --ignore detach\nx = 1"])
def test_an_unknown_kind_is_an_error_before_the_cell_runs(shell, line):
    said = shell.run(line).stderr
    assert "UsageError" in said and "Did you mean 'detached'?" in said
    assert "x" not in shell.ns


def test_after_the_run(cell, shell):
    assert cell(f"{CUT}\nloss.backward()") == ["detached"]
    assert shell.ok("%doctor --ignore detached").result.findings == ()
    assert shell.ok("%doctor").result.findings[0].kind == "detached"
    assert gl.doctor(ignore="detached").findings == () and gl.doctor(ignore=["item"]).findings
    shell.ok("%doctor --ignore detached -q -o kept")
    assert shell.ns["kept"].ignored == 1


def test_an_error_that_was_not_recorded(shell):
    shell.ok(LEAVES)
    shell.run("out = w * gl.ones(3)")
    assert [one.kind for one in shell.ok("%doctor").result.findings] == ["shape"]
    shell.run("out = w * gl.ones(3)  # gradlab: ignore[shape]")
    found = shell.ok("%doctor").result
    assert found.findings == () and found.ignored == 1
    assert "no rule for this error" not in str(found) and "1 finding is ignored." in str(found)


def test_silencing_an_error_also_silences_its_consequences():
    w = gl.ones(2, requires_grad=True)
    net, other = gl.nn.Linear(2, 1), gl.nn.Linear(2, 1)
    net(gl.ones(1, 2)).sum().backward()
    y = w.exp()
    y.add_(1)
    with pytest.raises(RuntimeError) as caught:
        (y.sum() + other(gl.ones(1, 2)).sum()).backward()
    names = {"w": w, "net": net, "other": other}
    assert [one.kind for one in diagnose_after_run(names, caught.value).findings] == ["in-place"]
    assert diagnose_after_run(names, caught.value, ignore=frozenset({"in-place"})).findings == ()


SCRIPT = """\
import gradlab as torch
from layers import Cut

w = torch.ones(2, requires_grad=True)
b = torch.zeros(2, requires_grad=True)
loss = (Cut()(w * 2) + b).sum()
loss.backward()
"""
MODULE = """\
from gradlab import nn


class Cut(nn.Module):
    def forward(self, x):
        return x.detach(){comment}
"""


@pytest.mark.parametrize(("comment", "reported"), [("", True), ("  # gradlab: ignore[detached]", False)])
def test_a_comment_in_a_module_next_to_a_script(tmp_path, monkeypatch, capsys, comment, reported):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "layers.py").write_text(MODULE.format(comment=comment))
    assert cli.main(["doctor", "train.py"]) == int(reported)
    assert ("[detached]" in capsys.readouterr().err) == reported


STEPS = """\
import gradlab as torch
from layers import step

torch.manual_seed(0)
w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.0)
for _ in range(3):
    (w * 2).sum().backward()
    step(optimizer)
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(("comment", "reported"), [("", True), ("  # gradlab: ignore[zero-learning-rate]", False)])
def test_a_comment_at_a_step_in_a_module(tmp_path, monkeypatch, capsys, comment, reported):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(STEPS)
    (tmp_path / "layers.py").write_text(f"def step(optimizer):\n    optimizer.step(){comment}\n")
    assert cli.main(["doctor", "train.py"]) == int(reported)
    assert ("[zero-learning-rate]" in capsys.readouterr().err) == reported


ERRORS = "import gradlab as torch\nfrom layers import f\n\nf(torch.ones(2, requires_grad=True))\n"


@pytest.mark.parametrize("comment", ["", "  # gradlab: ignore[not-scalar]"])
def test_a_comment_at_an_error_in_a_module(tmp_path, monkeypatch, capsys, comment):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(ERRORS)
    (tmp_path / "layers.py").write_text(f"def f(w):\n    (w * 2).backward(){comment}\n")
    assert cli.main(["doctor", "train.py"]) == 1, "the exit status of the error"
    assert ("■ Problem" in capsys.readouterr().err) == (not comment)


def test_similar_findings_that_are_silenced_count_once(cell):
    cut = "def cut(x):\n    return x.detach()\nloss = sum((cut(w * k) * b).sum() for k in range(3))\nloss.backward()"
    reported = cell(cut)
    assert set(reported) == {"detached"}
    assert cell(cut, "%%doctor --ignore detached") == [] and NOTEBOOK.last.ignored == len(reported)


def test_of_a_tensor_and_of_a_model():
    w = gl.tensor([4.0, 0.0], requires_grad=True)
    loss = (w.log() * w).sum()
    assert [one.kind for one in gl.doctor(loss).findings] == ["inf-born"]
    found = gl.doctor(loss, ignore=["inf-born"])
    assert found.findings == () and found.ignored == 1
    with pytest.raises(ValueError, match=r"'inf_born' is not a kind of finding\. Did you mean 'inf-born'"):
        gl.doctor(loss, ignore=["inf_born"])


def test_kinds_have_one_declaration():
    assert require_kinds("detached") == {"detached"} and require_kinds(()) == frozenset()
    with pytest.raises(ValueError, match="two kinds"):
        declare("detached", meaning="", why="", remedy="", fault="", healthy="")
    with pytest.raises(ValueError, match=r"'y' once in the program with the fault, found it 2 times"):
        declare("new", meaning="", why="", remedy="", fault="y = y  #!", healthy={"y": "x"})
    assert "new" not in KINDS
    with pytest.raises(ValueError, match=r"The kinds are .*zero-factor"):
        require_kinds(["@"])
    assert KINDS["detached"].module.endswith("checks.cut_history")


def test_the_kind_is_printed_in_brackets(cell):
    cell(f"{CUT}\nloss.backward()")
    assert str(NOTEBOOK.last).endswith("[detached]")

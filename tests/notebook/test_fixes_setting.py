"""With `%config GradMagics.fixes = False`, findings, errors and warnings say what is wrong, but give no fix."""

import pytest

import gradlab as gl
from gradlab import cli
from gradlab.core.fixes import fix_setting

REBOUND = """\
w = gl.ones(2, requires_grad=True)
for step in range(2):
    w.sum().backward()
    w = w - 0.1 * w.grad
"""
OVERWRITTEN = "x = gl.ones(2, requires_grad=True)\nh = x.exp()\nh += 1\nh.sum().backward()"
FIX = "`h = h + 1` in place of `h += 1`"


def test_a_finding_has_no_fix(shell):
    assert FIX in shell.run(f"%%doctor\n{OVERWRITTEN}").text
    shell.ok("%config GradMagics.fixes = False")
    ran = shell.run(f"%%doctor\n{OVERWRITTEN}")
    assert "Problem: `h += 1` on line 4 modifies" in ran.text and "h = h + 1" not in ran.text
    diagnosis = shell.ok("gl.doctor()").result
    assert [one.fix for one in diagnosis.findings] == [""]
    assert "h = h + 1" not in shell.run(f"%%grad\n{OVERWRITTEN}").text
    shell.ok("%config GradMagics.fixes = True")
    assert FIX in shell.run(f"%%doctor\n{OVERWRITTEN}").text


def test_an_error_has_no_fix(shell):
    recorded = "with gl.record_sites():\n    " + OVERWRITTEN.replace("\n", "\n    ")
    for cell in (OVERWRITTEN, recorded):
        with_fix = str(shell.run(cell).error)
        shell.ok("%config GradMagics.fixes = False")
        without = str(shell.run(cell).error)
        shell.ok("%config GradMagics.fixes = True")
        assert "x = x + 1" in with_fix or "h = h + 1" in with_fix
        assert "modified by an inplace operation" in without and "x + 1" not in without and "h + 1" not in without


def test_a_warning_has_no_fix(shell):
    with pytest.warns(UserWarning, match=r"If you indeed want .*, use \.retain_grad\(\)"):
        shell.run(REBOUND)
    shell.ok("%config GradMagics.fixes = False")
    with pytest.warns(UserWarning, match="won't be populated during") as given:
        shell.run(REBOUND)
    text = str(given[0].message)
    assert "w is assigned a result" in text
    assert "retain_grad" not in text and "no_grad" not in text


def test_unloading_shows_fixes_again(shell):
    shell.ok("%config GradMagics.fixes = False")
    assert not fix_setting.shown
    gl.unload_ipython_extension(shell.ip)
    assert fix_setting.shown
    gl.load_ipython_extension(shell.ip)
    assert not fix_setting.shown  # IPython keeps the configuration


def test_a_check_hides_fixes_while_it_runs(shell, monkeypatch):
    monkeypatch.chdir(cli.notebooks() / "homework" / "hw3_jacobian")
    shell.ok("def sum_of_rows(f, x):\n    x.requires_grad_()\n    f(x).backward()")
    said = shell.ok("%check 5").text
    assert "grad can be implicitly created only for scalar outputs. This one has shape" in said
    assert "all ones" not in said and "ones_like" not in said
    assert fix_setting.shown

"""`%check` of an exercise that has passed before: one line, or everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from homework import answers_hw1, submissions

from gradlab import cli

RIGHT = submissions.RIGHT["answer1"]
BORROWED = "def jacobian_by_rows(f, x):\n    return gl.autograd.functional.jacobian(f, x)"
AGAIN = "Exercise 1, The Jacobian by rows: passed, as before (6 of 6 checks). %check 1 --all shows them."
FULL = "Exercise 1, The Jacobian by rows: 30 of 30 points\n"


@pytest.fixture
def notebook(shell, monkeypatch):
    monkeypatch.chdir(cli.notebooks() / "homework" / "hw3_jacobian")
    shell.ok(RIGHT)
    assert shell.ok("%check 1").text.startswith(FULL)
    return shell


def test_a_check_that_passes_again_is_one_line(notebook):
    (bundle,) = notebook.ok("%check 1").outputs
    assert bundle["text/plain"] == AGAIN
    assert "6 of 6 checks" in bundle["text/html"] and "<code>%check 1 --all</code>" in bundle["text/html"]
    notebook.ok(f"# written anew\n{RIGHT}")
    assert notebook.ok("%check 1").text == AGAIN


@pytest.mark.parametrize("line", ["%check 1 --all", "%check --all 1"])
def test_all_of_its_checks_are_shown_on_request(notebook, line):
    full = notebook.ok(line).text
    assert full.startswith(FULL) and full.count("\n  ok ") == 6
    assert notebook.ok("%check 1").text == AGAIN


def test_a_failure_shows_everything_and_so_does_the_next_pass(notebook):
    notebook.ok(BORROWED)
    for _ in range(2):
        assert "it uses `gl.autograd.functional.jacobian`" in notebook.ok("%check 1").text
    notebook.ok(RIGHT)
    assert notebook.ok("%check 1").text.startswith(FULL)
    assert notebook.ok("%check 1").text == AGAIN


def test_other_exercises_and_other_folders_show_everything(notebook, monkeypatch, tmp_path):
    assert "not as before" not in notebook.ok("%check 2").text and "NO" in notebook.ok("%check 2").text
    (tmp_path / "checks.py").write_bytes(Path("checks.py").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert notebook.ok("%check 1").text.startswith(FULL)


def test_what_passes_with_a_remark_shows_it_again(shell, monkeypatch):
    """Full points, and one finding worth nothing that is not right."""
    monkeypatch.chdir(answers_hw1.PAPER.folder)
    for text in answers_hw1.hand("    return g\n", "    t.requires_grad_()\n    return g\n"):
        shell.ok(text)
    for _ in range(2):
        assert "an input was modified: its `requires_grad`" in shell.ok("%check 5").text

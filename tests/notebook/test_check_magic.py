"""`%check` in a real IPython shell: the verdict as text and HTML, and what is said when there is nothing to check."""

import json
from pathlib import Path

import pytest
from homework import answers_hw1
from homework.submissions import RIGHT as RIGHT_ANSWERS

from gradlab import cli

BORROWED = "def jacobian_by_rows(f, x):\n    return gl.autograd.functional.jacobian(f, x)"


def test_it_shows_a_verdict_where_the_notebook_lies(shell, monkeypatch):
    monkeypatch.chdir(cli.notebooks() / "homework" / "hw3_jacobian")
    shell.ok(BORROWED)
    (bundle,) = shell.ok("%check 1").outputs
    assert "it uses `gl.autograd.functional.jacobian`" in bundle["text/plain"]
    assert "<code>gl.autograd.functional.jacobian</code>" in bundle["text/html"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%check", "takes the number of an exercise, and --all to show all of its checks, as in %check 1 or %check 1 --all"),
        ("%check --all", "got '--all'"),
        ("%check 1 --all --all", "got '1 --all --all'"),
        ("%check 1 -v", "got '1 -v'"),
        ("%check x", "got 'x'"),
        ("%check 1 2", "got '1 2'"),
        ("%check 9", "has the exercises 1, 2, 3, 4, 5, 6; 9 is none of them"),
    ],
)
def test_a_wrong_line_is_refused_in_a_sentence(shell, monkeypatch, line, words):
    monkeypatch.chdir(cli.notebooks() / "homework" / "hw3_jacobian")
    ran = shell.run(line)
    assert words in str(ran.error)
    assert "Traceback" not in ran.stderr


def test_a_folder_without_checks_is_said(shell, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "there is no checks.py" in str(shell.run("%check 1").error)


# ------------------------------------------------------------------------------------------------------------ checked again
RIGHT = RIGHT_ANSWERS["answer1"]
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
        assert "a tensor was changed: its `requires_grad`" in shell.ok("%check 5").text


@pytest.mark.parametrize("folder", sorted((cli.notebooks() / "homework").glob("hw*")), ids=lambda folder: folder.name)
def test_the_solutions_are_right_where_the_notebook_lies(shell, monkeypatch, folder):
    source = (folder / f"{folder.name}.ipynb").read_text()
    if "### BEGIN SOLUTION" not in source:
        pytest.skip("the solutions are not in the installed package")
    monkeypatch.chdir(folder)
    for cell in json.loads(source)["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and not text.startswith("%check"):
            shell.ok(text)
        elif cell["cell_type"] == "code":
            check = text.partition("\n")[0]
            (bundle,) = shell.ok(check).outputs
            points = cell["metadata"]["nbgrader"]["points"]
            assert f": {points} of {points} points" in bundle["text/plain"]
            assert "passed, as before (" in shell.ok(check).text

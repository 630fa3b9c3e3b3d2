"""`%check` in a real IPython shell: the verdict as text and HTML, and the errors when there is nothing to check."""

import json

import pytest

from gradlab import cli

BORROWED = "def jacobian_by_rows(f, x):\n    return gl.autograd.functional.jacobian(f, x)"


def test_the_verdict_in_the_folder_of_the_notebook(shell, monkeypatch):
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
        ("%check 9", "has the exercises 1, 2, 3, 4, 5, 6, got 9"),
    ],
)
def test_a_wrong_line_is_an_error_of_one_sentence(shell, monkeypatch, line, words):
    monkeypatch.chdir(cli.notebooks() / "homework" / "hw3_jacobian")
    ran = shell.run(line)
    assert words in str(ran.error)
    assert "Traceback" not in ran.stderr


def test_a_folder_without_checks_is_an_error(shell, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "there is no checks.py" in str(shell.run("%check 1").error)


@pytest.mark.parametrize("folder", sorted((cli.notebooks() / "homework").glob("hw*")), ids=lambda folder: folder.name)
def test_the_solutions_are_right_in_the_folder_of_the_notebook(shell, monkeypatch, folder):
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

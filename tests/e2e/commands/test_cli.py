"""The command `gradlab`: the files it writes, the files it does not overwrite, and its errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from gradlab import __version__, cli

nbformat = pytest.importorskip("nbformat", reason="needs the extra lab")
pytest.importorskip("nbclient", reason="needs the extra lab")
pytest.importorskip("jupyterlab", reason="needs the extra lab")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Change to an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def not_run(monkeypatch):
    """Skip the execution of the notebook, so that its cells have no outputs."""
    monkeypatch.setattr(cli, "execute", lambda notebook: None)


@pytest.fixture
def tour(tmp_path_factory, monkeypatch):
    """Function `tour(*sources)` that makes `gradlab quickstart` run these cells."""

    def tour(*sources):
        folder = tmp_path_factory.mktemp("notebooks")
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "quickstart.ipynb")
        monkeypatch.setattr(cli, "notebooks", lambda: folder)

    return tour


FETCHING = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("object", "data"), ("source", "src")}


class Fetched(HTMLParser):
    """The addresses that a page fetches, and the sources of its pictures."""

    def __init__(self, page):
        super().__init__()
        self.urls, self.pictures, self.scripts = [], [], 0
        self.feed(page)
        self.urls += re.findall(r"url\(\s*['\"]?([^'\")]+)", page) + re.findall(r"@import\s+([^;]+)", page)

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        for name, value in attrs:
            if (tag, name) in FETCHING:
                self.urls.append(value)
            if (tag, name) == ("img", "src"):
                self.pictures.append(value)


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"gradlab {__version__}\n"


def test_the_command_imports_no_jupyter_until_it_needs_it():
    code = "import sys, gradlab.cli; print([m for m in ('nbclient', 'nbconvert', 'jupyterlab', 'IPython') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_closed_pipe_is_not_an_error(tmp_path, unbuffered):
    """The command is `gradlab course DIR | head -0`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, *(["-u"] if unbuffered else []), "-m", "gradlab", "course", str(tmp_path / "c")]
    try:
        ended = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write_end)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_quickstart_writes_a_page_that_fetches_nothing(here, capsys):
    assert cli.main(["quickstart"]) == 0
    said = capsys.readouterr()
    assert [path.name for path in here.iterdir()] == ["quickstart.html"]
    page = (here / "quickstart.html").read_text(encoding="utf-8")
    fetched = Fetched(page)
    assert [url for url in fetched.urls if not url.startswith(("data:", "#"))] == []
    assert fetched.scripts == 0
    assert len(fetched.pictures) >= 6
    assert "widget-view" not in page
    assert "Error displaying widget" not in page
    assert "live view of" not in page  # the text of a widget that cannot be shown
    assert "Jacobian of p" in page
    # the summary
    assert "loss = " in said.out
    assert "with respect to a and b" in said.out
    assert "    ■ Problem  out - y on line 12" in said.out and said.out.count("Problem") == 1
    assert "before:" not in said.out  # the comparison is not a separate report
    assert str(here / "quickstart.html") in said.out
    assert "`gradlab lab` opens the notebooks (copies, in the current folder) in JupyterLab." in said.out
    assert re.search(r"12/12 cells", said.err)  # the progress bar
    assert "WARNING" not in said.err


def test_an_existing_file_is_kept(here, capsys, monkeypatch):
    monkeypatch.setattr(cli, "execute", lambda notebook: pytest.fail("the notebook must not run"))
    (here / "quickstart.html").write_text("mine")
    assert cli.main(["quickstart"]) == 1
    assert (here / "quickstart.html").read_text() == "mine"
    assert "--force" in capsys.readouterr().err


def test_force_replaces_and_output_names_another(here, not_run):
    (here / "quickstart.html").write_text("mine")
    assert cli.main(["quickstart", "-o", "other.html"]) == 0
    assert (here / "quickstart.html").read_text() == "mine"
    assert cli.main(["quickstart", "--force"]) == 0
    assert (here / "quickstart.html").read_text() == (here / "other.html").read_text()


def test_a_file_that_appears_while_the_notebook_runs_is_kept(here, capsys, monkeypatch):
    monkeypatch.setattr(cli, "execute", lambda notebook: (here / "quickstart.html").write_text("mine"))
    assert cli.main(["quickstart"]) == 1
    assert (here / "quickstart.html").read_text() == "mine"
    assert "was not overwritten" in capsys.readouterr().err


def test_a_missing_folder(here, capsys, monkeypatch):
    monkeypatch.setattr(cli, "execute", lambda notebook: pytest.fail("the notebook must not run"))
    assert cli.main(["quickstart", "-o", "no/such/page.html"]) == 1
    assert "the folder no/such does not exist" in capsys.readouterr().err


def test_a_cell_that_fails_is_shown(here, tour, capsys):
    tour("before = 1", "fine = before\n1 / 0", "after = 1")
    assert cli.main(["quickstart"]) == 1
    said = capsys.readouterr().err
    assert "    fine = before\n    1 / 0" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "\x1b" not in said  # no colours without a terminal
    assert "after = 1" not in said
    assert list(here.iterdir()) == []


def test_a_kernel_that_dies_is_reported(here, tour, capsys):
    tour("import os\nos._exit(3)")
    assert cli.main(["quickstart"]) == 1
    said = capsys.readouterr().err
    assert "os._exit(3)" in said
    assert "kernel died" in said.lower()
    assert list(here.iterdir()) == []


def test_the_notebook_runs_in_this_python_and_leaves_no_files(here, tour):
    tour(f"import sys\nassert sys.executable == {sys.executable!r}\nopen('left.txt', 'w').close()")
    assert cli.main(["quickstart"]) == 0
    assert [path.name for path in here.iterdir()] == ["quickstart.html"]


@pytest.mark.parametrize(
    ("command", "module"),
    [("quickstart", "nbclient"), ("quickstart", "nbconvert"), ("quickstart", "tqdm"), ("lab", "jupyterlab.labapp")],
)
def test_a_missing_extra_is_named(here, capsys, monkeypatch, command, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert cli.main([command]) == 1
    said = capsys.readouterr().err
    assert module in said
    assert f"{sys.executable} -m pip install 'gradlab[lab]'" in said
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["quickstart", "--nonsense"], ["nonsense"]])
def test_invalid_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: gradlab" in capsys.readouterr().err


@pytest.fixture
def launches(monkeypatch):
    """Replace the start of JupyterLab, and return the list of its arguments."""
    from jupyterlab.labapp import LabApp

    launches = []
    monkeypatch.setattr(LabApp, "launch_instance", launches.append)
    return launches


def test_lab_opens_copies_in_the_current_folder(here, launches, capsys):
    assert cli.main(["lab"]) == 0
    copy = here / "quickstart.ipynb"
    assert copy.read_bytes() == (cli.notebooks() / "quickstart.ipynb").read_bytes()
    assert launches == [[str(copy), f"--ServerApp.root_dir={here}"]]
    assert f"copied {copy}" in capsys.readouterr().out


def test_lab_keeps_notebooks_of_the_user(here, launches, capsys):
    (here / "quickstart.ipynb").write_text("my work")
    assert cli.main(["lab"]) == 0
    assert (here / "quickstart.ipynb").read_text() == "my work"
    assert f"skipped {here / 'quickstart.ipynb'} (already exists)" in capsys.readouterr().out


def test_lab_in_another_folder_with_options_for_jupyterlab(here, launches):
    assert cli.main(["lab", "--no-browser", "course", "--port=9999", "--allow-root"]) == 0
    folder = here / "course"
    assert (folder / "quickstart.ipynb").is_file()
    assert launches == [
        [str(folder / "quickstart.ipynb"), f"--ServerApp.root_dir={folder}", "--no-browser", "--port=9999", "--allow-root"]
    ]

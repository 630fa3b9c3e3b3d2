"""The command `gradlab`: what it writes, what it never overwrites, and what it says when something is wrong."""

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
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def not_run(monkeypatch):
    """The notebook is not executed; its cells stay without outputs."""
    monkeypatch.setattr(cli, "execute", lambda notebook: None)


@pytest.fixture
def tour(tmp_path_factory, monkeypatch):
    """tour(*sources): `gradlab quickstart` runs these cells instead."""

    def tour(*sources):
        folder = tmp_path_factory.mktemp("notebooks")
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "quickstart.ipynb")
        monkeypatch.setattr(cli, "notebooks", lambda: folder)

    return tour


FETCHING = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("object", "data"), ("source", "src")}


class Fetched(HTMLParser):
    """What a page fetches, and the sources of its pictures."""

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
def test_it_ends_quietly_where_nobody_reads_on(tmp_path, unbuffered):
    """As in `gradlab course DIR | head -0`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, *(["-u"] if unbuffered else []), "-m", "gradlab", "course", str(tmp_path / "c")]
    try:
        ended = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write_end)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_quickstart_writes_a_page_that_needs_nothing_else(here, capsys):
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
    assert "live view of" not in page  # what a widget says of itself where it cannot be shown
    assert "Jacobian of p" in page
    # the summary
    assert "loss = " in said.out
    assert "with respect to a and b" in said.out
    assert "    ■ Problem  out - y on line 12" in said.out and said.out.count("Problem") == 1
    assert "before:" not in said.out  # the comparison is no report of its own
    assert str(here / "quickstart.html") in said.out
    assert "`gradlab lab` opens the notebooks (copies, in the current folder) in JupyterLab." in said.out
    assert re.search(r"12/12 cells", said.err)  # the progress bar
    assert "WARNING" not in said.err


def test_a_file_that_is_there_stays(here, capsys, monkeypatch):
    monkeypatch.setattr(cli, "execute", lambda notebook: pytest.fail("it should not run at all"))
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


def test_a_file_that_appears_while_the_notebook_runs_stays(here, capsys, monkeypatch):
    monkeypatch.setattr(cli, "execute", lambda notebook: (here / "quickstart.html").write_text("mine"))
    assert cli.main(["quickstart"]) == 1
    assert (here / "quickstart.html").read_text() == "mine"
    assert "was not overwritten" in capsys.readouterr().err


def test_a_folder_that_is_not_there(here, capsys, monkeypatch):
    monkeypatch.setattr(cli, "execute", lambda notebook: pytest.fail("it should not run at all"))
    assert cli.main(["quickstart", "-o", "no/such/page.html"]) == 1
    assert "the folder no/such does not exist" in capsys.readouterr().err


def test_a_cell_that_fails_is_shown(here, tour, capsys):
    tour("before = 1", "fine = before\n1 / 0", "after = 1")
    assert cli.main(["quickstart"]) == 1
    said = capsys.readouterr().err
    assert "    fine = before\n    1 / 0" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "\x1b" not in said  # no colours where there is no terminal
    assert "after = 1" not in said
    assert list(here.iterdir()) == []


def test_a_kernel_that_dies_is_told(here, tour, capsys):
    tour("import os\nos._exit(3)")
    assert cli.main(["quickstart"]) == 1
    said = capsys.readouterr().err
    assert "os._exit(3)" in said
    assert "kernel died" in said.lower()
    assert list(here.iterdir()) == []


def test_the_notebook_runs_in_this_python_and_leaves_nothing(here, tour):
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
def test_arguments_that_make_no_sense(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: gradlab" in capsys.readouterr().err


@pytest.fixture
def launched(monkeypatch):
    """The arguments that JupyterLab would have been started with."""
    from jupyterlab.labapp import LabApp

    launched = []
    monkeypatch.setattr(LabApp, "launch_instance", launched.append)
    return launched


def test_lab_opens_copies_in_the_current_folder(here, launched, capsys):
    assert cli.main(["lab"]) == 0
    copy = here / "quickstart.ipynb"
    assert copy.read_bytes() == (cli.notebooks() / "quickstart.ipynb").read_bytes()
    assert launched == [[str(copy), f"--ServerApp.root_dir={here}"]]
    assert f"copied {copy}" in capsys.readouterr().out


def test_lab_leaves_the_users_notebooks_alone(here, launched, capsys):
    (here / "quickstart.ipynb").write_text("my work")
    assert cli.main(["lab"]) == 0
    assert (here / "quickstart.ipynb").read_text() == "my work"
    assert f"skipped {here / 'quickstart.ipynb'} (already exists)" in capsys.readouterr().out


def test_lab_in_another_folder_with_options_for_jupyterlab(here, launched):
    assert cli.main(["lab", "--no-browser", "course", "--port=9999", "--allow-root"]) == 0
    folder = here / "course"
    assert (folder / "quickstart.ipynb").is_file()
    assert launched == [
        [str(folder / "quickstart.ipynb"), f"--ServerApp.root_dir={folder}", "--no-browser", "--port=9999", "--allow-root"]
    ]

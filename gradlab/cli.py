"""The command `gradlab`: `doctor` runs a script and says what is wrong with its gradients, `demo` shows that on a model of its
own, `quickstart` shows what the library does, `lab` opens its notebooks, `course` hands out lessons and homework.

`quickstart` runs a copy of the notebook in a kernel of this very Python, in an empty temporary folder and with IPython's
settings left aside, and writes one HTML file that needs no network and no kernel: every script that nbconvert would
fetch is left out, and of a widget, which would be blank there, the static picture that stands beside it remains.
Nothing of the user's is overwritten: a file that is there stays, unless --force says otherwise.

Jupyter is imported when a command needs it. It comes with the extra `lab`; where it is missing, that is what is said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gradlab import __version__, clock

CELL_SECONDS = 300  # for one cell, on a slow and busy machine
ANSI = re.compile(r"\x1b\[[0-9;]*m")
BAR = "running the notebook  {bar:28}  {n_fmt}/{total_fmt} cells  {elapsed}"
SUBJECT = re.compile(r", with respect to |^Jacobian of ")  # how a report begins
WIDGET = "application/vnd.jupyter.widget-view+json"


class CommandError(Exception):
    """What the user is told, in place of a traceback."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if left out.

    Returns
    -------
    int
        The exit status: 0 if all went well, 1 if something failed, 130 if interrupted, 141 if nobody reads on what is printed.
        (Arguments that make no sense exit with 2.)
    """
    parser = _parser()
    words, kept = _apart(list(sys.argv[1:] if argv is None else argv))
    arguments, further = parser.parse_known_args(words)
    if further and arguments.run is not _lab:
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    try:
        status = int(arguments.run(arguments, kept or [argument for argument in further if argument != "--"]))
        sys.stdout.flush()  # so that a reader who has gone is noticed here
        return status
    except CommandError as failure:
        print(f"gradlab {arguments.command}: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # who reads what is printed has gone, as `head` does: nothing is wrong
        with suppress(OSError, ValueError):  # what waits to be printed would raise again when Python ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _apart(words: list[str]) -> tuple[list[str], list[str]]:
    """Of `gradlab doctor … -- …` what follows the first `--` apart: it is the script's as it stands."""
    at = words.index("--") if words[:1] == ["doctor"] and "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gradlab", description="See a derivative: gradients in Jupyter notebooks.")
    parser.add_argument("--version", action="version", version=f"gradlab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor = commands.add_parser(
        "doctor",
        help="run a script, and say what is wrong with its gradients",
        usage="gradlab doctor [--html FILE] [--all] [--every] (SCRIPT | -m MODULE) [ARGUMENT ...]",
        description="Run a Python script of PyTorch's or gradlab's, with its arguments, as python would, and print what is wrong "
        "with its gradients to standard error when it ends, also by an error or Ctrl-C.",
        epilog="The exit status is the script's own if that is not 0; else 1 if a Problem was found, and 0 if none was. "
        "--html may stand behind the script's arguments, too; what follows a first -- is the script's.",
        allow_abbrev=False,
    )
    doctor.add_argument(
        "--html", metavar="FILE", type=Path, help="write what was found, and the report of the last backward, as a page"
    )
    doctor.add_argument("--all", action="store_true", help="print all that was found, not the first three")
    doctor.add_argument("--every", action="store_true", help="look at every backward, however long that takes")
    doctor.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as of python -m")
    doctor.add_argument("script", metavar="SCRIPT", help="a Python file")
    doctor.add_argument("given", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="for the script")
    doctor.set_defaults(run=_doctor)
    demo = commands.add_parser(
        "demo",
        help="a model that learns nothing, what is found, and the fix: half a minute",
        description="Run a model that learns nothing, print what is wrong with it, run it with the fix, and write all of it as "
        "one HTML file that needs no network. With PyTorch if it is installed, else with gradlab's own tensors.",
    )
    demo.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("gradlab-demo.html"), help="default: ./%(default)s"
    )
    demo.add_argument("--force", action="store_true", help="replace FILE if it is there")
    demo.set_defaults(run=_demo)
    quickstart = commands.add_parser(
        "quickstart",
        help="run the tour and write it as one HTML file",
        description="Run the tour, quickstart.ipynb, and write it with all its pictures as one HTML file that needs "
        "no network and no kernel.",
    )
    quickstart.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("quickstart.html"), help="default: ./%(default)s"
    )
    quickstart.add_argument("--force", action="store_true", help="replace FILE if it is there")
    quickstart.set_defaults(run=_quickstart)
    lab = commands.add_parser(
        "lab",
        help="copy the notebooks and open them in JupyterLab",
        description="Copy the notebooks to DIR, leaving alone what is there, and open them in JupyterLab. "
        "Further options go to JupyterLab.",
    )
    lab.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="default: the current folder")
    lab.add_argument("--no-browser", action="store_true", help="start the server only")
    lab.set_defaults(run=_lab)
    course = commands.add_parser(
        "course",
        help="copy the lessons and the homework",
        description="Copy the lessons and the homework, without its solutions, to DIR. What is there stays as it is.",
    )
    course.add_argument("folder", metavar="DIR", type=Path)
    course.add_argument(
        "--teacher",
        action="store_true",
        help="make DIR a course of nbgrader's instead: the homework with its solutions, to release and to grade",
    )
    course.add_argument(
        "--summary",
        action="store_true",
        help="sum up DIR, a course or a folder of submissions: students by exercises, seconds, commonest verdicts; guesses",
    )
    course.add_argument(
        "--checks",
        metavar="FOLDER",
        type=Path,
        help="with --summary: take the checks in FOLDER (checks.py, or hw3_jacobian/checks.py), not gradlab's own",
    )
    course.set_defaults(run=_course)
    return parser


def notebooks() -> Path:
    """The folder of the notebooks: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / "quickstart.ipynb").is_file():
            return folder
    raise CommandError(f"the notebooks are missing: the installation in {package} is incomplete. Install it again.")


# ------------------------------------------------------------------------------------------------------------- doctor
def _doctor(arguments: argparse.Namespace, kept: list[str]) -> int:
    from gradlab.explore import script

    rest, page = _page_asked_for(arguments.given)
    page = page or arguments.html
    if page is not None:
        page = page.absolute()  # the script may go elsewhere
        if page.is_dir() or not page.parent.is_dir():
            raise CommandError(f"--html {page} is a folder." if page.is_dir() else f"--html: there is no folder {page.parent}.")
    try:
        asked = (script.module if arguments.module else script.script)(arguments.script, [*rest, *kept])
    except script.NotAScriptError as error:
        raise CommandError(str(error)) from None
    visit = script.visit(asked, every=arguments.every)
    with suppress(OSError, ValueError):  # what the script printed comes first
        sys.stdout.flush()
    print(script.text(visit, every=arguments.all), file=sys.stderr)
    if page is not None:
        try:
            page.write_text(script.page_of(visit), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{page} could not be written: {error.strerror}.") from error
        print(f"\nThe page: {page}", file=sys.stderr)
    return visit.status


def _page_asked_for(arguments: list[str]) -> tuple[list[str], Path | None]:
    """What the script is given, and what `--html` among it names."""
    for at, word in enumerate(arguments):
        if word.startswith("--html="):
            return [*arguments[:at], *arguments[at + 1 :]], Path(word.removeprefix("--html="))
        if word == "--html":
            if at + 1 == len(arguments):
                raise CommandError("--html needs the name of a file.")
            return [*arguments[:at], *arguments[at + 2 :]], Path(arguments[at + 1])
    return arguments, None


# --------------------------------------------------------------------------------------------------------------- demo
def _demo(arguments: argparse.Namespace, _: list[str]) -> int:
    from gradlab.explore.demo import sheet, told

    target = _free(arguments)
    library = "torch" if find_spec("torch") is not None else "gradlab"
    story = told(library)
    print(story.text())
    _write(target, sheet(story, library), arguments.force)
    print(f"\nThe same with pictures, as a page that needs no network:\n\n    {target.resolve()}\n")
    print("On a model of your own: `gradlab doctor train.py`, or in a notebook `%load_ext gradlab` and `%%grad` above a cell.")
    return 0


def _free(arguments: argparse.Namespace) -> Path:
    """The file that is to be written, which is not there or may be replaced."""
    target: Path = arguments.output
    if target.exists() and not arguments.force:
        raise CommandError(f"{target} is there already. --force replaces it; --output FILE writes elsewhere.")
    if not target.parent.is_dir():
        raise CommandError(f"there is no folder {target.parent}.")
    return target


def _write(target: Path, page: str, force: bool) -> None:
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(page)
    except FileExistsError:
        raise CommandError(f"{target} has appeared meanwhile and was left alone. --force replaces it.") from None
    except OSError as error:
        raise CommandError(f"{target} could not be written: {error.strerror}.") from error


# --------------------------------------------------------------------------------------------------------- quickstart
def _quickstart(arguments: argparse.Namespace, _: list[str]) -> int:
    target = _free(arguments)
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401
        import nbconvert  # noqa: F401
        import nbformat
        import tqdm  # noqa: F401
    except ImportError as error:
        raise _missing(error) from error
    notebook = nbformat.read(notebooks() / "quickstart.ipynb", as_version=4)
    began = clock.now()
    execute(notebook)
    seconds = clock.now() - began
    shown = summary(notebook)
    page = as_html(notebook, title="gradlab quickstart")
    _write(target, page, arguments.force)
    print(
        f"\n{shown} in {seconds:.0f} s, all of them in one file of {target.stat().st_size / 1e6:.1f} MB:\n\n"
        f"    {target.resolve()}\n\n"
        "Open it in a browser; it needs no network and no kernel.\n"
        "`gradlab lab` opens the notebooks (copies, in the current folder) in JupyterLab."
    )
    return 0


def execute(notebook: Any) -> None:
    """Run all cells of a notebook, in place, with a progress bar.

    Raises
    ------
    CommandError
        If a cell fails; it shows the cell and its error.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from tqdm import tqdm

    class ThisPython(AsyncKernelManager):  # a kernel called "python3" may belong to another Python
        @property
        def kernel_spec(self) -> KernelSpec:
            # Without frozen modules, of which the debugger in the kernel would complain.
            command = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name="Python 3", language="python")

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gradlab-"))
        bar = stack.enter_context(tqdm(total=len(code), bar_format=BAR))
        last: list[Any] = []

        def started(cell: Any, cell_index: int) -> None:
            last[:] = [cell]

        def executed(cell: Any, cell_index: int, execute_reply: Any) -> None:
            if cell.cell_type == "code":
                bar.update()

        client = NotebookClient(
            notebook,
            kernel_manager_class=ThisPython,
            resources={"metadata": {"path": folder}},
            timeout=CELL_SECONDS,
            store_widget_state=False,
            coalesce_streams=True,
            on_cell_execute=started,
            on_cell_executed=executed,
        )
        environment = {**os.environ, "IPYTHONDIR": folder}
        log = stack.enter_context((Path(folder) / "kernel.log").open("w+"))  # what the kernel says of itself
        try:
            client.execute(env=environment, stdout=log, stderr=log)
        except CellExecutionError as error:
            failure = _failed(last[0], error.traceback)
        except CellTimeoutError:
            failure = _failed(last[0], f"It did not end within {CELL_SECONDS} s.")
        except (DeadKernelError, RuntimeError) as error:
            log.seek(0)
            said = f"The kernel died: {error}\n{log.read()[-2000:]}"
            failure = _failed(last[0], said) if last else said
        else:
            return
    raise CommandError(failure)


def _failed(cell: Any, what: str) -> str:
    what = what if sys.stderr.isatty() else ANSI.sub("", what)
    source = "\n".join(f"    {line}" for line in cell.source.splitlines())
    return f"this cell failed:\n\n{source}\n\n{what}"


def as_html(notebook: Any, title: str) -> str:
    """An executed notebook as one HTML page that fetches nothing. Changes the notebook: widgets are taken out."""
    from nbconvert import HTMLExporter

    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    notebook.metadata.pop("widgets", None)
    exporter = HTMLExporter(template_name="lab")
    exporter.require_js_url = exporter.mathjax_url = exporter.mermaid_js_url = exporter.jquery_url = ""
    page, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": title}})
    # The template's own scripts are for what is not here: require.js, MathJax, and Mermaid, which it would fetch.
    page = re.sub(r"<script\b.*?</script\s*>", "", page, flags=re.DOTALL | re.IGNORECASE)
    return _of_both_themes(page, exporter.template_paths)


def _of_both_themes(page: str, templates: list[str]) -> str:
    """The page in JupyterLab's light colours, or its dark ones where the reader's system is dark."""
    files = (Path(template) / "static" / "theme-dark.css" for template in templates)
    dark = next((file.read_text("utf-8") for file in files if file.is_file()), "")
    style = f"<style>:root{{color-scheme:light dark}}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}</style>\n"
    page = re.sub(r'(<body\b[^>]*?) data-jp-theme-light="true"', r"\1", page)
    return page.replace("</head>", f"{style}</head>", 1) if dark else page


def summary(notebook: Any) -> str:
    """What an executed notebook shows: under its headings, what was differentiated; and how many pictures there are."""
    sections: dict[str, list[str]] = {}
    heading, pictures = "", 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = next((line[3:] for line in cell.source.splitlines() if line.startswith("## ")), heading)
            continue
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            first = data.get("text/plain", "").partition("\n")[0]
            pictures += "image/png" in data
            if SUBJECT.search(first) and first not in sections.setdefault(heading, []):
                sections[heading].append(first)
    told = "\n".join(f"{heading}\n" + "\n".join(f"    {line}" for line in lines) for heading, lines in sections.items())
    return f"{told}\n\n{pictures} pictures"


# ---------------------------------------------------------------------------------------------------------------- lab
def _lab(arguments: argparse.Namespace, further: list[str]) -> int:
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise _missing(error) from error
    folder = arguments.folder.resolve()
    for path, copied in copy_notebooks(folder):
        print(f"{'copied' if copied else 'kept yours:'} {path}")
    options = ["--no-browser"] if arguments.no_browser else []
    LabApp.launch_instance([str(folder / "quickstart.ipynb"), f"--ServerApp.root_dir={folder}", *options, *further])
    return 0


def copy_notebooks(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Copy the notebooks, homework aside, to a folder; yield each path and whether it was copied. What is there stays."""
    source = notebooks()
    for path in sorted([*source.glob("*.ipynb"), *source.glob("lessons/*.ipynb")]):
        target = folder / path.relative_to(source)
        yield target, _written(target, path.read_bytes())


def _written(target: Path, content: bytes) -> bool:
    """Write a new file; one that is there stays as it is. Whether it was written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------------- course
def _course(arguments: argparse.Namespace, _: list[str]) -> int:
    folder = arguments.folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file. Name a folder, which may exist already.")
    if arguments.checks is not None and not arguments.summary:
        raise CommandError("--checks goes with --summary: it says by which checks a folder of submissions is graded.")
    if arguments.summary:
        from gradlab.homework.summary import summed_up

        if not folder.is_dir():
            raise CommandError(f"there is no folder {folder}.")
        try:
            print(summed_up(folder, notebooks() / "homework", arguments.checks))
        except (LookupError, ValueError, OSError) as error:
            raise CommandError(str(error)) from error
        return 0
    for path, copied in (copy_for_teacher if arguments.teacher else copy_course)(folder):
        print(f"{'copied' if copied else 'kept yours:'} {path}")
    print(
        f"\nRelease, collect and grade by nbgrader, from {folder}: see README.md there."
        if arguments.teacher
        else f"\nOpen them by `jupyter lab {folder}` or `gradlab lab {folder}`."
    )
    return 0


def _homework() -> Iterator[Path]:
    """The files of all homework: notebooks and checks, and what they need."""
    for path in sorted((notebooks() / "homework").glob("*/*")):
        if path.is_file() and path.suffix in (".ipynb", ".py"):
            yield path


def copy_course(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Copy the lessons, and the homework as students get it; yield each path and whether it was copied."""
    from gradlab.homework.versions import as_text, has_solutions, student_version

    source = notebooks()
    for path in sorted(source.glob("lessons/*.ipynb")):
        yield folder / path.relative_to(source), _written(folder / path.relative_to(source), path.read_bytes())
    for path in _homework():
        content = path.read_bytes()
        if path.suffix == ".ipynb" and has_solutions(content.decode()):
            content = as_text(student_version(json.loads(content))).encode()
        yield folder / path.relative_to(source), _written(folder / path.relative_to(source), content)


NBGRADER = """\
from gradlab.notebook.grading import configure

c = get_config()  # noqa: F821
configure(c)                           # nbgrader autograde runs the checks apart from the submission's code

c.CourseDirectory.course_id = "gradlab"
c.Grade.seed = {seed}                 # of the shapes and numbers in the checks: drawn for this course; students do not see it
c.Grade.altogether = 55.0              # seconds for a submission, whatever it does

# nbgrader zip_collect: files called as STUDENT_hw3_jacobian.ipynb in downloaded/hw3_jacobian/archive.
c.FileNameCollectorPlugin.named_regexp = r".*?(?P<student_id>[^/\\\\]+)_(?P<file_id>hw\\d+_\\w+)"
"""


def copy_for_teacher(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Make a folder a course of nbgrader's, with the homework as its source; yield each path and whether it was written."""
    from gradlab.homework.versions import has_solutions

    if not all(has_solutions(path.read_text(encoding="utf-8")) for path in _homework() if path.suffix == ".ipynb"):
        raise CommandError(
            "the solutions are not in the installed package, which students have as well. Get the source and "
            "install that:\n\n"
            f"    {sys.executable} -m pip install -e 'PATH_OF_THE_SOURCE[course]'\n\n"
            "and run this command again."
        )
    source = notebooks()
    settings = NBGRADER.format(seed=secrets.randbelow(10**9))
    yield folder / "nbgrader_config.py", _written(folder / "nbgrader_config.py", settings.encode())
    yield folder / "README.md", _written(folder / "README.md", (source / "README.md").read_bytes())
    for path in _homework():
        target = folder / "source" / path.relative_to(source / "homework")
        yield target, _written(target, path.read_bytes())


def _missing(error: ImportError) -> CommandError:
    return CommandError(
        f"this needs the extra `lab`, and {error.name or 'a part of it'} is not installed. Install it by\n\n"
        f"    {sys.executable} -m pip install 'gradlab[lab]'\n"
    )

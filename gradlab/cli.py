"""Command-line interface `gradlab`.

`doctor` runs a script and reports problems with its gradients, or explains a kind of them, `demo` shows this on a small model,
`quickstart` runs the tour of the library, `lab` opens its notebooks, and `course` copies lessons and homework.

`quickstart` runs a copy of the notebook in a kernel of the current Python, in an empty temporary folder and without the user's
IPython settings. It writes one HTML file that needs neither a network nor a kernel: scripts that nbconvert would fetch are
removed, and widgets, which would be blank, are dropped in favour of the static pictures next to them. Existing files are never
overwritten without --force.

Jupyter is imported only by the commands that need it. It is part of the extra `lab`; if it is missing, the error says so.
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
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gradlab import __version__, clock

CELL_SECONDS = 300  # time limit of one cell; generous, for slow and busy machines
ANSI_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
PROGRESS_BAR = "running the notebook  {bar:28}  {n_fmt}/{total_fmt} cells  {elapsed}"
REPORT_SUBJECT = re.compile(r"(?!before: ).*, with respect to |Jacobian of ")  # the first line of a report
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


class CommandError(Exception):
    """Error that is printed as a message, without a traceback."""

    status = 1


class UsageError(CommandError):
    """Error in the arguments of `gradlab doctor`."""

    status = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command-line interface.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments. Defaults to those of the process.

    Returns
    -------
    int
        The exit status: 0 on success, 1 on failure, 2 if the arguments of `gradlab doctor` are invalid, 130 if interrupted, 141
        if the reader of standard output has closed it. Arguments that cannot be parsed exit with 2.
    """
    parser = _parser()
    words, script_arguments = _split_at_dashes(list(sys.argv[1:] if argv is None else argv))
    arguments, further = parser.parse_known_args(words)
    if further and arguments.run is not _lab:
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    arguments.is_process = argv is None  # nothing runs after the command
    errors = sys.stderr  # a script may close or replace it
    try:
        status = int(arguments.run(arguments, script_arguments or [argument for argument in further if argument != "--"]))
        with _naming_output("standard output"):
            if not getattr(sys.stdout, "closed", True):  # a script may have closed or replaced it
                sys.stdout.flush()  # raises here if the reader has closed the pipe
        return status
    except CommandError as failure:
        with suppress(OSError, ValueError):
            print(f"gradlab {arguments.command}: {failure}", file=errors)
        return failure.status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, for example `head`, has closed the pipe: not an error
        _discard_output()
        return 141


@contextmanager
def _naming_output(name: str) -> Iterator[None]:
    """Turn an error of writing, such as a full disk, into a message, except if the reader has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise CommandError(f"cannot write {name}: {error.strerror}.") from error


def _discard_output() -> None:
    """Discard buffered output that cannot be written. It would raise again when Python exits."""
    with suppress(OSError, ValueError, AttributeError):
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _split_at_dashes(words: list[str]) -> tuple[list[str], list[str]]:
    """Split `gradlab doctor … -- …` at the first `--`. All that follows is passed to the script unchanged."""
    at = words.index("--") if words[:1] == ["doctor"] and "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _add_output(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the options of a command that writes a file."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path(default), help="the file to write (default: ./%(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gradlab", description="See a derivative: gradients in Jupyter notebooks.")
    parser.add_argument("--version", action="version", version=f"gradlab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    doctor = commands.add_parser(
        "doctor",
        help="run a script and report problems with its gradients",
        usage="gradlab doctor [--format FORMAT] [--ignore KIND[,KIND]] [--html FILE] [--all] [--every] [--compiled]\n"
        "                      [--strict] [--timings] (SCRIPT | -m MODULE) [ARGUMENT ...]\n"
        "       gradlab doctor --explain [KIND]",
        description="Run a Python script that uses PyTorch or gradlab, with its arguments, as python would. When it ends, also "
        "by an error or Ctrl-C, print the problems found with its gradients to standard error.",
        epilog="The exit status is that of the script if it is not 0. Otherwise it is 1 if a Problem was found (with --strict: "
        "a Problem or a Note), and 0 if not. If the arguments are wrong, the script does not run, and the status is 2. Options "
        "are given before SCRIPT. Everything after SCRIPT is passed to it, except --html. Everything after the first -- is "
        "passed without exception.",
        allow_abbrev=False,
    )
    doctor.add_argument(
        "--html",
        metavar="FILE",
        type=Path,
        help="write the findings and the report of the last backward call as an HTML page",
    )
    doctor.add_argument(
        "--format",
        choices=("text", "json", "github", "sarif"),
        default="text",
        help="how to report: text (default), json, github (annotations in GitHub Actions), or sarif (for code scanning). Except "
        "for text, the report is printed to standard output, and what the script prints goes to standard error",
    )
    doctor.add_argument(
        "--ignore",
        metavar="KIND[,KIND]",
        action="append",
        default=[],
        help="do not report findings of these kinds, which are printed in brackets after a finding. May be repeated",
    )
    doctor.add_argument("--all", action="store_true", help="print all findings as text, not only the first three")
    doctor.add_argument("--every", action="store_true", help="check every backward call, however long that takes")
    doctor.add_argument("--compiled", action="store_true", help="run functions of torch.compile compiled, without their lines")
    doctor.add_argument("--strict", action="store_true", help="exit with status 1 also if there are only Notes")
    doctor.add_argument("--timings", action="store_true", help="print how long each check took, to standard error")
    doctor.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    doctor.add_argument(
        "--explain",
        metavar="KIND",
        nargs="?",
        const="",
        help="run no script, but explain a kind of finding with an example. Without KIND, list all kinds",
    )
    doctor.add_argument("script", metavar="SCRIPT", nargs="?", help="the Python file to run")
    doctor.add_argument("given", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the script")
    doctor.set_defaults(run=_doctor, error=doctor.error)
    demo = commands.add_parser(
        "demo",
        help="run a model that does not learn, show why, and fix it (about 30 seconds)",
        description="Run a model that does not learn, print what is wrong with it, run it again with the fix, and write all of "
        "this to one HTML file that needs no network. Uses PyTorch if it is installed, gradlab's own tensors otherwise.",
    )
    _add_output(demo, "gradlab-demo.html")
    demo.set_defaults(run=_demo)
    quickstart = commands.add_parser(
        "quickstart",
        help="run the tour and write it to one HTML file",
        description="Run quickstart.ipynb, a faulty training, its repair and a tour, and write it with all its pictures to one "
        "HTML file that needs neither a network nor a kernel. Uses PyTorch if it is installed, gradlab's own tensors otherwise.",
    )
    _add_output(quickstart, "quickstart.html")
    quickstart.set_defaults(run=_quickstart)
    lab = commands.add_parser(
        "lab",
        help="copy the notebooks and open them in JupyterLab",
        description="Copy the notebooks to DIR, without overwriting existing files, and open them in JupyterLab. "
        "Other options are passed to JupyterLab.",
    )
    lab.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="where to copy them (default: here)")
    lab.add_argument("--no-browser", action="store_true", help="start the server without opening a browser")
    lab.set_defaults(run=_lab)
    course = commands.add_parser(
        "course",
        help="copy the lessons and the homework",
        description="Copy the lessons and the homework, without solutions, to DIR. Existing files are not overwritten.",
    )
    course.add_argument("folder", metavar="DIR", type=Path, help="the folder of the course")
    course.add_argument(
        "--teacher",
        action="store_true",
        help="set up DIR as an nbgrader course instead: the homework with its solutions, to release and to grade",
    )
    course.add_argument(
        "--summary",
        action="store_true",
        help="summarize the results in DIR, a course or a folder of submissions: a table of students and exercises, times, the "
        "most common verdicts, and guesses",
    )
    course.add_argument(
        "--checks",
        metavar="FOLDER",
        type=Path,
        help="with --summary: use the checks in FOLDER (checks.py or hw3_jacobian/checks.py) instead of gradlab's own",
    )
    course.set_defaults(run=_course)
    return parser


def notebooks() -> Path:
    """Return the folder of the notebooks: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / "quickstart.ipynb").is_file():
            return folder
    raise CommandError(f"the notebooks are missing, so the installation in {package} is incomplete. Reinstall gradlab.")


# ------------------------------------------------------------------------------------------------------------- doctor
def _doctor(arguments: argparse.Namespace, script_arguments: list[str]) -> int:
    if arguments.explain is not None:
        return _explain(arguments)
    if arguments.script is None:
        arguments.error("the following arguments are required: SCRIPT")
    from gradlab.explore import script

    read = script.read_module if arguments.module else script.read_script
    try:
        rest, page = script.extract_html_option(arguments.given)
        page = page or arguments.html
        page = page and script.absolute_page(page)
        ignore = script.read_kinds(arguments.ignore)
        program = read(arguments.script, [*rest, *script_arguments])
    except ValueError as error:
        raise UsageError(str(error)) from None
    errors = sys.stderr  # the script may close or replace it
    redirect = script.redirect_stdout_to_stderr(restore=not arguments.is_process)
    with nullcontext() if arguments.format == "text" else redirect as redirection:
        output = sys.stdout
        run = script.run_script(program, every=arguments.every, compiled=arguments.compiled, ignore=ignore)
        status = run.exit_status(strict=arguments.strict)
        script.flush_output(output)  # print the script's output before the report
        failure = script.write_page(run, page) if page is not None else None  # before the report, whose reader may close the pipe
        if redirection is None:
            script.print_error(script.text(run, every=arguments.all), errors)
        else:
            make = {"json": script.json_report, "github": script.github_report, "sarif": script.sarif_report}[arguments.format]
            with _naming_output("the report"):
                redirection.write(make(run, status))
        if arguments.timings:
            script.print_error(f"\n{script.timings_table(run)}", errors)
        if failure is not None:
            raise CommandError(f"cannot write {page}: {failure.strerror}.") from failure
        if page is not None:
            script.print_error(f"\nHTML page: {page}", errors)
    return status


def _explain(arguments: argparse.Namespace) -> int:
    from gradlab.explore.doctor.explain import explain, list_kinds

    if arguments.script is not None:
        raise UsageError("--explain takes one kind of finding and no script.")
    try:
        words = explain(arguments.explain) if arguments.explain else list_kinds()
    except ValueError as error:
        raise UsageError(f"--explain: {error}") from None
    with _naming_output("standard output"):
        print(words)
    return 0


# --------------------------------------------------------------------------------------------------------------- demo
def _demo(arguments: argparse.Namespace, _: list[str]) -> int:
    from gradlab.explore.demo import run_story, sheet

    target = _output_file(arguments)
    library = "torch" if find_spec("torch") is not None else "gradlab"
    story = run_story(library)
    print(story.text())
    _write(target, sheet(story, library), arguments.force)
    print(f"\nThe report with pictures, as an HTML page that needs no network:\n\n    {target.resolve()}\n")
    print("For your own model, run `gradlab doctor train.py`, or in a notebook `%load_ext gradlab` and `%%grad` above a cell.")
    return 0


def _output_file(arguments: argparse.Namespace) -> Path:
    """Return the file to write. Raise if it exists and --force was not given."""
    target: Path = arguments.output
    if target.exists() and not arguments.force:
        raise CommandError(f"{target} already exists. Use --force to overwrite it, or --output FILE to write another file.")
    if not target.parent.is_dir():
        raise CommandError(f"the folder {target.parent} does not exist.")
    return target


def _write(target: Path, page: str, force: bool) -> None:
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(page)
    except FileExistsError:
        raise CommandError(
            f"{target} was created while the command ran and was not overwritten. Use --force to overwrite it."
        ) from None
    except OSError as error:
        raise CommandError(f"cannot write {target}: {error.strerror}.") from error


# --------------------------------------------------------------------------------------------------------- quickstart
def _quickstart(arguments: argparse.Namespace, _: list[str]) -> int:
    target = _output_file(arguments)
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401
        import nbconvert  # noqa: F401
        import nbformat
        import tqdm  # noqa: F401
    except ImportError as error:
        raise _missing_extra(error) from error
    notebook = nbformat.read(notebooks() / "quickstart.ipynb", as_version=4)
    began = clock.now()
    execute(notebook)
    seconds = clock.now() - began
    shown = summary(notebook)
    page = as_html(notebook, title="gradlab quickstart")
    _write(target, page, arguments.force)
    print(
        f"\n{shown} in {seconds:.0f} s, in one file of {target.stat().st_size / 1e6:.1f} MB:\n\n"
        f"    {target.resolve()}\n\n"
        "Open it in a browser. It needs neither a network nor a kernel.\n"
        "`gradlab lab` opens the notebooks (copies, in the current folder) in JupyterLab."
    )
    return 0


def execute(notebook: Any) -> None:
    """Run all cells of a notebook, in place, with a progress bar.

    Raises
    ------
    CommandError
        If a cell fails. The message contains the cell and its error.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from tqdm import tqdm

    class ThisPython(AsyncKernelManager):  # a kernel called "python3" may belong to another Python
        @property
        def kernel_spec(self) -> KernelSpec:
            # The kernel's debugger warns about frozen modules.
            command = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name="Python 3", language="python")

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gradlab-"))
        bar = stack.enter_context(tqdm(total=len(code), bar_format=PROGRESS_BAR))
        last: list[Any] = []

        def on_start(cell: Any, cell_index: int) -> None:
            last[:] = [cell]

        def on_executed(cell: Any, cell_index: int, execute_reply: Any) -> None:
            if cell.cell_type == "code":
                bar.update()

        client = NotebookClient(
            notebook,
            kernel_manager_class=ThisPython,
            resources={"metadata": {"path": folder}},
            timeout=CELL_SECONDS,
            store_widget_state=False,
            coalesce_streams=True,
            on_cell_execute=on_start,
            on_cell_executed=on_executed,
        )
        environment = {**os.environ, "IPYTHONDIR": folder}
        log = stack.enter_context((Path(folder) / "kernel.log").open("w+"))  # output of the kernel process itself
        try:
            client.execute(env=environment, stdout=log, stderr=log)
        except CellExecutionError as error:
            failure = _cell_failure(last[0], error.traceback)
        except CellTimeoutError:
            failure = _cell_failure(last[0], f"It exceeded the time limit of {CELL_SECONDS} s.")
        except (DeadKernelError, RuntimeError) as error:
            log.seek(0)
            message = f"The kernel died: {error}\n{log.read()[-2000:]}"
            failure = _cell_failure(last[0], message) if last else message
        else:
            return
    raise CommandError(failure)


def _cell_failure(cell: Any, what: str) -> str:
    what = what if sys.stderr.isatty() else ANSI_ESCAPE.sub("", what)
    source = "\n".join(f"    {line}" for line in cell.source.splitlines())
    return f"this cell failed:\n\n{source}\n\n{what}"


def as_html(notebook: Any, title: str) -> str:
    """Convert an executed notebook to one HTML page that fetches nothing. Removes the widgets from the notebook."""
    from nbconvert import HTMLExporter

    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if WIDGET_MIME not in output.get("data", {})]
    notebook.metadata.pop("widgets", None)
    exporter = HTMLExporter(template_name="lab")
    exporter.require_js_url = exporter.mathjax_url = exporter.mermaid_js_url = exporter.jquery_url = ""
    page, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": title}})
    # The template's scripts load require.js, MathJax and Mermaid, which are not needed.
    page = re.sub(r"<script\b.*?</script\s*>", "", page, flags=re.DOTALL | re.IGNORECASE)
    return _with_dark_theme(page, exporter.template_paths)


def _with_dark_theme(page: str, templates: list[str]) -> str:
    """Add JupyterLab's dark theme to the page, for readers whose system prefers it."""
    files = (Path(template) / "static" / "theme-dark.css" for template in templates)
    dark = next((file.read_text("utf-8") for file in files if file.is_file()), "")
    style = f"<style>:root{{color-scheme:light dark}}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}</style>\n"
    page = re.sub(r'(<body\b[^>]*?) data-jp-theme-light="true"', r"\1", page)
    return page.replace("</head>", f"{style}</head>", 1) if dark else page


def summary(notebook: Any) -> str:
    """Summarize an executed notebook: the reports and Problems under each heading, and the number of pictures."""
    sections: dict[str, list[str]] = {}
    heading, pictures = "", 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = next((line[3:] for line in cell.source.splitlines() if line.startswith("## ")), heading)
            continue
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            pictures += "image/png" in data
            first, *rest = data.get("text/plain", "").splitlines() or [""]
            if REPORT_SUBJECT.match(first) and first not in sections.setdefault(heading, []):
                sections[heading] += [first, *(line for line in rest if line.startswith("■ Problem"))]
    reports = "\n".join(f"{heading}\n" + "\n".join(f"    {line}" for line in lines) for heading, lines in sections.items())
    return f"{reports}\n\n{pictures} pictures"


# ---------------------------------------------------------------------------------------------------------------- lab
def _lab(arguments: argparse.Namespace, further: list[str]) -> int:
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise _missing_extra(error) from error
    folder = arguments.folder.resolve()
    for path, copied in copy_notebooks(folder):
        print(f"copied {path}" if copied else f"skipped {path} (already exists)")
    options = ["--no-browser"] if arguments.no_browser else []
    LabApp.launch_instance([str(folder / "quickstart.ipynb"), f"--ServerApp.root_dir={folder}", *options, *further])
    return 0


def copy_notebooks(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Copy the notebooks, except homework, to a folder. Existing files are kept. Yield each path and whether it was copied."""
    source = notebooks()
    for path in sorted([*source.glob("*.ipynb"), *source.glob("lessons/*.ipynb")]):
        target = folder / path.relative_to(source)
        yield target, _write_if_absent(target, path.read_bytes())


def _write_if_absent(target: Path, content: bytes) -> bool:
    """Write a file unless it exists. Return True if it was written."""
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
        raise CommandError(f"{folder} is a file. Give a folder, which may already exist.")
    if arguments.checks is not None and not arguments.summary:
        raise CommandError("--checks requires --summary. It names the checks that grade a folder of submissions.")
    if arguments.summary:
        from gradlab.homework.summary import summarize

        if not folder.is_dir():
            raise CommandError(f"the folder {folder} does not exist.")
        try:
            print(summarize(folder, notebooks() / "homework", arguments.checks))
        except (LookupError, ValueError, OSError) as error:
            raise CommandError(str(error)) from error
        return 0
    for path, copied in (copy_for_teacher if arguments.teacher else copy_course)(folder):
        print(f"copied {path}" if copied else f"skipped {path} (already exists)")
    print(
        f"\nRelease, collect and grade with nbgrader, in {folder}. See README.md there."
        if arguments.teacher
        else f"\nOpen them with `jupyter lab {folder}` or `gradlab lab {folder}`."
    )
    return 0


def _homework() -> Iterator[Path]:
    """Yield the files of all homework: notebooks, checks, and the modules they need."""
    for path in sorted((notebooks() / "homework").glob("*/*")):
        if path.is_file() and path.suffix in (".ipynb", ".py"):
            yield path


def copy_course(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Copy the lessons and the students' version of the homework. Yield each path and whether it was copied."""
    from gradlab.homework.versions import as_text, has_solutions, student_version

    source = notebooks()
    for path in sorted(source.glob("lessons/*.ipynb")):
        yield folder / path.relative_to(source), _write_if_absent(folder / path.relative_to(source), path.read_bytes())
    for path in _homework():
        content = path.read_bytes()
        if path.suffix == ".ipynb" and has_solutions(content.decode()):
            content = as_text(student_version(json.loads(content))).encode()
        yield folder / path.relative_to(source), _write_if_absent(folder / path.relative_to(source), content)


NBGRADER = """\
from gradlab.notebook.grading import configure

c = get_config()  # noqa: F821
configure(c)                           # nbgrader autograde runs the checks in a process of their own

c.CourseDirectory.course_id = "gradlab"
c.Grade.seed = {seed}                 # of the shapes and numbers in the checks, drawn for this course; not shown to students
c.Grade.altogether = 55.0              # time limit of a submission, in seconds

# nbgrader zip_collect: files named STUDENT_hw3_jacobian.ipynb in downloaded/hw3_jacobian/archive.
c.FileNameCollectorPlugin.named_regexp = r".*?(?P<student_id>[^/\\\\]+)_(?P<file_id>hw\\d+_\\w+)"
"""


def copy_for_teacher(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Set up a folder as an nbgrader course with the homework as its source. Yield each path and whether it was written."""
    from gradlab.homework.versions import has_solutions

    if not all(has_solutions(path.read_text(encoding="utf-8")) for path in _homework() if path.suffix == ".ipynb"):
        raise CommandError(
            "the solutions are not in the installed package, since students install it, too. Get the source, install it with\n\n"
            f"    {sys.executable} -m pip install -e 'PATH_OF_THE_SOURCE[course]'\n\n"
            "and run this command again."
        )
    source = notebooks()
    settings = NBGRADER.format(seed=secrets.randbelow(10**9))
    yield folder / "nbgrader_config.py", _write_if_absent(folder / "nbgrader_config.py", settings.encode())
    yield folder / "README.md", _write_if_absent(folder / "README.md", (source / "README.md").read_bytes())
    for path in _homework():
        target = folder / "source" / path.relative_to(source / "homework")
        yield target, _write_if_absent(target, path.read_bytes())


def _missing_extra(error: ImportError) -> CommandError:
    return CommandError(
        f"{error.name or 'a required package'} is not installed. It is part of the extra `lab`. Install it with\n\n"
        f"    {sys.executable} -m pip install 'gradlab[lab]'\n"
    )

"""Grade homework with nbgrader: the classes that `nbgrader_config.py` adds to nbgrader's commands.

`Grade` replaces a step of `nbgrader autograde`, which would run the notebook in a kernel and trust its output. It runs it
with `gradlab.homework.grading`, which documents what a submission can and cannot do, and writes the verdict and the points into
each graded cell, where nbgrader reads them. nbgrader runs a notebook without a `checks.py` beside it as usual.

`KeepingAutograde` replaces nbgrader's Autograde, which removes earlier graded copies before it grades again: if grading fails,
they are restored.

`FeedbackPictures` is a step of `nbgrader generate_feedback` that draws formulas as pictures, so that the page loads nothing.
"""

from __future__ import annotations

import base64
import io
import re
import shutil
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from nbformat.v4 import new_output
from nbgrader.apps import api, autogradeapp
from nbgrader.converters.autograde import Autograde
from nbgrader.converters.generate_feedback import GenerateFeedback
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from traitlets import Float, Integer, List

from gradlab import clock
from gradlab.homework.exercises import CHECKS
from gradlab.homework.grading import ALTOGETHER, grade_cells
from gradlab.homework.verdicts import Verdict, headline
from gradlab.homework.versions import without_hidden_tests

CHECK = re.compile(r"^%check[ \t]+(?:--all[ \t]+)?(\d+)(?:[ \t]+--all)?[ \t]*$", re.MULTILINE)
FORMULA = re.compile(r"(?<!\\)\$\$(?P<block>.+?)\$\$|(?<![\\$])\$(?P<inline>[^$\n]+?)\$(?!\$)", re.DOTALL)
POINTS = 13  # of a formula, in text of 15 pixels
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


class Grade(Execute):
    """Run a homework and its checks in separate processes, and write verdicts and points into its graded cells."""

    seed = Integer(0, help="seed of the shapes and numbers that the checks draw").tag(config=True)
    altogether = Float(ALTOGETHER, help="time limit for a submission, in seconds").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Grade a notebook that has checks beside it; leave others to nbgrader."""
        folder = Path(resources["metadata"]["path"])
        if not (folder / CHECKS).is_file():
            return super().preprocess(nb, resources)
        code = [cell for cell in nb.cells if cell.cell_type == "code"]
        own = [cell for cell in code if not _is_graded(cell)]
        began = clock.now()
        verdicts, outputs = grade_cells([cell.source for cell in own], folder, folder, self.seed, self.altogether)
        nb.metadata["gradlab"] = {"seconds": round(clock.now() - began, 1)}  # for the summary of a class
        for cell, cell_outputs in zip(own, outputs, strict=True):
            cell.execution_count, cell.outputs = None, [_output(one) for one in cell_outputs]
        by_number = {verdict.number: verdict for verdict in verdicts}
        for cell in code:
            if _is_graded(cell):
                self._write(cell, by_number)
        return nb, resources

    def _write(self, cell: Any, verdicts: dict[int, Verdict]) -> None:
        said, points, name = CHECK.search(cell.source), cell.metadata.nbgrader["points"], cell.metadata.nbgrader["grade_id"]
        verdict = verdicts.get(int(said[1])) if said else None
        if verdict is None:
            raise ValueError(f"the graded cell {name!r} has no `%check N` of an exercise in {CHECKS}.")
        if verdict.worth != points:
            raise ValueError(
                f"exercise {verdict.number} is worth {verdict.worth:g} points in {CHECKS}, and {points:g} in the cell {name!r}."
            )
        cell.source = without_hidden_tests(cell.source)
        cell.execution_count = None
        cell.outputs = [
            new_output("display_data", {"text/plain": str(verdict), "text/html": verdict._repr_html_()}),
            new_output("execute_result", {"text/plain": f"{verdict.points:g}"}),
        ]


class KeepingAutograde(Autograde):
    """nbgrader's Autograde, which restores earlier graded copies if grading again fails."""

    _backup: Path | None = None  # copies of folders that nbgrader may remove
    _copied: dict[Path, Path]  # the copy of each folder

    def convert_notebooks(self) -> None:
        """Grade all notebooks. Restore the copies of those that could not be graded."""
        with tempfile.TemporaryDirectory(prefix="gradlab-") as folder:
            self._backup, self._copied = Path(folder), {}
            try:
                super().convert_notebooks()
            finally:
                self._backup = None
                for place, copy in self._copied.items():
                    self._put_back(place, copy)

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        """Back up the earlier copies of a submission, and return whether to grade it."""
        place = Path(self._format_dest(assignment_id, student_id))
        if self._backup is not None and place.is_dir():
            self._copied[place] = shutil.copytree(place, self._backup / str(len(self._copied)))
        process: bool = super().init_destination(assignment_id, student_id)
        return process

    def _put_back(self, place: Path, copy: Path) -> None:
        missing = [file for file in copy.rglob("*.ipynb") if not (place / file.relative_to(copy)).exists()]
        if missing:
            shutil.copytree(copy, place, dirs_exist_ok=True)
            self.log.warning("It was not graded again: %s is restored", place)


class FeedbackPictures(NbGraderPreprocessor):
    """Draw formulas as pictures, and remove the points below a verdict, which are only for nbgrader."""

    display_data_priority: Any = List(help="unused; nbgrader sets it for each step").tag(config=True)

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Process a cell."""
        if cell.cell_type == "markdown":
            cell.source = with_pictures(cell.source)
        elif cell.cell_type == "code" and _is_graded(cell):
            shown = [one for one in cell.outputs if one.output_type != "execute_result"]
            said = headline(str(shown[0].get("data", {}).get("text/plain", ""))) if shown else None
            if said is not None:
                cell.outputs, cell.metadata["gradlab"] = shown, {"title": said[1]}
        return cell, resources


def with_pictures(text: str) -> str:
    """Replace the formulas in Markdown by pictures. One that Matplotlib cannot draw stays as code."""
    return "".join(part if i % 2 else FORMULA.sub(_picture, part) for i, part in enumerate(CODE.split(text)))


def _picture(match: re.Match[str]) -> str:
    from matplotlib import mathtext, rc_context
    from matplotlib.font_manager import FontProperties

    tex, file = (match["block"] or match["inline"]).strip(), io.BytesIO()
    try:
        with rc_context({"mathtext.fontset": "cm", "svg.hashsalt": "gradlab"}):
            depth = mathtext.math_to_image(f"${' '.join(tex.split())}$", file, FontProperties(size=POINTS), format="svg")
    except ValueError:
        return f"<code>{escape(tex)}</code>"
    data = base64.b64encode(file.getvalue()).decode()
    image = (
        f'<img class="formula" alt="{escape(tex)}" style="vertical-align:-{depth:g}pt" src="data:image/svg+xml;base64,{data}">'
    )
    return f'\n\n<p style="text-align:center">{image}</p>\n\n' if match["block"] else image


def _is_graded(cell: Any) -> bool:
    settings = cell.metadata.get("nbgrader", {})
    return bool(settings.get("grade")) and not settings.get("solution")


def _output(output: dict[str, str]) -> Any:
    if "png" in output:
        return new_output("display_data", {"image/png": output["png"], "text/plain": "a picture"})
    return new_output("stream", name="stdout", text=output.get("text", ""))


def configure(c: Any) -> None:
    """Add the classes to nbgrader's commands, through its settings (`c = get_config()`) where possible."""
    autogradeapp.Autograde = api.Autograde = KeepingAutograde
    c.Autograde.autograde_preprocessors = [
        Grade if step is Execute else step for step in Autograde.autograde_preprocessors.default_args[0]
    ]
    c.GenerateFeedback.preprocessors = [*GenerateFeedback.preprocessors.default_args[0], FeedbackPictures]
    c.HTMLExporter.template_name = "gradlab_feedback"
    c.HTMLExporter.extra_template_basedirs = [str(Path(__file__).parent / "templates")]

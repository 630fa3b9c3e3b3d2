"""Summarize a class: points by student and exercise, and the most common findings.

Points come from nbgrader's database if there is one (including changes by hand), and the findings from the notebooks that it
graded. Otherwise each notebook in the folder is graded now. A checks.py beside a submission may be the student's, so only the
checks that came with gradlab are used, or those of a folder that the teacher names. Guesses in lessons that students log (see
`homework.predictions`) are read from each *.jsonl in the folder.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradlab import clock
from gradlab.homework.exercises import CHECKS
from gradlab.homework.grading import run
from gradlab.homework.verdicts import headline

DATABASE, MOST_COMMON, WIDEST = "gradebook.db", 3, 24
WRONG, HINT, LINE = "  NO  ", "      Look next at: ", re.compile(r" \(line \d+ of its cell: .*?`\)")
Points = dict[str, dict[int, float]]  # by student and exercise


@dataclass
class HomeworkSummary:
    """The results of a class in one homework."""

    name: str
    points: Points = field(default_factory=dict)
    titles: dict[int, tuple[str, float]] = field(default_factory=dict)  # title and points, by exercise
    said: dict[int, Counter[str]] = field(default_factory=dict)  # findings by exercise, each counted once per student
    seconds: dict[str, float] = field(default_factory=dict)  # of grading, by student
    problems: list[str] = field(default_factory=list)

    def add(self, student: str, number: int, title: str, points: float, worth: float, sentences: Iterable[str]) -> None:
        """Add one exercise of one student."""
        self.titles[number] = title, worth
        self.points.setdefault(student, {})[number] = points
        self.said.setdefault(number, Counter()).update(set(sentences))

    def __str__(self) -> str:
        if not self.points:
            return "\n".join([f"{self.name}: no submissions that could be read", *self.problems])
        numbers = sorted(self.titles)
        width = max(7, *(min(len(name), WIDEST) for name in self.points))
        lines = [self.name, "", f"{'student':{width}}" + "".join(f"{number:>8}" for number in numbers) + f"{'all':>8}{'s':>6}"]
        for student, points in sorted(self.points.items()):
            cells = "".join(f"{points[n]:>8g}" if n in points else f"{'-':>8}" for n in numbers)
            took = f"{self.seconds[student]:.0f}" if student in self.seconds else "-"
            lines.append(f"{student[:WIDEST]:{width}}{cells}{sum(points.values()):>8g}{took:>6}")
        mean = [sum(one.get(n, 0) for one in self.points.values()) / len(self.points) for n in numbers]
        lines.append(f"{'mean':{width}}" + "".join(f"{one:>8.3g}" for one in mean) + f"{sum(mean):>8.3g}")
        worth = [self.titles[n][1] for n in numbers]
        lines.append(f"{'of':{width}}" + "".join(f"{one:>8g}" for one in worth) + f"{sum(worth):>8g}")
        for number in numbers:
            if self.said[number]:
                lines += ["", f"{number}. {self.titles[number][0]}"]
                lines += [f"    {count} × {sentence}" for sentence, count in self.said[number].most_common(MOST_COMMON)]
        return "\n".join([*lines, *([""] if self.problems else []), *self.problems])


def summarize(folder: Path, homework: Path, checks: Path | None = None) -> str:
    """Return the summary of a folder as text.

    Parameters
    ----------
    folder : path
        A course of nbgrader, or any folder with submissions: STUDENT/…/NAME.ipynb, or NAME.ipynb for one student.
    homework : path
        The folder of gradlab's homework, with the checks.
    checks : path, optional
        A folder with other checks: checks.py, or NAME/checks.py for each homework.

    Raises
    ------
    LookupError
        If there is nothing to summarize, or the folder `checks` has no checks.
    """
    graded = (folder / DATABASE).is_file()
    if checks is not None and graded:
        raise LookupError(
            f"{folder} was graded by nbgrader, whose points are used. To use other checks, put them into "
            "source/ and run `nbgrader autograde` with --force."
        )
    if checks is not None and not (checks / CHECKS).is_file() and not any(checks.glob(f"*/{CHECKS}")):
        raise LookupError(f"there is no {CHECKS} in {checks} or in a homework's folder there.")
    summaries: list[object] = list(of_gradebook(folder) if graded else of_submissions(folder, homework, checks))
    summaries += of_guesses(folder)
    if not summaries:
        raise LookupError(
            f"there is nothing to summarize in {folder}: neither {DATABASE}, after `nbgrader autograde`, nor a "
            "notebook of a homework (STUDENT/…/hw3_jacobian.ipynb), nor guesses (*.jsonl)."
        )
    return "\n\n".join(map(str, summaries))


def of_gradebook(folder: Path) -> Iterator[HomeworkSummary]:
    """Yield a summary of each homework in nbgrader's database."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / DATABASE}") as book:
        for assignment in book.assignments:
            summary = HomeworkSummary(assignment.name)
            for submission in assignment.submissions:
                student = submission.student.id
                for notebook in submission.notebooks:
                    path = folder / "autograded" / student / assignment.name / f"{notebook.name}.ipynb"
                    cells, took = _read_graded(path) if path.is_file() else ([], None)
                    verdicts = dict(_verdicts(cells))
                    if took is not None:
                        summary.seconds[student] = took
                    for grade in notebook.grades:
                        if (said := verdicts.get(grade.cell.name)) is not None:
                            number, title, sentences = said
                            summary.add(student, number, title, grade.score or 0, grade.max_score, sentences)
                    if not verdicts:
                        summary.problems.append(f"{student}: not graded yet, or without verdicts")
            if summary.points or summary.problems:
                yield summary


def _read_graded(path: Path) -> tuple[list[dict[str, Any]], float | None]:
    """Return the cells of a graded notebook, and the seconds that grading took."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook["cells"], notebook["metadata"].get("gradlab", {}).get("seconds")


def _verdicts(cells: list[dict[str, Any]]) -> Iterator[tuple[str, tuple[int, str, list[str]]]]:
    """Yield the cell's name, and the number, title and findings, of each verdict in these cells."""
    for cell in cells:
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/plain", ""))
            points = headline(text)
            if points is not None and "grade_id" in cell["metadata"].get("nbgrader", {}):
                yield cell["metadata"]["nbgrader"]["grade_id"], (*points, sentences(text))
                break


def sentences(verdict: str) -> list[str]:
    """Return the findings in a verdict's text: the hint, or the reason why the exercise stopped, without the line.

    The same mistake of two students gives the same sentence.
    """
    said: list[str] = []
    stopped = False
    for line in verdict.splitlines()[1:]:
        if line.startswith(WRONG):
            what, _, words = line.removeprefix(WRONG).partition(": ")
            stopped = what.startswith("`")
            said.append(f"{what}: {LINE.sub('', words)}" if stopped else words or what)
        elif line.startswith(HINT) and said and not stopped:
            said[-1] = line.removeprefix(HINT)
    return [one for one in said if not one.startswith("it counts once")]


def of_submissions(folder: Path, homework: Path, named: Path | None = None) -> Iterator[HomeworkSummary]:
    """Grade a folder of submissions. Yield a summary of each homework."""
    summaries: dict[str, HomeworkSummary] = {}
    ignored_checks: dict[str, list[str]] = {}  # by homework: students whose folder has other checks
    for path in sorted(folder.rglob("*.ipynb")):
        places = (homework / path.stem, path.parent) if named is None else (named / path.stem, named)
        checks = next((one for one in places if (one / CHECKS).is_file()), None)
        if checks is None or ".ipynb_checkpoints" in path.parts:
            continue
        summary, student = summaries.setdefault(path.stem, HomeworkSummary(path.stem)), path.relative_to(folder).parts[0]
        began = clock.now()
        try:
            verdicts = run(path, checks=checks)
        except (ValueError, OSError) as error:
            summary.problems.append(f"{student}: {error}")
            continue
        summary.seconds[student] = clock.now() - began
        beside = path.parent / CHECKS
        if checks != path.parent and beside.is_file() and beside.read_bytes() != (checks / CHECKS).read_bytes():
            ignored_checks.setdefault(path.stem, []).append(student)
        for one in verdicts:
            summary.add(student, one.number, one.title, one.points, one.worth, sentences(str(one)))
    for name, students in ignored_checks.items():
        taken = "that came with gradlab" if named is None else f"in {named}"
        whose = ", ".join(students[:3]) + (", …" if len(students) > 3 else "")
        summaries[name].problems.append(
            f"Graded with the checks {taken}. The {CHECKS} beside the work of {whose} differs and was not used"
            f"{'; to use your own checks, pass --checks FOLDER' if named is None else ''}."
        )
    yield from summaries.values()


@dataclass
class GuessSummary:
    """The guesses of a class in one lesson."""

    name: str
    first: dict[str, dict[str, tuple[str, bool]]] = field(
        default_factory=dict
    )  # guess and whether it is right, by question and student

    def __str__(self) -> str:
        width = max(8, *map(len, self.first))
        lines = [f"{self.name}: guesses", "", f"{'question':{width}}{'guessed':>9}{'right':>7}   most common wrong guess"]
        for question, by_student in self.first.items():
            wrong = Counter(said for said, right in by_student.values() if not right)
            common = "".join(f"{count} × {said}" for said, count in wrong.most_common(1))
            right = sum(right for _, right in by_student.values())
            lines.append(f"{question:{width}}{len(by_student):>9}{right:>7}   {common}".rstrip())
        return "\n".join(lines)


def of_guesses(folder: Path) -> Iterator[GuessSummary]:
    """Yield the guesses in a folder, by lesson. Each student's first guess counts: later ones have seen the answer."""
    lessons: dict[str, GuessSummary] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
                name, question, student = (str(entry[key]) for key in ("notebook", "question", "student"))
                said, right = str(entry["guess"]), bool(entry["right"])
            except (ValueError, KeyError, TypeError):  # another kind of file, or an incomplete line
                continue
            lesson = lessons.setdefault(name, GuessSummary(name or "a notebook without a name"))
            lesson.first.setdefault(question, {}).setdefault(student, (said, right))
    yield from (lessons[name] for name in sorted(lessons))

"""Files and lines of findings."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

from gradlab.explore.doctor.findings import Finding
from gradlab.explore.script.running import ScriptRun


@dataclass(frozen=True)
class Location:
    """Lines of a file.

    Attributes
    ----------
    file : str
        The path as Python names it, usually absolute.
    line : int or None
        The first line, counted from 1, or None if the whole file is meant.
    end_line : int or None
        The last line, if it is known.
    code : str
        The code, on one line, or "".
    """

    file: str
    line: int | None
    end_line: int | None
    code: str


def script_location(run: ScriptRun, finding: Finding) -> Location:
    """Return where a finding is in the script."""
    return Location(run.program.filename, finding.line, run.end_line(finding), source_line(run, finding.line))


def module_location(run: ScriptRun, finding: Finding) -> Location | None:
    """Return where a finding is in another file, to which the line of the script led, or None."""
    place = run.module_line(finding)
    return None if place is None else Location(place.file, place.line, place.end, place.statement)


def further_locations(run: ScriptRun, finding: Finding) -> list[Location]:
    """Return the further lines of the script that a finding is about."""
    lines = [line for line in dict.fromkeys(finding.lines) if line != finding.line]
    return [Location(run.program.filename, line, None, source_line(run, line)) for line in lines]


def source_line(run: ScriptRun, number: int | None) -> str:
    """Return a line of the script without its indentation, or "" if there is no such line."""
    lines = io.StringIO(run.program.source, newline=None).readlines()  # other separators do not end a line in Python
    return lines[number - 1].strip() if number is not None and 0 < number <= len(lines) else ""


def relative_path(file: str, folder: str) -> str:
    """Return a path relative to a folder, with `/` between names, if the file is in it, and otherwise the path itself."""
    for path, root in ((file, folder), (os.path.realpath(file), os.path.realpath(folder))):
        if root and Path(path).is_relative_to(root):
            return Path(path).relative_to(root).as_posix()
    return file


def repository_path(file: str, folder: str) -> str:
    """Return a path as `relative_path` does, in a job of GitHub Actions relative to the checkout if the folder is in it."""
    checkout = os.environ.get("GITHUB_WORKSPACE", "")
    inside = bool(checkout) and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(checkout))
    return relative_path(file, checkout if inside else folder)

"""Reports for other programs: JSON, and workflow commands of GitHub Actions. `sarif` writes SARIF.

The JSON report is one object. A change that could break a reader increases `JSON_VERSION`.

version : int
gradlab : str
    The version of gradlab.
program : str
    The path of the script, relative to the current folder if it is in it. All paths in the report are of this form.
arguments : list of str
exit_status : int
    The status of `gradlab doctor`.
script_status : int
    The status of the script: 0, that of `sys.exit`, 1 after an error, 130 after Ctrl-C.
backward_calls : int
findings : list of object
    Problems, then Notes, the most important first.

    kind : str
        As in `gradlab doctor --explain KIND`.
    severity : "problem" or "note"
    message, fix : str
        Code is in backticks. `fix` may be "".
    file : str
        The script.
    line, end_line : int or null
        The lines in the script, where they are known.
    code : str
        The line, or "".
    lines : list of int
        Further lines of the script that the finding is about.
    place : object or null
        The place in another file to which the line of the script led: file, line, end_line and code.
    model : str
        Where several models were trained, the one that the finding is about, for example "act=Sigmoid". Otherwise "".
    times : int
        How many findings this one stands for, which differ only in lines or names.
    evidence : object
        The numbers in the message, and details that depend on the kind and may change. Numbers that JSON does not have are the
        strings "NaN", "Infinity" and "-Infinity".
unseen : list of str
    Sentences about parts of the run that were not checked.
ignored : int
    The number of findings that were silenced.
seconds : object
    The time of the script while it was recorded, and of each check by its name: {"script": 4.2, "checks": {"find_sums": 0.01}}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gradlab import __version__
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.script.locations import (
    Location,
    further_locations,
    module_location,
    relative_path,
    repository_path,
    script_location,
)
from gradlab.explore.script.running import ScriptRun

JSON_VERSION = 1


def json_report(run: ScriptRun, exit_status: int) -> str:
    """Return the report as JSON, in ASCII."""
    found = run.diagnosis
    report = {
        "version": JSON_VERSION,
        "gradlab": __version__,
        "program": relative_path(run.program.filename, run.folder),
        "arguments": run.program.arguments,
        "exit_status": exit_status,
        "script_status": run.script_status,
        "backward_calls": run.backward_calls,
        "findings": [_finding_data(run, one) for one in (*found.findings, *found.remarks)],
        "unseen": run.not_checked,
        "ignored": found.ignored,
        "seconds": {"script": run.seconds, "checks": found.seconds},
    }
    return json.dumps(json_safe(report), indent=2, allow_nan=False)


def _finding_data(run: ScriptRun, finding: Finding) -> dict[str, Any]:
    module = module_location(run, finding)
    return {
        "kind": finding.kind,
        "severity": "note" if finding.remark else "problem",
        "message": finding.message,
        "fix": finding.fix,
        **_location_data(run, script_location(run, finding)),
        "lines": [place.line for place in further_locations(run, finding)],
        "place": None if module is None else _location_data(run, module),
        "model": finding.model,
        "times": finding.times,
        "evidence": finding.evidence,
    }


def _location_data(run: ScriptRun, location: Location) -> dict[str, Any]:
    return {**vars(location), "file": relative_path(location.file, run.folder)}


def json_safe(value: Any) -> Any:
    """Return a value as plain data that JSON can represent: numbers of NumPy as numbers, NaN as a string, tuples as lists."""
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")  # file names may contain bytes that are not UTF-8
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return json_safe(value.tolist())
    if isinstance(value, set | frozenset):
        return [json_safe(item) for item in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return str(value)


# ------------------------------------------------------------------------------------------------------- GitHub Actions
def github_report(run: ScriptRun, exit_status: int) -> str:
    """Return workflow commands of GitHub Actions, one a line, which annotate the lines of findings.

    Problems are errors, Notes are warnings, and the sentences of `unseen` are notices. The exit status is not reported.
    """
    found = run.diagnosis
    commands = [_annotation(run, "error", one) for one in found.findings]
    commands += [_annotation(run, "warning", one) for one in found.remarks]
    commands += [_command("notice", {"title": "gradlab doctor"}, sentence) for sentence in run.not_checked]
    return "\n".join(commands)


def _annotation(run: ScriptRun, command: str, finding: Finding) -> str:
    place, module = script_location(run, finding), module_location(run, finding)
    properties = {
        "file": repository_path(place.file, run.folder),
        "line": place.line,
        "endLine": place.end_line,
        "title": f"gradlab doctor [{finding.kind}]",
    }
    message = [f"{finding.model}: {finding.message}" if finding.model else finding.message]
    message += [finding.fix] if finding.fix else []
    message += [f"{repository_path(module.file, run.folder)}:{module.line}: {module.code}"] if module is not None else []
    return _command(command, properties, "\n".join(message))


def _command(command: str, properties: Mapping[str, Any], message: str) -> str:
    given = ",".join(f"{name}={_escape(str(value), PROPERTY)}" for name, value in properties.items() if value is not None)
    return f"::{command} {given}::{_escape(message, DATA)}"


# The escapes of GitHub's toolkit (actions/toolkit, packages/core/src/command.ts). "%" comes first.
DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
PROPERTY = (*DATA, (":", "%3A"), (",", "%2C"))


def _escape(text: str, escapes: Iterable[tuple[str, str]]) -> str:
    for character, escape in escapes:
        text = text.replace(character, escape)
    return text

"""Reports in SARIF 2.1.0, the format of code scanning services.

The specification is https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. Comments refer to its sections.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gradlab import __version__
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import KINDS, PROBLEM
from gradlab.explore.markup import Span, parse_backticks
from gradlab.explore.script.formats import json_safe
from gradlab.explore.script.locations import (
    Location,
    further_locations,
    module_location,
    repository_path,
    script_location,
)
from gradlab.explore.script.output import summary
from gradlab.explore.script.running import ScriptRun

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"  # the root of the repository, which code scanning knows
MARKDOWN_SPECIAL = re.compile(r"([\\*_<>\[\]~|#])")


def sarif_report(run: ScriptRun, exit_status: int) -> str:
    """Return the report as a SARIF log, in ASCII."""
    findings = [*run.diagnosis.findings, *run.diagnosis.remarks]
    kinds = list(dict.fromkeys(one.kind for one in findings))
    driver = {"name": "gradlab doctor", "version": __version__, "rules": [_rule(kind) for kind in kinds]}
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [_invocation(run, exit_status)],
                "results": [_result(run, one, kinds.index(one.kind)) for one in findings],
            }
        ],
    }
    return json.dumps(json_safe(log), indent=2, allow_nan=False)


def _invocation(run: ScriptRun, exit_status: int) -> dict[str, Any]:
    return {
        "executionSuccessful": run.script_status == 0,
        "exitCode": exit_status,
        "exitCodeDescription": summary(run),
        "toolExecutionNotifications": [{"level": "note", "message": _message(sentence)} for sentence in run.not_checked],
    }


def _rule(kind: str) -> dict[str, Any]:
    declared = KINDS.get(kind)
    if declared is None:
        return {"id": kind}
    return {
        "id": kind,
        "shortDescription": _message(declared.meaning),
        "fullDescription": _message(declared.why),
        "help": _message(declared.remedy),
        "defaultConfiguration": {"level": "error" if declared.severity == PROBLEM else "note"},
    }


def _result(run: ScriptRun, finding: Finding, rule: int) -> dict[str, Any]:
    first, module = script_location(run, finding), module_location(run, finding)
    related = [*further_locations(run, finding), *([module] if module is not None else [])]
    links = [_name(run, place, first) for place in related]
    words = f"{finding.model}: {finding.message}" if finding.model else finding.message
    result = {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": "note" if finding.remark else "error",
        "message": _message(f"{words} {finding.fix}".strip(), links),
        "locations": [{"physicalLocation": _physical_location(run, first)}],
    }
    if related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _physical_location(run, place), "message": _message(_name(run, place, first))}
            for number, place in enumerate(related, 1)
        ]
    return result


def _name(run: ScriptRun, place: Location, first: Location) -> str:
    """Return "line 3", with the file if it is not that of the first location."""
    file = "" if place.file == first.file else f"{repository_path(place.file, run.folder)}, "
    return f"{file}line {place.line}"


def _physical_location(run: ScriptRun, location: Location) -> dict[str, Any]:
    # Code scanning requires a line.
    region = {"startLine": location.line or 1, **({"endLine": location.end_line} if location.end_line else {})}
    return {"artifactLocation": _artifact_location(location.file, run.folder), "region": region}


def _artifact_location(file: str, folder: str) -> dict[str, str]:
    path = repository_path(file, folder)
    if Path(path).is_absolute():
        return {"uri": Path(path).as_uri()}
    # A colon in the first name would end the scheme of a URI.
    return {"uri": quote(os.fsencode(path)), "uriBaseId": ROOT}


# ------------------------------------------------------------------------------------------------------------- messages
def _message(text: str, links: Sequence[str] = ()) -> dict[str, str]:
    """Return a text with code in backticks as plain text and as Markdown, followed by links to the related locations 1, 2, ….

    Plain text must not have formatting (§3.11.3): code is in single quotes.
    """
    spans = parse_backticks(text)
    plain = "".join(f"'{span.text}'" if span.kind == "code" else span.text for span in spans)
    formatted = "".join(f"`{span.text}`" if span.kind == "code" else _escape_markdown(span) for span in spans)
    if "](" in plain:  # as in `model[0](x)`, which would be read as a link
        plain = _escape_brackets(plain)
    see = ", ".join(f"[{_escape_brackets(words)}]({number})" for number, words in enumerate(links, 1))
    more = f" See {see}." if see else ""
    plain, formatted = _escape_braces(plain) + more, _escape_braces(formatted) + more
    return {"text": plain} if plain == formatted else {"text": plain, "markdown": formatted}


def _escape_markdown(span: Span) -> str:
    return MARKDOWN_SPECIAL.sub(r"\\\1", span.text)


def _escape_brackets(text: str) -> str:
    """Escape the special characters of a plain text message with links (§3.11.6)."""
    return re.sub(r"([\\\[\]])", r"\\\1", text)


def _escape_braces(text: str) -> str:
    """Double braces, which would enclose placeholders (§3.11.5)."""
    return text.replace("{", "{{").replace("}", "}}")

"""Findings of the doctor. A finding is a Problem or, as a remark, a Note; a `Diagnosis` has those of one run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gradlab.core.fixes import offer_fix

if TYPE_CHECKING:
    from gradlab.explore.trace.data import Line, Trace

ONCE = ("rebound-leaf",)  # kinds with one finding per line, though an error and the trace may both show it
SHOWN = 3  # findings in a report, Problems before Notes; the others are folded or counted
NAMED = 4  # further places, or models, that a finding names


def sentence(advice: str) -> str:
    """Return advice, in the form in which errors contain it, as a sentence."""
    return f"{advice[:1].upper()}{advice[1:]}."


@dataclass(frozen=True)
class Finding:
    """One fault, or one remark.

    Attributes
    ----------
    kind : str
        The name of its kind (see `registry`): "detached", "nan-born".
    message : str
        The cause in one or two sentences, with the user's names, lines and numbers. Code is in backticks.
    line : int or None
        Its line in the cell, where `%%grad` is line 1; None outside of cells.
    node : int or None
        Its node in the trace.
    fix : str
        What to write or to do; "" if there is no advice or if fixes are hidden.
    evidence : mapping of str to number or str
        The numbers that prove the message, by name.
    remark : bool
        Whether it is a Note instead of a Problem.
    worth : float
        Findings of greater worth come first.
    lines : tuple of int
        Further lines with the same finding.
    model : str
        The model that it is about, if several were trained: "act=Sigmoid"; otherwise "".
    times : int
        The number of findings merged into it, which differ only in their line or their names.
    place : Line or None
        The line of the cause, if it is not that of the node.
    """

    kind: str
    message: str
    line: int | None = None
    node: int | None = None
    fix: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    remark: bool = False
    worth: float = 1.0
    lines: tuple[int, ...] = ()
    model: str = ""
    times: int = 1
    place: Line | None = None

    def __str__(self) -> str:
        return f"{self.message} {self.fix}".strip()

    def place_in(self, trace: Trace | None) -> Line | None:
        """Return the line of the cause, by default that of the node in a trace, or None if it is not known."""
        if self.place is not None or trace is None or self.node is None or self.node >= len(trace.nodes):
            return self.place
        return trace.nodes[self.node].place


@dataclass(frozen=True)
class Diagnosis:
    """The findings of one run, the most important first.

    Attributes
    ----------
    findings : tuple of Finding
        Problems.
    remarks : tuple of Finding
        Notes.
    unseen : tuple of str
        What could not be checked, in one sentence each.
    ignored : int
        The number of findings that are silenced.
    seconds : mapping of str to float
        How long each check took, by its name.
    """

    findings: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    unseen: tuple[str, ...] = ()
    ignored: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        findings: Sequence[Finding],
        unseen: Sequence[str] = (),
        *,
        ignored: int = 0,
        seconds: Mapping[str, float] | None = None,
    ) -> Diagnosis:
        """Sort findings by worth, separate Problems from Notes, and merge similar ones into one with a count.

        If two checks report the same kind and the same fix for one line, only the finding of greater worth is kept. If fixes
        are hidden (`core.fixes`), the findings have none.
        """
        ordered = sorted(findings, key=lambda finding: -finding.worth)
        first = {(one.kind, one.line, one.fix, one.model): one for one in reversed(ordered)}
        ordered = [one for one in ordered if not one.fix or first[one.kind, one.line, one.fix, one.model] is one]
        by_line: dict[tuple[int | None, str], Finding] = {}
        for one in ordered:
            place = one.line, one.model
            if one.kind in ONCE and (place not in by_line or "` in place of `" not in by_line[place].fix):
                by_line[place] = one
        ordered = [one for one in ordered if one.kind not in ONCE or by_line[one.line, one.model] is one]
        ordered = merge_across_models(merge_similar(ordered))
        ordered = [replace(one, fix=offer_fix(one.fix)) for one in ordered]
        return cls(
            tuple(finding for finding in ordered if not finding.remark),
            tuple(finding for finding in ordered if finding.remark),
            tuple(unseen),
            ignored,
            dict(seconds or {}),
        )

    def with_parts(self, findings: Sequence[Finding], unseen: Sequence[str], parts: Iterable[Diagnosis]) -> Diagnosis:
        """Return the diagnosis of findings and sentences from this one and from others, with the counts and times of all."""
        everything = [self, *parts]
        seconds: dict[str, float] = {}
        for one in everything:
            for name, taken in one.seconds.items():
                seconds[name] = seconds.get(name, 0.0) + taken
        return Diagnosis.of(findings, unseen, ignored=sum(one.ignored for one in everything), seconds=seconds)

    def without(self, kinds: str | Iterable[str]) -> Diagnosis:
        """Return the diagnosis without the findings of some kinds, which then count as ignored."""
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        findings = tuple(one for one in self.findings if one.kind not in kinds)
        remarks = tuple(one for one in self.remarks if one.kind not in kinds)
        dropped = len(self.findings) + len(self.remarks) - len(findings) - len(remarks)
        return replace(self, findings=findings, remarks=remarks, ignored=self.ignored + dropped) if dropped else self

    def text(self, *, every: bool = False) -> str:
        """Return the findings as text.

        Parameters
        ----------
        every : bool, default: False
            Return all findings instead of the first `SHOWN` and the number of the others.
        """
        both = [*(("Problem", one) for one in self.findings), *(("Note", one) for one in self.remarks)]
        words = [f"{word}{_of(one)}: {one} [{one.kind}]" for word, one in both]
        shown = len(words) if every else SHOWN
        lines = words[:shown] or ["Nothing was found."]
        if len(words) > shown:
            lines.append(f"{hidden(self.findings, self.remarks)}: `.text(every=True)` has all of them.")
        silenced = [f"{self.ignored} {'finding is' if self.ignored == 1 else 'findings are'} ignored."] if self.ignored else []
        return "\n".join([*lines, *silenced, *self.unseen])

    def __repr__(self) -> str:
        return self.text()


def _of(finding: Finding) -> str:
    return f" ({finding.model})" if finding.model else ""


def hidden(findings: Sequence[Any], remarks: Sequence[Any], shown: int = SHOWN) -> str:
    """Return how many findings are not among the first: "2 more problems, 1 more note"; "" if there are none."""
    problems = max(len(findings) - shown, 0)
    notes = len(findings) + len(remarks) - max(shown, len(findings))
    many = ((problems, "problem"), (max(notes, 0), "note"))
    return ", ".join(f"{n} more {noun}{'s' * (n > 1)}" for n, noun in many if n)


# ----------------------------------------------------------------------------------------------- merge similar findings
CODE = "`[^`]*`"
PLACE = r"(?:\bon line \d+|\bat \S+ line \d+|\bline \d+)"
TOKEN = re.compile(f"{CODE}|{PLACE}")
NAMES = re.compile(rf"(?:the \d+ parameters of )?{CODE}(?:(?:, | and ){CODE})*(?: and \d+ more)?")
CHANGE = f"{CODE} (?:in place of|before|after) {CODE}"  # see `code_edits`
CHANGE_ALONE = re.compile(CHANGE)
CHANGES = re.compile(f"{CHANGE}(?: and {CHANGE})*")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|\bNaN\b|∞")
PLURAL = {"has": "have", "gets": "get", "is": "are", "was": "were", "does": "do", "it": "them", "its": "their"}
SINGULAR = re.compile(rf"\b(?:{'|'.join(PLURAL)})\b")
LONG = 40  # code of this many characters is not repeated next to a line


def merge_similar(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ only by their lines or by the names in them. They are sorted by worth."""
    groups: dict[Any, list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.kind, one.remark, one.model, _pattern(one.message), _fix_pattern(one.fix)), []).append(one)
    return [_merge(similar) for similar in groups.values()]


def merge_across_models(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ only by the model and by numbers. They are sorted by worth."""
    groups: dict[Any, list[Finding]] = {}
    for i, one in enumerate(findings):
        patterns = NUMBER.sub("0", _pattern(one.message)), NUMBER.sub("0", _fix_pattern(one.fix))
        key = (one.kind, one.remark, one.line, *patterns) if one.model else i
        groups.setdefault(key, []).append(one)
    return [_merge_models(similar) for similar in groups.values()]


def _pattern(text: str) -> str:
    """Return a text without its names and lines, in the plural."""
    return SINGULAR.sub(lambda word: PLURAL[word[0]], re.sub(PLACE, "line 0", NAMES.sub("``", text)))


def _fix_pattern(fix: str) -> str:
    """Return a fix without its change of the code, if it has one change."""
    return CHANGES.sub("``", fix) if len(CHANGES.findall(fix)) == 1 else fix


def _merge(similar: Sequence[Finding]) -> Finding:
    """Return one finding that names the other places."""
    first, *others = similar
    if not others:
        return first
    places = list(dict.fromkeys(filter(None, (_place_of(first, other) for other in others))))
    more = [f"{len(places) - NAMED + 1} more"] if len(places) > NAMED else []
    shown = places[: NAMED - 1] if more else places
    if len(shown) > 1 and all(re.fullmatch(r"on line \d+", place) for place in shown):
        shown = [f"on lines {shown[0].removeprefix('on line ')}", *(place.removeprefix("on line ") for place in shown[1:])]
    repeated = f"The same {join([*shown, *more])}." if places else f"({len(similar)} times)"
    lines = [line for other in others for line in (other.line, *other.lines) if line is not None]
    changes = list(
        dict.fromkeys(change for one in similar for both in CHANGES.findall(one.fix) for change in CHANGE_ALONE.findall(both))
    )
    fix = first.fix if first.fix == _fix_pattern(first.fix) else CHANGES.sub(lambda _: " and ".join(changes), first.fix)
    return replace(
        first,
        message=f"{first.message} {repeated}",
        fix=fix,
        lines=tuple(dict.fromkeys((*first.lines, *(line for line in lines if line != first.line)))),
        times=sum(one.times for one in similar),
    )


def _place_of(first: Finding, other: Finding) -> str:
    """Return the place of another finding of the same pattern: "of `b` on line 9"."""
    pairs = list(zip(TOKEN.findall(first.message), TOKEN.findall(other.message), strict=False))
    name = next((f"of {b}" for a, b in pairs if a != b and b[0] == "`" == a[0]), "")
    place = next((b if b[:2] in ("on", "at") else f"on {b}" for a, b in pairs if a != b and b[0] != "`" != a[0]), "")
    if not place and other.line not in (None, first.line):
        place = f"on line {other.line}"
    return " ".join(filter(None, ("" if place and len(name) > LONG else name, place)))


def _merge_models(similar: Sequence[Finding]) -> Finding:
    """Return one finding that names all its models."""
    first, *others = similar
    models = list(dict.fromkeys(one.model for one in similar))
    if not others or len(models) == 1:
        return first
    more = [f"{len(models) - NAMED + 1} more"] if len(models) > NAMED else []
    shown = models[: NAMED - 1] if more else models
    whose = "" if all(one.message == first.message for one in others) else f" These numbers are of `{first.model}`."
    return replace(first, message=f"{first.message}{whose}", model=join([*shown, *more]))


def join(texts: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"

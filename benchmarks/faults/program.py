"""Faulty programs as data, a copy of one that can run here, and what the doctor finds in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults import made_up
from benchmarks.healthy.program import ROOT, substitute

HERE = Path(__file__).parent
LIMIT = 300.0  # seconds
UPDATES = 200
OWN_FAILURE = "gradlab failed"  # the start of a warning of gradlab about itself
FAULTS = (
    "output activation",
    "hidden activation",
    "loss function",
    "learning rate",
    "optimizer",
    "data not scaled",
    "input data",
    "labels",
    "dying ReLU",
    "architecture",
    "initialisation",
    "dropout",
    "regularisation",
    "batch normalisation",
    "batch size",
    "too few epochs",
    "shapes",
    "metric",
)
JUDGED = ("answer", "correction", "program")
TOOLS = ("deepmufl", "DeepDiagnosis", "DeepLocalize", "UMLAUT", "Neuralint")  # whose results are published


@dataclass(frozen=True)
class Program:
    """A public program with a fault that is known, and changes that make it run here.

    Attributes
    ----------
    name : str
        Number of the post, or name of the repository.
    file : str
        Path of the program in DIR.
    fault : tuple of str
        Some of `FAULTS`, the main one first.
    cause : str
        The fault in a sentence.
    judged : str
        What the cause was taken from: the answer to the post, the corrected program, or the program itself.
    corrected : str
        Path of the program without the fault, or "".
    expects : tuple of str
        Names in `diagnoses.toml`: what a right diagnosis says.
    why : str
        Why the fault cannot be seen from a run, or "".
    verdict : str
        The verdict when the table was last recorded: one of `table.VERDICTS`.
    missed : str
        Why no Problem names a fault that can be seen, or "".
    found_by : tuple of str
        The tools of `TOOLS` that found the fault, by their published results.
    raises : str
        The end of the error with which Keras 3 refuses the fault, or "".
    substitutions : tuple of str
        "old=>new": sizes, and spellings of today. They neither change the fault nor the number of lines.
    data : mapping of str to str
        The kind of made-up data for each path relative to the program's folder.
    updates : int
        The most updates of weights in one call of `fit`.
    """

    name: str
    file: str
    fault: tuple[str, ...]
    cause: str
    judged: str
    corrected: str = ""
    expects: tuple[str, ...] = ()
    why: str = ""
    verdict: str = ""
    missed: str = ""
    found_by: tuple[str, ...] = ()
    raises: str = ""
    substitutions: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    updates: int = UPDATES

    def copy(self, fetched: Path, file: str, into: Path, seed: int) -> Path:
        """Copy the folder of `file`, apply the substitutions, and make up the data.

        Raises
        ------
        ChangedError
            If the text of a substitution is missing.
        """
        folder = into / "program"
        shutil.copytree((fetched / file).parent, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        script = folder / Path(file).name
        script.write_text(substitute(script.read_text(errors="replace"), self.substitutions))
        for path, kind in self.data.items():
            made_up.write(folder / path, kind, seed)
        return script


def programs(table: Path) -> list[Program]:
    """Read the programs of a table."""
    content = tomllib.loads(table.read_text())
    listed = []
    for name, entry in content["programs"].items():
        values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        for key in ("file", "corrected"):
            if pattern := values.get(key, content.get(key, "")):
                values[key] = f"{content['repository']}/{pattern.replace('{name}', name)}"
        listed.append(Program(name, **values))
    return listed


def diagnoses() -> dict[str, str]:
    """Return a regular expression for each thing that a diagnosis can say."""
    return tomllib.loads((HERE / "diagnoses.toml").read_text())


@dataclass
class Run:
    """The result of running a program.

    Attributes
    ----------
    status : int
        That of the program; -1 if it was ended after `LIMIT` seconds or gave no report.
    backward_calls : int
    problems, notes : sequence of mapping
        The findings, as in the JSON report.
    output : str
        The end of what the program wrote to stderr.
    failures : tuple of str
        Sentences about failures of gradlab itself.
    """

    status: int
    backward_calls: int = 0
    problems: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[Mapping[str, Any]] = ()
    output: str = ""
    failures: tuple[str, ...] = ()


def run(program: Program, script: Path, seed: int) -> Run:
    """Run a copy once under the doctor, in a new process with one thread.

    Each backward call is read, so that the findings do not depend on how fast the machine is.
    """
    chosen = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(str(one) for one in (HERE / "standins", *chosen.split(os.pathsep), ROOT) if one)
    env = {**os.environ, "PYTHONPATH": path, "KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    env |= {
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": f"ignore,always:{OWN_FAILURE}:Warning",
        "FAULTS_SEED": str(seed),
        "FAULTS_UPDATES": str(program.updates),
    }
    command = [sys.executable, "-m", "gradlab", "doctor", "--every", "--format", "json", script.name]
    try:
        ran = subprocess.run(command, cwd=script.parent, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return Run(-1, output=f"did not end in {LIMIT:.0f} seconds")
    return read_report(ran.stdout, ran.stderr)


def read_report(printed: str, output: str) -> Run:
    """Read the JSON report of the doctor, which follows what the program printed, if that went to stdout as well."""
    try:
        report = json.loads(printed[printed.rindex('{\n  "version"') :])
    except ValueError:
        return Run(-1, output=(output or printed)[-3000:])
    found = [[one for one in report["findings"] if one["severity"] == severity] for severity in ("problem", "note")]
    failures = tuple(dict.fromkeys(re.findall(rf"{OWN_FAILURE}.*?\.(?= |$)", output, re.MULTILINE)))
    return Run(report["script_status"], report["backward_calls"], *found, output[-3000:], failures)

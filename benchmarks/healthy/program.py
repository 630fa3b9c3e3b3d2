"""Programs as data, a copy of a program that can run here, and the doctor's findings."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.healthy.made_up import KINDS
from benchmarks.healthy.notebook import FAILED

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LIMIT = 300.0  # seconds
CELL = re.compile(r"── cell \d+")
HEAD = re.compile(r"── gradlab doctor: .* called backward\(\) (once|[\d\s]+ times)")
FINDING = re.compile(r"(?:■|□) (Problem|Note)  (.*)")
KIND = re.compile(r" +\[[\w-]+\]$")  # "[detached]", after a finding of a script
REST = re.compile(r"(\d+) more (problem|note)s?", re.IGNORECASE)


class ChangedError(Exception):
    """A program does not contain the text of a substitution."""


@dataclass(frozen=True)
class Program:
    """A public program, with changes that make it run here.

    Attributes
    ----------
    file : str
        Name of the repository and path in it: "examples/mnist/main.py".
    arguments : tuple of str
        Arguments of the command line. In these and in substitutions "{seed}" is replaced by the seed of the run.
    substitutions : tuple of str
        "old=>new": sizes, and names of packages that are not installed.
    beside : tuple of str
        Further files and folders of the repository that it reads.
    data : mapping of str to str
        The kind of made-up data for each path relative to the program's folder.
    before : tuple of str
        Scripts of the repository to run before, without the doctor.
    images : int
        Number of made-up images in a data set.
    sweeps : tuple of str
        Names, other than backward, of functions that run a backward pass in a notebook.
    finds : tuple of str
        True faults: a part of the sentence of each.
    useless : tuple of str
        Notes that are of no use to a user of the program: a part of the sentence of each.
    """

    file: str
    arguments: tuple[str, ...] = ()
    substitutions: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    images: int = 2048
    sweeps: tuple[str, ...] = ()
    finds: tuple[str, ...] = ()
    useless: tuple[str, ...] = ()

    @property
    def repository(self) -> str:
        return self.file.split("/", 1)[0]

    def with_seed(self, seed: int) -> Program:
        arguments, substitutions = (
            tuple(one.replace("{seed}", str(seed)) for one in some) for some in (self.arguments, self.substitutions)
        )
        return replace(self, arguments=arguments, substitutions=substitutions)

    def copy(self, fetched: Path, into: Path) -> Path:
        """Copy the program with the files that it reads, and apply the substitutions.

        Raises
        ------
        ChangedError
            If the text of a substitution is missing.
        """
        for name in (self.file, *(f"{self.repository}/{one}" for one in (*self.beside, *self.before))):
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (fetched / name).is_dir():
                shutil.copytree(fetched / name, target, dirs_exist_ok=True)
            else:
                shutil.copy(fetched / name, target)
        script = into / self.file
        script.write_text(substitute(script.read_text(), self.substitutions))
        for path, kind in self.data.items():
            (script.parent / path).parent.mkdir(parents=True, exist_ok=True)
            (script.parent / path).write_text(KINDS[kind]())
        return script


def substitute(text: str, substitutions: tuple[str, ...]) -> str:
    """Apply each substitution "old=>new" everywhere in a text, including the JSON of a notebook."""
    for pair in substitutions:
        old, new = pair.split("=>")
        if old not in text:
            old, new = (one.replace('"', '\\"') for one in (old, new))
        if old not in text:
            raise ChangedError(f"it has no {old!r}")
        text = text.replace(old, new)
    return text


@dataclass
class Run:
    """The result of running a program.

    Attributes
    ----------
    seconds : float
        Processor time.
    status : int
    problems, notes : list of str
        The findings that are shown.
    hidden : dict of str to int
        Number of further findings, which are only counted.
    raised : str
        Numbers of the cells of a notebook that raised.
    checked : str
        Number of backward calls of a script, or of cells of a notebook that train; "" if there were none.
    output : str
        The end of its output.
    """

    seconds: float
    status: int
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hidden: dict[str, int] = field(default_factory=lambda: {"Problem": 0, "Note": 0})
    raised: str = ""
    checked: str = ""
    output: str = ""


def run(program: Program, script: Path, *, doctor: bool) -> Run:
    """Run a copy once, in a new process with one thread. `seconds` is its processor time."""
    root = script.parents[program.file.count("/") - 1]
    chosen = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(str(one) for one in (HERE / "standins", *chosen.split(os.pathsep), ROOT, root) if one)
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"}
    env |= {"MADE_UP_IMAGES": str(program.images), "PYTHONWARNINGS": "ignore"}
    if script.suffix == ".ipynb":
        options = ["--magic", "%%grad"] if doctor else []
        command = ["-m", "benchmarks.healthy.notebook", str(script), *options, "--sweeps", "backward", *program.sweeps]
    else:
        command = [*(["-m", "gradlab", "doctor"] if doctor else []), script.name, *program.arguments]
    before = _seconds()
    try:
        ran = subprocess.run(
            [sys.executable, *command], cwd=script.parent, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return Run(_seconds() - before, status=-1)
    seconds = _seconds() - before
    printed = ran.stdout if script.suffix == ".ipynb" else ran.stderr
    done = Run(seconds, ran.returncode, output=f"{ran.stdout[-1000:]}\n{ran.stderr[-2000:]}")
    if script.suffix == ".ipynb":
        done.output = printed.rpartition(FAILED)[2].strip()
        done.raised = ", ".join(re.findall(r"(?:^|; )(\d+) \(", done.output))
    if doctor:
        read_findings(printed, done)
    return done


def read_findings(printed: str, into: Run) -> None:
    """Read the findings from the output of the command, or from the reports of cells."""
    lines = printed.split("\n")
    cells = sum(bool(CELL.match(line)) for line in lines)
    into.checked = f"{cells} cells" if cells > 1 else "1 cell" if cells else ""
    for number, line in enumerate(lines):
        if head := HEAD.match(line):
            into.checked = f"backward {head[1]}"
        if found := FINDING.match(line):
            more = []
            for following in lines[number + 1 :]:
                if not following.startswith("    ") or following.strip().startswith("→"):
                    break
                more.append(following.strip())
            message = KIND.sub("", " ".join([found[2].strip(), *more]))
            (into.problems if found[1] == "Problem" else into.notes).append(message)
        else:
            for count, word in REST.findall(line):
                into.hidden[word.capitalize()] += int(count)


def _seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

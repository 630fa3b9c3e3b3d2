"""A program as data, a copy of it that can be run, and what the doctor says of it."""

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
    """A program is not what its substitutions are for."""


@dataclass(frozen=True)
class Program:
    """A public program, and what is done so that it runs here.

    Attributes
    ----------
    file : str
        The repository's name and the path in it: "examples/mnist/main.py".
    arguments : tuple of str
        For its command line. In these and in substitutions "{seed}" is the seed of the run.
    substitutions : tuple of str
        "old=>new" each: sizes, and names of what is not there.
    beside : tuple of str
        Further files and folders of the repository that it reads.
    data : mapping of str to str
        Files of made-up data, by their paths from the program's folder, and of which kind each is.
    before : tuple of str
        Scripts of the repository that are run before, without the doctor.
    images : int
        How many made-up images a data set has.
    sweeps : tuple of str
        What calls backward in a notebook, but for backward.
    finds : tuple of str
        True faults: a piece of each one's sentence.
    useless : tuple of str
        Notes that tell a user of the program nothing: a piece of each one's sentence.
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

    def seeded(self, seed: int) -> Program:
        arguments, substitutions = (
            tuple(one.replace("{seed}", str(seed)) for one in some) for some in (self.arguments, self.substitutions)
        )
        return replace(self, arguments=arguments, substitutions=substitutions)

    def copy(self, fetched: Path, into: Path) -> Path:
        """Copy it, with what it reads, and put in what is substituted.

        Raises
        ------
        ChangedError
            If it lacks something that is to be substituted.
        """
        for name in (self.file, *(f"{self.repository}/{one}" for one in (*self.beside, *self.before))):
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (fetched / name).is_dir():
                shutil.copytree(fetched / name, target, dirs_exist_ok=True)
            else:
                shutil.copy(fetched / name, target)
        script = into / self.file
        script.write_text(substituted(script.read_text(), self.substitutions))
        for path, kind in self.data.items():
            (script.parent / path).parent.mkdir(parents=True, exist_ok=True)
            (script.parent / path).write_text(KINDS[kind]())
        return script


def substituted(text: str, substitutions: tuple[str, ...]) -> str:
    """A text with "old=>new" done, each wherever it is; in a notebook's JSON, too."""
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
    """How a program ended.

    Attributes
    ----------
    seconds : float
        Processor time.
    status : int
    problems, notes : list of str
        The findings that are shown.
    hidden : dict of str to int
        How many further ones are only counted.
    raised : str
        The cells of a notebook that raised, by number.
    looked_at : str
        Of a script how often it called backward, of a notebook how many cells train; "" if nothing did.
    output : str
        What it printed last.
    """

    seconds: float
    status: int
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hidden: dict[str, int] = field(default_factory=lambda: {"Problem": 0, "Note": 0})
    raised: str = ""
    looked_at: str = ""
    output: str = ""


def run(program: Program, script: Path, *, doctor: bool) -> Run:
    """Run a copy once, in a process of its own with one thread; `seconds` are of its processor time."""
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
    said = ran.stdout if script.suffix == ".ipynb" else ran.stderr
    done = Run(seconds, ran.returncode, output=f"{ran.stdout[-1000:]}\n{ran.stderr[-2000:]}")
    if script.suffix == ".ipynb":
        done.output = said.rpartition(FAILED)[2].strip()
        done.raised = ", ".join(re.findall(r"(?:^|; )(\d+) \(", done.output))
    if doctor:
        read_findings(said, done)
    return done


def read_findings(said: str, into: Run) -> None:
    """Read the findings in what the command or a cell's report prints."""
    lines = said.split("\n")
    cells = sum(bool(CELL.match(line)) for line in lines)
    into.looked_at = f"{cells} cells" if cells > 1 else "1 cell" if cells else ""
    for number, line in enumerate(lines):
        if head := HEAD.match(line):
            into.looked_at = f"backward {head[1]}"
        if found := FINDING.match(line):
            more = []
            for following in lines[number + 1 :]:
                if not following.startswith("    ") or following.strip().startswith("→"):
                    break
                more.append(following.strip())
            said = KIND.sub("", " ".join([found[2].strip(), *more]))
            (into.problems if found[1] == "Problem" else into.notes).append(said)
        else:
            for count, word in REST.findall(line):
                into.hidden[word.capitalize()] += int(count)


def _seconds() -> float:
    """The processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

"""Test `python -m benchmarks.healthy`: detection of training cells, substitutions, and parsing of findings."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks.healthy.notebook import cells_of
from benchmarks.healthy.program import ChangedError, Program, Run, read_findings, substitute
from benchmarks.healthy.programs import PROGRAMS, REPOSITORIES
from benchmarks.healthy.table import Row, heading, line, totals
from benchmarks.healthy.training_cells import training_cells, without_shell
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.markup import count
from gradlab.explore.report import findings_view
from gradlab.explore.script import output
from gradlab.explore.script.program import Program as Script
from gradlab.explore.script.running import ScriptRun

CELLS = {
    "it calls backward": (["loss.backward()"], [0]),
    "it calls a function that does": (["def train():\n    loss.backward()", "x = 1", "train()"], [2]),
    "in one cell": (["def train():\n    loss.backward()\ntrain()"], [0]),
    "by a function between": (["def step():\n    loss.backward()", "def train():\n    step()", "train()"], [2]),
    "that is defined later in the cell": (["def train():\n    step()\ndef step():\n    loss.backward()\ntrain()"], [0]),
    "by a method": (["class T:\n    def fit(self):\n        loss.backward()", "T().fit()"], [1]),
    "a method of that name is another": (["def train(net):\n    loss.backward()", "net.train()"], []),
    "a function of that name is another": (["class T:\n    def train(self):\n        loss.backward()", "train()"], []),
    "a function that is passed as an argument": (["def closure():\n    loss.backward()", "optimizer.step(closure)"], [1]),
    "it was defined anew": (["def train():\n    loss.backward()", "def train():\n    pass", "train()"], []),
    "below a magic of cells": (["%%time\nloss.backward()"], [0]),
    "with a line for a shell": (["!ls\nloss.backward()"], [0]),
    "no Python": (["  x = = 1", "loss.backward()"], [1]),
    "in a loop of a loop": (["for _ in range(3):\n    for x in data:\n        loss.backward()"], [0]),
    "only in a comment": (["# loss.backward()\nprint('loss.backward()')"], []),
}


@pytest.mark.parametrize(("sources", "expected"), CELLS.values(), ids=CELLS)
def test_training_cells(sources, expected):
    assert training_cells(sources) == expected


def test_other_names_of_training_methods():
    cells = ["def train(trainer):\n    trainer.fit(model)", "train(pl.Trainer())", "trainer.test(model)"]
    assert training_cells(cells) == [] and training_cells(cells, ["backward", "fit"]) == [1]


def test_shell_commands_are_removed_from_cells():
    kept = "%%time\nx = 1 if y else 2\n%timeit f(x)\n"
    assert without_shell(f"!pip install it\n%matplotlib inline\n  %load_ext tensorboard\n?f\n{kept}") == kept


def test_the_cells_of_a_notebook(tmp_path):
    cells = [{"cell_type": "markdown", "source": ["loss.backward()"]}, {"cell_type": "code", "source": ["x = 1\n", "!ls"]}]
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}))
    assert cells_of(tmp_path / "one.ipynb") == ["", "x = 1\n"]


def test_substitutions_must_match():
    assert substitute("lr = 1\nsteps = 200", ("200=>20", "lr = 1=>lr = 2")) == "lr = 2\nsteps = 20"
    assert json.loads(substitute(json.dumps('open("a")'), ('"a"=>"b"',))) == 'open("b")'
    with pytest.raises(ChangedError, match="300"):
        substitute("steps = 200", ("300=>20",))


def test_the_seed_is_inserted():
    program = Program("it/train.py", ("--seed", "{seed}"), ("import torch=>seed({seed})", "{x}=>{y}")).with_seed(3)
    assert program.arguments == ("--seed", "3") and program.substitutions == ("import torch=>seed(3)", "{x}=>{y}")


def test_a_copy_has_data_and_substitutions_and_the_original_is_unchanged(tmp_path):
    fetched = tmp_path / "fetched"
    (fetched / "repository/models/parts").mkdir(parents=True)
    (fetched / "repository/models/train.py").write_text("steps = 200")
    (fetched / "repository/models/parts/net.py").write_text("")
    program = Program(
        "repository/models/train.py",
        substitutions=("200=>20",),
        beside=("models/parts",),
        data={"data/names.txt": "names"},
    )
    script = program.copy(fetched, tmp_path / "copy")
    assert script == tmp_path / "copy/repository/models/train.py" and script.read_text() == "steps = 20"
    assert (script.parent / "parts/net.py").exists() and (script.parent / "data/names.txt").read_text()
    assert (fetched / "repository/models/train.py").read_text() == "steps = 200"


PROBLEM = Finding("one", "the first cause in `net(x)` on line 3, with a long text: " + "so many words " * 9 + "that it wraps.", 3)
NOTE = Finding("two", "the second, on line 4.", 4, fix="Do it.", remark=True)
FURTHER = tuple(Finding(f"kind {k}", f"number {k}.", 5, remark=True) for k in range(7))


def test_findings_are_read_from_the_output_of_the_command():
    script = Script("train.py", "/train.py", "", (), "/")
    script_run = ScriptRun(script, 0, Diagnosis.of([PROBLEM, NOTE, *FURTHER]), None, backward_calls=3000)
    run = Run(0.0, 0)
    read_findings(output.text(script_run), run)
    assert (run.checked, run.problems, run.notes[0]) == (f"backward {count(3000, 'time')}", [PROBLEM.message], NOTE.message)
    assert len(run.notes) + run.hidden["Note"] == 8 and run.hidden["Problem"] == 0


def test_findings_are_read_from_the_output_of_cells():
    cells = [findings_view.text([PROBLEM], [NOTE, *FURTHER]), findings_view.text([], [])]
    run = Run(0.0, 0)
    read_findings("".join(f"── cell {k}\na report\n{report}\n" for k, report in enumerate(cells)), run)
    assert run.checked == "2 cells" and [PROBLEM.message.replace("`", "")] == [
        message.replace("`", "") for message in run.problems
    ]
    assert run.notes[0].startswith(NOTE.message) and len(run.notes) + run.hidden["Note"] == 8


def test_the_table():
    program = Program("it/train.py", finds=("softmax twice",), useless=("cancel",))
    run = Run(
        3.0, 1, ["it takes softmax twice", "another"], ["they cancel", "a bias"], {"Problem": 0, "Note": 1}, checked="1 cell"
    )
    rows = [Row(program, run, 1.5, 2.0), Row(program, Run(1.0, 0), 6.0, 1.0), Row(program, trouble="has changed")]
    assert line(rows[0]) == "| it/train.py | 1 cell | 2 | 1 | 3 | 1 | 1.50 | 2.0 s |"
    assert line(rows[2]) == "| it/train.py | has changed |  |  |  |  |  |  |"
    assert {line(row).count("|") for row in rows} | {first.count("|") for first in heading().split("\n")} == {9}
    assert "\n    Note: a bias\n    1 more Notes" in line(rows[0], findings=True)
    assert totals(rows) == (
        "2 programs ran: 1 false Problems, 1 true faults, 3 Notes, of which 1 are useless (in 1 runs). "
        "Time ratio: geometric mean 3.00, median 3.75, maximum 6.00."
    )
    assert totals(rows[2:]) == "No program ran."


def test_each_program_has_a_repository_and_is_listed_once():
    assert {program.repository for program in PROGRAMS} == set(REPOSITORIES)
    assert len({program.file for program in PROGRAMS}) == len(PROGRAMS) >= 30

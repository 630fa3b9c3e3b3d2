"""Test `python -m benchmarks.faults`: its tables, made-up files, reports, verdicts, and stand-ins for old Keras."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import random
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks.faults import made_up
from benchmarks.faults.__main__ import TABLES, row_of
from benchmarks.faults.program import FAULTS, HERE, JUDGED, TOOLS, Program, Run, diagnoses, programs, read_report
from benchmarks.faults.table import FAILED, OTHER, REFUSED, RIGHT, SILENT, VERDICTS, Row, by_class, heading, line, totals, verdict
from benchmarks.healthy.program import ChangedError

ALL = [(table, program) for table in TABLES for program in programs(HERE / f"{table}.toml")]
NAMES = [f"{table}/{program.name}" for table, program in ALL]
PATTERNS = {"softmax of one unit": "softmax.* one (unit|output)", "scale": "scale"}
PROGRAM = Program("7", "it/bug.py", ("output activation",), "A softmax of one unit.", "program", expects=("softmax of one unit",))
SOFTMAX = {
    "kind": "cancelled",
    "severity": "problem",
    "line": 4,
    "message": "A Softmax of\none unit is 1.",
    "fix": "Use a sigmoid.",
}
DEAD = {"kind": "dead", "severity": "problem", "line": 2, "message": "No unit is active.", "fix": ""}
NOTE = {"kind": "idle", "severity": "note", "line": 2, "message": "It is idle.", "fix": ""}


def test_the_tables_have_the_programs_of_the_papers():
    assert [sum(table == one for table, _ in ALL) for one in TABLES] == [109, 31] and len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(("table", "program"), ALL, ids=NAMES)
def test_each_program_has_a_class_a_cause_and_a_diagnosis(table, program):
    assert program.fault and set(program.fault) <= set(FAULTS) and program.judged in JUDGED
    assert program.cause.endswith(".") and 20 < len(program.cause) < 200
    assert set(program.expects) <= set(diagnoses()) and bool(program.expects or program.why)
    assert set(program.data.values()) <= set(made_up.KINDS) and program.updates > 0
    assert not program.raises or re.compile(program.raises)
    assert bool(program.corrected) is (table == "deeplocalize")
    assert program.verdict in VERDICTS and set(program.found_by) <= set(TOOLS)
    assert bool(program.missed) is (program.verdict != RIGHT and not program.why)
    for pair in program.substitutions:
        old, new = pair.split("=>")
        assert old.count("\n") == new.count("\n") == 0 and old != new


def test_the_diagnoses_are_regular_expressions_that_are_used():
    used = {name for _, program in ALL for name in program.expects}
    assert used == set(diagnoses()) and all(re.compile(one) for one in diagnoses().values())


@pytest.mark.parametrize(
    ("run", "raises", "expected"),
    [
        (Run(0, 5, [DEAD, SOFTMAX]), "", RIGHT),
        (Run(0, 5, [DEAD]), "", OTHER),
        (Run(0, 5, notes=[SOFTMAX]), "", SILENT),
        (Run(1, 5, output="an error after the training"), "", SILENT),
        (Run(1, output="ValueError: shapes"), "", FAILED),
        (Run(1, output="ValueError: shapes"), "shape", REFUSED),
        (Run(1, problems=[SOFTMAX], output="ValueError: shapes"), "shape", RIGHT),
        (Run(1, output="ImportError: x"), "shape", FAILED),
        (Run(-1, output="did not end"), "", FAILED),
    ],
)
def test_verdicts(run, raises, expected):
    assert verdict(Row(replace(PROGRAM, raises=raises), run), PATTERNS) == expected


def test_reports_are_read_after_what_the_program_printed():
    report = {"version": 1, "script_status": 1, "backward_calls": 3, "findings": [DEAD, NOTE]}
    run = read_report("{1: 2}\n" + json.dumps(report, indent=2), "an error")
    assert run == Run(1, 3, [DEAD], [NOTE], "an error")
    failure = "gradlab failed while it recorded the program: KeyError: 'x' in f (a.py, line 3)."
    assert read_report(json.dumps(report, indent=2), f"a.py:1: FaultWarning: {failure} The program continues.").failures == (
        failure,
    )
    assert read_report("no report", "").status == -1


def test_the_page_has_the_recorded_table():
    page = (Path(__file__).parent.parent / "docs/explanation/published-faults.md").read_text().replace("<wbr>", "")
    for table in TABLES:
        assert by_class([(program, program.verdict) for one, program in ALL if one == table]) in page, table


def test_the_table():
    hidden = replace(PROGRAM, name="8", why="its run is like that of a right one", expects=(), verdict=SILENT)
    seen = replace(PROGRAM, verdict=SILENT, found_by=("UMLAUT",))
    rows = [Row(seen, Run(0, 5, [SOFTMAX]), Run(0, 4)), Row(hidden, Run(0, 2)), Row(seen, Run(-1), trouble="isn't there")]
    assert line(rows[0], PATTERNS) == "| 7 | output activation | 5 | cancelled | right | no Problem |"
    assert line(rows[1], PATTERNS) == "| 8 | output activation | 2 | – | silent (not visible) |  |"
    assert "A softmax of one unit." in line(rows[0], PATTERNS, findings=True)
    assert "isn't there" in line(rows[2], PATTERNS, findings=True)
    assert {line(row, PATTERNS).count("|") for row in rows} | {one.count("|") for one in heading().split("\n")} == {7}
    assert totals(rows, PATTERNS).split("\n") == [
        "3 programs: 1 right, 1 silent, 1 did not run.",
        "Changed verdicts: 7 was silent, is right; 7 was silent, is did not run.",
        "0 of 1 corrected programs have a Problem.",
        "",
        "| fault | programs | right | other | no Problem | not visible | UMLAUT |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| output activation | 3 | 1 | 0 | 1 | 1 | 2 |",
        "| all | 3 | 1 | 0 | 1 | 1 | 2 |",
    ]
    assert totals([], PATTERNS) == "No program."


@pytest.mark.parametrize("kind", made_up.KINDS)
def test_made_up_files_are_tables_that_depend_on_the_seed(kind, tmp_path):
    rows = list(csv.reader(io.StringIO(made_up.KINDS[kind](random.Random(0)))))
    assert len({len(row) for row in rows}) == 1 and len(rows) > 500
    for seed, name in enumerate(("a.csv", "b.csv.zip")):
        made_up.write(tmp_path / "data" / name, kind, seed)
    with zipfile.ZipFile(tmp_path / "data/b.csv.zip") as archive:
        assert archive.read("b.csv") != (tmp_path / "data/a.csv").read_bytes()


def test_a_copy_has_the_files_beside_it_the_substitutions_and_made_up_data(tmp_path):
    folder = tmp_path / "fetched/it"
    folder.mkdir(parents=True)
    (folder / "bug.py").write_text("epochs = 200\n")
    (folder / "data.csv").write_text("1,2")
    program = replace(PROGRAM, substitutions=("200=>2",), data={"more/days.csv": "weather"})
    script = program.copy(tmp_path / "fetched", program.file, tmp_path / "copy", 0)
    assert script.read_text() == "epochs = 2\n" and (script.parent / "data.csv").exists()
    assert (script.parent / "more/days.csv").read_text().startswith("MinTemp")
    with pytest.raises(ChangedError, match="300"):
        replace(PROGRAM, substitutions=("300=>2",)).copy(tmp_path / "fetched", program.file, tmp_path / "other", 0)


def test_a_program_that_is_not_there(tmp_path):
    assert "is not in" in row_of(PROGRAM, tmp_path, 0).trouble


NEEDS_KERAS = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
OLD_PROGRAM = """
from keras.models import Sequential
from keras.layers.core import Dense, Activation
from keras.optimizers import SGD
from keras.datasets import mnist
from keras.utils import np_utils
import tensorflow as tf
import numpy as np
(x, y), (held_x, held_y) = mnist.load_data()
assert x.dtype == np.uint8 and x.shape[1:] == (28, 28) and 250 < x.max() <= 255 and set(y) == set(range(10))
x = x.reshape(len(x), 784)
model = Sequential()
model.add(Dense(output_dim=16, input_dim=784, init="uniform"))
model.add(Activation("relu"))
model.add(Dense(10, activation=tf.nn.softmax))
model.compile(loss="categorical_crossentropy", optimizer=SGD(lr=0.01, decay=1e-6), metrics=["accuracy"])
made = model.fit(x / 255, np_utils.to_categorical(y), nb_epoch=500, batch_size=50, validation_split=0.1, verbose=1)
assert len(made.history["val_loss"]) == len(made.history["loss"]) == 500
assert model.predict_classes(held_x.reshape(-1, 784)[:20] / 255).shape == (20,)
"""


@NEEDS_KERAS
@pytest.mark.frameworks
@pytest.mark.torch
@pytest.mark.slow
def test_an_old_program_runs_on_keras_3(tmp_path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it/bug.py").write_text(OLD_PROGRAM)
    row = row_of(replace(PROGRAM, updates=30), tmp_path, 1)
    assert row.run.status == 0, row.run.output
    assert row.run.backward_calls == 30


@NEEDS_KERAS
@pytest.mark.frameworks
@pytest.mark.torch
@pytest.mark.slow
def test_other_old_names(tmp_path):
    (tmp_path / "names.py").write_text(
        "from tensorflow.keras.layers import Conv2D, CuDNNLSTM\n"
        "from tensorflow.python.keras.models import Sequential\n"
        "from tensorflow.python.training.gradient_descent import GradientDescentOptimizer\n"
        "from keras.layers import Convolution2D, LSTM\n"
        "from keras.preprocessing.text import Tokenizer\n"
        "from keras.preprocessing.sequence import pad_sequences\n"
        "from keras.preprocessing.image import ImageDataGenerator\n"
        "from keras.initializers.initializers_v1 import RandomNormal\n"
        "import keras.backend as K\n"
        "layer = Convolution2D(4, nb_row=3, nb_col=5, border_mode='same', input_shape=[8, 8, 1])\n"
        "assert layer.kernel_size == (3, 5) and layer.padding == 'same'\n"
        "model = Sequential([LSTM(output_dim=3, batch_input_shape=(2, 4, 1), stateful=True)])\n"
        "assert model.input_shape == (2, 4, 1)\n"
        "assert float(GradientDescentOptimizer(lr=0.5).lr) == 0.5\n"
    )
    command = [sys.executable, "names.py"]
    env = {"PYTHONPATH": str(HERE / "standins"), "KERAS_BACKEND": "torch", "PATH": "", "HOME": str(tmp_path)}
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)

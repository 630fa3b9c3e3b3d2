"""Test `python -m benchmarks`: the names in its table, the table itself, and the comparison with a saved run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks.measuring import BY_HAND, IMPORT, Measurement
from benchmarks.saved_runs import comparison, load, save
from benchmarks.speed_page import ROWS, names_of_table, round_ratio, table
from benchmarks.workloads import WORKLOADS

ROOT = Path(__file__).parent.parent
RUN = {name: Measurement(0.002, 0.004, 0.5) for name in names_of_table()}


def test_the_table_has_known_workloads():
    assert set(names_of_table()) - {BY_HAND, IMPORT} <= set(WORKLOADS)


def test_the_table_has_a_row_for_each_workload():
    lines = table("numpy", 5, RUN | {IMPORT: Measurement(0.07, 0.05, 1.4), BY_HAND: Measurement(3, 2, 1.5)}).split("\n")
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][2:]
    assert [name for name, _ in rows] == list(ROWS)
    assert rows[0][1] == "0.50 / 0.50 / 0.50 / 0.50"
    assert "takes 1.5 times as long" in lines[-1]
    assert "takes 70 ms in addition to the 50 ms of NumPy" in lines[-1]


@pytest.mark.parametrize(("ratio", "text"), [(0.034, "0.03"), (0.474, "0.45"), (0.976, "1.0"), (1.26, "1.3"), (0.97, "0.95")])
def test_ratios_have_two_digits(ratio, text):
    assert round_ratio(ratio) == text


def test_the_page_has_the_rows_of_the_table():
    page = (ROOT / "docs" / "guide" / "speed.md").read_text()
    assert [name for name in ROWS if f"| {name} |" not in page] == []


def test_a_later_run_is_compared_with_a_saved_one(tmp_path):
    path = str(tmp_path / "run.json")
    save(path, {"mlp": Measurement(2.0, 4.0, 0.5), "gone": Measurement(1.0, 1.0, 1.0)})
    lines = comparison(load(path), {"mlp": Measurement(3.0, 4.0, 0.75), "new": Measurement(1.0, 1.0, 1.0)}).split("\n")
    assert lines[1].split() == ["mlp", "0.50", "0.75", "1.50", "1.50"]
    assert lines[2] == "not in the saved run: new"
    assert len(lines) == 3


@pytest.mark.parametrize("text", ["", "[1]", '{"mlp": {"ours": 1}}', '{"mlp": 3}'])
def test_a_file_that_is_no_saved_run_is_refused(tmp_path, text):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(SystemExit, match="is not a run saved with --save"):
        load(str(path))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="is not a run saved with --save"):
        load(str(tmp_path / "none.json"))


@pytest.mark.e2e
def test_an_unknown_workload_is_refused():
    ran = subprocess.run([sys.executable, "-m", "benchmarks", "nothing"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.returncode == 2
    assert "no workload matches nothing" in ran.stderr
    assert "scalar/2000" in ran.stderr

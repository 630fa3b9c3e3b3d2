"""`python -m benchmarks.faults DIR [PATTERN …] [--seed N] [--findings]`: the doctor on faulty public programs.

DIR contains the repositories of the tables `deepmufl.toml` and `deeplocalize.toml`, each in a folder with its name. They are not
part of this repository: programs for Keras from Stack Overflow and GitHub, whose faults are known. Each runs under
`gradlab doctor --format json` in its own process, on Keras 3 with PyTorch; `standins` lets it accept programs for older versions
of Keras and bounds the training. Files and data sets are made up (`made_up.py`, `standins/old_keras/data_sets.py`).

A row has the class of the fault, the kinds of Problems that were found, and the verdict: "right" if a Problem says what the table
expects. `corrected` are the Problems in the corrected program, where there is one. `--findings` prints each finding. At the end
are the verdicts that differ from the recorded ones, and the table by class of fault: docs/explanation/published-faults.md has it.

Besides torch this needs keras 3, scikit-learn, pandas, matplotlib, seaborn and Pillow.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
from pathlib import Path

from benchmarks.faults.program import HERE, Program, Run, diagnoses, programs, run
from benchmarks.faults.table import Row, heading, line, totals
from benchmarks.healthy.program import ChangedError

TABLES = ("deepmufl", "deeplocalize")


def run_copy(program: Program, file: str, fetched: Path, seed: int) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        return run(program, program.copy(fetched, file, Path(folder), seed), seed)


def row_of(program: Program, fetched: Path, seed: int) -> Row:
    if not (fetched / program.file).exists():
        return Row(program, Run(-1), trouble=f"{program.file} is not in {fetched}")
    try:
        ran = run_copy(program, program.file, fetched, seed)
        twin = run_copy(program, program.corrected, fetched, seed) if program.corrected else None
    except ChangedError as error:
        return Row(program, Run(-1), trouble=f"has changed: {error}")
    return Row(program, ran, twin)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("fetched", type=Path, metavar="DIR")
    parser.add_argument(
        "patterns", nargs="*", default=["*"], metavar="PATTERN", help="which programs, for instance deepmufl/3* (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the programs (default: 1)")
    parser.add_argument("--findings", action="store_true", help="print each finding, and the errors of programs")
    options = parser.parse_args()
    patterns = diagnoses()
    print(heading())
    rows = []
    for table in TABLES:
        for program in programs(HERE / f"{table}.toml"):
            if any(fnmatch.fnmatch(f"{table}/{program.name}", pattern) for pattern in options.patterns):
                rows.append(row_of(program, options.fetched.absolute(), options.seed))
                print(line(rows[-1], patterns, findings=options.findings), flush=True)
    print(totals(rows, patterns))
    return int(any(row.trouble for row in rows))


if __name__ == "__main__":
    sys.exit(main())

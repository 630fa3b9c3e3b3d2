"""`python -m benchmarks.healthy DIR [PATTERN …] [--rounds N] [--seed N]`: the doctor on healthy public programs.

DIR contains the repositories listed in `programs.py`, each in a folder with its name. They are not part of this repository.
Scripts run under `gradlab doctor`, notebooks with `%%grad` above each cell that trains. Each program runs with and without the
doctor, alternately, in its own process. Times are processor times of whole processes, including imports. `--findings` prints the
findings below each program. The exit status is 1 if a program did not run, or if a Problem was found that is not a known true
fault. To measure another version of gradlab, set PYTHONPATH.

Besides torch this needs gymnasium 0.29, tyro, scikit-learn, pandas, matplotlib, seaborn and tqdm. torchvision, PyTorch Lightning,
TensorBoard and all data are replaced by stand-ins (`standins`, `made_up.py`).
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.healthy.program import ChangedError, Program, Run, run
from benchmarks.healthy.programs import PROGRAMS, REPOSITORIES
from benchmarks.healthy.table import Row, heading, line, totals


def rounds_of(program: Program, fetched: Path, rounds: int) -> tuple[list[Run], list[Run]]:
    """Run a program with and without the doctor. The order alternates between rounds."""
    runs: dict[bool, list[Run]] = {True: [], False: []}
    for number in range(rounds):
        for doctor in (True, False) if number % 2 else (False, True):
            with tempfile.TemporaryDirectory() as folder:
                script = program.copy(fetched, Path(folder))
                for name in program.before:
                    before = Program(f"{program.repository}/{name}")
                    run(before, Path(folder) / before.file, doctor=False)
                runs[doctor].append(run(program, script, doctor=doctor))
    return runs[True], runs[False]


def row_of(program: Program, fetched: Path, rounds: int) -> Row:
    if not (fetched / program.file).exists():
        return Row(program, trouble=f"not found in {fetched}: fetch {REPOSITORIES[program.repository]}")
    try:
        with_doctor, bare = rounds_of(program, fetched, rounds)
    except ChangedError as error:
        return Row(program, trouble=f"has changed: {error}")
    first, alone = with_doctor[0], bare[0]
    trouble = ""
    if alone.status or first.status not in (0, int(bool(first.problems))):
        trouble = f"ended with {alone.status}, with the doctor with {first.status}"
    elif first.raised != alone.raised:
        trouble = f"cells that raised: {alone.raised or 'none'}, with %%grad: {first.raised or 'none'}"
    ratio = median(one.seconds / other.seconds for one, other in zip(with_doctor, bare, strict=True))
    return Row(program, first, ratio, median(one.seconds for one in bare), trouble, alone.output or first.output)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.healthy", description=__doc__)
    parser.add_argument("fetched", type=Path, metavar="DIR")
    parser.add_argument(
        "patterns", nargs="*", default=["*"], metavar="PATTERN", help="which programs, for instance */dqn.py (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="seed of the programs (default: 1)")
    parser.add_argument("--findings", action="store_true", help="print each finding, and the output of programs that failed")
    options = parser.parse_args()
    print(heading())
    rows = []
    for program in PROGRAMS:
        if any(fnmatch.fnmatch(program.file, pattern) for pattern in options.patterns):
            rows.append(row_of(program.with_seed(options.seed), options.fetched.absolute(), options.rounds))
            print(line(rows[-1], findings=options.findings), flush=True)
    print(totals(rows))
    return int(any(row.trouble or row.false_problems for row in rows))


if __name__ == "__main__":
    sys.exit(main())

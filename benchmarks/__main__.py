"""`python -m benchmarks [PATTERN …] [--rounds N] [--peer NAME] [--save FILE] [--compare FILE]`: gradlab's time over torch's.

Without patterns, measure and print the table of docs/guide/speed.md, in Markdown. With patterns, as `chain/*`, print the times of
these workloads (all: `*`). A ratio below 1 means that gradlab is faster. `--save` writes the measurements to a file, and
`--compare` prints how they differ from those in such a file.
"""

from __future__ import annotations

import argparse
import fnmatch

from benchmarks.measuring import BY_HAND, IMPORT, Measurement, Measuring
from benchmarks.saved_runs import comparison, load, save
from benchmarks.speed_page import names_of_table, table
from benchmarks.workloads import WORKLOADS


def line(name: str, measured: Measurement) -> str:
    ours, peer, ratio = measured
    return f"{name:32s} {ours * 1e6:9.1f} µs {peer * 1e6:9.1f} µs {ratio:7.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="which workloads, as chain/*; by default those of the table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", default="torch", help="the library to compare with")
    parser.add_argument("--save", metavar="FILE", help="write the measurements to a JSON file")
    parser.add_argument("--compare", metavar="FILE", help="print the changes since the run that was saved in FILE")
    options = parser.parse_args()
    before = load(options.compare) if options.compare else {}
    names = [*WORKLOADS, BY_HAND, IMPORT]
    chosen = [name for name in names if any(fnmatch.fnmatch(name, one) for one in options.patterns)]
    if options.patterns and not chosen:
        parser.error(f"no workload matches {' '.join(options.patterns)}. There are: {', '.join(names)}")
    measuring, measured = Measuring(options.peer, options.rounds), dict[str, Measurement]()
    if chosen:
        print(f"{'workload':32s} {'gradlab':>12s} {options.peer:>12s} {'ratio':>7s}")
    for name in chosen or names_of_table():
        measured[name] = measuring.measure(name)
        if chosen:
            print(line(name, measured[name]), flush=True)
    if not chosen:
        print(table(options.peer, options.rounds, measured))
    if options.save:
        save(options.save, measured)
    if options.compare:
        print(comparison(before, measured))


main()

"""Whatever the package prints as code to type runs as printed, and none of it is left out here.

The tables are `advised_operations`, `advised_objects` and `advised_lines`: a program that goes wrong, what is advised, and the
programs with that advice taken. (`test_advice_about_graphs` takes advice that is worded from a user's own lines.) All advice is
found in the source of the package: what no program here is told stands in `not_typed`, with the reason.
"""

from __future__ import annotations

import re
import textwrap

import advised_lines
import advised_objects
import advised_operations
import pytest
import test_advice_about_graphs as graphs
from advising import Row, advises, holds, in_one_line, named, pieces, rows_of, run, texts
from not_typed import NOT_TYPED

TABLES = advised_operations, advised_objects, advised_lines
ROWS = [(table, row) for table in TABLES for row in rows_of(table.ROWS)]


def told(table, program: str, name: str) -> str:
    return run(program, table.SETUP, name, lines=table is advised_lines)


@pytest.mark.parametrize("name", ["gl", "torch", "mine"])
@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{k} {row.program[:40]}" for k, (_, row) in enumerate(ROWS)])
def test_the_advice_as_printed_runs(table, row: Row, name: str) -> None:
    if "gradlab." in row.advice:  # torch's own sentence, which is left whole and names the module
        name = "gradlab"
    advice = named(row.advice, name)
    assert advice in told(table, row.program, name)
    taken = [named(program, name) for program in row.taken]
    written, gone = pieces(advice)
    for code in written:
        assert any(holds(program, code) for program in taken), f"{code} is in no program that takes the advice"
    for code in gone:
        assert holds(named(row.program, name), code) and not all(holds(program, code) for program in taken), code
    assert taken
    for program in row.taken:
        said = told(table, program, name)
        assert not re.match(r"\w+(Error|Exception): ", said) and advice not in said, (program, said)


@pytest.mark.slow
def test_no_advice_is_left_out() -> None:
    said = [told(table, row.program, "gradlab") for table, row in ROWS]
    for program, (source, _, _) in graphs.PROGRAMS.items():
        said += [graphs.run(textwrap.dedent(source).lstrip("\n"), "gradlab", f"complete {program}.py")[2]]
    said += [graphs.run(graphs.stepping(update), "gradlab", f"complete {update}.py")[2] for update in graphs.UPDATES]
    said = [in_one_line(one) for one in said]
    elsewhere = "explore/doctor/", "homework/replies/"  # tests/doctor and tests/notebooks have these
    pieces_of_docstrings = "nn/functional/descriptions.py", "nn/modules/shared.py", "core/operator.py"
    of_errors = [
        text
        for text in texts()
        if not text.where.startswith(elsewhere + pieces_of_docstrings) and "\nParameters\n----------\n" not in text.template
    ]
    untold = [text for text in of_errors if advises(text) and not any(map(text.told_in, said))]
    listed = {text: [key for key in NOT_TYPED if text.template.startswith(key)] for text in untold}
    assert not (left := [text for text, keys in listed.items() if not keys]), "no program of the tables is told this"
    assert not left and set(NOT_TYPED) == {key for keys in listed.values() for key in keys}, "listed, but told or gone"

"""Check that advice with code runs as printed, and that all such advice in the package is checked.

The tables are `advised_operations`, `advised_objects` and `advised_lines`: a program with an error, the advice, and the programs
corrected as advised. (`test_advice_about_graphs` follows advice that quotes the user's lines.) Advice that is found in the source
of the package but in no table must be listed in `not_typed`, with a reason.
"""

from __future__ import annotations

import re
import textwrap

import advised_lines
import advised_objects
import advised_operations
import pytest
import test_advice_about_graphs as graphs
from advising import Row, advises, contains, in_one_line, pieces, rows_of, run, texts, with_name
from not_typed import NOT_TYPED

TABLES = advised_operations, advised_objects, advised_lines
ROWS = [(table, row) for table in TABLES for row in rows_of(table.ROWS)]


def message_of(table, program: str, name: str) -> str:
    return run(program, table.SETUP, name, lines=table is advised_lines)


@pytest.mark.parametrize("name", ["gl", "torch", "mine"])
@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{k} {row.program[:40]}" for k, (_, row) in enumerate(ROWS)])
def test_the_advice_as_printed_runs(table, row: Row, name: str) -> None:
    if "gradlab." in row.advice:  # torch's sentence, which names the module
        name = "gradlab"
    advice = with_name(row.advice, name)
    assert advice in message_of(table, row.program, name)
    corrected = [with_name(program, name) for program in row.corrected]
    added, removed = pieces(advice)
    for code in added:
        assert any(contains(program, code) for program in corrected), f"{code} is not in a program that follows the advice"
    for code in removed:
        assert contains(with_name(row.program, name), code) and not all(contains(program, code) for program in corrected), code
    assert corrected
    for program in row.corrected:
        said = message_of(table, program, name)
        assert not re.match(r"\w+(Error|Exception): ", said) and advice not in said, (program, said)


@pytest.mark.slow
def test_no_advice_is_left_out() -> None:
    said = [message_of(table, row.program, "gradlab") for table, row in ROWS]
    for program, (source, _, _) in graphs.PROGRAMS.items():
        said += [graphs.run(textwrap.dedent(source).lstrip("\n"), "gradlab", f"complete {program}.py")[2]]
    said += [graphs.run(graphs.program_with_steps(update), "gradlab", f"complete {update}.py")[2] for update in graphs.UPDATES]
    said = [in_one_line(one) for one in said]
    elsewhere = "explore/doctor/", "homework/replies/"  # checked in tests/doctor and tests/notebooks
    pieces_of_docstrings = "nn/functional/descriptions.py", "nn/modules/shared.py", "core/operator.py"
    of_errors = [
        text
        for text in texts()
        if not text.where.startswith(elsewhere + pieces_of_docstrings) and "\nParameters\n----------\n" not in text.template
    ]
    unchecked = [text for text in of_errors if advises(text) and not any(map(text.occurs_in, said))]
    listed = {text: [key for key in NOT_TYPED if text.template.startswith(key)] for text in unchecked}
    assert not (left := [text for text, keys in listed.items() if not keys]), "not in the tables"
    assert not left and set(NOT_TYPED) == {key for keys in listed.values() for key in keys}, "listed, but in the tables or gone"

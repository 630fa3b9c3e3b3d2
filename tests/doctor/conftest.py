"""Fixtures: the shell of `shells`, and a function that runs rows in it."""

import pytest
from row_runs import Run
from shells import interactive, shell  # noqa: F401


@pytest.fixture
def run(shell):  # noqa: F811
    """Function that runs cells with a library. It skips the test if the library is not installed, and clears the cells' names."""
    ran = []

    def run(library, texts):
        pytest.importorskip(library)
        ran.append(Run(shell, library, texts))
        return ran[-1]

    yield run
    for one in ran:
        one.leave()

"""The shell of `shells`, and rows that run in it."""

import pytest
from row_runs import Run
from shells import interactive, shell  # noqa: F401


@pytest.fixture
def run(shell):  # noqa: F811
    """Runs cells on a library, which is skipped where it is not installed; what they leave is cleared."""
    ran = []

    def run(library, texts):
        pytest.importorskip(library)
        ran.append(Run(shell, library, texts))
        return ran[-1]

    yield run
    for one in ran:
        one.leave()

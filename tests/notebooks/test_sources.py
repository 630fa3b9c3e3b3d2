"""The notebooks in the repository are source. The tour is short, and begins with the program of `gradlab demo`."""

from __future__ import annotations

import pytest
from notebooks.reading import is_stripped, read

from gradlab.explore.demo import story


@pytest.mark.parametrize("name", ["quickstart.ipynb", "training.ipynb"])
def test_the_source_is_stripped(name):
    is_stripped(name)


def test_the_tour_is_short():
    assert sum(cell.cell_type == "code" for cell in read("quickstart.ipynb").cells) <= 12


def test_the_tour_begins_with_the_program_of_the_demo():
    """Both programs, below the imports."""
    code = {cell.id: cell.source for cell in read("quickstart.ipynb").cells}
    program = story.BROKEN.format(library="torch").partition("\n\n")[2].rstrip()
    assert code["broken"] == f"%%grad -o broken\n{program}"
    assert code["fixed"] == f"%%grad -o fixed\n{program.replace(story.WRONG, story.RIGHT)}"

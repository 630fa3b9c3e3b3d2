"""The notebooks in the repository are source, and the tour is short."""

from __future__ import annotations

import pytest
from notebooks.reading import is_stripped, read


@pytest.mark.parametrize("name", ["quickstart.ipynb", "training.ipynb"])
def test_the_source_is_stripped(name):
    is_stripped(name)


def test_the_tour_is_short():
    assert sum(cell.cell_type == "code" for cell in read("quickstart.ipynb").cells) <= 12

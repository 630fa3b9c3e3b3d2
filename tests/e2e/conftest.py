"""gradlab's clock is the machine's where other processes are waited for."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def clock():
    return None

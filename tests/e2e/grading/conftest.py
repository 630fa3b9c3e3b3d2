"""gradlab's clock runs: a submission is ended by it, and by that of its own process."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def clock():
    return None

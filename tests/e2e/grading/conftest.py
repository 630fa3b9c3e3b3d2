"""Use the real clock, since submissions are stopped by it and by that of their own process."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def clock():
    return None

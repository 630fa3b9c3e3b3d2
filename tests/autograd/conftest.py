"""Tests of torch's contract are written once, for a library `t`: they run on gradlab always, on torch under the marker oracle."""
from __future__ import annotations

import pytest


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.oracle)])
def t(request):
    """The library."""
    return pytest.importorskip(request.param)

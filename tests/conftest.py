"""For every test: nothing is left behind. A test that leaks a mode, an observer or a changed default fails."""
from __future__ import annotations

import numpy as np
import pytest


def cupy_or_skip():
    """CuPy's `asarray`, or a skip that says why there is no GPU."""
    from gradlab import cuda

    if not cuda.is_available():
        pytest.skip(f"no GPU: {cuda.why_unavailable()}")
    import cupy

    return cupy.asarray


def strict():
    from strict import StrictArray, install

    install()
    return StrictArray


BACKENDS = {"numpy": lambda: np.asarray, "strict": strict, "cupy": cupy_or_skip}


@pytest.fixture(params=["numpy", "strict", pytest.param("cupy", marks=pytest.mark.gpu)])
def backend(request):
    """Makes an array of the backend under test out of NumPy data."""
    return BACKENDS[request.param]()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    from gradlab.core.dtypes import default
    from gradlab.core.engine import observers
    from gradlab.core.modes import mode
    from gradlab.core.printing import get_printoptions

    before = default.float, get_printoptions()
    yield
    left = {"grad mode": mode.grad is not True, "observers": observers.active != (), "default dtype": default.float != before[0],
            "print options": get_printoptions() != before[1]}
    mode.grad, observers.active, default.float = True, (), before[0]
    assert not any(left.values()), f"the test left behind: {', '.join(k for k, v in left.items() if v)}"

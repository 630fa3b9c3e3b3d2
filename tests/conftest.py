"""For every test: nothing is left behind. A test that leaks a mode, an observer or a changed default fails."""
from __future__ import annotations

import pytest


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

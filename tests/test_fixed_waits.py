"""Check that tests wait for conditions (see `waiting`) and not for a fixed time, which fails on busy machines."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from waiting import Gate, wait_until

HERE = Path(__file__).parent
FIXED_WAITS = re.compile(r"\b(sleep|wait_for_timeout)\((?!0\))")
ALLOWED = {
    "waiting.py": "it polls a condition",
    "explore/slow_work.py": "slow work, which other threads interrupt",
    "e2e/distributed/test_jacobian_dask_soak.py": "workers are killed at random times",
    Path(__file__).name: "",
}


def test_no_test_waits_for_a_fixed_time():
    found = {}
    for path in HERE.rglob("*.py"):
        name = path.relative_to(HERE).as_posix()
        lines = [number for number, line in enumerate(path.read_text().splitlines(), 1) if FIXED_WAITS.search(line)]
        if lines and name not in ALLOWED:
            found[name] = lines
    assert not found, "wait for a condition: waiting.wait_until, expect, wait_for_function, page.clock"


def test_wait_until_returns_the_first_true_value():
    answers = iter([0, None, "yes"])
    assert wait_until(lambda: next(answers)) == "yes"


def test_a_gate_blocks_until_it_is_opened(tmp_path):
    gate, done = Gate(tmp_path / "gate"), []
    held = threading.Thread(target=lambda: (eval(gate.code), done.append(1)))
    held.start()
    with gate.hold():
        assert not done
    held.join()
    assert eval(gate.code) == "" and done == [1]

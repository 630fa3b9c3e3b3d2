"""Tests wait for conditions (see `waiting`), never for a while: how long something takes says nothing on a busy machine."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from waiting import Gate, until

HERE = Path(__file__).parent
PAUSES = re.compile(r"\b(sleep|wait_for_timeout)\((?!0\))")
ALLOWED = {
    "waiting.py": "it asks again and again",
    "explore/slowly.py": "work that takes a while, so that others have time to stop it",
    "e2e/distributed/test_jacobian_dask_soak.py": "what is killed is killed at a random time",
    Path(__file__).name: "",
}


def test_no_test_waits_for_a_while():
    found = {}
    for path in HERE.rglob("*.py"):
        name = path.relative_to(HERE).as_posix()
        lines = [number for number, line in enumerate(path.read_text().splitlines(), 1) if PAUSES.search(line)]
        if lines and name not in ALLOWED:
            found[name] = lines
    assert not found, "wait for a condition: waiting.until, expect, wait_for_function, page.clock"


def test_it_is_asked_until_it_is_true():
    answers = iter([0, None, "yes"])
    assert until(lambda: next(answers)) == "yes"


def test_a_gate_holds_up_until_it_is_opened_and_nobody_later(tmp_path):
    gate, done = Gate(tmp_path / "gate"), []
    held = threading.Thread(target=lambda: (eval(gate.code), done.append(1)))
    held.start()
    with gate.reached():
        assert not done
    held.join()
    assert eval(gate.code) == "" and done == [1]

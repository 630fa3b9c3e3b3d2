"""The clock that budgets and limits of time read: it can be set, and who waits goes by it."""

from __future__ import annotations

import queue
import threading
import time

import pytest
from waiting import HandClock

from gradlab.clock import get, now, reading, wait


def test_it_tells_the_time_that_is_set_and_then_the_machines_again():
    by_hand = HandClock()
    with reading(by_hand):
        began = now()
        by_hand.move(5)
        assert now() - began == 5
        with pytest.raises(ZeroDivisionError), reading(lambda: 1 / 0):
            now()
        assert now() - began == 5
    with reading(time.perf_counter):
        before, told, after = time.perf_counter(), now(), time.perf_counter()
    assert before <= told <= after


def test_an_event_is_waited_for_until_the_time_is_over(clock):
    event = threading.Event()
    assert not wait(event, now()) and not wait(event, now() - 1)
    later, until = threading.Thread(target=lambda: clock.move(10)), now() + 5
    later.start()
    assert not wait(event, until)
    later.join()
    event.set()
    assert wait(event, now() + 5) and wait(event, now() - 1), "it is set"


def test_an_item_is_waited_for_until_the_time_is_over(clock):
    items = queue.Queue()
    for until in (now(), now() - 1):
        with pytest.raises(queue.Empty):
            get(items, until)
    later = threading.Thread(target=lambda: items.put("late"))
    later.start()
    assert get(items, now() + 5) == "late"
    later.join()
    items.put("there")
    assert get(items, now() - 1) == "there", "it was there in time"
    later, until = threading.Thread(target=lambda: clock.move(10)), now() + 5
    later.start()
    with pytest.raises(queue.Empty):
        get(items, until)
    later.join()

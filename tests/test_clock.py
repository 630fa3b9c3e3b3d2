"""Test the clock used by time limits: tests can replace it, and waiting functions use it."""

from __future__ import annotations

import queue
import threading
import time

import pytest
from waiting import HandClock

from gradlab.clock import get, now, use_source, wait


def test_a_source_replaces_the_clock_within_its_block():
    by_hand = HandClock()
    with use_source(by_hand):
        began = now()
        by_hand.move(5)
        assert now() - began == 5
        with pytest.raises(ZeroDivisionError), use_source(lambda: 1 / 0):
            now()
        assert now() - began == 5
    with use_source(time.perf_counter):
        before, told, after = time.perf_counter(), now(), time.perf_counter()
    assert before <= told <= after


def test_waiting_for_an_event_ends_at_the_time_limit(clock):
    event = threading.Event()
    assert not wait(event, now()) and not wait(event, now() - 1)
    later, until = threading.Thread(target=lambda: clock.move(10)), now() + 5
    later.start()
    assert not wait(event, until)
    later.join()
    event.set()
    assert wait(event, now() + 5) and wait(event, now() - 1), "it is set"


def test_waiting_for_an_item_ends_at_the_time_limit(clock):
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

"""Bookkeeping of shared memory while several threads write, create views and run backward."""

from __future__ import annotations

import threading

import pytest
from threads import no_threads, run_in_threads

import gradlab as gl
from gradlab.core import storage


@no_threads
def test_a_write_is_detected_after_another_thread_wrote(monkeypatch):
    """A thread is delayed between its tick and the record of its write, while another thread records and writes."""
    mine, other = gl.ones(2), gl.ones(2)
    x = gl.ones(2, requires_grad=True)
    made, tick, there = [], storage.tick, threading.Event()

    def late():
        now = tick()
        if threading.current_thread() is not first:
            return now
        there.set()
        second.join(0.2)  # it has ended by then, unless it waits for this thread
        return now

    def beside():
        there.wait()
        made.append((x * other).sum())
        other.add_(1)

    monkeypatch.setattr(storage, "tick", late)
    first, second = threading.Thread(target=lambda: mine.add_(1)), threading.Thread(target=beside)
    second.start()
    first.start()
    first.join()
    second.join()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made[0].backward()


@no_threads
def test_a_tensor_has_one_storage(monkeypatch):
    """A thread is delayed while it creates the storage, and another creates a view."""
    x, views, make, there = gl.ones(3), {}, storage.Storage, threading.Event()

    def late():
        if threading.current_thread() is first:
            there.set()
            second.join(0.2)
        return make()

    monkeypatch.setattr(storage, "Storage", late)
    first = threading.Thread(target=lambda: views.update(first=x[1:]))
    second = threading.Thread(target=lambda: there.wait() and views.update(second=x[2:]))
    second.start()
    first.start()
    first.join()
    second.join()
    assert views["first"].storage is views["second"].storage is x.storage


@no_threads
def test_no_view_is_lost():
    x, views = gl.ones(4, requires_grad=True).clone(), []
    run_in_threads(lambda i: views.extend([x.view(2, 2), x[i:]] for _ in range(100)))
    known = {id(ref()) for ref in x.storage.views}
    assert all(id(view) in known for pair in views for view in pair)

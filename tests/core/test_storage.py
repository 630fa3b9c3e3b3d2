"""What is noted of shared memory, where several threads write, view and sweep."""

from __future__ import annotations

import threading

import pytest
from threads import in_threads, no_threads

import gradlab as gl
from gradlab.core import storage


@no_threads
def test_a_write_is_seen_whoever_wrote_in_between(monkeypatch):
    """A thread is held up between its tick and what it notes of it, while another thread records and writes."""
    mine, other = gl.ones(2), gl.ones(2)
    x = gl.ones(2, requires_grad=True)
    made, tick, there = [], storage.tick, threading.Event()

    def late():
        now = tick()
        if threading.current_thread() is not first:
            return now
        there.set()
        second.join(0.2)  # over by then, unless it waits for this one
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
    """A thread is held up while it makes the storage, and another takes a view."""
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
def test_no_view_is_forgotten():
    x, views = gl.ones(4, requires_grad=True).clone(), []
    in_threads(lambda i: views.extend([x.view(2, 2), x[i:]] for _ in range(100)))
    known = {id(ref()) for ref in x.storage.views}
    assert all(id(view) in known for pair in views for view in pair)

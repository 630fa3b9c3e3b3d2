"""Indices, classes and probabilities out of bounds. The host raises at once, a device at the next synchronization.

The strict array wraps an index silently, as CuPy does, so a missing check gives a number here instead of an error.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from strict import HOST_WAITS
from threads import no_threads
from waiting import TIMEOUT_SECONDS, wait_until

import gradlab as gl
from gradlab.backend.bounds import MAX_PENDING_CHECKS, PENDING_CHECKS, debug, run_pending_checks
from gradlab.core.tensor import constant
from gradlab.nn import functional


@pytest.fixture(autouse=True)
def no_pending_checks():
    yield
    left = len(PENDING_CHECKS)
    PENDING_CHECKS.clear()
    debug.at_once = False
    assert not left, "pending bounds were not checked"


@pytest.fixture
def make(backend):
    """A tensor on the backend under test."""
    return lambda data, dtype=None: constant(backend(np.asarray(data, dtype)))


def quiet(run):
    with np.errstate(divide="ignore"):
        return run()


def table(make):
    x, rows, p = make(np.arange(12.0).reshape(3, 4)), make(np.ones((2, 4))), make([0.2, 0.9])
    return {
        "gather": (lambda i: x.gather(1, i.reshape(1, 2)), 4, RuntimeError, "index 4 is out of bounds for dimension 1"),
        "scatter": (lambda i: x.scatter(1, i.reshape(1, 2), 1.0), 4, RuntimeError, "index 4 is out of bounds"),
        "scatter_add": (lambda i: x.scatter_add(1, i.reshape(1, 2), rows[:1, :2]), 4, RuntimeError, "index 4 is out of bounds"),
        "index_select": (lambda i: x.index_select(0, i), 3, IndexError, "index out of range in self"),
        "index_add": (lambda i: x.index_add(0, i, rows), 3, RuntimeError, "index 3 is out of bounds for dimension 0 with size 3"),
        "index_copy": (lambda i: x.index_copy(0, i, rows), 3, IndexError, "index 3 is out of bounds for dimension 0"),
        "index_fill": (lambda i: x.index_fill(0, i, 1.0), 3, IndexError, "index 3 is out of bounds for dimension 0"),
        "take": (x.take, 12, IndexError, "tried to access index 12 on a tensor of 12 elements"),
        "index": (lambda i: x[i], 3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        "a second index": (lambda i: x[:, i], 4, IndexError, "index 4 is out of bounds for dimension 1 with size 4"),
        "embedding": (lambda i: functional.embedding(i, x), 3, IndexError, "index out of range in self. The table has 3 rows"),
        "embedding_bag": (lambda i: functional.embedding_bag(i.reshape(1, 2), x), 3, RuntimeError, "of input takes value 3"),
        "cross_entropy": (lambda i: functional.cross_entropy(rows, i), 4, IndexError, "Target 4 is out of bounds"),
        "nll_loss": (lambda i: functional.nll_loss(rows, i, reduction="none"), 4, IndexError, "Target 4 is out of bounds"),
        "multi_margin_loss": (lambda i: functional.multi_margin_loss(rows, i), 4, RuntimeError, "target out of range"),
        "binary_cross_entropy": (
            lambda i: functional.binary_cross_entropy(p, i.double()),
            2,
            RuntimeError,
            "should be between 0 and 1",
        ),
        "floor_divide": (lambda i: quiet(lambda: 7 // (i - 2)), 2, RuntimeError, "ZeroDivisionError"),
    }


@pytest.mark.parametrize("name", table(lambda *data: gl.ones(2, 4)))
def test_a_value_out_of_bounds_raises(name, make, backend):
    run, wrong, error, text = table(make)[name]
    late = backend is not np.asarray
    if not late:
        with pytest.raises(error, match=text):
            run(make([0, wrong], np.int64))
        return
    HOST_WAITS.clear()
    made = run(make([0, wrong], np.int64))
    assert not HOST_WAITS, "reading a value makes the host wait"
    with pytest.raises(error, match=text + r"(.|\n)* The operation was "):
        made.sum().item()
    made.sum().item()  # raised only once
    debug.at_once = True
    with pytest.raises(error, match=text):
        run(make([0, wrong], np.int64))


@pytest.mark.parametrize("name", table(lambda *data: gl.ones(2, 4)))
def test_values_within_bounds_do_not_raise(name, make):
    run, wrong, _, _ = table(make)[name]
    run(make([0, wrong - 1] if name not in ("binary_cross_entropy", "floor_divide") else [0, 1], np.int64)).sum().item()


def test_an_ignored_class_may_have_any_value(make):
    scores = make(np.log([[0.25, 0.75], [0.5, 0.5], [0.1, 0.9]])).requires_grad_()
    y = make([1, -100, 0], np.int64)
    loss = functional.nll_loss(scores, y)
    loss.backward()
    np.testing.assert_allclose(loss.item(), -(np.log(0.75) + np.log(0.1)) / 2)
    np.testing.assert_allclose(scores.grad.tolist(), [[0, -0.5], [0, 0], [-0.5, 0]])
    weighted = functional.cross_entropy(scores, y, weight=make([1.0, 3.0]), label_smoothing=0.5)
    plain = -(3 * np.log(0.75) + np.log(0.1)) / 4
    smooth = -(np.log(0.25) + 3 * np.log(0.75) + np.log(0.1) + 3 * np.log(0.9)) / 4 / 2
    np.testing.assert_allclose(weighted.item(), (plain + smooth) / 2)


def test_the_number_of_pending_checks_is_bounded(make, backend):
    if backend is np.asarray:
        pytest.skip("the host checks at once")
    x, i = make(np.ones(3)), make([0, 1], np.int64)
    for _ in range(MAX_PENDING_CHECKS + 10):
        x.index_select(0, i)
    assert len(PENDING_CHECKS) < MAX_PENDING_CHECKS
    run_pending_checks()


def test_reading_a_value_checks_the_bounds_first(make, backend):
    if backend is np.asarray:
        pytest.skip("the host checks at once")
    x, one = make(np.ones(3)), make([1.0])
    for look in (
        one.item,
        one.tolist,
        lambda: bool(one),
        lambda: float(one),
        lambda: int(one),
        lambda: repr(one),
        lambda: gl.equal(one, one),
        lambda: gl.allclose(one, one),
        lambda: 1.0 in one,
        lambda: f"{one.sum()}",
    ):
        x.take(make([5], np.int64))
        with pytest.raises(IndexError, match="The operation was take"):
            look()


class Bound:
    """A least and greatest value on a device: `read` runs when the host reads it."""

    def __init__(self, value, read=lambda: None):
        self.value, self.read = value, read

    def item(self):
        self.read()
        return self.value


def check(name, value, read=lambda: None):
    bound = Bound(value, read)
    return name, bound, bound, 0, 2, lambda wrong: IndexError(f"index {wrong} is out of range.")


def test_checks_added_during_a_check_run_next():
    PENDING_CHECKS.append(
        check("gather", 1, lambda: PENDING_CHECKS.append(check("take", 5)) if len(PENDING_CHECKS) == 1 else None)
    )
    run_pending_checks()
    with pytest.raises(IndexError, match=r"index 5 is out of range\. The operation was take"):
        run_pending_checks()


class Turns:
    """A lock that counts the threads that have requested it."""

    def __init__(self):
        self.lock, self.asked = threading.RLock(), 0

    def __enter__(self):
        self.asked += 1
        self.lock.acquire()

    def __exit__(self, *raised):
        self.lock.release()


@no_threads
def test_no_thread_reads_a_value_while_its_bounds_are_checked(monkeypatch):
    reached, go, errors, order, turns = threading.Event(), threading.Event(), [], [], Turns()
    monkeypatch.setattr("gradlab.backend.bounds.PENDING_LOCK", turns)

    def look():
        reached.set()
        assert go.wait(TIMEOUT_SECONDS)

    def first():
        try:
            run_pending_checks()
        except IndexError as error:
            order.append("raised")
            errors.append(str(error))

    def second():
        run_pending_checks()
        order.append("read")

    PENDING_CHECKS.append(check("take", 5, look))
    threads = [threading.Thread(target=run) for run in (first, second)]
    threads[0].start()
    assert reached.wait(TIMEOUT_SECONDS)
    threads[1].start()
    wait_until(lambda: turns.asked == 2 or order, "the second thread to wait")
    early = list(order)
    go.set()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
    assert not early and sorted(order) == ["raised", "read"]
    assert len(errors) == 1 and "index 5" in errors[0]


def test_an_interrupt_loses_no_pending_check():
    def interrupt():
        PENDING_CHECKS[1] = check("take", 5)
        raise KeyboardInterrupt

    PENDING_CHECKS.extend([check("gather", 1), check("take", 5, interrupt)])
    with pytest.raises(KeyboardInterrupt):
        run_pending_checks()
    with pytest.raises(IndexError, match="index 5"):
        run_pending_checks()


def test_the_first_violation_is_raised_and_names_later_ones():
    PENDING_CHECKS.extend([check("gather", 1), check("take", 5), check("embedding", 9), check("index", 2), check("embedding", 8)])
    with pytest.raises(IndexError, match=r"^index 5 is .* operation was take\. .* later operations: embedding\. "):
        run_pending_checks()
    run_pending_checks()

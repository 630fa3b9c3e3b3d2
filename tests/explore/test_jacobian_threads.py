"""One Jacobian that several threads use at once."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from explore.banded import METHODS, ROWS, banded_jacobian, make_jacobian
from threads import run_in_threads

from gradlab.explore.heat_cells import KNOWN
from gradlab.explore.jacobian.view_model import JacobianViewModel

WANTED = banded_jacobian()
WAYS = [
    lambda J, i: (J[i], WANTED[i]),
    lambda J, i: (J[:, i], WANTED[:, i]),
    lambda J, i: (J[i : i + 3], WANTED[i : i + 3]),
    lambda J, i: (J @ WANTED[i], WANTED @ WANTED[i]),
    lambda J, i: (WANTED[:, : i + 1].T @ J, WANTED[:, : i + 1].T @ WANTED),
    lambda J, i: (list(J.rows()), WANTED),
    lambda J, i: (J.sparse().toarray(), WANTED),
    lambda J, i: (np.asarray(J), WANTED),
    lambda J, i: (list(J), WANTED),
    lambda J, i: (J.tensor().numpy(), WANTED),
    lambda J, i: (J.pool(cells=(4, 4)).known_mask.shape, (4, 4)),
    lambda J, i: (len(repr(J)) > 20 and len(J.labels), ROWS),
]


@pytest.mark.parametrize("with_out", [False, True], ids=["kept", "out"])
@pytest.mark.parametrize("method", METHODS)
def test_four_threads_that_request_rows_products_and_the_whole(method, with_out):
    for round_ in range(6):
        J = make_jacobian(method, out=np.zeros((ROWS, ROWS)) if with_out else None)
        start = threading.Barrier(4)

        def work(k, J=J, start=start, seed=10 * round_):
            draw = np.random.default_rng(seed + k)
            start.wait()
            for _ in range(12):
                got, expected = WAYS[draw.integers(len(WAYS) if k else 3)](J, int(draw.integers(ROWS - 3)))
                np.testing.assert_allclose(got, expected, atol=1e-13)

        run_in_threads(work)
        np.testing.assert_allclose(np.asarray(J), WANTED, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_threads_that_request_the_whole_share_its_sweeps(method):
    J = make_jacobian(method)
    run_in_threads(lambda _: np.asarray(J), 4)
    assert J.sweeps == J.plan.sweeps


def test_a_view_shows_the_known_part_during_a_long_run():
    """The lock is released between blocks, so a row of another thread does not wait for the whole."""
    seen = []

    def progress(done, total):
        if done == 3:
            thread = threading.Thread(target=lambda: seen.append((J.rows_known, J[2], bool(J.pool().known_mask.any()))))
            thread.start()
            thread.join(20)

    J = make_jacobian("rows", progress=progress)
    np.asarray(J)
    assert [(known, some) for known, _, some in seen] == [(3, True)]
    np.testing.assert_allclose(seen[0][1], WANTED[2])


@pytest.mark.parametrize("method", METHODS)
def test_a_live_view_follows_a_run_of_another_thread(method):
    """The view shows the known part of the matrix without waiting for the whole."""
    J, shown = make_jacobian(method, chunk=1), []
    lab = JacobianViewModel(J)

    def look():
        frame, arrays = lab.answer("hello", {}, [])
        shown.append((frame["filled"], arrays["low"], arrays["high"], arrays["flags"] & KNOWN > 0))

    def progress(done, total):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(20)

    J.runner.progress = progress
    np.asarray(J)
    assert len(shown) == J.plan.sweeps > 1 and not shown[0][3].all()
    for _, low, high, known in shown:
        assert known.any()
        np.testing.assert_allclose(low[known], WANTED[known], atol=1e-13)
        np.testing.assert_allclose(high[known], WANTED[known], atol=1e-13)
    assert shown[-1][3].all()


def test_copies_and_pickles():
    J = make_jacobian("rows")
    np.asarray(J)
    for other in (copy.copy(J), copy.deepcopy(J), pickle.loads(pickle.dumps(J))):
        np.testing.assert_array_equal(other[3], J[3])

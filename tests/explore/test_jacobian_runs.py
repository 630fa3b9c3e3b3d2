"""Long Jacobians: progress, interrupts and continuation, writing into a user's array, resuming after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from explore.banded import (
    METHODS,
    ROWS,
    START,
    banded_jacobian,
    banded_residual,
    make_file,
    make_jacobian,
    make_x,
    stop_before_block,
)
from explore.timed_sweeps import set_sweep_time

import gradlab as gl
from gradlab.explore.jacobian import progress as progress_of


# -------------------------------------------------------------------------------------------------------------- progress
def test_a_function_gets_the_progress():
    heard = []
    J = make_jacobian(progress=lambda *numbers: heard.append(numbers))
    np.testing.assert_allclose(np.asarray(J), banded_jacobian())
    assert heard == [(5, 12), (10, 12), (12, 12)]


def test_a_function_gets_the_progress_in_columns_and_colours():
    heard = []
    for method in ("columns", "sparse"):
        np.testing.assert_allclose(
            np.asarray(make_jacobian(method, progress=lambda *numbers: heard.append(numbers))), banded_jacobian()
        )
    assert heard == [(5, 12), (10, 12), (12, 12), (1, 3), (2, 3), (3, 3)]


def test_a_bar_with_rows_per_second_and_remaining_time(capsys):
    np.asarray(make_jacobian(progress=True))
    shown = capsys.readouterr().err.split("\r")
    assert shown[1].startswith("Jacobian:   0%|") and " 0/12 rows [00:00<?" in shown[1]
    assert " 12/12 rows [00:0" in shown[-1] and " rows/s]" in shown[-1]


@pytest.mark.parametrize(("seconds", "bar"), [(0.0, False), (0.1, False), (0.15, False), (0.18, True)])
def test_a_bar_only_for_runs_expected_to_be_long(seconds, bar, capsys, clock):
    """Twelve rows in blocks of five take two seconds at 1/6 s per row."""
    np.asarray(set_sweep_time(make_jacobian(), seconds, clock))
    assert (" 12/12 rows" in capsys.readouterr().err) == bar
    np.asarray(set_sweep_time(make_jacobian(progress=False), seconds, clock))
    assert capsys.readouterr().err == ""


def test_the_expected_time_assumes_constant_speed(capsys, clock):
    """A third of the rows takes a second, so all are expected to take three."""
    for seconds, bar in ((1.0, True), (0.1, False)):
        with progress_of.report_progress(None, 0, 12, "rows") as report:
            for done in (4, 8):
                clock.move(seconds)
                report(done)
        assert (" 8/12 rows" in capsys.readouterr().err) == bar


def test_progress_is_checked_before_the_run():
    with pytest.raises(TypeError, match=r"progress='yes': it takes None \(a bar for runs of over 2 s\), True, "):
        make_jacobian(progress="yes")


@pytest.mark.e2e
def test_tqdm_is_loaded_only_for_a_bar():
    code = "import sys, gradlab as gl; x = gl.randn(3); print(gl.jacobian(gl.tanh, x)[:].shape, 'tqdm' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "(3, 3) False\n"


# ------------------------------------------------------------------------------------------------------------ interrupted
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_stopped_at_any_block_and_continued(method, out):
    expected = np.array(make_jacobian(method))
    for k in range(len(make_jacobian(method).plan.blocks())):
        J = make_jacobian(method, out=np.full((ROWS, ROWS), 7.0) if out else None)
        computed = stop_before_block(J, k, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt) as caught:
            np.asarray(J)
        assert len(J.store.done) == k and not J.complete
        kind = {"columns": "columns", "sparse": "colours"}.get(method, "rows")
        done = min(J.plan.chunk * k, J.plan.sweeps)
        assert f"{done} of {J.plan.sweeps} {kind} of the Jacobian are known and kept." in str(caught.value)
        np.testing.assert_array_equal(J.vjp(np.ones(ROWS)), make_jacobian(method).vjp(np.ones(ROWS)))
        assert np.array_equal(np.asarray(J), expected), "bitwise equal, because the same sweeps ran"
        assert [block for block in computed if block is not None] == list(range(len(J.plan.blocks()))), (
            "each block was computed once"
        )


def test_an_interrupt_says_how_to_continue():
    J = make_jacobian()
    stop_before_block(J, 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt) as caught:
        np.asarray(J)
    assert str(caught.value) == (
        "5 of 12 rows of the Jacobian are known and kept. Another request, np.asarray(J) for example, continues with the others."
    )
    assert J.rows_known == 5 and J.known_mask.tolist() == [True] * 5 + [False] * 7


def test_a_sweep_that_raises_halfway_loses_nothing():
    J = gl.jacobian(lambda x: 2 * x, make_x(), method="rows")
    calls, inner = [], J.runner.graph.vjp

    def fussy(weights):
        calls.append(weights)
        if len(calls) == 3:
            raise ZeroDivisionError("the third time")
        return inner(weights)

    J.runner.graph.vjp = fussy
    with pytest.raises(ZeroDivisionError, match="the third time") as caught:
        np.asarray(J)
    assert any(note.startswith("2 of 12 rows of the Jacobian are known and kept.") for note in caught.value.__notes__)
    np.testing.assert_array_equal(J, 2 * np.eye(ROWS))
    assert len(calls) == ROWS + 1


def test_a_progress_function_that_raises_loses_nothing():
    def stop(done, total):
        if done == 10:
            raise RuntimeError("enough")

    J = make_jacobian(progress=stop)
    with pytest.raises(RuntimeError, match="enough"):
        np.asarray(J)
    assert len(J.store.done) == 2
    np.testing.assert_allclose(np.asarray(J), banded_jacobian())


@pytest.mark.e2e
@pytest.mark.skipif(os.name == "nt", reason="no signals")
def test_sigint_in_a_terminal(tmp_path):
    """Ctrl-C after two blocks; the same process then goes on."""
    script = """
        import os, signal, numpy as np, gradlab as gl
        signal.signal(signal.SIGINT, signal.default_int_handler)             # background jobs inherit that it is ignored
        x, reported = gl.arange(12.0), []
        def report(done, total):
            reported.append(done)
            if done == 10 and reported.count(10) == 1:
                os.kill(os.getpid(), signal.SIGINT)
        J = gl.jacobian(lambda x: gl.sin(x) * x.sum(), x, method="batched", chunk_size=5, progress=report)
        try:
            np.asarray(J)
        except KeyboardInterrupt as error:
            print(error)
        whole = gl.jacobian(lambda x: gl.sin(x) * x.sum(), x, method="batched", chunk_size=5)
        print(np.array_equal(np.asarray(J), np.asarray(whole)), reported)
        raise SystemExit
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("10 of 12 rows of the Jacobian are known and kept. Another request, ")
    assert ran.stdout.splitlines()[-1] == "True [5, 10, 12]"


# -------------------------------------------------------------------------------------------------------------------- out
@pytest.mark.parametrize("method", METHODS)
def test_out_is_the_matrix(method):
    out = np.full((ROWS, ROWS), np.nan)
    J = make_jacobian(method, out=out)
    assert np.isnan(out).all(), "nothing is computed before it is requested"
    whole = np.asarray(J)
    assert np.shares_memory(whole, out) and not whole.flags.writeable and out.flags.writeable
    np.testing.assert_allclose(out, banded_jacobian())
    np.testing.assert_allclose(J.sparse().toarray(), banded_jacobian())
    np.testing.assert_allclose(J @ np.arange(12.0), banded_jacobian() @ np.arange(12.0))


def test_single_rows_fill_their_block_of_out():
    out = np.zeros((ROWS, ROWS))
    J = make_jacobian(out=out)
    np.testing.assert_allclose(J[6], banded_jacobian()[6])
    assert np.shares_memory(J[6], out)
    assert (out.any(axis=1)).tolist() == [False] * 5 + [True] * 5 + [False] * 2
    for i in range(ROWS):
        J[i]
    assert J.complete and J.sweeps == ROWS
    np.testing.assert_allclose(out, banded_jacobian())


def test_single_rows_are_written_to_out_for_columns_too():
    out = np.zeros((ROWS, ROWS))
    J = make_jacobian("columns", out=out)
    np.testing.assert_allclose(np.stack(list(J)), banded_jacobian())
    np.testing.assert_allclose(out, banded_jacobian())


def test_out_in_fortran_order_and_with_strides():
    for out in (np.zeros((ROWS, ROWS), order="F"), np.zeros((2 * ROWS, 3 * ROWS))[::2, ::3]):
        np.asarray(make_jacobian("columns", out=out))
        np.testing.assert_allclose(out, banded_jacobian())


@pytest.mark.parametrize(
    "chosen",
    [
        (lambda: np.zeros((ROWS, 3)), ValueError, r"Jacobian's shape \(12, 12\) .*, but has \(12, 3\)\. np\.empty"),
        (lambda: np.zeros((ROWS, ROWS), np.float32), TypeError, "out= must have the Jacobian's dtype float64, but has float32"),
        (lambda: np.zeros((ROWS, ROWS), ">f8"), TypeError, "dtype float64, but has >f8"),
        (lambda: np.broadcast_to(np.zeros(ROWS), (ROWS, ROWS)), ValueError, "out= is read only"),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(ROWS), (ROWS, ROWS), (0, 8)), ValueError, "out= is a broadcast array"),
        (lambda: [[0.0] * ROWS] * ROWS, TypeError, r"out= takes a NumPy array or np\.memmap .* got list"),
        (make_x, TypeError, "got Tensor"),
    ],
    ids=["shape", "dtype", "order", "readonly", "broadcast", "list", "tensor"],
)
def test_out_that_does_not_fit_is_an_error_before_the_run(chosen):
    make, error, message = chosen
    with pytest.raises(error, match=message):
        make_jacobian(out=make())


def test_out_that_would_overwrite_an_input_is_an_error():
    room = np.zeros((ROWS, ROWS))
    x = gl.from_numpy(room[3])
    with pytest.raises(ValueError, match="out= shares memory with the input x, which would be overwritten"):
        gl.jacobian(banded_residual, x, out=room)
    x.requires_grad_()
    with pytest.raises(ValueError, match="out= shares memory with the input x"):
        gl.jacobian(banded_residual(x), x, out=room)


def test_a_read_only_file_says_how_to_open_it(tmp_path):
    make_file(tmp_path).flush()
    with pytest.raises(ValueError, match=r"out= is read only \(opened with mode='r'; 'r\+' can be written\)"):
        make_jacobian(out=make_file(tmp_path, "r"))


def test_a_file_is_not_kept_in_memory(tmp_path):
    """Traced allocations stay far below the size of the matrix."""
    import tracemalloc

    n = 1500
    out = make_file(tmp_path, shape=(n, n))
    J = gl.jacobian(lambda x: gl.tanh(x) * x.sum(), make_x(np.linspace(0, 1, n)), method="batched", chunk_size=20, out=out)
    tracemalloc.start()
    np.asarray(J)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * n * 8 / 4
    assert out[7, 7] == pytest.approx(np.tanh(7 / 1499) + (1 - np.tanh(7 / 1499) ** 2) * n / 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("blocks", [1, 2])
def test_the_rows_one_by_one_after_a_run_that_stopped(method, blocks):
    """All ways to read the matrix, after some blocks and single rows were computed."""
    J = make_jacobian(method)
    computed = stop_before_block(J, blocks, RuntimeError("stop"))
    with pytest.raises(RuntimeError, match="stop"):
        np.asarray(J)
    assert len(J.store.done) == blocks and computed.pop() is None
    for i in range(ROWS):
        np.testing.assert_allclose(J[i], banded_jacobian()[i])
    assert J.complete
    np.testing.assert_allclose(J.sparse().toarray(), banded_jacobian())
    np.testing.assert_allclose(J.pool(cells=(ROWS, ROWS)).values, banded_jacobian())
    np.testing.assert_allclose(J @ np.ones(ROWS), banded_jacobian().sum(1))
    np.testing.assert_allclose(J[:, 3], banded_jacobian()[:, 3])
    np.testing.assert_allclose(np.asarray(J), banded_jacobian())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
def test_all_results_have_the_dtype_of_the_inputs(method, dtype):
    J = gl.jacobian(banded_residual, gl.tensor(START, dtype=getattr(gl, dtype)), method=method)
    for _ in range(2):
        found = J[3], J[:, 3], J.vjp(np.ones(ROWS)), J.jvp(np.ones(ROWS)), J @ np.ones((ROWS, 2)), np.ones((2, ROWS)) @ J
        assert {str(one.dtype) for one in found} == {dtype}
        J.sparse()
    assert J.complete and np.asarray(J).dtype == dtype == J.tensor().numpy().dtype


def test_known_rows_and_columns_are_read_only():
    for method in METHODS:
        J = make_jacobian(method)
        first = J.plan.block(0)
        J.runner.run([first])
        line = J[:, 0] if first.kind == "columns" else J[0]
        assert not line.flags.writeable
        np.asarray(J)
        assert not J[0].flags.writeable and not J[:, 0].flags.writeable

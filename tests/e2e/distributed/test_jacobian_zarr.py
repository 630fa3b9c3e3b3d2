"""Jacobians in zarr arrays, and sparse ones in CSR parts: written, read without gradlab, resumed, and never overwritten."""

from __future__ import annotations

import concurrent.futures
import json
import re
import shutil

import numpy as np
import pytest
import scipy.sparse
from explore.banded import (
    METHODS,
    ROWS,
    START,
    banded_jacobian,
    banded_residual,
    make_jacobian,
    make_x,
    stop_before_block,
)

import gradlab as gl
from gradlab.explore.jacobian import targets

zarr = pytest.importorskip("zarr", reason="pip install 'gradlab[distributed]'")
DENSE = ("rows", "batched", "columns")
LONG = np.linspace(0, 1, 60)


def an_array(where, chunks=(5, ROWS), **options):
    return zarr.create_array(store=where, shape=(ROWS, ROWS), chunks=chunks, dtype="float64", **options)


def read_parts(path):
    """Read the parts with the code in the documentation of `targets`."""
    text = targets.__doc__
    code = "\n".join(line[4:] for line in text.split("::\n\n")[1].split("\n\nA part")[0].splitlines())
    space = {"zarr": zarr, "scipy": scipy}
    exec(code.replace('"J.zarr"', repr(str(path))), space)
    return space["J"].toarray()


# -------------------------------------------------------------------------------------------------------------------- dense
@pytest.mark.parametrize("chunks", [(5, ROWS), (4, 3), (ROWS, ROWS), (1, 5)])
@pytest.mark.parametrize("method", DENSE)
def test_into_an_array(tmp_path, method, chunks):
    out = an_array(tmp_path / "J.zarr", chunks)
    J = make_jacobian(method, out=out).compute()
    np.testing.assert_allclose(out[:], banded_jacobian(), atol=1e-14)
    np.testing.assert_allclose(np.asarray(J), banded_jacobian(), atol=1e-14)
    np.testing.assert_allclose(J.sparse().toarray(), banded_jacobian(), atol=1e-14)
    np.testing.assert_allclose(J[3], banded_jacobian()[3], atol=1e-14)
    np.testing.assert_allclose(J[:, 3], banded_jacobian()[:, 3], atol=1e-14)
    np.testing.assert_allclose(J @ START, banded_jacobian() @ START, atol=1e-13)
    np.testing.assert_allclose(START @ J, START @ banded_jacobian(), atol=1e-13)
    np.testing.assert_allclose(np.c_[START, START].T @ J, np.c_[START, START].T @ banded_jacobian(), atol=1e-13)
    np.testing.assert_allclose(J.T @ START, banded_jacobian().T @ START, atol=1e-13)
    assert J.drawing().svg() and J.pool(cells=(4, 4)).known_mask.all()


@pytest.mark.parametrize("method", DENSE)
def test_by_threads_into_chunks_that_do_not_match_the_blocks(tmp_path, method):
    """Two blocks that share a chunk are in one task, since otherwise one writer would overwrite the other."""
    expected = np.asarray(make_jacobian(method, 1))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for chunks in ((5, 7), (7, 5), (2, 2)):
            for round_ in range(5):
                out = an_array(tmp_path / f"{chunks}-{round_}", chunks)
                J = make_jacobian(method, None if method == "rows" else 2, out=out).compute(pool)
                assert np.array_equal(out[:], np.asarray(J)) and J.complete
                np.testing.assert_allclose(out[:], expected, atol=1e-14)


def test_units_do_not_share_a_chunk():
    for chunk, piece in ((5, 7), (7, 5), (4, 4), (3, 100), (1, 1), (10, 4)):
        store = zarr.storage.MemoryStore()
        out = zarr.create_array(store=store, shape=(60, 60), chunks=(piece, 60), dtype="float64")
        J = gl.jacobian(banded_residual, make_x(LONG), method="batched", chunk_size=chunk, out=out)
        units = J.store.out.units(J.plan, J.plan.blocks())
        assert sorted(block.number for unit in units for block in unit) == list(range(-(-60 // chunk)))
        pieces = [{row // piece for block in unit for row in range(block.start, block.stop)} for unit in units]
        assert sum(map(len, pieces)) == len(set.union(*pieces)), (chunk, piece)


def test_chunks_determine_the_blocks_by_default(tmp_path):
    for rows in (7, 4, 1):
        out = zarr.create_array(store=zarr.storage.MemoryStore(), shape=(60, 60), chunks=(rows, 60), dtype="float64")
        J = gl.jacobian(banded_residual, make_x(LONG), method="batched", out=out)
        assert J.plan.chunk % rows == 0
        np.testing.assert_allclose(J, banded_jacobian(LONG), atol=1e-14)


@pytest.mark.parametrize("where", ["path", "string", "store", "url"])
def test_a_path_that_does_not_exist_yet(tmp_path, where):
    path = tmp_path / "some" / "J.zarr"
    given = {
        "path": path,
        "string": str(path),
        "store": zarr.storage.LocalStore(path),
        "url": f"file://{path}",
    }[where]
    J = make_jacobian("batched", out=given, resume=True).compute()
    found = zarr.open_array(path, mode="r")
    assert found.chunks == (5, ROWS) and found.dtype == np.float64
    np.testing.assert_allclose(found[:], banded_jacobian(), atol=1e-14)
    again = make_jacobian("batched", out=given, resume=True)
    assert again.complete and again.sweeps == 0
    np.testing.assert_allclose(again, J)


@pytest.mark.parametrize("method", DENSE)
def test_chunks_match_the_blocks(tmp_path, method):
    make_jacobian(method, 5 if method != "rows" else None, out=tmp_path / "J").compute()
    chunks = {"rows": (1, ROWS), "batched": (5, ROWS), "columns": (ROWS, 5)}[method]
    assert zarr.open_array(tmp_path / "J").chunks == chunks


def test_a_store_of_fsspec():
    pytest.importorskip("fsspec")
    J = make_jacobian("batched", out="memory://somewhere/J.zarr", resume=True).compute()
    np.testing.assert_allclose(zarr.open_array("memory://somewhere/J.zarr", mode="r")[:], J)
    assert make_jacobian("batched", out="memory://somewhere/J.zarr", resume=True).complete


def test_samples_into_an_array(tmp_path):
    W = gl.tensor(np.random.default_rng(0).normal(size=(6, 4)))
    x = gl.tensor(np.random.default_rng(1).normal(size=(10, 6)))

    def f(x):
        return gl.tanh(x @ W)

    J = gl.jacobian(f, x, batch=0, chunk_size=3, out=tmp_path / "J", resume=True).compute()
    assert zarr.open_array(tmp_path / "J").chunks == (12, 6)
    np.testing.assert_allclose(np.asarray(J), np.asarray(gl.jacobian(f, x, batch=0)), atol=1e-14)


def test_minus_zero_is_kept():
    out = zarr.create_array(store=zarr.storage.MemoryStore(), shape=(3, 3), chunks=(1, 1), dtype="float64")
    J = gl.jacobian(lambda x: -(x * 0), gl.ones(3, dtype=gl.float64), method="rows", out=out).compute()
    assert not np.asarray(J).any() and np.signbit(np.asarray(J)).all()


# ------------------------------------------------------------------------------------------------------------------- sparse
@pytest.mark.parametrize("chunk", [1, 2, None])
@pytest.mark.parametrize("method", METHODS)
def test_into_parts(tmp_path, method, chunk):
    chunk = None if method == "rows" else chunk
    group = zarr.create_group(store=tmp_path / "J")
    J = gl.jacobian(banded_residual, make_x(), method=method, chunk_size=chunk, out=group).compute()
    np.testing.assert_allclose(read_parts(tmp_path / "J"), banded_jacobian(), atol=1e-14)
    np.testing.assert_allclose(J.sparse().toarray(), banded_jacobian(), atol=1e-14)
    np.testing.assert_allclose(np.asarray(J), banded_jacobian(), atol=1e-14)
    np.testing.assert_allclose(J[3], banded_jacobian()[3], atol=1e-14)
    np.testing.assert_allclose(J[:, 3], banded_jacobian()[:, 3], atol=1e-14)
    np.testing.assert_allclose(J @ START, banded_jacobian() @ START, atol=1e-13)
    assert J.drawing().svg() and J.pool(cells=(4, 4)).known_mask.all()
    assert sum(part["data"].size for _, part in group["parts"].groups()) < ROWS * ROWS / 2, "zeros are not stored"


@pytest.mark.parametrize("method", METHODS)
def test_some_of_the_parts(tmp_path, method):
    J = make_jacobian(method, 1, out=zarr.create_group(store=tmp_path / "J"))
    stop_before_block(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        J.compute()
    if method in ("rows", "batched"):
        np.testing.assert_allclose(J[1], banded_jacobian()[1], atol=1e-14)
    assert J.drawing().svg() and J.pool(cells=(4, 4)).known_mask.any()
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)


def test_the_plan_determines_the_format_at_a_path(tmp_path):
    make_jacobian("sparse", out=tmp_path / "sparse", resume=True).compute()
    assert isinstance(zarr.open(tmp_path / "sparse", mode="r"), zarr.Group)
    np.testing.assert_allclose(read_parts(tmp_path / "sparse"), banded_jacobian(), atol=1e-14)
    again = make_jacobian("sparse", out=tmp_path / "sparse", resume=True)
    assert again.complete
    np.testing.assert_allclose(again.sparse().toarray(), banded_jacobian(), atol=1e-14)


def test_hessians_in_parts(tmp_path):
    H = gl.hessian(
        lambda x: (x[1:] * x[:-1]).sum() + (x**4).sum(), make_x(), method="sparse", chunk_size=1, out=tmp_path / "H"
    ).compute()
    expected = np.diag(12 * START**2) + np.eye(ROWS, k=1) + np.eye(ROWS, k=-1)
    np.testing.assert_allclose(read_parts(tmp_path / "H"), expected, atol=1e-14)
    np.testing.assert_allclose(np.asarray(H), expected, atol=1e-14)


# ------------------------------------------------------------------------------------------------------------------- resume
def stopped_run(tmp_path, method, **options):
    J = make_jacobian(method, 1, out=tmp_path / "J", resume=True, **options)
    stop_before_block(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match="so does resume=True in another process"):
        J.compute()
    return J


@pytest.mark.parametrize("method", METHODS)
def test_resume(tmp_path, method):
    stopped_run(tmp_path, method)
    found = json.loads((tmp_path / "J" / "gradlab.json").read_text())
    assert [(one["from"], one["to"]) for one in found["done"]] == [(0, 2)]
    J = make_jacobian(method, 1, out=tmp_path / "J", resume=True)
    assert J.store.done == {0, 1}
    assert np.array_equal(np.asarray(J), np.asarray(make_jacobian(method, 1)))
    assert J.sweeps == J.plan.sweeps - 2


@pytest.mark.parametrize("method", METHODS)
def test_lost_chunks_are_computed_again(tmp_path, method):
    stopped_run(tmp_path, method)
    lost = {"sparse": "parts/00000001/data/c"}.get(method, "c")
    shutil.rmtree(tmp_path / "J" / lost)
    with pytest.warns(UserWarning, match=r"2 of the \d+ blocks listed in .*gradlab\.json have changed in the zarr"):
        J = make_jacobian(method, 1, out=tmp_path / "J", resume=True)
    np.testing.assert_allclose(np.asarray(J), banded_jacobian(), atol=1e-14)


def test_another_function_is_an_error(tmp_path):
    stopped_run(tmp_path, "batched")
    with pytest.raises(ValueError, match=r"resume=True cannot continue from .*J/gradlab\.json: the input x differs"):
        gl.jacobian(banded_residual, make_x(START + 1), method="batched", chunk_size=1, out=tmp_path / "J", resume=True)
    with pytest.raises(ValueError, match="the method differs"):
        make_jacobian("columns", 1, out=tmp_path / "J", resume=True)
    with pytest.raises(ValueError, match=r"records the blocks of an earlier run in the zarr array .*resume=True continues it"):
        make_jacobian("batched", 1, out=zarr.open_array(tmp_path / "J"))


@pytest.mark.parametrize("resume", [False, True])
def test_other_data_is_not_overwritten(tmp_path, resume):
    an_array(tmp_path / "theirs")[:] = 7
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("theirs", "notes", "file"):
        with pytest.raises(FileExistsError, match="this place exists already, and nothing was overwritten"):
            make_jacobian(out=str(tmp_path / name), resume=resume)
    assert (zarr.open_array(tmp_path / "theirs")[:] == 7).all() and (tmp_path / "notes" / "a.txt").read_text() == "mine"


def test_a_kill_between_creating_the_array_and_the_record(tmp_path):
    make_jacobian("batched", out=tmp_path / "J")
    assert not (tmp_path / "J" / "gradlab.json").exists()
    np.testing.assert_allclose(make_jacobian("batched", out=tmp_path / "J", resume=True), banded_jacobian(), atol=1e-14)


# -------------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (lambda: zarr.zeros((3, 3)), ValueError, r"out= must have the Jacobian's shape \(12, 12\) .* but has \(3, 3\)"),
        (
            lambda: zarr.zeros((12, 12), dtype="float32"),
            TypeError,
            "out= must have the Jacobian's dtype float64, but has float32",
        ),
        (lambda: [1, 2], TypeError, r"out= takes a NumPy array or np\.memmap .*, a zarr array or group, or a path"),
    ],
)
def test_invalid_out(out, error, message):
    with pytest.raises(error, match=message):
        make_jacobian(out=out())


def test_a_read_only_array(tmp_path):
    an_array(tmp_path / "J")
    with pytest.raises(ValueError, match=r"out= is read only; zarr\.open_array\(…, mode='r\+'\)"):
        make_jacobian(out=zarr.open_array(tmp_path / "J", mode="r"))
    zarr.create_group(store=tmp_path / "G")
    with pytest.raises(ValueError, match=r"out= is read only; zarr\.open_group"):
        make_jacobian(out=zarr.open_group(tmp_path / "G", mode="r"))


def test_colours_go_into_a_group(tmp_path):
    for options in ({"method": "sparse"}, {"sparsity": banded_jacobian() != 0}, {"plan": make_jacobian("sparse").plan}):
        with pytest.raises(ValueError, match="a sparse Jacobian is written to a zarr group, in CSR parts, not to a zarr array"):
            gl.jacobian(banded_residual, make_x(), out=zarr.zeros((12, 12)), **options)


def test_auto_is_dense_for_an_array():
    x = make_x(np.linspace(0, 1, 600))
    assert gl.jacobian(banded_residual, x).plan.method == "sparse"
    J = gl.jacobian(
        banded_residual, x, out=zarr.create_array(store=zarr.storage.MemoryStore(), shape=(600, 600), dtype="float64")
    )
    assert J.plan.colours is None
    np.testing.assert_allclose(J, banded_jacobian(np.linspace(0, 1, 600)), atol=1e-14)


class Full(zarr.storage.WrapperStore):
    """A store that raises after the first few chunks."""

    left = 3

    async def set(self, key, value):
        if re.search(r"/?c/", key):
            if Full.left == 0:
                raise OSError(28, "No space left on device")
            Full.left -= 1
        await super().set(key, value)


def test_a_store_that_fails_to_write(tmp_path, monkeypatch):
    monkeypatch.setattr(Full, "left", 3)
    store = Full(zarr.storage.LocalStore(tmp_path / "J"))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        J = make_jacobian("batched", 1, out=store, resume=True, executor=pool)
        with pytest.raises(OSError, match="No space left on device") as caught:
            J.compute()
        assert caught.value.__notes__[0].startswith(
            "This was raised by a worker that wrote block 3, row 3 of the Jacobian, into the zarr array "
        )
        assert J.store.done == {0, 1, 2}
        monkeypatch.setattr(Full, "left", 100)
        np.testing.assert_allclose(J.compute(), banded_jacobian(), atol=1e-14)
    assert make_jacobian("batched", 1, out=tmp_path / "J", resume=True).complete


@pytest.mark.parametrize("group", [False, True])
def test_half_precision(tmp_path, group):
    out = zarr.create_group(store=tmp_path / "J") if group else tmp_path / "J"
    J = gl.jacobian(lambda x: x * x, gl.tensor([1.0, 2.0, 3.0], dtype=gl.float16), chunk_size=2, out=out).compute()
    assert np.asarray(J).dtype == np.float16 and np.asarray(J).tolist() == np.diag([2.0, 4, 6]).tolist()
    assert J.sparse().toarray().tolist() == np.diag([2.0, 4, 6]).tolist() and J[1].tolist() == [0, 4, 0]


@pytest.mark.parametrize("group", [False, True])
def test_an_empty_pattern(tmp_path, group):
    out = zarr.create_group(store=tmp_path / "J") if group else tmp_path / "J"
    with pytest.warns(UserWarning, match="the given pattern leaves out entries"):
        J = gl.jacobian(lambda x: x * x, make_x(), sparsity=np.zeros((ROWS, ROWS), bool), out=out, resume=True).compute()
    assert not np.asarray(J).any() and J.sparse().nnz == 0

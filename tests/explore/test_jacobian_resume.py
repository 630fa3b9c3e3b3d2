"""Jacobians in files that another process resumes: the record, comparisons, errors, and the work lost by a kill."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
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

import gradlab as gl
from gradlab.explore.jacobian import checkpoint, fingerprint


# ----------------------------------------------------------------------------------------------------------------- resume
def resume_in_file(tmp_path, mode="r+", f=banded_residual, x=None, **options):
    options = {"method": "batched", "chunk_size": 5} | options
    return gl.jacobian(f, make_x() if x is None else x, out=make_file(tmp_path, mode), resume=True, **options)


def half(tmp_path, **options):
    """Stop a run before its third block, and return its record."""
    J = resume_in_file(tmp_path, "w+", **options)
    stop_before_block(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match=r"are known and kept\. .*; so does resume=True in another process\."):
        np.asarray(J)
    return json.loads((tmp_path / "J.bin.json").read_text())


def test_a_record_describes_the_file(tmp_path):
    found = half(tmp_path)
    assert found["what"] == checkpoint.WHAT and found["version"] == 3 and found["blocks"] == 3
    said = {what: part[1] for what, part in found["facts"].items()}
    assert said["the method"] == "batched" and said["the chunk size"] == "5" and said["the shape"] == "(12, 12)"
    assert said["the dtype"] == "float64" and said["inputs[0]"] == "a gradlab tensor of shape (12,), float64"
    assert said["banded_residual's code"] == "code" and said["the version of gradlab"] == gl.__version__
    assert [(one["from"], one["to"]) for one in found["done"]] == [(0, 2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["J.bin", "J.bin.json"]


@pytest.mark.parametrize("method", METHODS)
def test_another_array_of_the_same_file_resumes(tmp_path, method):
    chunk = {"rows": None, "sparse": 1}.get(method, 5)
    half(tmp_path, method=method, chunk_size=chunk)
    J = resume_in_file(tmp_path, method=method, chunk_size=chunk)
    assert J.store.done == {0, 1}
    done = 10 if chunk == 5 else 2
    np.testing.assert_array_equal(np.asarray(J), make_jacobian(method))
    assert J.sweeps == J.plan.sweeps - done
    again = resume_in_file(tmp_path, method=method, chunk_size=chunk)
    assert again.complete and again.sweeps == 0
    np.testing.assert_array_equal(again, make_jacobian(method))


def test_auto_resumes_with_the_same_plan(tmp_path, monkeypatch):
    """The chunk size depends on the free memory, which may have changed."""
    half(tmp_path, method="columns", chunk_size=4)
    J = resume_in_file(tmp_path, method="auto", chunk_size=None)
    assert J.plan.method == "columns" and J.plan.chunk == 4 and J.store.done == {0, 1}


def test_a_kill_loses_at_most_a_twentieth_by_default(tmp_path):
    for method, chunks in (("batched", 23), ("columns", 23), ("sparse", 3), ("rows", 45)):
        out = np.memmap(tmp_path / method, np.float64, "w+", shape=(45, 45))
        J = gl.jacobian(banded_residual, make_x(np.linspace(0, 1, 45)), method=method, out=out, resume=True)
        assert len(J.plan.blocks()) == chunks, method
        np.testing.assert_allclose(np.asarray(J), banded_jacobian(np.linspace(0, 1, 45)))


@pytest.mark.parametrize("method", ["batched", "columns", "sparse"])
def test_hessians_resume(tmp_path, method):
    def energy(x):
        return (x[1:] * x[:-1]).sum() + (x**4).sum()

    def make_jacobian(mode, **options):
        out = make_file(tmp_path, mode)
        return gl.hessian(energy, make_x(), method=method, chunk_size=1, out=out, resume=True, **options)

    J = make_jacobian("w+")
    stop_before_block(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        np.asarray(J)
    J = make_jacobian("r+")
    assert J.store.done == {0, 1}
    expected = np.diag(12 * START**2) + np.eye(12, k=1) + np.eye(12, k=-1)
    np.testing.assert_allclose(np.asarray(J), expected, atol=1e-14)
    with pytest.raises(ValueError, match="the derivative differs: jacobian instead of hessian"):
        gl.jacobian(energy, make_x(), out=make_file(tmp_path, "r+"), resume=True)


def test_blocks_out_of_order(tmp_path):
    J = resume_in_file(tmp_path, "w+")
    J[11], J[0]
    again = resume_in_file(tmp_path)
    assert again.store.done == {2, 0} and again.known_mask.tolist() == [True] * 5 + [False] * 5 + [True] * 2
    np.testing.assert_array_equal(again, make_jacobian())


def test_a_part_of_a_larger_file(tmp_path):
    whole = make_file(tmp_path, shape=(3, ROWS, ROWS))
    np.asarray(gl.jacobian(banded_residual, make_x(), out=whole[1], resume=True))
    np.testing.assert_allclose(np.array(whole), [np.zeros((ROWS, ROWS)), banded_jacobian(), np.zeros((ROWS, ROWS))])
    with pytest.raises(ValueError, match=r"the place in the file differs: byte 2304, strides .* instead of byte 1152"):
        gl.jacobian(banded_residual, make_x(), out=whole[2], resume=True)


A, FACTOR = np.ones(3), 2.0


def make_function(constant=3.0, array=None, default=1.0):
    array = np.arange(12.0) if array is None else array
    lines = f"""
        def f(x, k={default!r}):
            return helper(x) * {constant!r} + gl.tensor(array) * k
    """
    space = {"gl": gl, "array": array, "helper": helper}
    exec(textwrap.dedent(lines), space)
    return space["f"]


def helper(x):
    return x * x * FACTOR


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": make_x(START + 1e-16 * (np.arange(12) == 3))}, "the input x differs (a gradlab tensor of shape (12,), float64)"),
        ({"x": make_x().reshape(3, 4)}, "the input x differs: a gradlab tensor of shape (3, 4), float64 instead of "),
        ({"f": make_function(constant=4.0)}, " differs: 4.0 instead of 3.0"),
        ({"f": make_function(array=np.arange(12.0) + 1)}, "the global array in f differs (an array of shape (12,), float64)"),
        ({"f": make_function(default=2.0)}, "the default of f's argument k differs: 2.0 instead of 1.0"),
        ({"f": lambda x: helper(x) + 1}, "<lambda>'s code is new (code)"),
        ({"method": "columns"}, "the method differs: columns instead of batched"),
        ({"chunk_size": 6}, "the chunk size differs: 6 instead of 5"),
    ],
)
def test_the_difference_is_named(tmp_path, change, message):
    if message.startswith("the input x differs (a"):
        change = {"x": make_x(np.nextafter(START, np.inf))}
    half(tmp_path, f=make_function())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    x = change.pop("x", None)
    x = make_x() if x is None else x
    with pytest.raises(ValueError, match=r"^resume=True cannot continue from .*J\.bin\.json: ") as caught:
        resume_in_file(tmp_path, **{"f": make_function(), "x": x} | change)
    assert message in str(caught.value)
    assert str(caught.value).endswith("Give out= another file, or move J.bin.json away to compute everything again.")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before, "the file is unchanged"


def test_values_that_a_helper_uses_matter(tmp_path, monkeypatch):
    half(tmp_path, f=make_function())
    monkeypatch.setitem(globals(), "FACTOR", 2.5)
    with pytest.raises(ValueError, match=r"the global FACTOR in helper differs: 2\.5 instead of 2\.0"):
        resume_in_file(tmp_path, f=make_function())


def test_a_function_with_other_values_is_an_error(tmp_path):
    def noisy(x):
        return x * gl.rand(12, dtype=gl.float64)

    half(tmp_path, f=noisy)
    with pytest.raises(ValueError, match="the output of the function differs, although inputs and code are the same"):
        resume_in_file(tmp_path, f=noisy)


def test_the_version_matters(tmp_path, monkeypatch):
    half(tmp_path)
    monkeypatch.setattr(fingerprint, "version_of", lambda top: "0.0")
    with pytest.raises(ValueError, match=rf"the version of gradlab differs: 0\.0 instead of {gl.__version__}"):
        resume_in_file(tmp_path)


def test_the_pattern_matters(tmp_path):
    x = make_x()
    full = np.abs(np.subtract.outer(np.arange(12), np.arange(12))) <= 1
    half(tmp_path, method="sparse", chunk_size=1, sparsity=full)
    wider = np.abs(np.subtract.outer(np.arange(12), np.arange(12))) <= 2
    with pytest.raises(ValueError, match="the sparsity pattern differs: 54 entries instead of 34 entries"):
        resume_in_file(tmp_path, method="sparse", chunk_size=1, sparsity=wider)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("hello", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        (b"\xff\xfe\x00", "it is not text"),
        ("[1, 2]", 'it is JSON without "what": "the record of a Jacobian that gradlab computes"'),
        ('{"scripts": {}}', 'it is JSON without "what"'),
        (json.dumps({"what": checkpoint.WHAT, "version": 99}), "it has version 99, and this gradlab reads version 3"),
        (json.dumps({"what": checkpoint.WHAT, "version": 3, "facts": {}}), "it is damaged"),
    ],
)
def test_a_corrupt_or_foreign_record_is_unchanged(tmp_path, text, why):
    half(tmp_path)
    path = tmp_path / "J.bin.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = (path.read_bytes(), (tmp_path / "J.bin").read_bytes())
    with pytest.raises(ValueError, match=r"J\.bin\.json is not a record from which a Jacobian can be resumed: ") as caught:
        resume_in_file(tmp_path)
    assert why in str(caught.value) and "Nothing was overwritten." in str(caught.value)
    assert (path.read_bytes(), (tmp_path / "J.bin").read_bytes()) == before


@pytest.mark.parametrize(
    "damage",
    [
        {"done": [{"from": 0, "to": 9, "digest": ""}]},
        {"done": [{"from": -1, "to": 1, "digest": ""}]},
        {"done": 3},
        {"blocks": "3"},
        {"done": [{"from": 0, "to": 2, "digest": ""}, {"from": 1, "to": 3, "digest": ""}]},
        {"values": None},
        {"values": {"output": [1.0]}},
        {"facts": []},
    ],
)
def test_a_damaged_record_is_unchanged(tmp_path, damage):
    found = half(tmp_path)
    (tmp_path / "J.bin.json").write_text(json.dumps(found | damage))
    with pytest.raises(ValueError, match="it is damaged"):
        resume_in_file(tmp_path)


def test_a_record_is_not_overwritten_without_resume(tmp_path):
    half(tmp_path)
    with pytest.raises(ValueError, match=r"J\.bin\.json records the blocks of an earlier run .*resume=True continues it"):
        make_jacobian(out=make_file(tmp_path, "r+"))
    (tmp_path / "J.bin.json").write_text('{"somebody": "else\'s"}')
    np.asarray(make_jacobian(out=make_file(tmp_path, "r+")))
    assert (tmp_path / "J.bin.json").read_text() == '{"somebody": "else\'s"}'


def test_no_record_without_resume(tmp_path):
    np.asarray(make_jacobian(out=make_file(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["J.bin"]


@pytest.mark.parametrize("method", ["batched", "sparse"])
def test_an_emptied_file_is_detected(tmp_path, method):
    half(tmp_path, method=method, chunk_size=1)
    with pytest.warns(UserWarning, match=r"2 of the \d+ blocks .* again\. \(Opening the file with mode='w\+' empties it"):
        J = resume_in_file(tmp_path, "w+", method=method, chunk_size=1)
    assert not J.store.done
    np.testing.assert_allclose(np.asarray(J), banded_jacobian())


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda out: gl.jacobian(banded_residual(y := make_x().requires_grad_()), y, out=out, resume=True),
            "resume=True takes a function",
        ),
        (lambda out: make_jacobian(out=np.zeros((12, 12)), resume=True), r"resume=True takes out=np\.memmap\(.* out is ndarray"),
        (lambda out: make_jacobian(resume=True), "out is NoneType"),
        (lambda out: make_jacobian(out=out, resume="yes"), "resume='yes': it takes True or False"),
    ],
)
def test_resume_needs_a_function_and_a_file(tmp_path, ask, message):
    with pytest.raises(TypeError, match=message):
        ask(make_file(tmp_path))


def test_a_copy_on_write_file_is_an_error(tmp_path):
    make_file(tmp_path).flush()
    with pytest.raises(TypeError, match=r"out is a memmap that never reaches its file \(mode='c'\)"):
        make_jacobian(out=make_file(tmp_path, "c"), resume=True)


# ------------------------------------------------------------------------------------------------------------------ killed
SCRIPT = """
    import os, signal, sys
    from pathlib import Path
    import numpy as np
    import gradlab as gl
    from gradlab.explore.jacobian import checkpoint

    where, when = sys.argv[1:]
    reported = []

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def report(done, total):
        reported.append(done)
        if when == "reported" and len(reported) == 3:
            die()

    def after(count, inner):
        calls = []
        def counted(*given):
            calls.append(given)
            if len(calls) == count:
                die()
            return inner(*given)
        return counted

    if when == "flushed":
        checkpoint.Checkpoint.write = after(4, checkpoint.Checkpoint.write)
    if when == "replaced":
        os.replace = after(4, os.replace)
    W = np.random.default_rng(3).normal(size=(40, 25))
    x = gl.tensor(np.linspace(-1, 1, 25), dtype=gl.float64)
    file = Path(where) / "J.bin"
    out = np.memmap(file, np.float64, "r+" if file.exists() else "w+", shape=(40, 25))
    J = gl.jacobian(lambda x: gl.tanh(gl.tensor(W) @ x), x, method="batched", chunk_size=7, out=out, resume=True, progress=report)
    np.asarray(J)
    print(reported, J.sweeps)
"""


def process(tmp_path, when):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path), when], capture_output=True, text=True, check=False
    )


@pytest.mark.e2e
@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
@pytest.mark.parametrize(("when", "kept"), [("reported", 3), ("flushed", 2), ("replaced", 2)])
def test_killed_and_resumed(tmp_path, when, kept):
    """Killed in the fourth block, between its flush and its record, and before the record replaces the old one."""
    ran = process(tmp_path, when)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert ran.stdout == ""
    found = json.loads((tmp_path / "J.bin.json").read_text())
    assert [(one["from"], one["to"]) for one in found["done"]] == [(0, kept)]
    ran = process(tmp_path, "")
    assert ran.stdout == f"{[*range(7 * (kept + 1), 40, 7), 40]} {40 - 7 * kept}\n", ran.stderr
    W, x = np.random.default_rng(3).normal(size=(40, 25)), np.linspace(-1, 1, 25)
    np.testing.assert_allclose(
        np.fromfile(tmp_path / "J.bin").reshape(40, 25), (1 - np.tanh(W @ x) ** 2)[:, None] * W, atol=1e-14
    )
    (tmp_path / "whole").mkdir()
    assert process(tmp_path / "whole", "").returncode == 0
    assert (tmp_path / "whole" / "J.bin").read_bytes() == (tmp_path / "J.bin").read_bytes(), (
        "the file is that of an uninterrupted run"
    )


@pytest.mark.torch
def test_torch_functions_are_resumed(tmp_path):
    torch = pytest.importorskip("torch")
    weight = torch.linspace(-1, 1, 12, dtype=torch.float64)

    def of(weight):
        return lambda x: torch.tanh(x * weight) * x.sum()

    def resume_in_file(weight):
        x = torch.linspace(0, 2, 12, dtype=torch.float64)
        out = make_file(tmp_path, "r+" if (tmp_path / "J.bin").exists() else "w+")
        return gl.jacobian(of(weight), x, method="batched", chunk_size=5, out=out, resume=True)

    J = resume_in_file(weight)
    stop_before_block(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        np.asarray(J)
    J = resume_in_file(weight.clone())
    assert J.store.done == {0, 1}
    x = torch.linspace(0, 2, 12, dtype=torch.float64)
    np.testing.assert_allclose(np.asarray(J), torch.autograd.functional.jacobian(of(weight), x), atol=1e-14)
    with pytest.raises(ValueError, match=r"<lambda>'s closure variable weight differs \(a torch tensor of "):
        resume_in_file(weight + 1)


@pytest.mark.parametrize("method", METHODS)
def test_a_finished_jacobian_is_copied_and_pickled(tmp_path, method):
    """The graph and the record are no longer needed."""
    J = make_jacobian(method, out=make_file(tmp_path), resume=True)
    np.asarray(J)
    for other in (copy.deepcopy(J), pickle.loads(pickle.dumps(J))):
        np.testing.assert_array_equal(other, J)
        np.testing.assert_array_equal(other.sparse().toarray(), J)

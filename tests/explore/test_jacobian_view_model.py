"""The model of the live view of a Jacobian without a front end: frames, cells, columns, experiments, paths, colours."""

from __future__ import annotations

import numpy as np
import pytest
from explore.timed_sweeps import set_sweep_time

import gradlab as gl
from gradlab.explore.heat_cells import KNOWN, NAN, NEGATIVE, POSITIVE, HeatCells
from gradlab.explore.jacobian import jacobian
from gradlab.explore.jacobian.code import HandCode
from gradlab.explore.jacobian.view_model import FRAME, JacobianViewModel

MATRIX = np.array([[2, 0, 0], [2, 1, 0], [0, 0, 1], [1, 1, 1]], float)


def example():
    """Return z = (x0², x0·x1, x2, Σx) at (1, 2, 3) and x: a Jacobian that can be computed by hand."""
    x = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64).requires_grad_()
    z = gl.stack([x[0] ** 2, x[0] * x[1], x[2], x.sum()])
    return jacobian(z, x), x, z


class FrontEnd:
    """A front end that keeps the cells and updates the changed rows and columns of a frame like the page."""

    def __init__(self, lab):
        self.lab = lab
        self.cells = None

    def ask(self, what, buffers=(), **more):
        frame, arrays = self.lab.answer(what, more, list(buffers))
        if frame["whole"]:
            self.cells = [arrays[name].copy() for name in ("low", "high", "flags")]
            self.bins = arrays["rowBins"], arrays["columnBins"]
            assert not frame["lines"]
        at = 0
        for is_column, k in frame["lines"]:
            where = (slice(None), k) if is_column else (k, slice(None))
            length = self.cells[0].shape[0 if is_column else 1]
            for cells, name in zip(self.cells, ("low", "high", "flags"), strict=True):
                cells[where] = arrays[name][at : at + length]
            at += length
        self.frame, self.arrays = frame, arrays
        return frame

    def mix(self, weights):
        return self.ask("mix", [np.array(list(weights), "<i4").tobytes(), np.array(list(weights.values()), "<f8").tobytes()])

    def values(self):
        """Return the values shown, with NaN for unknown entries. Cells must be single entries."""
        low, high, flags = self.cells
        np.testing.assert_array_equal(low[flags == KNOWN], high[flags == KNOWN])
        return np.where(flags & KNOWN, low, np.nan)


def open_front_end(J):
    view = FrontEnd(JacobianViewModel(J))
    view.ask("hello")
    return view


def test_rows_are_computed_one_by_one_and_only_changes_are_sent():
    J, *_ = example()
    view = open_front_end(J)
    assert J.sweeps == 0 and view.frame["code"] == J.by_hand(0) and np.isnan(view.values()).all()
    for i in range(4):
        frame = view.ask("step")
        assert (frame["at"], frame["filled"], frame["sweeps"], frame["whole"], frame["lines"]) == (i, i + 1, 1, False, [[0, i]])
        np.testing.assert_array_equal(view.values(), np.where(np.arange(4)[:, None] <= i, MATRIX, np.nan))
        np.testing.assert_array_equal(view.arrays["result"], MATRIX[i])
        assert view.arrays["picked"].tolist() == [i] and view.arrays["weights"].tolist() == [1.0]
        assert frame["code"] == J.by_hand(i) and frame["extent"] == [0.0, 2.0]
    assert frame["done"] and view.ask("step")["at"] == 3
    frame = view.ask("reset")
    assert (frame["filled"], frame["at"], frame["extent"]) == (0, -1, []) and np.isnan(view.values()).all()
    assert view.ask("go", at=2)["sweeps"] == 0, "the row is known"
    np.testing.assert_array_equal(view.values()[2], MATRIX[2])


def test_columns_by_forward_sweeps_and_the_code_for_them():
    J, x, z = example()
    view = open_front_end(J)
    view.ask("step")
    view.ask("axis", by="columns")
    assert (view.frame["by"], view.frame["of"], view.frame["filled"], view.frame["at"]) == ("columns", 3, 0, -1)
    for at in (2, 0):
        frame = view.ask("go", at=at)
        assert frame["lines"] == [[1, at]] and frame["sweeps"] == 1
        np.testing.assert_array_equal(view.arrays["result"], MATRIX[:, at])
        names = {"gl": gl, "x": x, "z": z}
        exec(frame["code"], names)
        np.testing.assert_array_equal(names["column"].numpy(), MATRIX[:, at])
    known = np.ones((4, 3), bool)
    known[1:, 1] = False
    np.testing.assert_array_equal(view.values(), np.where(known, MATRIX, np.nan))
    view.mix({0: 0.5, 1: -1.0})
    np.testing.assert_array_equal(view.arrays["result"], MATRIX @ [0.5, -1, 0])
    names = {"gl": gl, "x": x, "z": z}
    exec(view.frame["code"], names)
    np.testing.assert_array_equal(names["column"].numpy(), MATRIX @ [0.5, -1, 0])
    assert J.rows_known == 1 and x.grad is None
    view.ask("step")
    assert view.frame["done"]
    view.ask("axis", by="rows")
    assert view.frame["done"], "all columns are all rows"
    np.testing.assert_array_equal(view.values(), MATRIX)


@pytest.mark.torch
def test_a_column_of_torch_by_the_code_for_it():
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    z = torch.outer(a.sin(), b.exp())
    view = open_front_end(jacobian(z, (a, b)))
    view.ask("axis", by="columns")
    view.ask("go", at=4)
    names = {"torch": torch, "a": a, "b": b, "z": z}
    exec(view.frame["code"], names)
    expected = torch.outer(a.sin(), b.exp() * torch.tensor([0.0, 1, 0])).flatten().detach()
    torch.testing.assert_close(names["column"], expected)
    np.testing.assert_allclose(view.arrays["result"], expected)
    assert a.grad is None and b.grad is None


def test_custom_weights():
    J, *_ = example()
    view = open_front_end(J)
    frame = view.mix({0: 0.5, 3: -1.0})
    np.testing.assert_array_equal(view.arrays["result"], 0.5 * MATRIX[0] - MATRIX[3])
    np.testing.assert_array_equal(view.arrays["stripLow"][0], 0.5 * MATRIX[0] - MATRIX[3])
    assert (frame["at"], frame["filled"], frame["sweeps"], J.rows_known) == (-1, 0, 1, 0)
    assert frame["code"] == J.by_hand([0.5, 0, 0, -1])
    view.mix({})
    np.testing.assert_array_equal(view.arrays["result"], [0, 0, 0])
    for weights in ({7: 1.0}, {-1: 1.0}):
        with pytest.raises(ValueError, match="do not fit a Jacobian with 4 rows"):
            view.mix(weights)


def test_known_entries_are_shown_and_the_rest_is_computed_by_the_plan():
    J, *_ = example()
    J.row(2)
    view = open_front_end(J)
    assert view.frame["filled"] == 1
    np.testing.assert_array_equal(view.values()[2], MATRIX[2])
    while not view.frame["known"]:
        view.ask("fill")
    np.testing.assert_array_equal(view.values(), MATRIX)
    assert J.complete and view.frame["done"] and view.frame["filled"] == 4
    view.ask("reset")
    view.ask("step")
    assert view.frame["sweeps"] == 0 and view.frame["filled"] == 1
    view.ask("fill")
    np.testing.assert_array_equal(view.values(), MATRIX)


def test_forgetting_to_zero_accumulates_and_forgetting_to_retain_raises():
    J, x, z = example()
    view = open_front_end(J)
    view.ask("step")
    view.ask("forget", zero=True)
    assert view.frame["filled"] == 0 and view.frame["trial"] == ""
    for i in range(3):
        view.ask("step")
        np.testing.assert_array_equal(view.arrays["result"], MATRIX[: i + 1].sum(0))
    np.testing.assert_array_equal(view.values()[:3], MATRIX.cumsum(0)[:3])
    assert view.frame["trial"] == "row z[0] + row z[1] + row z[2]"
    _, own_x, own_z = example()
    names = {"gl": gl, "x": own_x, "z": own_z}
    exec(view.frame["code"], names)
    np.testing.assert_array_equal(names["row"].numpy(), MATRIX[:3].sum(0))
    view.ask("forget", retain=True)
    view.ask("step")
    assert not view.frame["happened"]
    np.testing.assert_array_equal(view.arrays["result"], MATRIX[0])
    view.ask("step")
    assert view.frame["filled"] == 1 and "z.backward(v) " in view.frame["code"]
    with pytest.raises(RuntimeError, match="second time") as raised:
        exec(view.frame["code"], {"gl": gl, "x": own_x, "z": own_z})
    assert view.frame["happened"] == f"RuntimeError: {raised.value}", "the error of the actual program"
    with pytest.raises(RuntimeError, match="about backward"):
        view.ask("axis", by="columns")
    view.ask("forget")
    assert view.frame["filled"] == 1 and J.rows_known == 1 and x.grad is None
    np.testing.assert_array_equal(view.values()[0], MATRIX[0])
    z.backward(gl.ones(4, dtype=gl.float64))  # the user's graph was not freed
    np.testing.assert_array_equal(x.grad.numpy(), MATRIX.sum(0))


GRAPHS = {  # and whether they save tensors that a sweep frees
    "a product": (lambda x: x * x, True),
    "an exponential": (lambda x: gl.exp(x) + 1, True),
    "nothing saved": (lambda x: gl.cat([x, x]) + 1, False),
    "twice": (lambda x: 2 * x, True),
    "a matrix": (lambda x: gl.ones(2, 3, dtype=gl.float64) @ x, True),
    "several results of one operation": (lambda x: gl.stack(list(gl.var_mean(x, 0))), True),
    "a view": (lambda x: x.reshape(3, 1).T.reshape(3)[1:] + 1, False),
    "one result": (gl.linalg.norm, True),
    "a branch that needs none": (lambda x: gl.stack([x.sum(), (x.detach() * 2).sum() + x[0]]), False),
}


@pytest.mark.parametrize("case", GRAPHS)
@pytest.mark.parametrize("recorded", [False, True])
def test_forgetting_to_retain_gives_the_error_of_this_graph(case, recorded):
    """The error is compared with that of the code on an equal graph."""

    def make_graph():
        x = gl.tensor([1.0, 2.0, 4.0], dtype=gl.float64).requires_grad_()
        if not recorded:
            return x, GRAPHS[case][0](x)
        with gl.record_sites():
            return x, GRAPHS[case][0](x)

    x, z = make_graph()
    view = open_front_end(jacobian(z, x))
    view.ask("forget", retain=True)
    for _ in range(2):
        view.ask("go", at=0)
    own_x, own_z = make_graph()
    code, said = view.frame["code"].replace("for i in [0]", "for i in [0, 0]"), ""
    try:
        exec(code, {"gl": gl, "x": own_x, "z": own_z})
    except RuntimeError as error:
        said = f"RuntimeError: {error}"
    assert bool(said) == GRAPHS[case][1]
    assert view.frame["happened"].partition("  by")[0] == said.partition("  by")[0], "equal up to the line of the first backward"


@pytest.mark.torch
def test_forgetting_lines_in_a_graph_of_torch():
    torch = pytest.importorskip("torch")
    for make, refuses in ((lambda x: torch.stack([x[0] ** 2, x[0] * x[1]]), True), (lambda x: torch.cat([x, x]) + 1, False)):
        x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        z = make(x)
        view = open_front_end(jacobian(z, x))
        view.ask("forget", retain=True)
        for _ in range(2):
            view.ask("step")
        fresh = x.detach().clone().requires_grad_()
        names = {"torch": torch, "x": fresh, "z": make(fresh)}
        if refuses:
            with pytest.raises(RuntimeError, match="second time") as raised:
                exec(view.frame["code"], names)
            assert view.frame["happened"] == f"RuntimeError: {raised.value}"
        else:
            exec(view.frame["code"], names)
            assert view.frame["happened"] == ""
            np.testing.assert_array_equal(names["row"], view.arrays["result"])
        view.ask("forget", zero=True)
        for _ in range(2):
            view.ask("step")
        names = {"torch": torch, "x": fresh, "z": make(fresh)}
        exec(view.frame["code"], names)
        np.testing.assert_array_equal(names["row"], view.arrays["result"])
        z.sum().backward()
        assert x.grad is not None, "the user's graph was not freed"


def test_forgetting_with_several_outputs_and_inputs_and_without_leaves():
    a, b, c = (gl.tensor([1.0, 2.0], dtype=gl.float64).requires_grad_() for _ in range(3))
    z, w = a * b, (a.reshape(1, 2) * gl.ones(2, 1, dtype=gl.float64)) ** 2
    view = open_front_end(jacobian((z, w), (a, c, b)))
    matrix = np.array(jacobian((z, w), (a, c, b)))
    view.ask("forget", zero=True)
    for at in (1, 4):
        view.ask("go", at=at)
    np.testing.assert_array_equal(view.arrays["result"], matrix[[1, 4]].sum(0))
    names = {"gl": gl, "a": a, "b": b, "c": c, "z": z, "w": w}
    exec(view.frame["code"], names)
    np.testing.assert_array_equal(names["row"].numpy(), matrix[[1, 4]].sum(0))

    u = a * 1
    view = open_front_end(jacobian(u * u, u))
    assert view.lab.about()["unforgettable"]["zero"].startswith("the inputs are not leaves")
    with pytest.raises(ValueError, match="not leaves"):
        view.ask("forget", zero=True)
    view.ask("forget", retain=True)
    view.ask("step")
    names = {"gl": gl, "u": u, "y": u * u}
    exec(view.frame["code"].replace("# y: as given to jacobian", ""), names)
    np.testing.assert_array_equal(names["row"].numpy(), [2, 0])


def test_a_released_graph_cannot_be_retained():
    J, *_ = example()
    np.asarray(J)
    view = open_front_end(J)
    assert view.lab.about()["unforgettable"] == {
        "zero": "",
        "retain": "the graph was released once all rows were known, so nothing is left to retain",
    }
    with pytest.raises(ValueError, match="released"):
        view.ask("forget", retain=True)
    view.ask("forget", zero=True)
    view.ask("go", at=1)
    view.ask("go", at=3)
    np.testing.assert_array_equal(view.arrays["result"], MATRIX[[1, 3]].sum(0))


def test_forgetting_lines_with_a_large_matrix():
    x = gl.ones(70, dtype=gl.float64, requires_grad=True)
    view = open_front_end(jacobian(x * gl.arange(70.0, dtype=gl.float64), x))
    view.ask("forget", zero=True)
    assert view.frame["of"] == 70 and view.frame["filled"] == 0
    view.ask("go", at=5)
    view.ask("go", at=69)
    assert view.arrays["places"].tolist() == [5, 69] and view.frame["trial"] == "row y[5] + row y[69]"
    assert view.arrays["result"].tolist() == [5, 69]


def tridiagonal(n):
    x = gl.linspace(0, 1, n, dtype=gl.float64).requires_grad_()
    nothing = gl.zeros(1, dtype=gl.float64)
    y = x * x - 0.5 * gl.cat([x[1:], nothing]) + 0.25 * gl.cat([nothing, x[:-1]])
    return jacobian(y, x, method="sparse"), np.linspace(0, 1, n)


def test_nonzeros_are_in_the_middle_of_the_window():
    J, at = tridiagonal(10_000)
    view = open_front_end(J)
    frame = view.ask("go", at=1234)
    assert frame["centre"] == [1234, 1234] and frame["nonzero"] == 3
    assert view.arrays["places"].tolist() == [1233, 1234, 1235]
    np.testing.assert_allclose(view.arrays["result"], [0.25, 2 * at[1234], -0.5])
    view.ask("window", window=[1231, 1238, 4000, 4007])
    assert view.ask("go", at=1235)["window"] == [1231, 1238, 1232, 1239], "the window had no nonzero of the row"
    view.ask("window", window=[0, 10_000, 0, 10_000])
    view.mix({17: 1.0, 9000: 1.0})
    assert view.frame["centre"] == [9000, 8999] and view.frame["nonzero"] == 6
    view.ask("axis", by="columns")
    assert view.ask("go", at=77)["centre"] == [77, 77] and view.arrays["places"].tolist() == [76, 77, 78]
    view.ask("reset")
    view.ask("fill")
    row, column = view.frame["centre"]
    assert abs(row - column) <= 63 and abs(row - 5000) <= 100, "a nonzero cell near the middle"


def test_a_long_row_lists_the_numbers_of_the_window_first():
    x = gl.linspace(1, 2, 50, dtype=gl.float64).requires_grad_()
    view = open_front_end(jacobian((x * x).sum() * gl.ones(1, dtype=gl.float64), x))
    view.ask("step")
    assert view.arrays["places"].tolist() == list(range(12)) and view.frame["nonzero"] == 50
    view.ask("window", window=[0, 1, 30, 37])
    assert view.arrays["places"].tolist() == list(range(30, 37)) and view.frame["centre"] == [0, 33]
    view.mix({})
    assert view.arrays["places"].tolist() == list(range(30, 37)) and view.frame["nonzero"] == 0


def test_a_view_without_columns():
    J, *_ = example()
    view = FrontEnd(JacobianViewModel(J, columns=False))
    assert view.lab.about()["axes"] == ["rows"] and view.lab.about()["backward"] == "z.backward(v)"
    view.ask("hello")
    with pytest.raises(ValueError, match="shows rows only"):
        view.ask("axis", by="columns")
    assert view.ask("step")["at"] == 0
    x = gl.ones(30, dtype=gl.float64, requires_grad=True)
    J = jacobian(gl.cat([x * x, x[:-1] + x[1:], x[2:] - x[:-2]]), x, method="sparse")
    assert (
        J.plan.by == "columns"
        and JacobianViewModel(J).about()["groups"] == J.plan.sweeps
        and JacobianViewModel(J, columns=False).about()["groups"] == 0
    )
    with pytest.raises(ValueError, match="no colours"):
        JacobianViewModel(J, columns=False).colours()


def test_bad_requests_are_errors_and_change_nothing():
    J, *_ = example()
    view = open_front_end(J)
    view.ask("step")
    wrong = ("burn", {}), ("go", {"at": 4}), ("go", {"at": -1}), ("go", {}), ("axis", {"by": "planes"}), ("window", {})
    for ask, more in wrong:
        with pytest.raises((ValueError, IndexError, KeyError)):
            view.ask(ask, **more)
    assert (view.ask("pause")["at"], view.frame["filled"], view.frame["window"]) == (0, 1, [0, 4, 0, 3])


# ------------------------------------------------------------------------------------------ cells
def known_jacobian(matrix):
    """Return a Jacobian with all entries known."""
    x = gl.ones(matrix.shape[1], dtype=gl.float64)
    J = jacobian(lambda x: gl.zeros(len(matrix), dtype=gl.float64) + x[0], x, method="rows")
    J.runner.values = lambda block: matrix[block.start : block.stop]
    J.runner.compute()
    return J


def test_cells_hold_the_true_extremes():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(700, 500))
    matrix[3, 4], matrix[600, 499], matrix[50, 60], matrix[51, 61] = -1e6, np.nan, np.inf, -np.inf
    blocks = [("x", 500)]
    cells = HeatCells((0, 700, 0, 500), blocks, 160)
    cells.put_known(known_jacobian(matrix).store)
    finite = matrix[np.isfinite(matrix)]
    assert cells.extremes() == (finite.min(), finite.max())
    assert cells.low.shape == (160, 160) and not cells.exact
    for flag, bad in ((NAN, np.isnan), (POSITIVE, np.isposinf), (NEGATIVE, np.isneginf)):
        (i,), (j,) = np.nonzero(cells.flags & flag)
        end = [*cells.rows, 700][i + 1], [*cells.columns, 500][j + 1]
        assert bad(matrix[cells.rows[i] : end[0], cells.columns[j] : end[1]]).sum() == 1
    by_rows, by_columns = (HeatCells((0, 700, 0, 500), blocks, 160) for _ in range(2))
    for i in range(700):
        by_rows.put_row(i, matrix[i])
    for j in range(500):
        by_columns.put_column(j, matrix[:, j])
    for other in (by_rows, by_columns):
        np.testing.assert_array_equal(other.low, cells.low)
        np.testing.assert_array_equal(other.high, cells.high)
        np.testing.assert_array_equal(other.flags, cells.flags)


def test_a_window_shows_single_entries_and_no_cell_crosses_inputs():
    a, b = gl.ones(300, dtype=gl.float64, requires_grad=True), gl.ones(100, dtype=gl.float64, requires_grad=True)
    scale = np.arange(400.0)
    J = jacobian(gl.tensor(scale, dtype=gl.float64) * gl.cat([a, b]), (a, b))
    view = open_front_end(J)
    assert 300 in view.bins[1] and view.cells[0].shape == (160, 160)
    view.ask("fill")
    view.ask("window", window=[290, 310, 295, 305])
    assert view.cells[0].shape == (20, 10)
    np.testing.assert_array_equal(view.values(), np.diag(scale)[290:310, 295:305])
    assert view.frame["extent"] == [0.0, 399.0], "the extremes are those of the whole matrix"
    view.ask("go", at=2)
    assert view.frame["window"] == [0, 20, 0, 10], "the window contains nonzeros of the row"
    view.ask("window", window=[-5, 10**9, 3, 3])
    assert view.frame["window"] == [0, 400, 3, 4]


def test_nonfinite_values_are_reported():
    x = gl.tensor([0.0, 1.0], dtype=gl.float64).requires_grad_()
    view = open_front_end(jacobian(gl.log(x) * gl.tensor([1.0, -1.0], dtype=gl.float64), x))
    view.ask("step")
    low, high, flags = view.cells
    assert flags[0, 0] == KNOWN | POSITIVE and low[0, 0] > high[0, 0], "no finite entry"


def test_a_large_matrix_is_reduced_quickly_and_bounded():
    x = gl.ones(3000, dtype=gl.float64, requires_grad=True)
    J = jacobian(x * gl.tensor(np.linspace(-1, 2, 3000), dtype=gl.float64), x)
    view = open_front_end(J)
    assert all(array.nbytes <= 160 * 160 * 8 for array in view.arrays.values())
    view.ask("go", at=2999)
    assert view.frame["extent"] == [0.0, 2.0] and view.arrays["places"].tolist() == [2999]
    assert view.frame["lines"] == [[0, 159]] and view.arrays["low"].size == 160


# ------------------------------------------------------------------------------------------------- paths and colours
def labels(view, lit):
    return {view.about["graph"]["nodes"][k]["label"] for k in lit}


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_row_highlights_the_path_of_its_cotangent(library):
    lib = pytest.importorskip(library)
    x = lib.tensor([1.0, 2.0]).requires_grad_()
    b = lib.tensor([3.0]).requires_grad_()
    z = lib.cat([lib.sin(x), lib.exp(b)])
    view = FrontEnd(JacobianViewModel(jacobian(z, (x, b))))
    view.about = view.lab.about()
    view.ask("hello")
    assert view.frame["lit"] == []
    assert labels(view, view.ask("go", at=1)["lit"]) == {"x", "sin", "cat(0)", "z"}
    assert labels(view, view.ask("go", at=2)["lit"]) == {"b", "exp", "cat(0)", "z"}
    edges = [view.about["graph"]["edges"][k] for k in view.frame["litEdges"]]
    names = [node["label"] for node in view.about["graph"]["nodes"]]
    pairs = {(names[source], names[target]) for source, target, *_ in edges}
    assert pairs == {("b", "exp"), ("exp", "cat(0)"), ("cat(0)", "z")}
    assert labels(view, view.mix({0: 1.0, 2: 1.0})["lit"]) == {"x", "sin", "b", "exp", "cat(0)", "z"}
    view.ask("axis", by="columns")
    assert view.frame["lit"] == []
    assert labels(view, view.ask("go", at=0)["lit"]) == {"x", "sin", "cat(0)", "z"}
    assert x.grad is None and b.grad is None


def test_a_large_graph_is_folded_and_highlighted():
    x = gl.tensor([1.0, 2.0], dtype=gl.float64).requires_grad_()
    y = x
    for _ in range(200):
        y = (y * 0.99).tanh()
    view = FrontEnd(JacobianViewModel(jacobian(y, x)))
    figure = view.lab.about()["graph"]
    view.ask("hello")
    assert len(figure["nodes"]) <= 24 and figure["folded"] > 400
    assert view.ask("step")["lit"] == list(range(len(figure["nodes"]))), "all parts of a chain are on the path"


def test_the_colours_of_a_sparse_matrix():
    x = gl.linspace(0, 1, 9, dtype=gl.float64).requires_grad_()
    z = x * x
    z = gl.cat([z[:1], z[1:] - x[:-1]])
    J = jacobian(z, x, method="sparse")
    view = open_front_end(J)
    frame, arrays = view.lab.colours()
    cells, colours = arrays["groupCells"], np.asarray(J.plan.colours)
    assert (frame["sweeps"], frame["entries"]) == (2, 17) and sum(group["size"] for group in frame["groups"]) == 9
    pattern = np.eye(9, dtype=bool) | np.eye(9, k=-1, dtype=bool)
    by = colours if frame["by"] == "columns" else colours[:, None]
    np.testing.assert_array_equal(cells, np.where(pattern, by, -1))
    while not view.frame["known"]:
        view.ask("fill")
    assert J.sweeps == 2
    np.testing.assert_allclose(view.values(), np.diag(2 * np.linspace(0, 1, 9)) - np.eye(9, k=-1))
    view.ask("group", colour=1)
    members = np.flatnonzero(colours == 1)
    assert view.arrays["picked"].tolist() == members.tolist()
    dense = np.asarray(J)
    compressed = dense[:, members].sum(1) if frame["by"] == "columns" else dense[members].sum(0)
    np.testing.assert_allclose(view.arrays["result"], compressed)


@pytest.mark.parametrize("method", ["rows", "batched", "columns", "sparse"])
def test_every_method_fills_block_by_block(method, clock):
    x = gl.linspace(0, 1, 7, dtype=gl.float64).requires_grad_()
    z = gl.cat([x[:1] ** 2, x[1:] ** 2 - x[:-1]])
    expected = np.diag(2 * np.linspace(0, 1, 7)) - np.eye(7, k=-1)
    options = {} if method == "rows" else {"chunk_size": 1 if method == "sparse" else 3}
    J = set_sweep_time(jacobian(z, x, method=method, **options), 2 * FRAME, clock)
    view = open_front_end(J)
    frames = 0
    while frames < 10:
        view.ask("fill")
        frames += 1
        known = ~np.isnan(view.values())
        np.testing.assert_allclose(view.values()[known], expected[known])
        if view.frame["known"]:
            break
        assert 0 < known.sum() < 49
        assert view.frame["extent"][0] == pytest.approx(expected[known].min())
        assert view.frame["extent"][1] == pytest.approx(expected[known].max())
    assert frames == {"rows": 7, "batched": 3, "columns": 3, "sparse": 2}[method]
    np.testing.assert_allclose(view.values(), expected)


def test_nans_are_counted_once():
    x = gl.tensor([1.0, -1.0, 4.0], dtype=gl.float64).requires_grad_()
    z = gl.sqrt(x) * gl.ones(2, 1, dtype=gl.float64)
    view = open_front_end(jacobian(z, x))
    view.ask("go", at=1)
    nans = int(np.isnan(view.arrays["result"]).sum())
    assert view.frame["nans"] == nans > 0
    view.ask("axis", by="columns")
    view.ask("go", at=1)
    column = np.isnan(view.arrays["result"])
    assert view.frame["nans"] == nans + column.sum() - column[1]
    view.ask("window", window=[0, 6, 0, 3])
    assert view.frame["nans"] == nans + column.sum() - column[1]


def test_several_outputs_have_their_paths():
    x = gl.tensor([1.0, 2.0], dtype=gl.float64).requires_grad_()
    J = jacobian((gl.sin(x), gl.exp(x).sum()), x, names={"x": x})
    view = FrontEnd(JacobianViewModel(J))
    view.about = view.lab.about()
    view.ask("hello")
    assert [part["shape"] for part in view.about["outputs"]] == [[2], []]
    assert {"x", "sin"} < labels(view, view.ask("go", at=0)["lit"]) and "exp" not in labels(view, view.frame["lit"])
    assert {"x", "exp", "sum"} < labels(view, view.ask("go", at=2)["lit"]) and "sin" not in labels(view, view.frame["lit"])
    np.testing.assert_allclose(view.arrays["result"], np.exp([1.0, 2.0]))


def test_the_view_of_a_hessian():
    x = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64).requires_grad_()
    expected = np.array([[6, 1, 0], [1, 12, 0], [0, 0, 18]], float)

    def f(x):
        return (x**3).sum() + x[0] * x[1]

    view = open_front_end(gl.hessian(f, x))
    view.ask("step")
    np.testing.assert_array_equal(view.arrays["result"], expected[0])
    view.ask("axis", by="columns")
    view.ask("go", at=1)
    np.testing.assert_array_equal(view.arrays["result"], expected[:, 1])
    names = {"gl": gl, "x": x, "f": f}
    exec(view.frame["code"], names)
    np.testing.assert_array_equal(names["column"].numpy(), expected[:, 1])
    view.ask("fill")
    np.testing.assert_array_equal(view.values(), expected)


@pytest.mark.parametrize("method", ["columns", "sparse", "batched"])
def test_a_view_opens_with_the_known_blocks_and_fills_the_others(method):
    J = jacobian(lambda u: gl.cat([u[1:] * u[:-1], u[:1]]), gl.linspace(1, 2, 6, dtype=gl.float64), method=method, chunk_size=1)
    J[4]
    J.runner.run(J.plan.blocks()[:2])
    view = open_front_end(J)
    known = view.cells[2] & KNOWN > 0
    at = np.arange(6)
    expected = {"columns": np.add.outer(at == 4, at < 2), "batched": np.isin(at, [0, 1, 4])[:, None]}
    np.testing.assert_array_equal(known, np.broadcast_to(expected.get(method, True), (6, 6)))
    for _ in range(9):
        view.ask("step")
    while not view.ask("fill").get("done"):
        pass
    np.testing.assert_array_equal(view.values(), J)


def test_the_code_for_a_column_if_gradlab_has_another_name():
    x = gl.tensor([2.0, 3.0], dtype=gl.float64).requires_grad_()
    names = {"lab": gl, "x": x, "y": gl.stack([x[0] * x[1], x[1] ** 2, x[0]])}
    code = HandCode("lab", [("y", (3,))], [("x", (2,))], leaves=True, plain=False, forward=True)
    for j, expected in enumerate(([3.0, 0.0, 1.0], [2.0, 6.0, 0.0])):
        assert "jvp_of_graph" in code.column(j)
        exec(code.column(j), names)
        assert names["column"].tolist() == expected

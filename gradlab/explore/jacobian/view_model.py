"""Model of the live view of a Jacobian, without a front end.

A `JacobianViewModel` gets requests ("step", "go", "mix", "window", …) and answers with a frame: a dict of parts to show, and
named arrays. The front end keeps the cells and inserts the changed lines of a frame; "hello" and requests that move the window
return all cells. The size of frames is bounded: at most 160 × 160 cells and 12 numbers of a result.

The view shows the known entries of the Jacobian. Rows come from `J.row`, columns from `J.jvp`, the whole matrix from the blocks
of `J.plan`. "reset" empties the view but not the Jacobian. With a forgotten line (`what_if`) the view shows another matrix, that
of the trial; the true one returns when the switch goes back.

The view focuses on nonzero entries: of a long result the nonzero numbers are written out, and zooming centres on them, since a
window in a sparse matrix would mostly show nothing. Rows and columns are numbered from 0, as in their labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradlab import clock
from gradlab.explore.drawing import Drawing
from gradlab.explore.heat_cells import NAN, HeatCells, Window
from gradlab.explore.jacobian.code import Labels
from gradlab.explore.jacobian.graph import split
from gradlab.explore.jacobian.live_map import LEAST, ROOM, LiveMap, class_colour
from gradlab.explore.jacobian.matrix import Jacobian
from gradlab.explore.jacobian.plan import Block
from gradlab.explore.jacobian.store import Store
from gradlab.explore.jacobian.what_if import WhatIf, reasons
from gradlab.explore.sweep_path import SweepPath, path_of

CELLS = 160  # cells per side
NUMBERS = 12  # numbers of a result
SWIFT = 0.2  # maximum seconds for highlighting the graph while rows follow one another
FRAME = 0.15  # seconds of computing between two frames while everything is filled
PICTURED = 256  # entries up to which the static picture is complete from the start
QUICK = 0.2  # maximum seconds for this

Frame = tuple[dict[str, Any], dict[str, np.ndarray]]


class JacobianViewModel:
    """State of a view of a Jacobian.

    Parameters
    ----------
    jacobian : Jacobian
    columns : bool
        Whether columns can also be stepped through. False for a lesson that shows only rows.

    Attributes
    ----------
    by : {"rows", "columns"}
        Which lines are stepped through: rows by cotangents v, columns by tangents u.
    at : int
        The row or column shown; −1 for none, or for free weights.
    weights : ndarray
        v or u.
    result : ndarray or None
        vᵀJ or Ju.
    """

    def __init__(self, jacobian: Jacobian, *, columns: bool = True) -> None:
        self._jacobian, self._with_columns = jacobian, columns
        self._graph = jacobian.runner.graph  # kept, so that paths can be highlighted when all entries are known
        self._path: SweepPath | None = None
        self._light_seconds = 0.0
        self._true = self._layer = Layer(jacobian, None)  # "hello" shows the known entries
        self._new = True
        self._map = LiveMap(jacobian)
        self._trial: WhatIf | None = None
        self._switches = {"zero": False, "retain": False}
        self.by, self.at, self.sweeps = "rows", -1, 0
        self.result: np.ndarray | None = None
        self.weights = np.zeros(jacobian.shape[0])
        self._code = self._happened = ""
        self._lit: tuple[list[int], list[int]] = ([], [])
        self._pictured: dict[int, np.ndarray] = {}  # columns for the static picture only

    # ------------------------------------------------------------------------------------------ what does not change
    def about(self) -> dict[str, Any]:
        """Return names, shapes, costs and the drawing of the graph: plain data for JSON."""
        jacobian = self._jacobian
        if self._graph is not None:
            named = zip((*jacobian.output_names, *jacobian.input_names), (*self._graph.outputs, *self._graph.inputs), strict=True)
            self._path = path_of(jacobian.library, self._graph.outputs, self._graph.inputs, dict(named))
        plan = None if jacobian.complete else jacobian.plan
        return {
            "outputs": [
                {"name": name, "shape": list(shape)}
                for name, shape in zip(jacobian.output_names, jacobian.output_shapes, strict=True)
            ],
            "inputs": [
                {"name": name, "shape": list(shape)}
                for name, shape in zip(jacobian.input_names, jacobian.input_shapes, strict=True)
            ],
            "rows": jacobian.shape[0],
            "columns": jacobian.shape[1],
            "plan": "" if plan is None else str(plan),
            "axes": ["rows", "columns"] if self._with_columns else ["rows"],
            "groups": int(jacobian.plan.sweeps) if self._shows_colours() else 0,
            "backward": self._backward_call(),
            "unforgettable": dict(zip(self._switches, reasons(jacobian, self._graph), strict=True)),
            "forward": jacobian.library.has_forward,  # whether a tangent's actual path is known, or only what it may reach
            "graph": self._path.figure if self._path is not None else None,
        }

    def _shows_colours(self) -> bool:
        plan = self._jacobian.plan
        return plan.colours is not None and (self._with_columns or plan.by == "rows")

    def _backward_call(self) -> str:
        """Return code that applies a v: "z.backward(v)"."""
        code, names = self._jacobian.code, self._jacobian.output_names
        if len(names) == 1 and code.leaves:
            return f"{names[0]}.backward(v)"
        outputs = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        return f"{code.alias}.autograd.{'backward' if code.leaves else 'grad'}({outputs}, {'v' if code.leaves else '…, v'})"

    def drawing(self) -> Drawing:
        """Return the static picture of the Jacobian with all known entries, also this view's columns. It computes nothing."""
        return self._jacobian.drawing(compute=False, columns={**self._pictured, **self._true.columns})

    def complete_picture(self) -> bool:
        """Compute a small Jacobian for the static picture in a saved notebook. The view and the Jacobian do not change, so that
        they can be filled step by step. Return whether the picture is complete."""
        jacobian = self._jacobian
        rows, columns = jacobian.shape
        if jacobian.complete or self._pictured:
            return True
        if rows * columns > PICTURED:
            return False
        start, found = clock.now(), []
        for v in np.eye(rows):
            found.append(jacobian.vjp(v))
            if (clock.now() - start) / len(found) * rows > QUICK:
                return False
        self._pictured = dict(enumerate(np.stack(found, axis=1))) if found else {}
        return bool(found)

    # ------------------------------------------------------------------------------------------ asking
    def answer(self, ask: str, what: dict[str, Any], buffers: list[bytes]) -> Frame:
        """Handle a request and return a frame. If it raises an error, the state is as before."""
        if ask not in self._asks:
            raise ValueError(f"this view does not know the request {ask!r}")
        before = self._jacobian.sweeps
        if "room" in what:
            self._map.room = min(max(float(what["room"]), LEAST), ROOM)
        self._layer.changed, self._happened = set(), ""
        whole = self._asks[ask](self, what, buffers)
        self.sweeps = self._jacobian.sweeps - before
        return self._frame(whole)

    def _hello(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        if self._new:
            self._true.base, self._new = self._jacobian.store, False
        self._layer.look(self._layer.view.window)
        return True

    def _step(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        """Show the first row or column that is not shown yet."""
        done = self._layer.done[self.by == "columns"]
        if not done.all():
            return self._go_to(int(np.argmin(done)), swift=bool(what.get("swift")))
        return False

    def _go(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        size, at = self._size(), int(what["at"])
        if not 0 <= at < size:
            name = self._names()
            raise IndexError(f"there is no {self.by[:-1]} {at}: they go from 0 ({name[0]}) to {size - 1} ({name[size - 1]})")
        return self._go_to(at)

    def _go_to(self, at: int, swift: bool = False) -> bool:
        """Show one row or column. Return whether the window moved to include it."""
        jacobian, columns = self._jacobian, self.by == "columns"
        weights = np.zeros(self._size())
        weights[at] = 1.0
        if self._trial is not None:
            self._code = self._trial.code(at)
            try:
                line = self._trial.row(at)
            except RuntimeError as error:  # the error that the trial demonstrates
                self._happened = f"{type(error).__name__}: {error}"
                return False
            code = self._trial.code(at)
        elif columns:
            line, code = self._layer.column(at), jacobian.code.column(at)
        else:
            line, code = jacobian.row(at), jacobian.by_hand(at)
        self._layer.put(columns, at, line)
        self._show(at, weights, line, code, swift)
        window = list(self._layer.view.window)
        other = slice(2 * (not columns), 2 * (not columns) + 2)
        window[2 * columns : 2 * columns + 2] = _containing(window[2 * columns : 2 * columns + 2], at, self._size())
        if not line[slice(*window[other])].any() and line.any():  # all entries of the line in the window are zero
            window[other] = _containing(window[other], _middle(line, *window[other]), len(line))
        if window == list(self._layer.view.window):
            return False
        self._layer.look((window[0], window[1], window[2], window[3]))
        return True

    def _mix(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        """Show vᵀJ or Ju for weights in two buffers: indices (int32) and values (float64)."""
        which, values = np.frombuffer(buffers[0], "<i4"), np.frombuffer(buffers[1], "<f8")
        size = self._size()
        if which.shape != values.shape or (which.size and not 0 <= which.min() <= which.max() < size):
            raise ValueError(f"weights for {self.by} {which.tolist()} do not fit a Jacobian with {size} {self.by}")
        weights = np.zeros(size)
        weights[which] = values
        jacobian = self._jacobian
        if self.by == "columns":
            self._show(-1, weights, jacobian.jvp(weights), jacobian.code.column(weights))
        else:
            self._show(-1, weights, jacobian.vjp(weights), jacobian.by_hand(weights))
        return False

    def _group(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        """Show the sweep of one colour: the weights are 1 at all of its rows or columns."""
        plan = self._jacobian.plan
        if plan.by != self.by:
            self._axis({"by": plan.by}, [])
        which = np.flatnonzero(plan.colours == int(what["colour"]))
        return self._mix({}, [which.astype("<i4").tobytes(), np.ones(which.size, "<f8").tobytes()])

    def _show(self, at: int, weights: np.ndarray, result: np.ndarray, code: str, swift: bool = False) -> None:
        self.at, self.weights, self.result, self._code = at, weights, result, code
        if self._path is not None and not (swift and self._light_seconds > SWIFT):
            start = clock.now()
            if self.by == "rows":
                self._lit = self._path.of_row(list(split(weights, self._jacobian.output_shapes)))
            else:
                self._lit = self._path.of_column(list(split(weights, self._jacobian.input_shapes)))
            self._light_seconds = clock.now() - start

    def _fill(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        """Compute the plan's next blocks, for a moment. The view asks again until all are known."""
        jacobian, runner, end = self._jacobian, self._jacobian.runner, clock.now() + FRAME
        if self._trial is not None:
            raise RuntimeError("take the forgotten lines back first, since the trial goes row by row")
        if not self._true.base:
            self._true.show_all()
        for block in runner.missing():
            runner.run([block], progress=False)
            if not jacobian.complete:
                self._true.put_block(block)
            if clock.now() > end:
                break
        if not jacobian.complete and not jacobian.plan.sweeps:  # all entries are zero
            runner.compute()
        if jacobian.complete:
            self._true.look(self._true.view.window)
        return True

    def _axis(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        if what["by"] not in ("rows", "columns"):
            raise ValueError(f"by={what['by']!r} must be 'rows' or 'columns'")
        if what["by"] == "columns" and not self._with_columns:
            raise ValueError("this view shows rows only: widget() without columns=False shows both")
        if what["by"] == "columns" and self._trial is not None:
            raise RuntimeError("forgetting is about backward: take the forgotten lines back before going by columns")
        self.by = what["by"]
        self._forget_result()
        return False

    def _look(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        """Show another window: [first row, end, first column, end]."""
        rows, columns = self._jacobian.shape
        first, end, left, right = (int(k) for k in what["window"])
        first, left = min(max(first, 0), max(rows - 1, 0)), min(max(left, 0), max(columns - 1, 0))
        self._layer.look((first, min(max(end, first + 1), rows), left, min(max(right, left + 1), columns)))
        return True

    def _forget(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        """Set the switches: forget to zero, forget retain_graph."""
        switches = {name: bool(what.get(name)) for name in self._switches}
        if any(switches.values()):
            trial = WhatIf(self._jacobian, self._graph, **switches)
            layer = Layer(self._jacobian, None)
            layer.look(self._layer.view.window)
            self.by, self._trial, self._layer = "rows", trial, layer
        else:
            self._true.look(self._layer.view.window)
            self._trial, self._layer = None, self._true
        self._switches = switches
        self._forget_result()
        return True

    def _reset(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        if self._trial is not None:
            return self._forget(self._switches, [])
        self._true = self._layer = Layer(self._jacobian, None, self._layer.view.window)
        self._forget_result()
        return True

    def _nothing(self, what: dict[str, Any], buffers: list[bytes]) -> bool:
        return False

    _asks: ClassVar[dict[str, Callable[[JacobianViewModel, dict[str, Any], list[bytes]], bool]]] = {
        "hello": _hello,
        "step": _step,
        "go": _go,
        "mix": _mix,
        "fill": _fill,
        "axis": _axis,
        "window": _look,
        "forget": _forget,
        "reset": _reset,
        "group": _group,
        "pause": _nothing,
        "room": _nothing,
    }

    def _forget_result(self) -> None:
        self.at, self.result, self._lit, self.weights = -1, None, ([], []), np.zeros(self._size())
        self._code = ""

    def _size(self) -> int:
        return int(self._jacobian.shape[self.by == "columns"])

    # ------------------------------------------------------------------------------------------ frames
    def _frame(self, whole: bool) -> Frame:
        layer, view = self._layer, self._layer.view
        picked = np.flatnonzero(self.weights)
        arrays = {"picked": picked.astype("<i4"), "weights": self.weights[picked].astype("<f8")}
        strip = None
        if self.result is not None:
            listed = self._elements_to_list(self.result)
            arrays |= {"places": listed.astype("<i4"), "result": self.result[listed].astype("<f8")}
            strip = self._strip(view, self.result)
            arrays |= {"stripLow": strip.low.astype("<f8"), "stripHigh": strip.high.astype("<f8"), "stripFlags": strip.flags}
        lines = sorted(layer.changed)
        if whole or len(lines) > len(view.rows) // 4 + 4:
            arrays |= {
                "low": view.low.astype("<f8"),
                "high": view.high.astype("<f8"),
                "flags": view.flags,
                "rowBins": view.rows.astype("<i4"),
                "columnBins": view.columns.astype("<i4"),
            }
            lines = []
        elif lines:
            parts = [(slice(None), k) if columns else (k, slice(None)) for columns, k in lines]
            arrays |= {
                "low": np.concatenate([view.low[part] for part in parts]).astype("<f8"),
                "high": np.concatenate([view.high[part] for part in parts]).astype("<f8"),
                "flags": np.concatenate([view.flags[part] for part in parts]),
            }
        done = layer.done[self.by == "columns"]
        trial = self._trial
        product = ".grad" if any(self._switches.values()) else "Ju" if self.by == "columns" else "vᵀJ"
        changed = bool(lines) or "rowBins" in arrays
        frame = {
            **self._map.parts(view, strip, product, self.at, self.by == "columns", layer.extent(), changed),
            "by": self.by,
            "at": self.at,
            "nonzero": 0 if self.result is None else int(np.count_nonzero(self.result)),
            "window": list(view.window),
            "centre": self._centre(),
            "whole": "rowBins" in arrays,
            "lines": [[int(columns), k] for columns, k in lines],
            "filled": int(done.sum()),
            "of": int(done.size),
            "done": bool(done.all()),
            "known": bool(self._true.base and self._jacobian.complete),
            "extent": list(layer.extent() or ()),
            "nans": layer.all.odd[NAN],
            "sweeps": self.sweeps,
            "code": self._code or self._first_code(),
            "lit": self._lit[0],
            "litEdges": self._lit[1],
            "unused": self._jacobian.code.independent(self._jacobian.runner.unused),
            **self._switches,
            "trial": trial.meaning() if trial else "",
            "happened": self._happened,
        }
        return frame, arrays

    def _elements_to_list(self, result: np.ndarray) -> np.ndarray:
        """Return the elements of a result to write out: all of a short one, else the nonzero ones, those in the window first."""
        if result.size <= NUMBERS:
            return np.arange(result.size)
        first, end = self._layer.view.window[0:2] if self.by == "columns" else self._layer.view.window[2:4]
        which = np.flatnonzero(result[first:end]) + first
        return (which if which.size else np.arange(first, end))[:NUMBERS]

    def _centre(self) -> list[int]:
        """Return the row and the column about which to zoom: the middle of the nonzero entries shown."""
        first, end, left, right = self._layer.view.window
        if self.result is not None and self.weights.any():
            columns = self.by == "columns"
            start, stop, other = (left, right, (first, end)) if columns else (first, end, (left, right))
            line, across = _middle(self.weights, start, stop), _middle(self.result, *other)
            return [across, line] if columns else [line, across]
        view = self._layer.view
        known = np.argwhere(view.known_mask & ((view.low != 0) | (view.high != 0)))  # cells that contain only NaN have low > high
        if not known.size:
            return [(first + end) // 2, (left + right) // 2]
        i, j = known[np.abs(known - (np.array(view.low.shape) - 1) / 2).sum(1).argmin()]
        rows, columns_ = [*view.rows, end], [*view.columns, right]
        return [int(rows[i] + rows[i + 1]) // 2, int(columns_[j] + columns_[j + 1]) // 2]

    def _names(self) -> Labels:
        """Return the labels of the rows or columns."""
        return self._jacobian.column_labels_lazily() if self.by == "columns" else self._jacobian.row_labels()

    def _first_code(self) -> str:
        if not self._size():
            return ""
        if self._trial is not None:
            return self._trial.code(0)
        return self._jacobian.code.column(0) if self.by == "columns" else self._jacobian.by_hand(0)

    def _strip(self, view: HeatCells, result: np.ndarray) -> HeatCells:
        """Return the result in the columns or rows of the cells."""
        first, end, left, right = view.window
        if self.by == "rows":
            strip = HeatCells((0, 1, left, right), self._jacobian.blocks, CELLS)
            strip.put_row(0, result)
        else:
            strip = HeatCells((first, end, 0, 1), [("", 1)], CELLS)
            strip.put_column(0, result)
        return strip

    def colours(self) -> Frame:
        """Return the pattern in the view's cells, with the colours of rows or columns, and what each colour sweeps."""
        plan, view = self._jacobian.plan, self._layer.view
        if plan.pattern is None or plan.colours is None or not self._shows_colours():
            raise ValueError("this view has no colours to show")
        rows, columns = plan.pattern
        inside, i, j = view.places(rows, columns)
        which = plan.colours[(columns if plan.by == "columns" else rows)[inside]]
        least = np.full(view.low.shape, 2**31 - 1, np.int64)
        greatest = np.full(view.low.shape, -1, np.int64)
        np.minimum.at(least, (i, j), which)
        np.maximum.at(greatest, (i, j), which)
        cells = np.where(greatest < 0, -1, np.where(least == greatest, least, -2))  # −1: always zero, −2: several colours
        sizes = np.bincount(plan.colours, minlength=plan.sweeps)
        labels = self._jacobian.column_labels_lazily() if plan.by == "columns" else self._jacobian.row_labels()
        first = [np.flatnonzero(plan.colours == k)[:4] for k in range(min(plan.sweeps, 12))]
        frame = {
            "by": plan.by,
            "sweeps": int(plan.sweeps),
            "entries": int(rows.size),
            "groups": [
                {"size": int(sizes[k]), "members": [labels[int(m)] for m in some], "colours": class_colour(k)}
                for k, some in enumerate(first)
            ],
            "map": self._map.classes(view, cells, self.by == "columns"),
        }
        return frame, {"groupCells": cells.astype("<i4")}


def _middle(values: np.ndarray, start: int, end: int) -> int:
    """Return the middle nonzero element, if possible from `start` to `end`; the middle of that range if there is none."""
    places = np.flatnonzero(values)
    inside = places[(places >= start) & (places < end)]
    some = inside if inside.size else places
    return int(some[some.size // 2]) if some.size else (start + end) // 2


def _containing(window: list[int], at: int, size: int) -> list[int]:
    """Return the window, or one of the same length around `at` if it does not contain it."""
    start, end = window
    if start <= at < end:
        return window
    start = min(max(0, at - (end - start) // 2), size - (end - start))
    return [start, start + end - window[0]]


class Layer:
    """The known part of a matrix as shown: the whole in few cells, and the window.

    Attributes
    ----------
    base : Store or None
        Source of entries besides the added lines.
    all, view : Cells
        The whole matrix, and the window.
    done : tuple of ndarray of bool
        Masks of the rows and of the columns that are shown.
    changed : set of (bool, int)
        Lines of cells in the view that have changed: (whether it is a column, its number).
    """

    def __init__(self, jacobian: Jacobian, base: Store | None, window: Window | None = None) -> None:
        self._jacobian, self.base = jacobian, base
        rows, columns = self._shape = jacobian.shape
        self.done = np.zeros(rows, bool), np.zeros(columns, bool)
        self._lines: tuple[dict[int, np.ndarray], dict[int, np.ndarray]] = ({}, {})
        self.changed: set[tuple[bool, int]] = set()
        self.view = self.all = self._cells((0, rows, 0, columns))
        if window is not None and window != self.all.window:
            self.view = self._cells(window)

    @property
    def columns(self) -> dict[int, np.ndarray]:
        """The added columns, by number."""
        return self._lines[1]

    def extent(self) -> tuple[float, float] | None:
        """The least and the greatest finite entry shown, of the whole matrix."""
        return self.all.extremes()

    def look(self, window: Window) -> None:
        """Show a window, including entries that the Jacobian has computed since."""
        self.all = self._cells((0, self._shape[0], 0, self._shape[1]))
        self.view = self.all if window == self.all.window else self._cells(window)

    def show_all(self) -> None:
        """Show all entries that the Jacobian knows."""
        self.base = self._jacobian.store
        self.look(self.view.window)

    def column(self, j: int) -> np.ndarray:
        """Return column `j`: an added one, or by one forward sweep."""
        if j not in self._lines[1]:
            u = np.zeros(self._shape[1])
            u[j] = 1.0
            return self._jacobian.jvp(u)
        return self._lines[1][j]

    def put(self, columns: bool, at: int, line: np.ndarray) -> None:
        """Add a row or a column."""
        if self.done[columns][at]:
            return
        for cells in {id(c): c for c in (self.all, self.view)}.values():
            to = (cells.put_column if columns else cells.put_row)(at, line, ~self.done[not columns])
            if cells is self.view and to is not None:
                self.changed.add((columns, to))
        self._lines[columns][at] = line
        self._mark(columns, at)

    def put_block(self, block: Block) -> None:
        """Add a block of the plan that the Jacobian has stored."""
        jacobian, store, plan = self._jacobian, self._jacobian.store, self._jacobian.plan
        if block.kind != "colours":
            by_columns = block.kind == "columns"
            for k in range(block.start, block.stop):
                self.put(by_columns, k, jacobian.column(k) if by_columns else jacobian.row(k))
            return
        assert plan.pattern is not None
        assert plan.colours is not None
        rows, columns = plan.pattern
        colour = plan.colours[columns if plan.by == "columns" else rows]
        which = np.flatnonzero((colour >= block.start) & (colour < block.stop))
        for cells in {id(c): c for c in (self.all, self.view)}.values():
            cells.put_entries(rows[which], columns[which], store.numbers(which))

    def _mark(self, columns: bool, at: Any) -> None:
        self.done[columns][at] = True
        if self.done[columns].all():
            self.done[not columns][:] = True

    def _cells(self, window: Window) -> HeatCells:
        cells = HeatCells(window, self._jacobian.blocks, CELLS)
        known, across = (np.zeros(size, bool) for size in self._shape)
        if self.base is not None:
            with self.base.lock:
                cells.put_known(self.base)
                known, across = self.base.known_rows, self.base.known_columns
            self._mark(False, known)
            if across.any():
                self._mark(True, across)
        rows, columns = self._lines
        for i, row in rows.items():
            if not known[i]:
                cells.put_row(i, row, ~across)
        known[list(rows)] = True
        for j, column in columns.items():
            if not across[j]:
                cells.put_column(j, column, ~known)
        return cells

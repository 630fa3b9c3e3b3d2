"""Check that no rule makes the host wait for the device.

`StrictArray` records each operation for which CuPy copies a value to the host. Only the user's code (`item`, `bool`, printing)
and the samples listed here may wait. (The copies inside CuPy's solvers are not recorded: `rules.linalg.raise_on_failure` makes
them check whether a matrix is singular.)
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from grouped import check_each
from rules.table import CASES, GROUPS
from strict import HOST_WAITS, StrictArray, install

from gradlab import cuda
from gradlab.autograd import grad, jvp_of_graph
from gradlab.backend.bounds import run_pending_checks
from gradlab.core.tensor import constant

# {primitive: (passes that may wait, the calls that wait, why)}. Other passes and primitives must not wait.
FORWARD, SWEEPS = ("forward",), ("vjp", "jvp", "traced vjp", "traced jvp")
WAITS = {
    "getitem": ((*FORWARD, *SWEEPS), {"mask"}, "the number of elements in a mask"),
    "overwrite": (
        (*FORWARD, *SWEEPS),
        {"mask", "__int__", "ravel_multi_index", "flatnonzero", "unravel_index"},
        "the number of elements in a mask, or of repetitions of an index",
    ),
    "lu": (FORWARD, {"get"}, "SciPy factors on the host"),
    "det": (SWEEPS, {"__bool__", "item"}, "the test for an inverse"),
    "slogdet": (SWEEPS, {"__bool__", "item"}, "the test for an inverse"),
    "matrix_exp": ((*FORWARD, *SWEEPS), {"item"}, "the number of squarings"),
}


def inputs(case, make):
    rng = np.random.default_rng(7)
    return [constant(make(rng.uniform(0.5, 1.5, shape))).requires_grad_() for shape in case.shapes]


def passes(case, make):
    """Yield the name and a function of the forward and of each of the four sweeps."""
    xs = inputs(case, make)
    found = []
    yield "forward", lambda: found.append(case.function(*xs))
    y = found[0]
    g, us = constant(make(np.ones((2, *y.shape)))), [constant(make(np.ones((2, *x.shape)))) for x in xs]
    yield "vjp", lambda: grad(y, xs, g, retain_graph=True, is_grads_batched=True)
    yield "jvp", lambda: jvp_of_graph(y, xs, us, is_batched=True)
    yield "traced vjp", lambda: grad(y, xs, g, create_graph=True, is_grads_batched=True)
    yield "traced jvp", lambda: jvp_of_graph(y, xs, us, is_batched=True, create_graph=True)


def waits(case):
    """Return the reads of each run over the sample: {run: reads}."""
    install()
    case.function(*inputs(case, StrictArray))  # fills the caches for this shape
    found = {}
    for name, run in passes(case, StrictArray):
        HOST_WAITS.clear()
        run()
        found[name] = list(HOST_WAITS)
    return {name: reads for name, reads in found.items() if reads}


@pytest.mark.parametrize("primitive", GROUPS)
def test_no_pass_waits(primitive):
    check_each(GROUPS[primitive], check_waits)


def check_waits(case):
    where, reads, _ = WAITS.get(case.primitive, ((), set(), ""))
    for name, found in waits(case).items():
        assert name in where and set(found) <= reads, f"{name}: {found}"


def test_all_primitives_in_the_list_wait():
    assert {case.primitive for case in CASES if case.primitive in WAITS and waits(case)} == set(WAITS)


@pytest.mark.gpu
@pytest.mark.parametrize("primitive", [primitive for primitive in GROUPS if primitive not in WAITS])
def test_cupy_notes_no_copy_to_the_host(primitive):
    """On a GPU, CuPy's own guard must not find copies to the host."""
    if not cuda.is_available():
        pytest.skip(f"no GPU: {cuda.why_unavailable()}")
    check_each(GROUPS[primitive], check_copies)


def check_copies(case):
    import cupy
    import cupyx

    for _, run in passes(case, cupy.asarray):  # compiles the kernels
        run()
    for _, run in passes(case, cupy.asarray):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the guard warns that it does not see everything
            with cupyx.allow_synchronize(False):
                run()
    run_pending_checks()

"""No rule makes the host wait for the device: whatever it decides, it decides there.

The strict stand-in notes each operation for which CuPy copies a value to the host. Waiting is left to what a user writes
(`item`, `bool`, printing), and to the samples listed here, each with its reason. (What CuPy's solvers wait for by themselves is
not seen here: `rules.linalg.raising` asks them to look whether a matrix is singular.)
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from grouped import check_each
from rules.table import CASES, GROUPS
from strict import READS, StrictArray, install

from gradlab import cuda
from gradlab.autograd import grad, jvp_of_graph
from gradlab.backend.bounds import settle
from gradlab.core.tensor import constant

# (primitive, pass): why it waits. A pass that is in the list of no sample of its primitive may not wait.
FORWARD, SWEEPS = ("forward",), ("vjp", "jvp", "traced vjp", "traced jvp")
WAITS = {
    "getitem": ((*FORWARD, *SWEEPS), {"mask"}, "a mask: how many elements it picks"),
    "overwrite": (
        (*FORWARD, *SWEEPS),
        {"mask", "__int__", "ravel_multi_index", "flatnonzero", "unravel_index"},
        "a mask; reducing at places that come up twice: how often",
    ),
    "lu": (FORWARD, {"get"}, "SciPy factors on the host"),
    "det": (SWEEPS, {"__bool__", "item"}, "whether the inverse exists"),
    "slogdet": (SWEEPS, {"__bool__", "item"}, "whether the inverse exists"),
    "matrix_exp": ((*FORWARD, *SWEEPS), {"item"}, "how often to square"),
}


def inputs(case, make):
    rng = np.random.default_rng(7)
    return [constant(make(rng.uniform(0.5, 1.5, shape))).requires_grad_() for shape in case.shapes]


def passes(case, make):
    """The forward and the four sweeps of a sample, one after the other: (name, what runs it)."""
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
    """What each pass over the sample reads: {pass: reads}."""
    install()
    case.function(*inputs(case, StrictArray))  # what is known of a shape is found out once
    found = {}
    for name, run in passes(case, StrictArray):
        READS.clear()
        run()
        found[name] = list(READS)
    return {name: reads for name, reads in found.items() if reads}


@pytest.mark.parametrize("primitive", GROUPS)
def test_no_pass_waits(primitive):
    check_each(GROUPS[primitive], nothing_else_waits)


def nothing_else_waits(case):
    where, reads, _ = WAITS.get(case.primitive, ((), set(), ""))
    for name, found in waits(case).items():
        assert name in where and set(found) <= reads, f"{name}: {found}"


def test_the_list_of_those_that_wait_is_not_too_long():
    assert {case.primitive for case in CASES if case.primitive in WAITS and waits(case)} == set(WAITS)


@pytest.mark.gpu
@pytest.mark.parametrize("primitive", [primitive for primitive in GROUPS if primitive not in WAITS])
def test_cupy_notes_no_copy_to_the_host(primitive):
    """The same on a GPU, with CuPy's own guard against copies to the host."""
    if not cuda.is_available():
        pytest.skip(f"no GPU: {cuda.why_unavailable()}")
    check_each(GROUPS[primitive], copies_nothing)


def copies_nothing(case):
    import cupy
    import cupyx

    for _, run in passes(case, cupy.asarray):  # kernels are compiled
        run()
    for _, run in passes(case, cupy.asarray):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the guard says that it does not see everything
            with cupyx.allow_synchronize(False):
                run()
    settle()

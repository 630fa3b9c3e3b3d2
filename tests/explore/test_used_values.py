"""A cut is only reported if values are used, not if a function reads the shape, dtype or device of a tensor.

The test finds whether a function uses values by running it: if so, its result depends on the values of its argument.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cell_traces import trace_cell

import gradlab as gl
from gradlab.explore.trace.recorder import Recorder

NUMBERS = ([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], [[0.3, -2.0, 9.0], [1.0, 0.5, -3.0]], [[0.0] * 3] * 2, [[np.inf] * 3] * 2)
NUMBERS += ([[np.nan, 0.0, -1.0], [-np.inf, 0.0, 1.0]],)
UNSAFE = ("storage", "set_", "cuda", "pin_memory", "share", "dlpack", "backward", "hook", "save", "load", "compile", "import")
SIZES = [(), (2,), ((2, 3),), (0, 5), ((2, 3), (3, 1)), ((2, 3), 1.0), (5,), ([1.0, 2.0],)]
TAKEN = {"expand_as", "view_as", "reshape_as", "type_as", "to"}
CUTS = {"detach", "argmax", "argmin", "topk", "eq", "gt", "bool", "long"}
# Functions whose results are equal for all of NUMBERS by chance.
ALIKE = {"isreal", "multinomial", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices"}


def functions(library):
    """Return the functions and methods of a library by name."""
    found = {}
    for space in (library.Tensor, library, library.nn.functional):
        for name in dir(space):
            if name[0] != "_" and not any(word in name for word in UNSAFE) and name[0].islower():
                function = getattr(space, name)
                if callable(function) and not isinstance(function, type):
                    found.setdefault(name, []).append(function)
    return found


def tensors_in(library, result):
    results = result if isinstance(result, (tuple, list)) else [result]
    return [x for x in results if isinstance(x, library.Tensor)]


def ways(library, numbers):
    """Yield arguments, one of which has a history, alone or beside one without."""
    for more in SIZES:
        yield (library.tensor(numbers, requires_grad=True), *more)
    other = library.tensor([[True, False, True], [False, True, True]])
    for first in (other, other.float() if library.__name__ == "torch" else other.to(library.float32)):
        yield first, library.tensor(numbers, requires_grad=True)


def call_function(library, function, way, numbers):
    """Call a function. Return its results without history and whether a cut was recorded; None if the call raises."""
    arguments = list(ways(library, numbers))[way]
    library.manual_seed(0)
    with np.errstate(all="ignore"), warnings.catch_warnings(), Recorder(dict) as recorder:
        try:
            results = tensors_in(library, function(*arguments))
        except Exception:  # noqa: BLE001  (a function of other arguments)
            return None
        cut = bool(recorder.cuts)
    return [x for x in results if not x.requires_grad and not any(x is one for one in arguments)], cut


def arrays(results):
    return [np.asarray(x.detach()) for x in results]


def same(one, other):
    return len(one) == len(other) and all(
        a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(one, other, strict=True)
    )


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def library(request):
    return gl if request.param == "gradlab" else pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_cuts_are_recorded_exactly_if_values_are_used(library):
    harmless, wrong, right, missed = set(), set(), set(), set()
    for name, several in functions(library).items():
        for function in several:
            for way in range(len(SIZES) + 2):
                first = call_function(library, function, way, NUMBERS[0])
                if first is None or not first[0]:
                    continue
                runs = [first, *filter(None, (call_function(library, function, way, numbers) for numbers in NUMBERS[1:]))]
                cut = any(run[1] for run in runs)
                if "empty" in name or name == "new" or all(same(arrays(first[0]), arrays(run[0])) for run in runs[1:]):
                    (wrong if cut else harmless).add(name)
                else:
                    (right if cut else missed).add(name)
    assert wrong <= ALIKE
    shaped = {name for name in functions(library) if name.endswith("_like") or name.startswith("new_")}
    assert len(shaped) > 10 and harmless >= shaped | TAKEN
    assert right >= CUTS and not (missed and library is not gl)


HARMLESS = [
    "lib.zeros_like(x)",
    "lib.zeros_like(input=x)",
    "lib.zeros_like(dtype=x.dtype, input=x)",
    "lib.ones(3).type_as(other=x)",
    "x.new_ones(3)",
    "lib.zeros(x.shape)",
    "lib.ones(x.size())",
    "lib.ones(3).to(x)",
    "lib.ones(3).type_as(x)",
    "lib.ones(1).expand_as(x)",
    "lib.broadcast_tensors(lib.ones(1), x)[0]",
]


@pytest.mark.parametrize("text", HARMLESS)
@pytest.mark.parametrize("before", ["x = w * 2", "x = (w * 2).detach()", "x = w.data"])
def test_reading_a_shape_cuts_no_operand_in_the_picture(library, text, before):
    space = {"lib": library, "w": library.tensor([1.0, 2.0, 3.0], requires_grad=True)}
    trace = trace_cell(f"{before}\nwith lib.no_grad():\n    a = {text}\nb = {text}\n(w * a * b).sum().backward()", space)
    assert not [operand for node in trace.nodes for operand in node.operands if operand.cut is not None]
    assert len(trace.cuts) == before.count(".")


CUTTING = {
    "x.detach()": "detach",
    "x.data": "data",
    "lib.tensor(x.max().item())": "item()",
    "(x > 1).to(x)": "comparison",
    "x.argmax()": "position",
}


@pytest.mark.parametrize("text", CUTTING)
def test_using_values_still_cuts(library, text):
    space = {"lib": library, "w": library.tensor([1.0, 2.0, 3.0], requires_grad=True)}
    trace = trace_cell(f"x = w * 2\na = {text}\n(w * a).sum().backward()", space)
    assert CUTTING[text] in {cut.how for cut in trace.cuts}


def test_values_written_into_a_tensor_without_history_are_cut(library):
    space = {"lib": library, "w": library.tensor([1.0, 2.0, 3.0], requires_grad=True)}
    trace = trace_cell(
        "b = lib.zeros(3)\nwith lib.no_grad():\n    b.copy_(w * 2)\n    b.copy_(w)\n(w * b).sum().backward()", space
    )
    assert {cut.how for cut in trace.cuts} == {"no_grad"}

"""The table of operations: it has every node, its facts are right, and no other module lists names of operations."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gradlab as gl
from gradlab import explore
from gradlab.core.node import Node
from gradlab.core.primitive import Primitive
from gradlab.core.properties import ORDINARY, Properties
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.libraries.gauging import flat_ends
from gradlab.explore.operations import lookup, names_where, operation_name, operations
from gradlab.explore.operations.lookup import NUMBERED, PRIMITIVE_OF_NAME
from gradlab.explore.operations.torch_nodes import CPP_NODES, OTHER_NAMES, TORCH_NODES
from gradlab.explore.trace.slopes import open_slope

KNOWN = operations()


# -------------------------------------------------------------------------------------------------------------- lookup
def test_names():
    assert operation_name("SigmoidBackward0") == "Sigmoid"
    assert operation_name("PowBackward2") == "Pow"
    assert operation_name("ExpandBackward0_copy") == "Expand"
    assert operation_name("SqueezeBackwardAutogradNestedTensor1_copy") == "Squeeze"
    assert operation_name("EluBackwardBackward0") == "EluBackward"
    assert operation_name("EluBackward") == "EluBackward"  # a Function of the user
    assert operation_name("CopySlices") == "CopySlices"


def test_lookup():
    assert lookup("SigmoidBackward0") is PRIMITIVES["sigmoid"].properties
    assert lookup("SqueezeBackward2").moves == "layout"
    assert lookup("CopySlices").writes
    assert lookup("AccumulateGrad") == ORDINARY
    assert lookup("FlattenBackward0").moves == "layout"
    assert lookup("GeluBackward0").rectifier
    assert not lookup("GeluBackwardBackward0").rectifier
    assert "Sigmoid" in names_where(lambda p: p.sigmoidal)


def test_unknown_names_and_users_functions_have_no_facts():
    for name in ("NothingBackward0", "ExpBackward", "Exp", "CloneBackward", "EluBackward", ""):
        assert lookup(name) == ORDINARY


def test_a_users_function_with_the_name_of_an_operation():
    class Exp(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    y = Exp.apply(gl.tensor(1.0, requires_grad=True))
    assert lookup(y.grad_fn.name()) == ORDINARY


# --------------------------------------------------------------------------------------------------------- completeness
def is_known(node_name):
    name = operation_name(node_name)
    return name in KNOWN and lookup(node_name) == KNOWN[name]


def test_names_are_listed_once():
    own = {operation_name(op.node_name) for op in PRIMITIVES.values()}
    assert not own & set(TORCH_NODES)
    assert not own & set(CPP_NODES)
    assert not own & set(OTHER_NAMES)
    assert not set(TORCH_NODES) & set(OTHER_NAMES)
    assert set(PRIMITIVE_OF_NAME.values()) <= set(PRIMITIVES)


def test_primitives_with_one_name_agree():
    by_name: dict[str, list[Primitive]] = {}
    for op in PRIMITIVES.values():
        by_name.setdefault(operation_name(op.node_name), []).append(op)
    differ = {name for name, ops in by_name.items() if any(op.properties != ops[0].properties for op in ops)}
    assert differ == set(PRIMITIVE_OF_NAME)


def subclasses(kind):
    """Yield all classes derived from a class."""
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


NODES = """\
import gradlab
from gradlab.core.node import Node


def subclasses(kind):
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


print(*{kind.__name__ for kind in subclasses(Node) if type(vars(kind).get("op")).__name__ in ("Primitive", "Joint")})
"""


@pytest.mark.e2e
def test_all_nodes_of_gradlab_are_known():
    """In a process of its own: other tests declare primitives."""
    nodes = subprocess.run([sys.executable, "-c", NODES], capture_output=True, text=True, check=True).stdout.split()
    assert len(nodes) > len(PRIMITIVES)
    # torch has a Python Function of this name
    assert {name for name in nodes if not is_known(name)} == {"BackwardHookFunctionBackward"}


def test_every_operation_has_properties():
    class Double(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    Double.apply(gl.tensor(1.0, requires_grad=True))
    ops = [op for kind in subclasses(Node) if (op := vars(kind).get("op")) is not None]
    assert {type(op).__name__ for op in ops} >= {"Primitive", "Joint", "UserRules", "_ErrorOp", "_PortOp", "_ReshapedPortOp"}
    assert all(isinstance(op.properties, Properties) for op in ops)


@pytest.mark.torch
def test_all_nodes_of_torch_are_known():
    import torch

    nodes = [name for name in dir(torch._C._functions) if not name.startswith("__")]
    assert len(nodes) > 500
    assert [name for name in nodes if not is_known(name)] == []
    assert [name for name in TORCH_NODES if not any(operation_name(node) == name for node in nodes)] == []
    assert {name for name in nodes if not NUMBERED.search(name)} <= set(KNOWN)


@pytest.mark.torch
def test_moved_data_are_the_data_in_torch():
    import torch

    x = torch.arange(24.0).reshape(1, 4, 2, 3).requires_grad_()
    m = torch.arange(6.0).reshape(2, 3).requires_grad_()
    row, i = m[None], torch.tensor([1, 0])
    layouts = x.view(24), x.transpose(1, 2), x.squeeze(0), x.unsqueeze(0), m.T, m.t(), x.expand(2, 4, 2, 3), x.clone()
    orders = [m.flip(0), m.roll(1, 0), m.rot90(), m.repeat(2, 2), m.unfold(0, 2, 1), torch.pixel_shuffle(x, 2)]
    orders += [torch.nn.functional.pad(row, (1, 1), mode=mode) for mode in ("reflect", "replicate")]
    orders += [torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest"), torch.channel_shuffle(x, 2)]
    parts = [m[0], m[:, 1:], m[i], m.index_select(0, i), m.take(i), m.masked_select(m > 2), m.gather(1, i[:, None]), m.diagonal()]
    parts += [*m.split(1), *m.unbind(), *m.chunk(2), *m.split([1, 1]), torch.narrow_copy(m, 0, 0, 1), m.as_strided((2,), (1,))]
    moved = {
        "layout": layouts,
        "order": orders,
        "part": parts,
        "join": (torch.cat([m, m]), torch.stack([m, m])),
        "cast": (x.double(),),
    }
    for moves, results in moved.items():
        for y in results:
            facts = lookup(y.grad_fn.name())
            assert facts.moves == moves, y.grad_fn
            assert set(y.ravel().tolist()) <= set(x.ravel().tolist()), y.grad_fn
            assert facts.several == (sum(other.grad_fn is y.grad_fn for other in results) > 1), y.grad_fn


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_facts_of_nodes_that_only_torch_has():
    import torch

    x = torch.linspace(-3, 3, 12, dtype=torch.float64, requires_grad=True)
    draws = x.sigmoid().bernoulli(), x.clone().uniform_(), x.clone().normal_(), torch.poisson(x.exp()), x.clone().geometric_(0.5)
    for y in (*draws, x.sgn(), x.clone().zero_(), x.clone().gt_(0)):
        assert lookup(y.grad_fn.name()).flat, y.grad_fn
        assert not torch.autograd.grad(y.sum(), x)[0].any(), y.grad_fn
    for y in draws:
        assert lookup(y.grad_fn.name()).draws, y.grad_fn
    slope = torch.autograd.grad(torch.celu_(x.clone()).sum(), x)[0]
    assert slope.max().item() == lookup("CeluBackward0").steepest
    assert slope.min().item() < 0.1
    assert lookup("CeluBackward0").saturates == "below"
    m = x.reshape(3, 4)
    assert (m + m.flip(0)).trace().item() == pytest.approx((m.trace() + m.flip(0).trace()).item())
    one = torch.ones(1, requires_grad=True)
    assert not torch.autograd.grad(torch.var_mean(one)[0], one)[0].isfinite().any()
    assert torch.std_mean(m, 0)[1].min().item() < lookup("StdBackward0").low
    assert lookup("StdMeanBackward0").low < 0
    for y in (m.norm(dim=0), m.std(0), torch.cdist(m, m), torch.pdist(m), torch.dist(m, m[:1])):
        assert lookup(y.grad_fn.name()).low == 0, y.grad_fn
        assert (y >= 0).all(), y.grad_fn


# ---------------------------------------------------------------------------------------- facts that the explorers use
def test_slopes_of_open_activations():
    ones = dict.fromkeys(
        ("Hardtanh", "Relu", "Threshold", "Clamp", "ClampMin", "ClampMax", "Gelu", "Silu", "Elu", "Tanh", "Softsign"), 1.0
    )
    slopes = ones | {"Sigmoid": 1 / 4, "Hardsigmoid": 1 / 6, "Erf": 1.1283791670955126}
    measured_since = {"Celu": 1.0, "Hardswish": 1.0, "Mish": 1.0}
    found = {name: slope for name in KNOWN if (slope := open_slope(f"{name}Backward0")) is not None}
    assert found == slopes | measured_since
    assert open_slope("SigmoidBackward") is None  # a Function of the user


def test_flat_ends_of_activations():
    assert flat_ends("sigmoid") == pytest.approx((0.002506, 0.997494), abs=1e-6)
    assert flat_ends("tanh") == pytest.approx((-0.994987, 0.994987), abs=2e-6)
    assert flat_ends("hardsigmoid") == (0, 1)
    assert [name for name in PRIMITIVES if flat_ends(name) is not None] == ["sigmoid", "tanh", "erf", "hardsigmoid"]


# A condition, and names of frequent operations that satisfy it and that do not.
FREQUENT = {
    "layout": (
        lambda p: p.moves == "layout",
        "View UnsafeView Reshape T Transpose Permute Squeeze Unsqueeze Expand Clone Alias",
        "Flip Cat Select ToCopy Sum",
    ),
    "transposes": (lambda p: p.transposes, "T Transpose Permute Mt", "View Unsqueeze Flip"),
    "inserts an axis": (lambda p: p.inserts_axis, "Unsqueeze Index Slice Expand", "View Select Squeeze"),
    "part": (lambda p: p.moves == "part", "Select Slice Index Split Unbind Gather IndexSelect Diagonal", "View Unfold Cat"),
    "cast": (lambda p: p.moves == "cast", "ToCopy", "Clone"),
    "split": (lambda p: p.several and p.moves == "part", "Unbind Split SplitWithSizes Chunk", "Select StdMean CudnnRnn"),
    "matrix": (lambda p: p.product == "matrix", "Mm Addmm Mv Bmm Baddbmm Dot", "Linear Convolution Mul Embedding"),
    "layer": (lambda p: p.product == "layer", "Linear Convolution CudnnConvolution MkldnnConvolution", "Mm Addmm Mul"),
    "bias first": (lambda p: p.addend == 0, "Addmm Baddbmm Addcmul", "Convolution Linear Add"),
    "bias last": (lambda p: p.addend == 2, "Convolution Linear", "Addmm Mm Add"),
    "adds": (lambda p: p.adds, "Add Sub Rsub", "Addmm Addcmul Sum Mul"),
    "multiplies": (lambda p: p.multiplies, "Mul Div", "Mm Addcmul NativeDropout Pow"),
    "drops": (lambda p: p.drops, "NativeDropout FusedDropout", "Bernoulli RreluWithNoise Mul"),
    "chooses": (lambda p: p.chooses, "Where MaskedFill", "Clamp Maximum"),
    "writes": (lambda p: p.writes, "MaskedFill Where IndexPut CopySlices CopyBackwards Fill Zero Uniform", "Clamp Normal"),
    "loss": (lambda p: p.loss is not None, "MseLoss SmoothL1Loss HuberLoss NllLoss BinaryCrossEntropy KlDiv", "Sub LogSoftmax"),
    "normalises": (lambda p: p.normalises, "NativeLayerNorm NativeBatchNorm NativeGroupNorm FusedRmsNorm", "Softmax Std"),
    "channels first": (lambda p: p.channels_first, "Convolution NativeBatchNorm NativeGroupNorm", "NativeLayerNorm Addmm"),
    "masks": (lambda p: p.ignores_minus_inf, "Softmax LogSoftmax Logsumexp Max Amax Exp Sigmoid", "Min Amin Relu Log Sum"),
    "exponential": (lambda p: p.poles and p.saturates == "below", "Exp Exp2 Expm1", "Softplus Elu Log Sigmoid"),
    "blocks below": (lambda p: p.rectifier and p.saturates == "below", "Relu Gelu Silu Elu ClampMin", "Hardtanh LeakyRelu Tanh"),
    "leaky": (lambda p: p.leaky, "LeakyRelu PreluKernel", "Relu Elu"),
    "sigmoidal": (lambda p: p.sigmoidal, "Sigmoid Tanh Hardtanh Hardsigmoid Erf", "Relu Softmax Atan"),
    "never negative": (lambda p: p.low >= 0, "MseLoss Abs Exp Relu Softmax Sigmoid Softplus Sqrt", "KlDiv Pow Mul StdMean"),
    "never positive": (lambda p: p.high <= 0, "LogSoftmax LogSigmoid", "Log Neg"),
    "flat": (lambda p: p.flat, "Round Sign Floor Ceil Trunc Bernoulli Normal Poisson", "Relu Clamp Abs"),
}


@pytest.mark.parametrize("name", FREQUENT)
def test_facts_of_frequent_operations(name):
    condition, have, lack = FREQUENT[name]
    names = names_where(condition)
    assert set(have.split()) - names == set()
    assert set(lack.split()) & names == set()
    assert set(lack.split()) <= set(KNOWN)


# Tables by name of an operation that state no property of it, and what they give.
ALLOWED = {
    ("labels.py", "SIGNS"): "what the drawing of a graph shows",
    ("doctor/checks/singular.py", "FUNCTIONS"): "the function that explains a value",
    ("doctor/checks/singular.py", "DERIVATIVES"): "the function that explains a derivative",
    ("doctor/context/operands.py", "SYNONYMS"): "functions that record the operation",
    ("doctor/context/value_bounds.py", "RULES_OF_BOUNDS"): "the function that bounds its result",
    ("doctor/errors/writes.py", "OPERATORS"): "nodes of Python's syntax trees",
}


def lists_of_names(statement):
    """Yield the collections of at least three strings in a statement that are all names of operations."""
    for node in ast.walk(statement):
        items = node.elts if isinstance(node, (ast.Set, ast.Tuple, ast.List)) else node.keys if isinstance(node, ast.Dict) else ()
        words = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words, items = node.value.split(), node.value.split()
        if len(words) >= 3 and len(words) == len(items) and all(operation_name(word) in KNOWN for word in words):
            yield words


def test_no_module_lists_names_of_operations():
    """Facts of operations are in the table: `flow.properties[i].rectifier`, not `flow.ops[i] in ("Relu", "Gelu", "Silu")`."""
    folder, found = Path(explore.__path__[0]), {}
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).as_posix()
        for statement in ast.parse(path.read_text()).body if not place.startswith("operations/") else ():
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            owner = getattr(statement, "name", None) or getattr(targets[0], "id", "")
            for words in lists_of_names(statement):
                found.setdefault((place, owner), []).append(words)
    assert {where: words for where, words in found.items() if where not in ALLOWED} == {}
    assert set(ALLOWED) <= set(found)
    assert list(lists_of_names(ast.parse('x in ("Relu", "GeluBackward0", "Silu")'))) == [["Relu", "GeluBackward0", "Silu"]]

"""The floating-point operations of a run, against PyTorch's counter, and against formulas where it has none."""

from __future__ import annotations

import itertools
import warnings
from math import prod

import pytest

import gradlab as gl

torch_only = pytest.mark.torch


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=torch_only)])
def library(request):
    return gl if request.param == "gradlab" else pytest.importorskip("torch")


def flops(function, *args, **kwargs):
    """Count the operations of a run. Each function for which PyTorch's counter has a rule must have one here, too."""
    return gl.graph(function, *args, **kwargs).flops


def count_operations(function, *args, **kwargs):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        function(*args, **kwargs)
    return counter.get_total_flops()


def agree(function, *args, **kwargs):
    expected = count_operations(function, *args, **kwargs)
    assert expected > 0
    assert flops(function, *args, **kwargs) == expected


# ------------------------------------------------------------------------------------------------- products of matrices
RANKS = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (7, 4, 5)),
    ((2, 6, 3, 4), (2, 6, 4, 5)),
    ((1, 1), (1, 1)),
]


def product(left, right):
    """Count from the shapes one multiplication and one addition for each element of the result and of the summed axis."""
    rows = () if len(left) == 1 else left[-2:-1]
    columns = () if len(right) == 1 else right[-1:]
    pairs = itertools.zip_longest(reversed(left[:-2]), reversed(right[:-2]), fillvalue=1)
    return 2 * prod(max(pair) for pair in pairs) * prod(rows) * prod(columns) * left[-1]


@pytest.mark.parametrize(("left", "right"), RANKS)
def test_matmul_of_all_ranks(library, left, right):
    a, b = library.randn(*left), library.randn(*right)
    assert flops(lambda a, b: a @ b, a, b) == product(left, right)
    assert flops(library.matmul, a, b) == product(left, right)
    assert flops(lambda a, b: a.matmul(b), a, b) == product(left, right)


@torch_only
@pytest.mark.parametrize(("left", "right"), RANKS)
def test_matmul_as_pytorch_counts(left, right):
    torch = pytest.importorskip("torch")
    a, b = torch.randn(left), torch.randn(right)
    assert product(left, right) == flops(lambda a, b: torch.matmul(input=a, other=b), a, b)
    assert product(left, right) == flops(torch.linalg.matmul, a, b)
    if len(left) > 1 and len(right) > 1:  # PyTorch's counter has no rule for products with vectors
        assert product(left, right) == count_operations(torch.matmul, a, b)


def test_products_by_other_names(library):
    def r(*shape):
        return library.randn(*shape)

    cases = {
        "mm": ((r(3, 4), r(4, 5)), 2 * 3 * 4 * 5),
        "bmm": ((r(2, 3, 4), r(2, 4, 5)), 2 * 2 * 3 * 4 * 5),
        "mv": ((r(3, 4), r(4)), 2 * 3 * 4),
        "dot": ((r(4), r(4)), 2 * 4),
        "vdot": ((r(4), r(4)), 2 * 4),
        "inner": ((r(2, 3, 4), r(5, 4)), 2 * 2 * 3 * 4 * 5),
        "addmm": ((r(5), r(3, 4), r(4, 5)), 2 * 3 * 4 * 5),
        "addmv": ((r(3), r(3, 4), r(4)), 2 * 3 * 4),
        "baddbmm": ((r(3, 5), r(2, 3, 4), r(2, 4, 5)), 2 * 2 * 3 * 4 * 5),
        "addbmm": ((r(3, 5), r(2, 3, 4), r(2, 4, 5)), 2 * 2 * 3 * 4 * 5),
    }
    for name, (args, expected) in cases.items():
        assert flops(getattr(library, name), *args) == expected, name


@torch_only
def test_products_as_pytorch_counts():
    torch = pytest.importorskip("torch")
    r = torch.randn
    agree(torch.mm, r(3, 4), r(4, 5))
    agree(torch.bmm, r(2, 3, 4), r(2, 4, 5))
    agree(torch.addmm, r(5), r(3, 4), r(4, 5))
    agree(lambda a, b, c: torch.addmm(a, mat1=b, mat2=c, beta=2), r(5), r(3, 4), r(4, 5))
    agree(torch.baddbmm, r(3, 5), r(2, 3, 4), r(2, 4, 5))
    # PyTorch does not count baddbmm_.
    assert flops(lambda a, b, c: a.baddbmm_(b, c), r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)) == 2 * 2 * 3 * 4 * 5
    agree(lambda a, b, out: torch.mm(a, b, out=out), r(3, 4), r(4, 5), torch.empty(3, 5))
    agree(lambda a, b: b.__rmatmul__(a), r(3, 4), r(4, 5))
    agree(lambda a, b: torch.mm(a, b) @ a, r(4, 6), r(6, 4))


@pytest.mark.parametrize("dims", [0, 1, 2, ([1], [0]), ([0, 1], [1, 0]), ([2], [2])], ids=str)
def test_tensordot(library, dims):
    shapes = {2: ((2, 3, 4), (3, 4, 5)), 1: ((2, 3, 4), (4, 5)), 0: ((2, 3), (4,))}
    left, right = ((2, 3, 4), (3, 2, 4)) if isinstance(dims, tuple) else shapes[dims]
    a, b = library.randn(*left), library.randn(*right)
    axes = dims[0] if isinstance(dims, tuple) else range(len(left) - dims, len(left))
    if isinstance(dims, tuple) and any(left[i] != right[j] for i, j in zip(*dims, strict=True)):
        pytest.skip("the axes differ")
    summed = prod(left[i] for i in axes)
    expected = 2 * (prod(left) // summed) * (prod(right) // summed) * summed
    assert flops(lambda a, b: library.tensordot(a, b, dims), a, b) == expected


@torch_only
def test_empty_tensors_count_as_zero():
    torch = pytest.importorskip("torch")
    assert flops(torch.tensordot, torch.ones(0, 3), torch.ones(3, 2), dims=1) == 0
    assert flops(torch.mm, torch.ones(2, 0), torch.ones(0, 2)) == 0


EINSUMS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ij, jk -> ki", (3, 4), (4, 5)),
    ("ij,kj->ik", (3, 4), (5, 4)),
    ("ji,jk->ik", (4, 3), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bjk->ik", (2, 3, 4), (2, 4, 5)),
    ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (7, 4, 5)),
    ("...i,...i->...", (2, 3, 4), (3, 4)),
    ("i...j,j->i...", (2, 6, 4), (4,)),
    ("...ij,jk", (2, 3, 4), (4, 5)),
    ("ii,ij->j", (3, 3), (3, 4)),
    ("iij,jk->ik", (3, 3, 4), (4, 5)),
    ("ij,j->", (3, 4), (4,)),
    ("ij,ij->", (3, 4), (3, 4)),
    ("ij,kj->k", (3, 4), (5, 4)),
    ("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 6, 2)),
]


@torch_only
@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum_of_two_as_pytorch_counts(case):
    torch = pytest.importorskip("torch")
    equation, *shapes = case
    operands = [torch.randn(shape) for shape in shapes]
    agree(lambda *operands: torch.einsum(equation, *operands), *operands)
    agree(lambda *operands: torch.einsum(equation, operands), *operands)


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum_in_gradlab(case):
    """The numbers of PyTorch's counter, which the test above compares."""
    equation, *shapes = case
    torch = pytest.importorskip("torch")
    expected = flops(lambda *operands: torch.einsum(equation, *operands), *[torch.randn(shape) for shape in shapes])
    assert flops(lambda *operands: gl.einsum(equation, *operands), *[gl.randn(*shape) for shape in shapes]) == expected


@torch_only
def test_einsum_of_three():
    torch = pytest.importorskip("torch")
    a, b, c = torch.randn(3, 4), torch.randn(4, 5), torch.randn(5, 6)
    left_to_right = 2 * 3 * 4 * 5 + 2 * 3 * 5 * 6
    assert flops(lambda *x: torch.einsum("ij,jk,kl->il", *x), a, b, c) == left_to_right
    bilinear = 2 * 7 * 4 * 5 * 6 + 2 * 7 * 5 * 6  # x @ W, then a product with y for each row
    x, w, y = torch.randn(7, 4), torch.randn(5, 4, 6), torch.randn(7, 6)
    assert flops(lambda *t: torch.einsum("bi,oij,bj->bo", *t), x, w, y) == bilinear
    try:
        import opt_einsum  # noqa: F401
    except ImportError:  # PyTorch uses it to choose the order
        agree(lambda *x: torch.einsum("ij,jk,kl->il", *x), a, b, c)
        agree(lambda *t: torch.einsum("bi,oij,bj->bo", *t), x, w, y)


@torch_only
@pytest.mark.parametrize("equation", ["ij,ij->ij", "i,j->ij", "ij,kl->il", "ij->ji", "ii->i"])
def test_an_einsum_that_sums_no_common_axis_is_not_a_matrix_product(equation):
    torch = pytest.importorskip("torch")
    sizes = {"i": 3, "j": 3, "k": 4, "l": 5}
    operands = [torch.randn([sizes[i] for i in term]) for term in equation.partition("->")[0].split(",")]
    assert count_operations(torch.einsum, equation, *operands) == 0
    assert flops(lambda *x: torch.einsum(equation, *x), *operands) == 0


def test_linear(library):
    for shape in [(4,), (3, 4), (2, 3, 4), (2, 2, 3, 4)]:
        for bias in (True, False):
            layer = library.nn.Linear(4, 5, bias=bias)
            assert flops(layer, library.randn(*shape)) == 2 * prod(shape) * 5


@torch_only
def test_linear_as_pytorch_counts():
    torch = pytest.importorskip("torch")
    for shape in [(3, 4), (2, 3, 4), (2, 2, 3, 4)]:
        for bias in (True, False):
            agree(torch.nn.Linear(4, 5, bias=bias), torch.randn(shape))
    w, x = torch.randn(5, 4), torch.randn(3, 4)
    agree(lambda x: torch.nn.functional.linear(weight=w, input=x), x)


def test_bilinear(library):
    layer = library.nn.Bilinear(3, 4, 5)
    product_with_weight = 2 * 7 * 3 * (5 * 4)  # the rest is elementwise
    assert flops(layer, library.randn(7, 3), library.randn(7, 4)) == product_with_weight


# --------------------------------------------------------------------------------------------------------- convolutions
CONVOLUTIONS = [
    {},
    {"stride": 2},
    {"padding": 2},
    {"dilation": 2},
    {"groups": 2},
    {"bias": False},
    {"padding": "same"},
    {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
    {"groups": 4, "out_channels": 8},
    {"padding": 1, "padding_mode": "circular"},
]
TRANSPOSED = [
    {},
    {"stride": 2},
    {"stride": 2, "output_padding": 1},
    {"padding": 1},
    {"dilation": 2},
    {"groups": 2},
    {"bias": False},
]
INPUTS = {1: (2, 4, 11), 2: (2, 4, 9, 7), 3: (2, 4, 7, 6, 5)}


def sizes_after(sizes, window, stride=1, padding=0, dilation=1):
    if padding == "same":
        return sizes
    return tuple((size + 2 * padding - dilation * (window - 1) - 1) // stride + 1 for size in sizes)


@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolution(library, axes, options):
    options = {"out_channels": 6} | options
    layer = getattr(library.nn, f"Conv{axes}d")(4, kernel_size=3, **options)
    geometry = {key: value for key, value in options.items() if key in ("stride", "padding", "dilation")}
    positions = prod(sizes_after(INPUTS[axes][2:], 3, **geometry))
    window = 4 // options.get("groups", 1) * 3**axes
    assert flops(layer, library.randn(*INPUTS[axes])) == 2 * 2 * options["out_channels"] * positions * window
    assert flops(layer, library.randn(*INPUTS[axes][1:])) == 2 * options["out_channels"] * positions * window  # no batch


@torch_only
@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolution_as_pytorch_counts(axes, options):
    torch = pytest.importorskip("torch")
    layer = getattr(torch.nn, f"Conv{axes}d")(4, kernel_size=3, **{"out_channels": 6} | options)
    agree(layer, torch.randn(INPUTS[axes]))


@pytest.mark.parametrize("options", TRANSPOSED, ids=str)
@pytest.mark.parametrize("axes", [1, 2])
def test_transposed_convolution(library, axes, options):
    layer = getattr(library.nn, f"ConvTranspose{axes}d")(4, 6, kernel_size=3, **options)
    window = 6 // options.get("groups", 1) * 3**axes  # outputs that each element of the input contributes to
    assert flops(layer, library.randn(*INPUTS[axes])) == 2 * prod(INPUTS[axes]) * window


@torch_only
@pytest.mark.parametrize("options", TRANSPOSED, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_convolution_as_pytorch_counts(axes, options):
    torch = pytest.importorskip("torch")
    layer = getattr(torch.nn, f"ConvTranspose{axes}d")(4, 6, kernel_size=3, **options)
    agree(layer, torch.randn(INPUTS[axes]))


@torch_only
@pytest.mark.parametrize("transposed", [False, True])
def test_the_general_function_of_convolutions(transposed):
    torch = pytest.importorskip("torch")
    x, w = torch.randn(2, 4, 9, 9), torch.randn((4, 3, 3, 3) if transposed else (6, 2, 3, 3))
    agree(lambda x: torch.convolution(x, w, None, [2, 2], [1, 1], [1, 1], transposed, [0, 0], 2), x)


# ------------------------------------------------------------------------------------------------------------ attention
def attention(batch, heads, queries, keys, width, width_of_values):
    return 2 * batch * heads * queries * keys * (width + width_of_values)


@torch_only
def test_scaled_dot_product_attention():
    torch = pytest.importorskip("torch")
    attend, r = torch.nn.functional.scaled_dot_product_attention, torch.randn
    q, k, v = r(2, 3, 5, 8), r(2, 3, 7, 8), r(2, 3, 7, 6)
    expected = attention(2, 3, 5, 7, 8, 6)
    assert flops(attend, q, k, v) == expected
    assert flops(attend, q, value=v, key=k, attn_mask=torch.ones(5, 7, dtype=torch.bool)) == expected
    assert flops(attend, q[0], k[0], v[0]) == expected // 2
    same = r(2, 3, 5, 8)
    assert flops(attend, same, same, same, is_causal=True) == attention(2, 3, 5, 5, 8, 8)
    few = r(2, 2, 7, 8)  # four query heads share two key heads
    assert flops(attend, r(2, 4, 5, 8), few, few, enable_gqa=True) == attention(2, 4, 5, 7, 8, 8)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # with products that PyTorch's counter counts
        agree(attend, q, k, v)
        agree(attend, same, same, same, is_causal=True)
        agree(attend, r(2, 4, 5, 8), few, few, enable_gqa=True)


def multi_head(batch, queries, keys, width, width_of_keys=None, width_of_values=None, added=0):
    key, value = width_of_keys or width, width_of_values or width
    projections = 2 * batch * width * (queries * width + keys * (key + value) + queries * width)
    return projections + 4 * batch * queries * (keys + added) * width


ATTENTIONS = [
    {},
    {"batch_first": True},
    {"kdim": 6, "vdim": 10},
    {"kdim": 6, "vdim": 10, "batch_first": True},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True},
]


@pytest.mark.parametrize("options", ATTENTIONS, ids=str)
@pytest.mark.parametrize("batch", [3, 0], ids=["batch", "no batch"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multi_head_attention(library, options, batch, need_weights):
    try:
        layer = library.nn.MultiheadAttention(8, 2, **options)
    except (TypeError, NotImplementedError):
        pytest.skip("gradlab has no such option")

    def random_sequence(steps, width):
        if not batch:
            return library.randn(steps, width)
        return library.randn(*((batch, steps) if options.get("batch_first") else (steps, batch)), width)

    q, k = random_sequence(5, 8), random_sequence(7, options.get("kdim", 8))
    v = random_sequence(7, options.get("vdim", 8))
    added = options.get("add_bias_kv", False) + options.get("add_zero_attn", False)
    expected = multi_head(batch or 1, 5, 7, 8, options.get("kdim"), options.get("vdim"), added)
    for training in (True, False):
        layer.train(training)
        assert flops(layer, q, k, v, need_weights=need_weights) == expected
    x = random_sequence(5, 8)
    if "kdim" not in options:
        assert flops(layer, x, x, x, need_weights=need_weights) == multi_head(batch or 1, 5, 5, 8, added=added)


@torch_only
@pytest.mark.parametrize("options", ATTENTIONS, ids=str)
def test_multi_head_attention_as_pytorch_counts(options):
    torch = pytest.importorskip("torch")
    layer = torch.nn.MultiheadAttention(8, 2, **options)
    lead = (3, 5) if options.get("batch_first") else (5, 3)
    q, k, v = (torch.randn(*lead, width) for width in (8, options.get("kdim", 8), options.get("vdim", 8)))
    agree(layer, q, k, v)


def test_a_layer_of_a_transformer(library):
    layer = library.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    layer.eval()
    feed_forward = 2 * (2 * 3 * 5 * 8 * 16)
    assert flops(layer, library.randn(3, 5, 8)) == multi_head(3, 5, 5, 8) + feed_forward


# ----------------------------------------------------------------------------------------------------- recurrent layers
KINDS = {"RNN": 1, "GRU": 3, "LSTM": 4}  # weight matrices of each kind
LAYERS = [
    dict(zip(("num_layers", "bidirectional", "batch_first"), choice, strict=True))
    for choice in itertools.product((1, 2), (False, True), (False, True))
]


def recurrent(kind, steps, width, units, num_layers=1, bidirectional=False, batch_first=False, proj_size=0):
    """Count one product with each matrix for each step of each sequence; `steps` counts the steps of all sequences."""
    directions, out = 1 + bidirectional, proj_size or units
    total = 0
    for layer in range(num_layers):
        given = width if layer == 0 else out * directions
        gates = KINDS[kind] * units * (given + out)
        total += directions * 2 * steps * (gates + (units * proj_size))
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", LAYERS, ids=lambda options: "-".join(key for key, one in options.items() if one not in (1, False))
)
def test_recurrent_layers(library, kind, options):
    layer = getattr(library.nn, kind)(4, 3, **options)
    shape = (2, 5, 4) if options["batch_first"] else (5, 2, 4)
    assert flops(layer, library.randn(*shape)) == recurrent(kind, 10, 4, 3, **options)
    assert flops(layer, library.randn(5, 4)) == recurrent(kind, 5, 4, 3, **options)


@pytest.mark.parametrize(
    "options", LAYERS, ids=lambda options: "-".join(key for key, one in options.items() if one not in (1, False))
)
def test_projections_of_an_lstm(library, options):
    layer = library.nn.LSTM(4, 5, proj_size=3, **options)
    shape = (2, 6, 4) if options["batch_first"] else (6, 2, 4)
    assert flops(layer, library.randn(*shape)) == recurrent("LSTM", 12, 4, 5, proj_size=3, **options)


@torch_only
@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind):
    torch = pytest.importorskip("torch")
    layer = getattr(torch.nn, kind)(4, 3, num_layers=2)
    pack = torch.nn.utils.rnn.pack_padded_sequence
    lengths = [5, 3, 2]

    def run(x):
        return layer(pack(x, lengths))[0].data

    assert flops(run, torch.randn(5, 3, 4)) == recurrent(kind, sum(lengths), 4, 3, num_layers=2)


@pytest.mark.parametrize("kind", KINDS)
def test_cells(library, kind):
    cell = getattr(library.nn, f"{kind}Cell")(4, 3)
    assert flops(cell, library.randn(7, 4)) == recurrent(kind, 7, 4, 3)
    assert flops(cell, library.randn(4)) == recurrent(kind, 1, 4, 3)


@torch_only
@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_layers_as_pytorch_counts(kind):
    """PyTorch's counter counts the products of a layer that no fused kernel computes."""
    torch = pytest.importorskip("torch")
    with torch.backends.mkldnn.flags(enabled=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for options in LAYERS:
            shape = (2, 5, 4) if options["batch_first"] else (5, 2, 4)
            layer = getattr(torch.nn, kind)(4, 3, **options)
            x = torch.randn(shape)
            assert recurrent(kind, 10, 4, 3, **options) == count_operations(layer, x) == flops(layer, x)


# ---------------------------------------------------------------------------------------------------------- whole models
def test_the_cost_of_a_block_is_the_sum_of_its_parts(library):
    nn = library.nn
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 10))
    graph = gl.graph(net, library.randn(2, 1, 8, 8))
    convolution, linear = 2 * 2 * 4 * 36 * 9, 2 * 2 * 144 * 10
    assert graph.flops == convolution + linear
    rows = {row.kind: row for row in graph.table().rows if row.kind}
    assert rows["Conv2d"].mult_adds == convolution // 2
    assert rows["Linear"].mult_adds == linear // 2
    assert rows["Sequential"].mult_adds == (convolution + linear) // 2 == graph.table().mult_adds
    assert not rows["ReLU"].mult_adds


def test_functions_without_a_rule_are_named(library):
    table = gl.graph(lambda x: (x.cumsum(0) @ x).sum(), library.ones(3, 3)).table()
    assert "matmul" not in " ".join(table.uncounted)
    assert "cumsum" in table.uncounted
    assert "Not counted: cumsum" in table.text()

"""Compare random programs of special kinds on gradlab and torch.

The kinds are those that `test_differential` does not cover: convolutions of all geometries, float16 with Python numbers of all
magnitudes, integers and bools with scalars, `alpha` and `value`, overlapping `out=`, shapes without elements or axes, unpooling,
gradients that are recorded, kept and written to, and tensors that `out=` resizes.

A kind generates one small program from a seed: its lines and its input tensors. The tests compare values, dtypes, shapes, whether
an error is raised, and the gradients of all leaves. Intended differences are explained where the programs are generated.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradlab

torch = pytest.importorskip("torch", reason="the extra 'oracle' is not installed: no live comparison with torch")
pytestmark = pytest.mark.oracle

Program = tuple[dict[str, Any], list[str]]  # leaves (arrays), lines; the last line is the result to compare
FLOATS, INTEGERS = ("float64", "float32"), ("uint8", "int8", "int16", "int32", "int64")


# -------------------------------------------------------------------------------------------------------------------- kinds
def convolution(rng: random.Random, numbers: np.random.Generator) -> Program:
    rank, groups = rng.choice([1, 1, 2, 2, 3]), rng.choice([1, 1, 2, 3])
    kernel, stride, dilation, padding = (
        [rng.choice(choice) for _ in range(rank)] for choice in ([1, 1, 2, 3], [1, 2, 3], [1, 1, 2], [0, 0, 1, 2])
    )
    size = [max(rng.randint(1, 5), d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding, strict=True)]
    batch = rng.choice([0, 1, 2, 2])
    ins, outs, transposed = groups * rng.randint(1, 2), groups * rng.randint(1, 2), rng.random() < 0.4
    if transposed and not batch:  # torch accepts an output without pixels for an empty batch, gradlab does not
        padding = [0] * rank
    leaves = {
        "x": numbers.standard_normal((batch, ins, *size)),
        "w": numbers.standard_normal((ins, outs // groups, *kernel) if transposed else (outs, ins // groups, *kernel)),
    }
    bias = "None"
    if rng.random() < 0.5:
        leaves["b"], bias = numbers.standard_normal(outs), "b"
    if transposed:
        extra = [rng.randrange(max(s, d)) for s, d in zip(stride, dilation, strict=True)]
        return leaves, [f"F.conv_transpose{rank}d(x, w, {bias}, {stride}, {padding}, {extra}, {groups}, {dilation})"]
    return leaves, [f"F.conv{rank}d(x, w, {bias}, {stride}, {padding}, {dilation}, {groups})"]


HALVES = """x * s | s * x | x / s | x * s / s | (x * s) * y | x.mul(s) | x.div(s) | x.clone().mul_(s) | x.clone().div_(s)
x / lib.tensor(s) | x * lib.tensor(s) | x.norm() | x.norm(3, -1) | lib.dist(x, y) | F.normalize(x, dim=-1) | x.std()
x.var(0) | F.cosine_similarity(x, y, 0) | F.rms_norm(x, x.shape[-1:]) | F.pairwise_distance(x, y) | lib.renorm(x, 2, 0, 3.)
F.mish(x) | F.silu(x) | F.gelu(x) | F.softplus(x) | x.softmax(-1) | x.logsumexp(0) | F.layer_norm(x, x.shape[-1:]) | x @ y.T
lib.addmm(z, x, y.T) | lib.addmm(z, x, y.T, beta=.5, alpha=.25) | F.scaled_dot_product_attention(x, y, x) | x.cumsum(0)
x.sum() | x.mean(-1) | x.prod(0) | lib.addcmul(x, x, y, value=.5) | lib.addcdiv(x, x, y, value=.5) | lib.lerp(x, y, .3)
x.sinh() | F.mse_loss(x, y) | x ** 2 | x ** 3 | F.linear(x, y, z[0]) | lib.einsum('ij,kj->ik', x, y)
lib.linalg.vector_norm(x, 4, 0) | F.group_norm(x[None], 1) | lib.logaddexp(x, y)"""


def half(rng: random.Random, numbers: np.random.Generator) -> Program:
    scale, number = 10.0 ** rng.uniform(-7, 4.7), 10.0 ** rng.uniform(-7, 7) * rng.choice([1, -1])
    shape = rng.randint(2, 4), rng.randint(2, 6)
    sizes = {"x": (shape, scale), "y": (shape, rng.choice([scale, 1.0])), "z": ((shape[0], shape[0]), scale)}
    leaves: dict[str, Any] = {
        name: np.clip(numbers.uniform(-1, 1, form) * size, -6e4, 6e4).astype(np.float16) for name, (form, size) in sizes.items()
    }
    return leaves | {"s": float(f"{number:.3g}")}, [rng.choice(table(HALVES))]


WHOLE = """a + s | a - s | s - a | a * s | a + b | a - b | a * b | a / b | a / s | a // s | a % s | a ** abs(s) | a == s
a < s | a > b | -a | lib.sub(a, b, alpha=n) | lib.sub(a, s, alpha=n) | lib.rsub(a, b, alpha=n)
a.sub_(b, alpha=n) | a.add_(s) | a.mul_(s) | a.sub_(s) | a += b; a | a *= b; a | a -= s; a | lib.maximum(a, b)
lib.where(a > b, a, b) | a.sum() | a.fill_(n) | a.masked_fill(b > 0, abs(n)) | a & b | a | b | a ^ b | a.prod(0)
a.mean(dtype=lib.float32) | a.clamp(0, abs(s)) | a.cumsum(0) | a.cumprod(0) | a.abs() | a.sign() | a.max() | a.amin(0)
a.float() * s | lib.square(a) | a.neg() | lib.einsum('...i,...i->...', a.int(), b.int()) | a @ b
lib.outer(a.reshape(-1), b.reshape(-1)) | a.float() / s | lib.stack(lib.unravel_index(a.abs(), (300, 300)))
lib.bitwise_left_shift(a, abs(n) % 7) | a.pow(2) | lib.full_like(a, n) | lib.div(a, s, rounding_mode='floor')
lib.div(a, b, rounding_mode='trunc') | lib.fmod(a, s) | lib.remainder(b, s)"""
FUSED = """a.add(s, alpha=n) | lib.add(a, b, alpha=n) | lib.addcmul(a, b, b, value=n) | lib.isclose(a, b) | lib.allclose(a, b)
lib.tensordot(a, b, 0)"""


def integers(rng: random.Random, numbers: np.random.Generator) -> Program:
    shape = rng.choice([(), (3,), (2, 3), (0,), (1,), (2, 0)])
    leaves: dict[str, Any] = {}
    for name in "ab":
        dtype = rng.choice([*INTEGERS, "bool", "int64"])
        limits = (0, 2) if dtype == "bool" else rng.choice([(0, 9), (-9, 9), (np.iinfo(dtype).min, np.iinfo(dtype).max)])
        limits = max(limits[0], 0) if dtype == "uint8" else limits[0], limits[1]
        leaves[name] = np.asarray(numbers.integers(*limits, shape if name == "a" or rng.random() < 0.7 else ())).astype(dtype)
    scalar = rng.choice([rng.randint(-9, 9), True, False, 0.5, -1.5, 300, 2**40])
    return leaves | {"s": scalar, "n": rng.choice([2, 3, -1, 1, 0, 200, 0.5, True])}, rng.choice(table(WHOLE)).split("; ")


def fused_integers(rng: random.Random, numbers: np.random.Generator) -> Program:
    leaves, _ = integers(rng, numbers)
    return leaves, [rng.choice(table(FUSED))]


REFUSING = "gather", "take", "index_select", "masked_select", "cat"
INTO = """lib.add(x, y, out=o) | lib.mul(x, y, out=o) | lib.sub(x, 1, out=o) | lib.exp(x, out=o) | lib.cat([x, y], out=o)
lib.stack([x, y], out=o) | lib.gather(x, 0, i, out=o) | lib.take(x, i, out=o) | lib.index_select(x, 0, i, out=o)
lib.masked_select(x, x > 0, out=o) | lib.div(x, y, out=o) | lib.cumsum(x, 0, out=o) | lib.sum(x, 0, out=o)
lib.where(x > 0, x, y, out=o) | lib.maximum(x, y, out=o) | lib.sort(x, out=(o, j)) | lib.clamp(x, 0, 1, out=o)
lib.abs(x, out=o) | lib.pow(x, 2, out=o) | lib.lerp(x, y, 0.5, out=o) | lib.neg(x, out=o)"""
TARGETS = """o = base[:4] | o = base[1:5] | o = base[2:6] | o = base[:1] | o = base[4:8] | o = lib.zeros(4) | o = lib.zeros(0)
o = lib.zeros(2) | o = lib.zeros(1).expand(4) | o = lib.zeros(8)[::2] | o = base"""


def into(rng: random.Random, numbers: np.random.Generator) -> Program:
    """Generate operations whose result shares memory with operands.

    Torch rejects overlapping element-wise operations. Gradlab computes the result in new memory and copies it.
    """
    leaves = {"base": numbers.standard_normal(8).astype(np.float32), "i": numbers.integers(0, 4, 4), "j": np.zeros(4, np.int64)}
    lines = [
        rng.choice(["x = base[:4]", "x = base[2:6]", "x = base[:4].clone()", "x = base[0:0]", "x = base[0]"]),
        rng.choice(["y = base[4:8]", "y = base[1:5]", "y = base[4:5]", "y = x"]),
        rng.choice(table(TARGETS)),
        "before = o.shape",
        rng.choice(table(INTO)),
        "(o, base)",
    ]
    return leaves, lines


ALONE = """lib.sort(x, -1)[0] | x.sum(0) | x.mean(-1) | x.var(0) | x.prod() | x.max() | x.amax(-1) | x.cumsum(-1)
x.softmax(-1) | x @ x.mT | x.norm() | x.flatten() | lib.cat([x, x], 0) | x.unsqueeze(0) | x[..., :0]
lib.einsum('...i->...', x) | lib.linalg.det(x) | lib.linalg.inv(x) | x.median() | lib.logsumexp(x, 0)
F.layer_norm(x, x.shape[-1:]) | F.linear(x, x) | lib.searchsorted(x, x) | lib.outer(x, x) | x.expand(2, *x.shape) | x.diff()
lib.linalg.solve(x, x) | lib.linalg.svdvals(x) | lib.nanmean(x, 0) | x.std(-1) | F.pad(x, (1, 0)) | lib.index_select(x, 0, i)
x.roll(1, 0) | lib.gather(x, 0, lib.zeros_like(x, dtype=lib.int64))
lib.take_along_dim(x, lib.zeros_like(x, dtype=lib.int64) - 1, -1) | x.tril() | x.argmax() | F.mse_loss(x, x * 2)
F.avg_pool1d(x, 1) | F.max_pool1d(x, 1) | F.cross_entropy(x, i) | x.histc(4)
lib.linalg.lu_solve(x, lib.ones(x.shape[:-1], dtype=lib.int32), x) | lib.cholesky_solve(x, x) | x.unfold(-1, 1, 1)
x.sum_to_size(*x.shape[1:])"""


def empty(rng: random.Random, numbers: np.random.Generator) -> Program:
    shape = rng.choice([(), (0,), (0, 3), (3, 0), (0, 0), (1,), (2, 0, 3), (0, 2, 2), (1, 1)])
    return {"x": numbers.standard_normal(shape), "i": np.zeros(shape[:1], np.int64)}, [rng.choice(table(ALONE))]


def unpooling(rng: random.Random, numbers: np.random.Generator) -> Program:
    """Generate unpooling with windows that may overlap, so that an index may occur more than once."""
    rank = rng.choice([1, 2])
    kernel, stride = rng.randint(1, 3), rng.randint(1, 3)
    size = [rng.randint(kernel, 7) for _ in range(rank)]
    leaves = {"x": numbers.permutation(2 * int(np.prod(size))).reshape(1, 2, *size).astype(np.float64)}
    return leaves, [
        f"y, i = F.max_pool{rank}d(x, {kernel}, {stride}, return_indices=True)",
        f"F.max_unpool{rank}d({rng.choice(['y', 'y * 2'])}, i, {kernel}, {stride}, output_size={size})",
    ]


LOSSES = """(x + y).sum() | (x * y).sum() | (x - y).pow(2).sum() | x.sum() + y.sum() | (x * 2).sum() | (x.exp() + y).sum()
(x + x + y).sum()"""
AFTER = """x.grad.zero_() | y.grad.zero_() | x.grad.mul_(0.5) | y.grad.add_(1) | lib.nn.utils.clip_grad_norm_([x, y], 0.5)
x.grad = None | lib.nn.utils.clip_grad_value_([x, y], 0.25) | g.mul_(3) | x.grad.copy_(y.grad) | x.grad.detach_()
x.grad += 1"""


def kept_gradients(rng: random.Random, numbers: np.random.Generator) -> Program:
    """Generate backward calls, most of them recorded, with writes to the gradients in between."""
    lines = ["g = lib.ones(3, dtype=lib.float64)"]
    for _ in range(rng.randint(1, 3)):
        graph = f"create_graph={rng.choice([False, True, True])}"
        lines.append(
            rng.choice(
                [
                    f"({rng.choice(table(LOSSES))}).backward({graph})",
                    f"(x + y).backward(g, {graph})",
                    f"(x * y).backward(g, {graph})",
                ]
            )
        )
        if rng.random() < 0.8:
            lines.append(f"with lib.no_grad(): {rng.choice(table(AFTER))}")
    return {"x": numbers.standard_normal(3), "y": numbers.standard_normal(3)}, [*lines, "(x.grad, y.grad, g)"]


MADE = "lib.ones({}, dtype=lib.float64, requires_grad=True){}"
FILLED = "lib.exp(x, out=o) | lib.add(x, 1, out=o) | lib.sum(x, -1, out=o) | lib.stack([x, x], out=o) | lib.cumsum(x, -1, out=o)"
LATER = "(o * o).sum().backward() | (o * 2).sum().backward() | (o.exp() * o).sum().backward() | o[..., :1].exp().sum().backward()"


def out_resizes(rng: random.Random, numbers: np.random.Generator) -> Program:
    """Generate writes with `out=` that change the shape of a leaf or a result under `no_grad`."""
    shapes = "2, 3", "3", "1, 3", "0", "()"
    lines = [
        f"o = {MADE.format(rng.choice(shapes), rng.choice(['', ' * 2', '.exp()']))}",
        f"with lib.no_grad(): {rng.choice(table(FILLED))}",
        *rng.choice(table(LATER)).split("; "),
        "[o, o.grad]",
    ]
    return {"x": numbers.standard_normal(rng.choice([(2, 3), (3,), (1, 3), (0,), ()]))}, lines


KINDS: dict[str, Callable[[random.Random, np.random.Generator], Program]] = {
    "convolution": convolution,
    "half": half,
    "whole": integers,
    "fused": fused_integers,
    "into": into,
    "empty": empty,
    "unpooling": unpooling,
    "kept gradients": kept_gradients,
    "resized": out_resizes,
}


def table(text: str) -> list[str]:
    return text.replace("\n", " | ").split(" | ")


# --------------------------------------------------------------------------------------------------------------- comparison
def run_program(lib: Any, leaves: dict[str, Any], lines: list[str]) -> tuple[Any, Any]:
    """Return (results, gradients of their weighted sum), or the error as (type, text)."""
    names: dict[str, Any] = {"lib": lib, "F": lib.nn.functional}
    for name, value in leaves.items():
        names[name] = lib.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and name != "base":
            names[name].requires_grad_()
    xs = [x for x in names.values() if lib.is_tensor(x) and x.requires_grad]
    try:
        *before, last = lines
        exec("\n".join(before), names)
        made = eval(last, names)
    except Exception as error:  # noqa: BLE001  (compared with the other library's)
        return type(error).__name__, str(error)
    results = [made] if not isinstance(made, (tuple, list)) else list(made)
    wanted = [r for r in results if lib.is_tensor(r) and r.requires_grad and r.dtype.is_floating_point and r.grad_fn is not None]
    grads = []
    if wanted and "grad" not in last:
        weights = [lib.from_numpy(np.asarray(np.cos(np.arange(r.numel())).reshape(tuple(r.shape)))).to(r.dtype) for r in wanted]
        grads = lib.autograd.grad(wanted, xs, weights, allow_unused=True)
    return [r if not lib.is_tensor(r) else r.detach() for r in results], [None if g is None else g.detach() for g in grads]


def changes_shape_of_out(leaves: dict[str, Any], lines: list[str]) -> bool:
    """Return True if `out=` changed the shape of its tensor."""
    asked = [*lines[:-1], "[before == o.shape]"]
    return any(run_program(lib, leaves, asked)[0] == [False] for lib in (torch, gradlab))


def has_repeated_indices(leaves: dict[str, Any], lines: list[str]) -> bool:
    """Return True if an index occurs more than once because windows overlap.

    Torch's gradient is wrong there: it also passes one to overwritten elements. Gradlab's is compared with numerical derivatives
    in `tests/operators/test_where_torch_is_wrong.py`.
    """
    (places,), _ = run_program(torch, leaves, [lines[0], "[i.detach()]"])
    return any(len(set(channel.ravel().tolist())) < channel.numel() for channel in places[0])


def close(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    rtol, atol = {2: (0.01, 2.0**-23), 4: (2e-5, 1e-6), 8: (1e-7, 1e-9)}[one.itemsize]
    return np.allclose(one.astype(float), other.astype(float), rtol, atol, equal_nan=True)


def compare(kind: str, seed: int) -> None:
    leaves, lines = KINDS[kind](random.Random(seed), np.random.default_rng(seed))
    (theirs, slopes), (ours, found) = (run_program(lib, leaves, lines) for lib in (torch, gradlab))
    said = f"{kind} {seed}: {lines} of {leaves}"
    if kind == "into":
        if (not isinstance(theirs, str) or "written-to tensor refer to" in slopes) and changes_shape_of_out(leaves, lines):
            return  # torch extends a view that is too short into the memory after it, which may belong to an operand
        if isinstance(theirs, str) and "resize storage" in slopes:
            return
        if (
            isinstance(theirs, str)
            and "written-to tensor refer to" in slopes
            and not isinstance(ours, str)
            and not any(f"lib.{name}(" in lines[-2] for name in REFUSING)
        ):
            return
    if isinstance(theirs, str) or isinstance(ours, str):
        assert isinstance(ours, str) == isinstance(theirs, str), f"{said}: {ours} {found}, torch {theirs} {slopes}"
        return
    true, exact = theirs, slopes
    if kind == "half":
        true, exact = run_program(
            torch, {k: v.astype(np.float64) if isinstance(v, np.ndarray) else v for k, v in leaves.items()}, lines
        )
    for one, other, right in zip(ours, theirs, true, strict=True):
        if not torch.is_tensor(other):
            assert one == other, said
        elif kind == "half" and one.numpy().dtype == other.numpy().dtype and one.shape == tuple(other.shape):
            if not close(one.numpy(), other.numpy()):
                better_than(one.numpy(), other.numpy(), right.numpy(), said)
        else:
            assert close(one.numpy(), other.numpy()), f"{said}: {one}, torch {other}"
    if kind == "unpooling" and has_repeated_indices(leaves, lines):
        return
    for one, other, true in zip(found, slopes, exact, strict=True):
        assert (one is None) == (other is None), said
        if one is not None and not close(one.numpy(), other.numpy()):
            assert kind == "half", f"{said}: gradient {one}, torch {other}"
            better_than(one.numpy(), other.numpy(), true.numpy(), said)


def better_than(found: np.ndarray, theirs: np.ndarray, exact: np.ndarray, said: str) -> None:
    """Assert that float16 results are about as close to the float64 result as torch's."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float16)
        off, other = (
            np.where(
                (x == rounded) | (np.isnan(x) & np.isnan(rounded)), 0, np.nan_to_num(np.abs(x.astype(float) - exact), nan=np.inf)
            )
            for x in (found, theirs)
        )
        near = 0.01 * np.abs(exact) + 0.002 * np.nan_to_num(np.abs(exact)).max(initial=0) + 2.0**-22
        assert ((off <= other * 4) | (off <= near)).all(), f"{said}: {found}, torch {theirs}, in double {exact}"


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_of_a_kind(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(600):
            compare(kind, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_programs_of_a_kind(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(10_000, 12_000):
            compare(kind, seed)

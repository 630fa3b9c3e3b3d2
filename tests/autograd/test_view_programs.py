"""Random programs of views, in-place writes, reads, `no_grad` and `detach`, compared with an interpreter.

The interpreter uses NumPy. Each tensor is a pair of views: one of the memory of its values, and one of the memory of its
derivatives along one direction. So views and writes need no special treatment. Under `no_grad`, a write changes only the values
in reverse mode, but also the derivatives in forward mode. `detach` shares only the values. These rules are equivalent to torch's.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import gradlab

pytest.importorskip("hypothesis", reason="the extra 'test' is not installed: no random programs")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SHAPES = (2, 3), (3, 3), (3,)
FULL = slice(None)
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"
STALE = "its base or another view of its base has been modified inplace"
REFUSED = (
    "a leaf Variable that requires grad",
    "a view of a leaf Variable",
    "A view was created in no_grad mode",
    "returns multiple views",
    "more than one element of the written-to tensor",
)


def diagonal(a):
    """Return a writable diagonal. (`np.einsum("ii->i", a)` broadcasts an axis of length 1 and reads beyond its end.)"""
    rows, columns = a.shape
    return np.lib.stride_tricks.as_strided(a, (min(rows, columns),), (sum(a.strides),))


INDICES = [0, -1, slice(1, None), slice(None, None, 2), (Ellipsis, 0), (Ellipsis, slice(1, None)), None, (FULL, 1), (0, 1)]
VIEWS = {  # name: (view of a tensor, view of an array)
    **{
        f"[{i}]": (
            lambda t, a, i=i: a[i],
            lambda a, i=i: a[i] if not isinstance(a[i], np.generic) else a[(*np.index_exp[i], ...)],
        )
        for i in INDICES
    },
    "T": (lambda t, a: a.permute(tuple(range(a.ndim - 1, -1, -1))), lambda a: a.T),
    "diagonal": (lambda t, a: a.diagonal(), diagonal),
    "view": (lambda t, a: a.view(-1), lambda a: a.view() if a.ndim == 1 else flat(a)),
    "split": (lambda t, a: a.split(1)[0], lambda a: a[:1]),
    "unbind": (lambda t, a: a.unbind(0)[1], lambda a: a[(1, ...)]),
    "narrow": (lambda t, a: a.narrow(0, 1, 1), lambda a: a[(1, None, ...)]),
    "expand": (lambda t, a: a.expand(2, *a.shape), lambda a: np.lib.stride_tricks.as_strided(a, (2, *a.shape), (0, *a.strides))),
    "unsqueeze, squeeze": (lambda t, a: a.unsqueeze(-1).squeeze(-1), lambda a: a[...]),
    "as_strided": (lambda t, a: a.as_strided((2,), (2,), a.storage_offset()), lambda a: flat(a)[:3:2]),
}
ONE = {  # name: (value, derivative) of one argument; each exists as a function and in place
    "sin": (np.sin, np.cos),
    "cos": (np.cos, lambda a: -np.sin(a)),
    "tanh": (np.tanh, lambda a: 1 - np.tanh(a) ** 2),
    "neg": (np.negative, lambda a: -1 + 0 * a),
    "square": (np.square, lambda a: 2 * a),
    "abs": (np.abs, np.sign),
    "sigmoid": (lambda a: 1 / (1 + np.exp(-a)), lambda a: np.exp(-a) / (1 + np.exp(-a)) ** 2),
    "atan": (np.arctan, lambda a: 1 / (1 + a * a)),
    "relu": (lambda a: np.maximum(a, 0), lambda a: (a > 0) * 1.0),
    "round": (np.round, lambda a: 0 * a),
    "zero": (lambda a: 0 * a, lambda a: 0 * a),
    "tril": (np.tril, lambda a: np.tril(np.ones_like(a))),
    "triu": (np.triu, lambda a: np.triu(np.ones_like(a))),
}
TWO = {  # name: (call, value, derivatives with respect to a and b)
    "add": (lambda a, b, i: getattr(a, f"add{i}")(b), lambda a, b: a + b, lambda a, b: 1, lambda a, b: 1),
    "sub": (lambda a, b, i: getattr(a, f"sub{i}")(b), lambda a, b: a - b, lambda a, b: 1, lambda a, b: -1),
    "mul": (lambda a, b, i: getattr(a, f"mul{i}")(b), lambda a, b: a * b, lambda a, b: b, lambda a, b: a),
    "scaled add": (lambda a, b, i: getattr(a, f"add{i}")(b, alpha=0.5), lambda a, b: a + b / 2, lambda a, b: 1, lambda a, b: 0.5),
    "addcmul": (lambda a, b, i: getattr(a, f"addcmul{i}")(b, b), lambda a, b: a + b * b, lambda a, b: 1, lambda a, b: 2 * b),
    "lerp": (lambda a, b, i: getattr(a, f"lerp{i}")(b, 0.3), lambda a, b: 0.7 * a + 0.3 * b, lambda a, b: 0.7, lambda a, b: 0.3),
    "div": (
        lambda a, b, i: getattr(a, f"div{i}")(b * b + 1),
        lambda a, b: a / (b * b + 1),
        lambda a, b: 1 / (b * b + 1),
        lambda a, b: -2 * a * b / (b * b + 1) ** 2,
    ),
}
NUMBER = {  # name: (call, value, derivative)
    "mul": (lambda a, i: getattr(a, f"mul{i}")(0.7), lambda a: 0.7 * a, lambda a: 0.7 + 0 * a),
    "add": (lambda a, i: getattr(a, f"add{i}")(1), lambda a: a + 1, lambda a: 1 + 0 * a),
    "div": (lambda a, i: getattr(a, f"div{i}")(2), lambda a: a / 2, lambda a: 0.5 + 0 * a),
    "pow": (lambda a, i: getattr(a, f"pow{i}")(3), lambda a: a**3, lambda a: 3 * a**2),
    "clamp": (lambda a, i: getattr(a, f"clamp{i}")(-0.5, 0.5), lambda a: a.clip(-0.5, 0.5), lambda a: (np.abs(a) <= 0.5) * 1.0),
    "masked_fill": (
        lambda a, i: getattr(a, f"masked_fill{i}")(a > 0.3, 0.2),
        lambda a: np.where(a > 0.3, 0.2, a),
        lambda a: (a <= 0.3) * 1.0,
    ),
}
PLACES = [0, -1, slice(1, None), Ellipsis, [0, -1], (Ellipsis, 0), (Ellipsis, [1, 0])]


def flat(a):
    if not a.flags.c_contiguous:
        raise ValueError("not contiguous")
    return a.reshape(-1)


@dataclass
class Dual:
    """Tensor of the interpreter."""

    value: np.ndarray
    slope: np.ndarray


class Reference:
    """Interpreter of a program. With `forward`, derivatives flow under `no_grad`, as tangents do."""

    def __init__(self, arrays, directions, forward):
        self.tensors = [Dual(a.copy(), u.copy()) for a, u in zip(arrays, directions, strict=True)]
        self.forward = forward

    def step(self, kind, name, i, j, unrecorded):
        with np.errstate(all="ignore"):
            a, b = self.tensors[i], self.tensors[j]
            cut = unrecorded and not self.forward
            if kind == "view":
                f = VIEWS[name][1]
                made = Dual(f(a.value), f(np.zeros_like(a.value) if cut else a.slope))
            elif kind == "detach":
                made = Dual(a.value, np.zeros_like(a.value))
            elif kind in ("write a constant", "write a part"):
                a.value[PLACES[name]] = 0.4 if kind == "write a constant" else b.value
                if not cut:
                    a.slope[PLACES[name]] = 0 if kind == "write a constant" else b.slope
                return
            else:
                value, slope = self.compute(kind, name, a, b)
                if kind.startswith("write"):
                    a.value[...] = value
                    if not cut:
                        a.slope[...] = slope
                    return
                made = Dual(np.array(value), np.zeros(value.shape) if cut else np.array(slope, order="C"))
            self.tensors.append(made)

    def compute(self, kind, name, a, b):
        if kind.endswith("one"):
            f, d = ONE[name]
            return f(a.value), d(a.value) * a.slope
        if kind.endswith("number"):
            _, f, d = NUMBER[name]
            return f(a.value), d(a.value) * a.slope
        _, f, by_a, by_b = TWO[name]
        return f(a.value, b.value), by_a(a.value, b.value) * a.slope + by_b(a.value, b.value) * b.slope


class Run:
    """Run of a program in a library."""

    def __init__(self, t, tensors):
        self.t, self.tensors = t, tensors

    def step(self, kind, name, i, j, unrecorded):
        a, b = self.tensors[i], self.tensors[j]
        with self.t.no_grad() if unrecorded else contextlib.nullcontext(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = self.call(kind, name, a, b)
        if not kind.startswith("write"):
            self.tensors.append(made)

    def call(self, kind, name, a, b):
        i = "_" if kind.startswith("write") else ""
        if kind == "view":
            return VIEWS[name][0](self.t, a)
        if kind == "detach":
            return a.detach()
        if kind.endswith("one"):
            return getattr(a, f"{name}{i}")() if name != "zero" or i else a * 0
        if kind.endswith("two"):
            return TWO[name][0](a, b, i)
        if kind.endswith("number"):
            return NUMBER[name][0](a, i)
        a[PLACES[name]] = 0.4 if kind == "write a constant" else b
        return None


KINDS = {
    "view": VIEWS,
    "read one": ONE,
    "read two": TWO,
    "read number": NUMBER,
    "write one": ONE,
    "write two": TWO,
    "write number": NUMBER,
    "write a constant": range(len(PLACES)),
    "write a part": range(len(PLACES)),
    "detach": [None],
}
WEIGHTED = [
    *["view"] * 5,
    "read one",
    "read two",
    "read two",
    "read number",
    *["write one"] * 2,
    *["write two"] * 3,
    "write number",
    "write a constant",
    "write a part",
    "write a part",
    "detach",
]


@st.composite
def steps(draw):
    kind = draw(st.sampled_from(WEIGHTED))
    return (
        kind,
        draw(st.sampled_from(list(KINDS[kind]))),
        draw(st.integers(0, 30)),
        draw(st.integers(0, 30)),
        draw(st.integers(0, 7)) == 7,
    )


PROGRAMS = st.lists(steps(), min_size=4, max_size=20)
RESULTS = [
    ("read number", "mul", 2, 0, False),
    ("read number", "add", 2, 0, False),
]  # results of the leaves, which may be modified


def fits(kind, name, a, b):
    """Return True if a step is valid for the values of its arguments."""
    two = kind.endswith(("two", "part"))
    try:
        if kind == "view" and name != "expand":
            VIEWS[name][1](a)
            return name != "as_strided" or (a.flags.c_contiguous and a.size >= 3)
        if kind == "view":
            return a.ndim < 3
        if kind.endswith("one") and name in ("tril", "triu"):
            return a.ndim >= 2
        if (name == "masked_fill" or kind in ("write a part", "write a constant")) and any(
            stride == 0 and n > 1 for stride, n in zip(a.strides, a.shape, strict=True)
        ):
            return False  # elements share memory, for which torch only warns
        if kind in ("write a part", "write a constant"):
            place = a[PLACES[name]]
            if PLACES[name] == [0, -1] and len(a) == 1:
                return False  # an element is written twice, which is undefined in torch
            return kind == "write a constant" or (
                np.broadcast_shapes(place.shape, b.shape) == place.shape and not np.shares_memory(a, b)
            )
        return not two or (
            np.broadcast_shapes(a.shape, b.shape) == a.shape
            and not (kind.startswith("write") and np.shares_memory(a, b) and not same(a, b))
        )
    except (IndexError, ValueError):
        return False


def same(a, b):
    return a.__array_interface__["data"] == b.__array_interface__["data"] and a.strides == b.strides and a.shape == b.shape


def run_program(t, program, seed):
    """Run the valid steps of a program in a library. Return them, the tensors, the inputs, and the interpreter."""
    rng = np.random.default_rng(seed)
    arrays, directions = ([rng.uniform(-1, 1, shape) for shape in SHAPES] for _ in range(2))
    values = Reference(arrays, directions, forward=False)
    run = Run(t, [t.tensor(a, requires_grad=k != 2) for k, a in enumerate(arrays)])
    done = []
    for kind, name, i, j, unrecorded in [*RESULTS, *program]:
        n = len(run.tensors)
        step = kind, name, (n - 1 - i) % n, (n - 1 - j) % n, unrecorded
        if not fits(kind, name, values.tensors[step[2]].value, values.tensors[step[3]].value):
            continue
        try:
            run.step(*step)
        except RuntimeError as error:
            if STALE in str(error) or not any(text in str(error) for text in REFUSED):
                raise
            continue
        values.step(*step)
        done.append(step)
    return done, run.tensors, arrays, directions, values


def close(found, expected, why):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-9, err_msg=str(why))


def gradients(t, tensors, weights):
    """Return the gradients of a weighted sum of all tensors, or None if a saved tensor was modified."""
    wanted = [(x, w) for x, w in zip(tensors, weights, strict=True) if x.requires_grad]
    total = sum((x * t.tensor(w)).sum() for x, w in wanted)
    try:
        return [g.detach().numpy() for g in t.autograd.grad(total, tensors[:2], materialize_grads=True)]
    except RuntimeError as error:
        if MODIFIED not in str(error):
            raise
        return None


def check(program, seed):
    done, tensors, arrays, directions, values = run_program(gradlab, program, seed)
    directions[2] = directions[2] * 0
    reverse, forward = (Reference(arrays, directions, forward=f) for f in (False, True))
    for step in done:
        reverse.step(*step)
        forward.step(*step)
    for x, v in zip(tensors, values.tensors, strict=True):
        close(x.detach().numpy(), v.value, done)
    weights = [np.random.default_rng(seed + 1).standard_normal(tuple(x.shape)) for x in tensors]
    try:
        found = gradients(gradlab, tensors, weights)
    except RuntimeError as error:  # a view made under `no_grad` was read
        if STALE not in str(error):
            raise
        found = None
    if found is not None:
        slope = sum((w * r.slope).sum() for x, w, r in zip(tensors, weights, reverse.tensors, strict=True) if x.requires_grad)
        close(sum((g * u).sum() for g, u in zip(found, directions, strict=False)), slope, done)
    for x, r in zip(tensors, reverse.tensors, strict=True):
        assert x.requires_grad or not r.slope.any(), (done, "a tensor without history depends on a leaf")

    fw = gradlab.autograd.forward_ad
    with fw.dual_level():
        run = Run(gradlab, [fw.make_dual(gradlab.tensor(a), gradlab.tensor(u)) for a, u in zip(arrays, directions, strict=True)])
        for step in done:
            run.step(*step)
        for x, r in zip(run.tensors, forward.tensors, strict=True):
            t = fw.unpack_dual(x).tangent
            close(np.zeros(x.shape) if t is None else t.numpy(), r.slope, done)
            close(x.detach().numpy(), r.value, done)
    if not any(step[0] == "detach" or step[4] or step[1] == "round" for step in done):
        check_differences(done, arrays, directions, forward)
    return found is not None


def check_differences(done, arrays, directions, forward):
    """Compare the derivatives of the interpreter with differences of its values."""
    ends = [Reference([a + s * 1e-6 * u for a, u in zip(arrays, directions, strict=True)], directions, True) for s in (1, -1)]
    for step in done:
        for end in ends:
            end.step(*step)
    for up, down, r in zip(*(end.tensors for end in ends), forward.tensors, strict=True):
        difference = (up.value - down.value) / 2e-6
        kinks = np.abs(difference) > 1e3  # a comparison had the opposite result
        np.testing.assert_allclose(np.where(kinks, 0, difference), np.where(kinks, 0, r.slope), rtol=1e-4, atol=1e-5)


NO_DEADLINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # the machine may be busy


@pytest.mark.slow
@settings(max_examples=100, derandomize=True, database=None, **NO_DEADLINE)
@given(PROGRAMS, st.integers(0, 2**16))
def test_programs(program, seed):
    check(program, seed)


@pytest.mark.exhaustive
@settings(max_examples=800, derandomize=True, database=None, **NO_DEADLINE)
@given(PROGRAMS, st.integers(0, 2**16))
def test_many_programs(program, seed):
    check(program, seed)


def compare(program, seed):
    """Compare gradlab with torch: the same steps must be refused, and the gradients must be equal.

    Unlike gradlab, torch also refuses to read one of several views after a write to its base.
    """
    torch = pytest.importorskip("torch")
    program = [(*step[:4], step[4] and step[0] != "view") for step in program]  # in torch, such views require gradients
    found = run_program(gradlab, program, seed)
    weights = [np.random.default_rng(seed + 1).standard_normal(tuple(x.shape)) for x in found[1]]
    try:
        expected = run_program(torch, program, seed)
        theirs = gradients(torch, expected[1], weights)
    except RuntimeError as error:
        if STALE not in str(error):
            raise
        return
    ours = gradients(gradlab, found[1], weights)
    assert found[0] == expected[0]
    assert [x.requires_grad for x in found[1]] == [x.requires_grad for x in expected[1]], found[0]
    assert [x._version for x in found[1]] == [x._version for x in expected[1]], found[0]
    for g, e in zip(ours or (), theirs or (), strict=False):
        close(g, e, found[0])
    assert ours is not None or theirs is None, (found[0], "torch computes the gradients")


@pytest.mark.oracle
@settings(max_examples=60, derandomize=True, database=None, **NO_DEADLINE)
@given(PROGRAMS, st.integers(0, 2**16))
def test_programs_as_torch(program, seed):
    compare(program, seed)


@pytest.mark.oracle
@pytest.mark.exhaustive
@settings(max_examples=400, derandomize=True, database=None, **NO_DEADLINE)
@given(PROGRAMS, st.integers(0, 2**16))
def test_many_programs_as_torch(program, seed):
    compare(program, seed)

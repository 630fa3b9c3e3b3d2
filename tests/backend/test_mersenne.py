"""Random streams equal to PyTorch's."""

from __future__ import annotations

import copy
import hashlib
import pickle
from typing import Any

import numpy as np
import pytest
from recorded import rows
from threads import run_in_threads

from gradlab.backend.mersenne import CHUNK, MersenneTwister, multiply_add

RECORDED = rows("random")
ULP = 8  # NumPy and torch each compute log, sin and cos within a few units in the last place, by machine


def ulps(found: np.ndarray, expected: np.ndarray) -> int:
    """Return the largest distance between two arrays of one float dtype, in representable numbers."""
    integer = np.dtype(f"i{found.itemsize}")
    order = [
        np.where(bits < 0, np.iinfo(integer).min - bits, bits).astype(object)
        for bits in (np.ascontiguousarray(array).view(integer) for array in (found, expected))
    ]
    return int(np.abs(order[0] - order[1]).max()) if found.size else 0


def draw(generator: MersenneTwister, name: str, arguments: list[Any], dtype: str) -> np.ndarray:
    """Repeat a recorded call, given by torch's name and arguments."""
    if name in ("rand", "randn"):
        return (generator.uniform if name == "rand" else generator.normal)(tuple(arguments), dtype)
    if name == "randint":
        low, high, count = arguments
        return generator.randint(low, high, (count,))
    if name == "randperm":
        return generator.randperm(*arguments)
    if name == "bernoulli":
        return generator.bernoulli(np.array(arguments[0], dtype)).astype(dtype)
    if name == "bernoulli_":
        return generator.bernoulli(arguments[0], (arguments[1],)).astype(dtype)
    first, second, count = arguments
    return (generator.uniform if name == "uniform_" else generator.normal)((count,), dtype, first, second)


@pytest.mark.parametrize("title", RECORDED)
def test_recorded(title: str) -> None:
    case = RECORDED[title]
    generator = MersenneTwister(case["seed"])
    assert generator.initial_seed() == case["initial_seed"]
    for name, arguments, dtype, expected in case["calls"]:
        found, wanted = draw(generator, name, arguments, dtype), np.array(expected, dtype)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        assert ulps(found, wanted) <= ULP if name in ("randn", "normal_") else np.array_equal(found, wanted)
    state = generator.get_state()
    assert state.dtype == np.uint8 and state.shape == (5056,)
    assert hashlib.sha256(state.tobytes()).hexdigest() == case["state"]


def test_state_continues_the_stream() -> None:
    generator, other = MersenneTwister(5), MersenneTwister()
    generator.normal((3,))  # leaves one normal for the next draw
    other.set_state(generator.get_state())
    assert other.initial_seed() == 5
    assert np.array_equal(other.normal((2,)), generator.normal((2,)))
    assert np.array_equal(other.uniform((700,)), generator.uniform((700,)))
    assert np.array_equal(other.get_state(), generator.get_state())


def test_manual_seed_restarts_the_stream() -> None:
    generator = MersenneTwister(5)
    first = generator.normal((5,))
    assert generator.manual_seed(5) is generator
    assert np.array_equal(generator.normal((5,)), first)
    assert generator.seed() == generator.initial_seed() != 5


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range(seed: int) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        MersenneTwister(seed)


def test_wrong_states() -> None:
    generator = MersenneTwister(5)
    before = generator.get_state()
    with pytest.raises(TypeError, match=r"RNG state must be a gradlab\.ByteTensor"):
        generator.set_state(np.zeros(5056))
    with pytest.raises(RuntimeError, match=r"Expected a CPUGeneratorImplState of size 5056 but found .* to be 5"):
        generator.set_state(np.zeros(5, np.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state(np.zeros(5056, np.uint8))
    assert np.array_equal(generator.get_state(), before)


def test_wrong_arguments() -> None:
    generator = MersenneTwister(5)
    with pytest.raises(RuntimeError, match="random_ expects 'from' to be less than 'to', but got from=7 >= to=5"):
        generator.randint(7, 5, (2,))
    with pytest.raises(RuntimeError, match=r"uniform_ expects to return a \[from, to\) range, but found from=2 > to=1"):
        generator.uniform((2,), low=2, high=1)
    with pytest.raises(RuntimeError, match=r"normal expects std >= 0.0, but found std -1"):
        generator.normal((2,), std=-1)
    with pytest.raises(RuntimeError, match="Give probabilities from 0 to 1"):
        generator.bernoulli(np.array([0.5, np.nan]))
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        generator.randperm(-1)
    with pytest.raises(NotImplementedError, match="dtype int64"):
        generator.normal((2,), np.int64)


def test_uniforms_stay_below_the_upper_bound() -> None:
    drawn = MersenneTwister(0).uniform((200_000,), np.float16)
    assert drawn.max() < 1 and drawn.min() >= 0


@pytest.mark.parametrize("count", [1, 999, 1000, 1001, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17])
def test_many_numbers_are_the_same_as_few_at_a_time(count: int) -> None:
    """The stream does not depend on how many words are fetched at a time."""
    for draw_some in (
        lambda g, n: g.uniform((n,)),
        lambda g, n: g.uniform((n,), np.float64),
        lambda g, n: g.randint(-3, 97, (n,)),
        lambda g, n: g.randint(0, 64, (n,)),
        lambda g, n: g.randint(0, 10**12, (n,)),
        lambda g, n: g.bernoulli(0.3, (n,)),
        lambda g, n: g.exponential((n,)),
        lambda g, n: g.log_normal((n,)),
    ):
        whole, parts = MersenneTwister(3), MersenneTwister(3)
        at_once = draw_some(whole, count)
        pieces = np.concatenate([draw_some(parts, n) for n in (*[500] * (count // 500), count % 500)])
        assert np.allclose(at_once, pieces, rtol=1e-15, atol=0)
        assert np.array_equal(whole.get_state()[:-28], parts.get_state()[:-28])


@pytest.mark.parametrize("n", [1001, 5000, 2**16, 2**16 + 1, 200_000])
def test_permutations_agree_with_the_loop(n: int) -> None:
    words = MersenneTwister(8)._words(n - 1)
    expected = list(range(n))
    for i in range(n - 1):
        j = i + int(words[i]) % (n - i)
        expected[i], expected[j] = expected[j], expected[i]
    assert MersenneTwister(8).randperm(n).tolist() == expected


def test_multiply_add_rounds_once() -> None:
    """Compare with exact rational arithmetic."""
    from fractions import Fraction

    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x, (factor, summand) = rng.standard_normal(500).astype(dtype), rng.standard_normal(2).astype(dtype)
        exact = [Fraction(float(v)) * Fraction(float(factor)) + Fraction(float(summand)) for v in x]
        wanted = np.array([float(v) for v in exact]).astype(dtype)
        assert np.array_equal(multiply_add(x, factor, summand), wanted)


KINDS = ("rand", "randn", "randint", "randperm", "bernoulli", "bernoulli_", "uniform_", "normal_")


@pytest.mark.oracle
@pytest.mark.parametrize("seed", [0, 1, -1, 2**40 + 3, 2**64 - 1, *range(100, 120)])
def test_mixed_calls_against_torch(seed: int) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed % 1000)
    generator = MersenneTwister(seed)
    before = torch.get_rng_state()
    try:
        torch.manual_seed(seed)
        for _ in range(100):
            kind, dtype = KINDS[rng.integers(len(KINDS))], ("float16", "float32", "float64")[rng.integers(3)]
            shape = tuple(rng.integers(0, 9, rng.integers(4)).tolist())
            count, of_torch = int(np.prod(shape)), getattr(torch, dtype)
            if kind in ("rand", "randn"):
                arguments = list(shape)
                wanted = getattr(torch, kind)(shape, dtype=of_torch)
            elif kind == "randint":
                low = int(rng.integers(-(10**12), 10))
                arguments = [low, low + int(10 ** rng.uniform(0.5, 15)), count]
                wanted = torch.randint(*arguments[:2], (count,))
            elif kind == "randperm":
                arguments = [int(rng.integers(900))]
                wanted = torch.randperm(*arguments)
            elif kind == "bernoulli":
                arguments = [rng.random(shape).astype(dtype).tolist()]
                wanted = torch.bernoulli(torch.tensor(*arguments, dtype=of_torch))
            else:
                arguments = {"bernoulli_": [0.3], "uniform_": [-0.7, 1.9], "normal_": [2.0, 0.3]}[kind] + [count]
                wanted = getattr(torch.empty(count, dtype=of_torch), kind)(*arguments[:-1])
            found, wanted = draw(generator, kind, arguments, dtype), wanted.numpy()
            assert found.shape == wanted.shape and found.dtype == wanted.dtype
            if kind == "normal_":  # the mean may cancel most digits of a normal number
                assert np.allclose(found, wanted, rtol=0, atol=8 * np.finfo(dtype).eps)
            else:
                assert ulps(found, wanted) <= (ULP if kind == "randn" else 0), (kind, shape, dtype)
        torch.set_rng_state(torch.from_numpy(generator.get_state()))
        assert torch.initial_seed() == generator.initial_seed()
        assert torch.rand(1).item() == generator.uniform((1,))[0]
        generator.set_state(torch.get_rng_state().numpy())
        assert torch.rand(1).item() == generator.uniform((1,))[0]
    finally:
        torch.set_rng_state(before)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(40))
def test_distributions_against_torch(seed: int) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    count = int(rng.choice([rng.integers(1, 40), 40_000]))
    before = torch.get_rng_state()
    try:
        for name, *arguments in (("exponential", 1.7), ("geometric", 0.13), ("cauchy", 1.5, 0.3), ("log_normal", 0.2, 0.7)):
            torch.manual_seed(seed)
            generator = MersenneTwister(seed)
            found = getattr(generator, name)((count,), *arguments)
            assert np.allclose(
                found, getattr(torch.empty(count, dtype=torch.float64), f"{name}_")(*arguments).numpy(), rtol=1e-13, atol=1e-14
            )
            assert np.array_equal(generator.get_state()[:-28], torch.get_rng_state().numpy()[:-28])
        for dtype in ("float16", "float32", "float64"):
            weights = rng.random((3, int(rng.integers(1, 30)))).astype(dtype) + np.dtype(dtype).type(0.01)  # none is 0
            for samples, replacement in ((1, False), (1, True), (7, True), (weights.shape[1], False)):
                torch.manual_seed(seed)
                found = MersenneTwister(seed).multinomial(weights, samples, replacement)
                assert np.array_equal(found, torch.multinomial(torch.from_numpy(weights), samples, replacement).numpy())
    finally:
        torch.set_rng_state(before)


DRAWS = {
    "uniform": lambda g: g.uniform((70000,)),
    "one uniform": lambda g: g.uniform((1,)),
    "normal": lambda g: g.normal((70000,)),
    "odd normals": lambda g: g.normal((3,)),
    "log_normal": lambda g: g.log_normal((5,)),
    "order": lambda g: g.randperm(500),
    "integers": lambda g: g.randint(0, 2**40, (50,)),
    "chances": lambda g: g.bernoulli(0.5, (70000,)),
    "multinomial": lambda g: g.multinomial(np.ones(500), 500, replacement=False),
}


@pytest.mark.parametrize("name", DRAWS)
def test_threads_share_a_stream_draw_by_draw(name):
    """Several threads get the draws that one thread would get from the stream: none is repeated or interleaved."""
    alone, shared, drawn = MersenneTwister(), MersenneTwister(), []
    run_in_threads(lambda i: [drawn.append(DRAWS[name](shared).tobytes()) for _ in range(6)])
    assert sorted(drawn) == sorted(DRAWS[name](alone).tobytes() for _ in range(24))
    assert (shared.get_state() == alone.get_state()).all()


def test_a_stream_can_be_copied():
    generator = MersenneTwister(5)
    generator.normal((3,))
    for twin in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))):
        assert (twin.get_state() == generator.get_state()).all() and twin.initial_seed() == 5

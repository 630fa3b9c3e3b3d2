"""PyTorch's CPU random streams, from NumPy's MT19937.

Both libraries run the same engine (Matsumoto and Nishimura's MT19937, seeded by Knuth's linear recurrence), so what has
to be told here is only how PyTorch turns its 32-bit words into numbers, and how many words each draw takes:

========================  ==========  =====================================================================
draw                      words       number
========================  ==========  =====================================================================
float16, float32          1           low 24 bits / 2**24
float64                   2           low 53 bits of (first, second) / 2**53
integer                   1, or 2     modulo the range; two words where the range is 2**28 or more
normal, 15 or fewer       4 a pair    Box-Muller in float64; the second of a pair is kept for the next draw
normal, 16 or more        see above   Box-Muller of 8 + 8 uniforms a block of 16; the last 16 are drawn anew
                                      where the size is no multiple of 16
permutation of n          n - 1       Fisher-Yates from the front
Bernoulli                 1 or 2      uniform < p; a float64 p, or a Python number, takes a float64 uniform
========================  ==========  =====================================================================

Uniforms, integers, permutations and Bernoulli draws equal PyTorch's bit for bit; normals do but for the last digits of
`log`, `sin` and `cos` (at most 4 units in the last place in float32, 2 in float64; draws of 15 or fewer equal). The
state is PyTorch's own 5056 bytes, so a generator can be handed from one library to the other.
"""
from __future__ import annotations

import math
import secrets
from typing import Any

import numpy as np

DEFAULT_SEED = 67280421310721
BLOCK = 16                  # normals are made in blocks of 8 radii and 8 angles
WIDE = 2**28                # integer ranges from here on take two words

STATE = np.dtype([
    ("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("key", "<u8", 624),
    ("normal_x", "<f8"), ("normal_y", "<f8"), ("normal_rho", "<f8"), ("has_normal", "<i4"), ("unused", "V12"),
])


class MersenneTwister:
    """A stream of random numbers equal to that of PyTorch's CPU generator.

    The engine starts when the first number is drawn, so that making a generator costs nothing.
    """

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self.manual_seed(seed)

    # ---------------------------------------------------------------------------------------------------------- seeding
    def manual_seed(self, seed: Any) -> MersenneTwister:
        """Start anew from a seed: an integer from -2**63 to 2**64 - 1, a negative one counted from 2**64 down."""
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise ValueError("Overflow when unpacking long long: a seed lies between -2**63 and 2**64 - 1, "
                             f"got {number}.")
        self._seed = number % 2**64
        self._bits: Any = None
        self._second: float | None = None                 # of a Box-Muller pair, not yet handed out
        return self

    def seed(self) -> int:
        """Start anew from a seed that the operating system draws, and return it."""
        self.manual_seed(secrets.randbits(64))
        return self._seed

    def initial_seed(self) -> int:
        """The seed last set, as a number from 0 to 2**64 - 1."""
        return self._seed

    def get_state(self) -> np.ndarray:
        """The state as 5056 bytes (uint8), laid out as PyTorch's."""
        engine = self._engine().state["state"]
        record = np.zeros((), STATE)
        record["seed"], record["seeded"], record["key"] = self._seed, 1, engine["key"]
        record["next"], record["left"] = engine["pos"], 625 - engine["pos"]
        if self._second is not None:
            record["normal_y"], record["has_normal"] = self._second, 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> None:
        """Continue from a state that `get_state`, or PyTorch's `get_rng_state`, gave."""
        state = np.asarray(state)
        if state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a gradlab.ByteTensor, got elements of type {state.dtype}.")
        if state.size != STATE.itemsize:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input RNG "
                               f"state size to be {state.size}")
        record = np.frombuffer(state.tobytes(), STATE)[0]
        position = 625 - int(record["left"])
        if record["seeded"] != 1 or not 1 <= position <= 624 or record["key"].max() >= 2**32:
            raise RuntimeError("Invalid mt19937 state: take it from get_rng_state().")
        self.manual_seed(record["seed"])
        self._bits = self._engine_at(record["key"].astype(np.uint32), position)
        if record["has_normal"]:
            self._second = float(record["normal_y"])

    def _engine(self) -> Any:
        if self._bits is None:
            from numpy.random import RandomState  # not part of `import numpy`; 10 ms

            start = RandomState(self._seed % 2**32).get_state(legacy=False)["state"]
            self._bits = self._engine_at(start["key"], start["pos"])
        return self._bits

    @staticmethod
    def _engine_at(key: np.ndarray, position: int) -> Any:
        from numpy.random import MT19937

        engine = MT19937(0)
        engine.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        return engine

    # ------------------------------------------------------------------------------------------------------------ words
    def _words(self, count: int) -> np.ndarray:
        """The next 32-bit words, each in a uint64."""
        return self._engine().random_raw(count)

    def _wide_words(self, count: int) -> np.ndarray:
        """The next 64-bit words, of two words each, the first in the high half."""
        words = self._words(2 * count)
        return words[0::2] << 32 | words[1::2]

    def _unit(self, count: int, double: bool) -> np.ndarray:
        """Uniforms in [0, 1): float64, or float32."""
        if double:
            return (self._wide_words(count) & (2**53 - 1)) * 2.0**-53
        uniforms = (self._words(count) & (2**24 - 1)).astype(np.float32)
        uniforms *= 2.0**-24
        return uniforms

    # ------------------------------------------------------------------------------------------------------------ draws
    def uniform(self, shape: tuple[int, ...], dtype: Any = np.float32,
                low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Uniform numbers in [low, high), as `torch.rand` and `Tensor.uniform_` draw them.

        A number that rounding lifts to `high` becomes `low`, as in PyTorch.
        """
        dtype = _floating(dtype)
        if not low <= high:
            raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
        drawn = self._unit(math.prod(shape), dtype == np.float64).reshape(shape)
        if (low, high) != (0.0, 1.0):
            first, last = drawn.dtype.type(low), drawn.dtype.type(high)
            drawn = _multiply_add(drawn, last - first, first)
        elif dtype != np.float16:
            return drawn
        drawn = drawn.astype(dtype, copy=False)
        return np.where(drawn == dtype.type(high), dtype.type(low), drawn)

    def normal(self, shape: tuple[int, ...], dtype: Any = np.float32,
               mean: float = 0.0, std: float = 1.0) -> np.ndarray:
        """Normal numbers, as `torch.randn` and (contiguous) `Tensor.normal_` draw them."""
        dtype = _floating(dtype)
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        count = math.prod(shape)
        if count < BLOCK:
            drawn = np.array([self._gaussian() for _ in range(count)], np.float64)
        else:
            double, rest = dtype == np.float64, count % BLOCK
            whole = count - rest
            uniforms = self._unit(whole if dtype == np.float16 else count, double)   # float16 draws no tail in vain
            drawn = np.empty(count, uniforms.dtype)
            drawn[:whole] = _box_muller(uniforms[:whole])
            if rest:
                drawn[-BLOCK:] = _box_muller(self._unit(BLOCK, double))
        if (mean, std) != (0.0, 1.0):
            drawn = _multiply_add(drawn, drawn.dtype.type(std), drawn.dtype.type(mean))
        if dtype == np.float16:
            drawn = drawn.astype(np.float32, copy=False)                 # rounded twice, as PyTorch does
        return drawn.astype(dtype, copy=False).reshape(shape)

    def _gaussian(self) -> float:
        """One normal number in float64 (Box-Muller); of each pair the second waits for the next call."""
        if self._second is not None:
            drawn, self._second = self._second, None
            return drawn
        turn, uniform = self._unit(2, double=True).tolist()
        radius, angle = math.sqrt(-2 * math.log1p(-uniform)), 2 * math.pi * turn
        self._second = radius * math.sin(angle)
        return radius * math.cos(angle)

    def randint(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
        """Integers from low to high - 1 (int64), as `torch.randint` draws them."""
        if not low < high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        span, count = high - low, math.prod(shape)
        words = self._wide_words(count) if span >= WIDE else self._words(count)
        return ((words % np.uint64(span)).astype(np.int64) + low).reshape(shape)

    def randperm(self, n: int) -> np.ndarray:
        """A permutation of 0 … n - 1 (int64), as `torch.randperm` draws it."""
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
        permutation = list(range(n))
        place = np.arange(max(n - 1, 0))
        partners = place + (self._words(len(place)) % (n - place).astype(np.uint64)).astype(np.int64)
        for i, j in enumerate(partners.tolist()):
            permutation[i], permutation[j] = permutation[j], permutation[i]
        return np.array(permutation, np.int64)

    def bernoulli(self, p: float | np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Draws that are True with probability `p`.

        Parameters
        ----------
        p : float or array
            An array gives one draw each, as `torch.bernoulli(p)`; a Python number is that of `Tensor.bernoulli_(p)` and
            of dropout, and takes `shape`.
        """
        chances = np.asarray(p)
        if not ((chances >= 0) & (chances <= 1)).all():
            raise RuntimeError(f"bernoulli expects probabilities from 0 to 1, got {p!r}.")
        shape = chances.shape if shape is None else shape
        return self._unit(math.prod(shape), chances.dtype == np.float64).reshape(shape) < chances


def _floating(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise NotImplementedError(f"uniform and normal numbers are floating-point; dtype {dtype} was asked for.")
    return dtype


def _box_muller(uniforms: np.ndarray) -> np.ndarray:
    """Normals of uniforms in blocks of 16: eight radii, eight angles; eight cosines, eight sines come out."""
    blocks = uniforms.reshape(-1, 2, BLOCK // 2)
    radius, angle = np.sqrt(-2 * np.log(1 - blocks[:, 0])), 2 * math.pi * blocks[:, 1]
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)


def _multiply_add(x: np.ndarray, factor: np.floating, summand: np.floating) -> np.ndarray:
    """x * factor + summand rounded once, as the fused instruction does that PyTorch's kernels are compiled to.

    A product of two float32 is exact in float64. In float64 the rounding errors of product and sum are recovered
    (Dekker's and Knuth's error-free transformations) and added at the end.
    """
    if x.dtype == np.float32:
        return (x.astype(np.float64) * float(factor) + float(summand)).astype(np.float32)
    x_high, factor_high = _high_half(x), _high_half(factor)
    x_low, factor_low = x - x_high, factor - factor_high
    product = x * factor
    product_error = product - x_high * factor_high - x_low * factor_high - x_high * factor_low
    product_error = x_low * factor_low - product_error
    total = product + summand
    shift = total - product
    total_error = (product - (total - shift)) + (summand - shift)
    return total + (product_error + total_error)


def _high_half(x: Any) -> Any:
    """The upper 26 bits of a float64 (Veltkamp's split)."""
    scaled = x * (2.0**27 + 1)
    return scaled - (scaled - x)

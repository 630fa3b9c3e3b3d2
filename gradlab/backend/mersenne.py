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
exponential, geometric,   2           the inverse of the distribution function at a float64 uniform
Cauchy
log-normal                4 a pair    exp of a normal, always by pairs
multinomial               2           with replacement: where a float64 uniform falls among the cumulative
                                      sums; else (and for one sample) the largest weight / exponential
========================  ==========  =====================================================================

Uniforms, integers, permutations and Bernoulli draws equal PyTorch's bit for bit; what goes through `log`, `sin`, `cos` or
`tan` does but for the last digits (at most 4 units in the last place in float32, 2 in float64; draws of 15 or fewer normals
equal). The state is PyTorch's own 5056 bytes, so a generator can be handed from one library to the other. (On processors
of Intel's, PyTorch may draw Bernoulli and exponential numbers from MKL instead; the numbers here are those it draws elsewhere.)

A draw is whole: threads that share a stream wait for each other, as in PyTorch, so that no number is handed out twice.

Words come from NumPy in chunks that stay in the cache while they become numbers: a million cost what they cost in PyTorch.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

DEFAULT_SEED = 67280421310721
BLOCK = 16  # normals are made in blocks of 8 radii and 8 angles
WIDE = 2**28  # integer ranges from here on take two words
CHUNK = 2**15  # numbers made at a time, a multiple of BLOCK
FEW = 1000  # below this many, `random_raw` is the quicker call

STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("key", "<u8", 624),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("has_normal", "<i4"),
        ("unused", "V12"),
    ]
)


D = TypeVar("D", bound=Callable[..., Any])


def exclusive(draw: D) -> D:
    """The method, with the stream to itself."""

    @functools.wraps(draw)
    def alone(self: MersenneTwister, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return draw(self, *args, **kwargs)

    return cast("D", alone)


class MersenneTwister:
    """A stream of random numbers equal to that of PyTorch's CPU generator.

    The engine starts when the first number is drawn, so that making a generator costs nothing.
    """

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._lock = threading.RLock()
        self.manual_seed(seed)

    def __reduce__(self) -> Any:
        return _in_state, (self.get_state(),)  # a lock cannot be copied

    # ---------------------------------------------------------------------------------------------------------- seeding
    @exclusive
    def manual_seed(self, seed: Any) -> MersenneTwister:
        """Start anew from a seed: an integer from -2**63 to 2**64 - 1, a negative one counted from 2**64 down."""
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise ValueError(f"Overflow when unpacking long long: a seed lies between -2**63 and 2**64 - 1, got {number}.")
        self._seed = number % 2**64
        self._bits: Any = None
        self._integers: Any = None  # the same engine's quicker call for many words
        self._second: float | None = None  # of a Box-Muller pair, not yet handed out
        return self

    @exclusive
    def seed(self) -> int:
        """Start anew from a seed that the operating system draws, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8)))
        return self._seed

    def initial_seed(self) -> int:
        """The seed last set, as a number from 0 to 2**64 - 1."""
        return self._seed

    @exclusive
    def get_state(self) -> np.ndarray:
        """The state as 5056 bytes (uint8), laid out as PyTorch's."""
        engine = self._engine().state["state"]
        record = np.zeros((), STATE)
        record["seed"], record["seeded"], record["key"] = self._seed, 1, engine["key"]
        record["next"], record["left"] = engine["pos"], 625 - engine["pos"]
        if self._second is not None:
            record["normal_y"], record["has_normal"] = self._second, 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    @exclusive
    def set_state(self, state: np.ndarray) -> None:
        """Continue from a state that `get_state`, or PyTorch's `get_rng_state`, gave."""
        state = np.asarray(state)
        if state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a gradlab.ByteTensor, got elements of type {state.dtype}.")
        if state.size != STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input RNG state size to be {state.size}"
            )
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
        """The next 32-bit words; in an array of uint64 where they are few."""
        if count < FEW:
            return self._engine().random_raw(count)
        return self._many()(0, 2**32, count, np.uint32)

    def _wide_words(self, count: int) -> np.ndarray:
        """The next 64-bit words, of two words each, the first in the high half."""
        if count < FEW:
            words = self._engine().random_raw(2 * count)
            return words[0::2] << 32 | words[1::2]
        return self._many()(0, 2**64, count, np.uint64)

    def _many(self) -> Any:
        if self._integers is None:
            from numpy.random import Generator

            self._integers = Generator(self._engine()).integers
        return self._integers

    def _unit(self, count: int, double: bool) -> np.ndarray:
        """Uniforms in [0, 1): float64, or float32."""
        if count < FEW:
            return (
                (self._wide_words(count) & DOUBLE_BITS) * 2.0**-53
                if double
                else (self._words(count) & SINGLE_BITS).astype(np.float32) * np.float32(2.0**-24)
            )
        return _chunked(count, np.float64 if double else np.float32, self._fill_double if double else self._fill_single)

    def _fill_single(self, out: np.ndarray) -> None:
        words = self._words(out.size)
        words &= SINGLE_BITS
        out[...] = words.view(np.int32) if words.itemsize == 4 else words  # int32 turns into floats twice as quickly
        out *= np.float32(2.0**-24)

    def _fill_double(self, out: np.ndarray) -> None:
        words = self._wide_words(out.size)
        words &= DOUBLE_BITS
        out[...] = words.view(np.int64)
        out *= 2.0**-53

    # ------------------------------------------------------------------------------------------------------------ draws
    def uniform(self, shape: tuple[int, ...], dtype: Any = np.float32, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Uniform numbers in [low, high), as `torch.rand` and `Tensor.uniform_` draw them.

        A number that rounding lifts to `high` becomes `low`, as in PyTorch.
        """
        dtype = _floating(dtype)
        if not low <= high:
            raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
        with self._lock:
            drawn = self._unit(math.prod(shape), dtype == np.float64).reshape(shape)
        if (low, high) != (0.0, 1.0):
            first, last = drawn.dtype.type(low), drawn.dtype.type(high)
            drawn = np.asarray(multiply_add(drawn, last - first, first))
        elif dtype != np.float16:
            return drawn
        drawn = drawn.astype(dtype, copy=False)
        drawn[drawn == dtype.type(high)] = dtype.type(low)
        return drawn

    def normal(
        self, shape: tuple[int, ...], dtype: Any = np.float32, mean: float = 0.0, std: float = 1.0, contiguous: bool = True
    ) -> np.ndarray:
        """Normal numbers, as `torch.randn` and `Tensor.normal_` draw them; for a tensor that is not contiguous, always by
        pairs."""
        dtype = _floating(dtype)
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
        count = math.prod(shape)
        with self._lock:
            if count < BLOCK or not contiguous:
                drawn = self._gaussians(count)
            else:
                double, rest = dtype == np.float64, count % BLOCK
                drawn, whole = np.empty(count, np.float64 if double else np.float32), count - rest
                vain = 0 if dtype == np.float16 else rest  # drawn for a tail, which is then drawn anew
                for start in range(0, whole, CHUNK):
                    stop = min(start + CHUNK, whole)
                    last = rest > 0 and stop == whole
                    uniforms = self._unit(stop - start + last * (vain + BLOCK), double)
                    if last:
                        uniforms = np.concatenate((uniforms[: stop - start], uniforms[-BLOCK:]))
                    normals = _box_muller(uniforms)
                    drawn[start:stop] = normals[: stop - start]
                    if last:
                        drawn[-BLOCK:] = normals[-BLOCK:]
        if (mean, std) != (0.0, 1.0):
            drawn = multiply_add(drawn, drawn.dtype.type(std), drawn.dtype.type(mean))
        if dtype == np.float16:
            drawn = drawn.astype(np.float32, copy=False)  # rounded twice, as PyTorch does
        return drawn.astype(dtype, copy=False).reshape(shape)

    def _gaussians(self, count: int) -> np.ndarray:
        """Normal numbers in float64 by pairs (Box-Muller); a second that is not asked for waits for the next call."""
        waiting = self._second is not None and count > 0
        drawn = np.empty(count + 1)
        if waiting:
            drawn[0], self._second = self._second, None
        pairs = (count - waiting + 1) // 2
        if pairs:
            uniforms = self._unit(2 * pairs, double=True).reshape(pairs, 2)
            if count < BLOCK:  # by `math`, as PyTorch: to the last bit
                values: Any = [pair for turn, uniform in uniforms.tolist() for pair in _pair(turn, uniform)]
            else:
                radius, angle = np.sqrt(-2 * np.log1p(-uniforms[:, 1])), 2 * math.pi * uniforms[:, 0]
                values = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)
            drawn[waiting : waiting + 2 * pairs] = values
            if waiting + 2 * pairs > count:
                self._second = float(drawn[count])
        return drawn[:count]

    def randint(self, low: int, high: int, shape: tuple[int, ...], wide: bool | None = None) -> np.ndarray:
        """Integers from low to high - 1 (int64), as `torch.randint` draws them; of two words each if `wide`."""
        if not low < high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        span = high - low
        wide = span >= WIDE if wide is None else wide

        def fill(out: np.ndarray) -> None:
            words = self._wide_words(out.size) if wide else self._words(out.size)
            kind = words.dtype.type
            if span & (span - 1):
                words -= words // kind(span) * kind(span)  # quicker than %, for which NumPy has no SIMD
            else:
                words &= kind(span - 1)
            out[...] = words if words.itemsize == 4 else words.view(np.int64)
            if low:
                out += low

        with self._lock:
            return _chunked(math.prod(shape), np.int64, fill).reshape(shape)

    def randperm(self, n: int) -> np.ndarray:
        """A permutation of 0 … n - 1 (int64), as `torch.randperm` draws it."""
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
        place = np.arange(n, dtype=np.int64)
        partners = place.copy()
        if n > 1:
            with self._lock:
                words = self._words(n - 1)
            partners[:-1] += (words % np.arange(n, 1, -1).astype(np.uint32)).astype(np.int64)
        if n > FEW:
            return _swapped(place, partners)
        permutation = place.tolist()
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
        if isinstance(p, (int, float)) and shape is not None:
            if not 0 <= p <= 1:
                raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
            below = np.uint64(math.ceil(p * 2.0**53))  # of integers: no float is made
            with self._lock:
                return _chunked(
                    math.prod(shape), np.bool_, lambda out: np.less(self._wide_words(out.size) & DOUBLE_BITS, below, out=out)
                ).reshape(shape)
        chances = np.asarray(p)
        if not ((chances >= 0) & (chances <= 1)).all():
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false. Give probabilities from 0 to 1.")
        shape = chances.shape if shape is None else shape
        with self._lock:
            uniforms = self._unit(math.prod(shape), chances.dtype == np.float64)
        return uniforms.reshape(shape) < chances

    def exponential(self, shape: tuple[int, ...], rate: float = 1.0) -> np.ndarray:
        """Exponential numbers (float64), as `Tensor.exponential_` draws them."""
        if not rate > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
        with self._lock:
            return _chunked(
                math.prod(shape),
                np.float64,
                lambda out: self._inverse(out, lambda u: np.multiply(np.log1p(np.negative(u, out=u), out=u), -1.0 / rate, out=u)),
            ).reshape(shape)

    def geometric(self, shape: tuple[int, ...], p: float) -> np.ndarray:
        """How many trials of probability `p` it took (float64), as `Tensor.geometric_` draws it."""
        if not 0 < p < 1:
            raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
        with self._lock:
            return _chunked(
                math.prod(shape), np.float64, lambda out: self._inverse(out, lambda u: np.ceil(np.log(u) / math.log1p(-p)))
            ).reshape(shape)

    def cauchy(self, shape: tuple[int, ...], median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
        """Cauchy numbers (float64), as `Tensor.cauchy_` draws them."""
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
        with self._lock:
            return _chunked(
                math.prod(shape),
                np.float64,
                lambda out: self._inverse(out, lambda u: median + sigma * np.tan(math.pi * (u - 0.5))),
            ).reshape(shape)

    def log_normal(self, shape: tuple[int, ...], mean: float = 1.0, std: float = 2.0) -> np.ndarray:
        """exp of normal numbers (float64), as `Tensor.log_normal_` draws them."""
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        with self._lock:
            drawn = self._gaussians(math.prod(shape))
        return np.exp(drawn * std + mean).reshape(shape)

    def _inverse(self, out: np.ndarray, quantile: Callable[[np.ndarray], np.ndarray]) -> None:
        self._fill_double(out)
        with np.errstate(divide="ignore"):
            out[...] = quantile(out)

    @exclusive
    def multinomial(self, weights: np.ndarray, count: int, replacement: bool) -> np.ndarray:
        """Indices (int64) of the weights (…, n) drawn with probability proportional to them, `count` for each row."""
        if count == 1 or not replacement:
            with np.errstate(divide="ignore", invalid="ignore"):
                keys = weights / self.exponential(weights.shape).astype(weights.dtype)
            return keys.argmax(-1)[..., None] if count == 1 else np.argsort(-keys, axis=-1, kind="stable")[..., :count]
        sums = np.cumsum(weights, axis=-1, dtype=np.promote_types(weights.dtype, np.float32)).reshape(-1, weights.shape[-1])
        sums /= sums[:, -1:]
        uniforms = self._unit(len(sums) * count, double=True).reshape(len(sums), count)
        drawn = np.array([np.searchsorted(row, u) for row, u in zip(sums, uniforms, strict=True)], np.int64)
        return drawn.reshape(*weights.shape[:-1], count)


def _in_state(state: np.ndarray) -> MersenneTwister:
    generator = MersenneTwister()
    generator.set_state(state)
    return generator


SINGLE_BITS, DOUBLE_BITS = np.uint32(2**24 - 1), np.uint64(2**53 - 1)


def _chunked(count: int, dtype: Any, fill: Callable[[np.ndarray], None]) -> np.ndarray:
    """An array of `count` numbers, which `fill` makes a chunk at a time."""
    numbers = np.empty(count, dtype)
    for start in range(0, count, CHUNK):
        fill(numbers[start : start + CHUNK])
    return numbers


def _floating(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise NotImplementedError(f"uniform and normal numbers are floating-point; dtype {dtype} was asked for.")
    return dtype


def _pair(turn: float, uniform: float) -> tuple[float, float]:
    radius, angle = math.sqrt(-2 * math.log1p(-uniform)), 2 * math.pi * turn
    return radius * math.cos(angle), radius * math.sin(angle)


def _box_muller(uniforms: np.ndarray) -> np.ndarray:
    """Normals of uniforms in blocks of 16: eight radii, eight angles; eight cosines, eight sines come out."""
    half = np.dtype((np.void, BLOCK // 2 * uniforms.itemsize))  # half a block as one item is copied quicker
    blocks = uniforms.view(half)
    radius, angle = blocks[0::2].copy().view(uniforms.dtype), blocks[1::2].copy().view(uniforms.dtype)
    np.subtract(1, radius, out=radius)
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    angle *= 2 * math.pi
    cosine = np.cos(angle)
    cosine *= radius
    np.sin(angle, out=angle)
    angle *= radius
    normals = np.empty_like(uniforms)
    blocks = normals.view(half)
    blocks[0::2], blocks[1::2] = cosine.view(half), angle.view(half)
    return normals


def _swapped(place: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """What 0 … n - 1 becomes when each i is swapped with its partner j ≥ i, one after the other, without the loop.

    After swap i place i is done with, so i receives what place j last received before: the value that stood at the latest
    earlier swap m with the same partner (place j itself, where there is none). And what stood at m when m's turn came is what
    stood at the latest swap before m whose partner was m, and so on back: chains, which are followed by doubling.
    """
    n = len(place)
    order = np.argsort(partners.astype(np.uint16), kind="stable")
    for shift in range(16, n.bit_length(), 16):  # a radix sort: NumPy's, of 16 bits at a time
        order = order[np.argsort((partners[order] >> shift).astype(np.uint16), kind="stable")]
    target = partners[order]
    again = target[1:] == target[:-1]
    earlier = np.full(n, -1)  # the latest swap before with the same partner
    earlier[order[1:][again]] = order[:-1][again]
    last = np.append(~again, True)
    source = place.copy()
    at, swap = target[last], order[last]  # of each partner, the last swap
    swap = np.where(swap == at, earlier[swap], swap)  # a swap with itself moves nothing
    moved = swap >= 0
    source[at[moved]] = swap[moved]
    while not np.array_equal(source, further := source[source]):
        source = further
    return np.where(earlier >= 0, source[earlier], partners)


def multiply_add(x: np.ndarray, factor: np.floating, summand: np.floating) -> np.ndarray:
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

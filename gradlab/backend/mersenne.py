"""PyTorch's CPU random streams, from NumPy's MT19937.

Both libraries run the same engine (Matsumoto and Nishimura's MT19937, seeded by Knuth's linear recurrence). This module
reproduces how PyTorch converts its 32-bit words to numbers, and how many words each draw takes:

========================  ==========  =====================================================================
draw                      words       number
========================  ==========  =====================================================================
float16, float32          1           low 24 bits / 2**24
float64                   2           low 53 bits of (first, second) / 2**53
integer                   1 or 2      modulo the range; two words if the range is 2**28 or more
normal, 15 or fewer       4 a pair    Box-Muller in float64; the second of a pair is kept for the next draw
normal, 16 or more        see above   Box-Muller of 8 + 8 uniforms per block of 16; the last 16 are drawn
                                      again if the size is not a multiple of 16
permutation of n          n - 1       Fisher-Yates from the front
Bernoulli                 1 or 2      uniform < p; a float64 p or a Python number uses a float64 uniform
exponential, geometric,   2           the inverse of the distribution function at a float64 uniform
Cauchy
log-normal                4 a pair    exp of a normal, always drawn in pairs
multinomial               2           with replacement: position of a float64 uniform in the cumulative
                                      sums; otherwise (and for one sample) the largest weight / exponential
========================  ==========  =====================================================================

Uniforms, integers, permutations and Bernoulli draws equal PyTorch's bit for bit. Draws that use `log`, `sin`, `cos` or `tan` may
differ in the last digits (by at most 4 units in the last place in float32 and 2 in float64), except that draws of 15 or fewer
normals are equal. The state has PyTorch's layout of 5056 bytes, so a generator can be transferred between the libraries. (On
Intel processors PyTorch may draw Bernoulli and exponential numbers from MKL instead. The numbers here are those of other
processors.)

A draw is atomic: threads that share a stream wait for each other, as in PyTorch, so that no number is returned twice.

Words are fetched from NumPy in chunks that stay in the cache during the conversion. A million numbers take as long as in PyTorch.
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
BLOCK = 16  # normals are computed in blocks of 8 radii and 8 angles
MIN_WIDE_SPAN = 2**28  # smallest range of integers that takes two words
CHUNK = 2**15  # numbers computed at a time, a multiple of BLOCK
MIN_BULK_COUNT = 1000  # for fewer numbers `random_raw` is faster

STATE_DTYPE = np.dtype(
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


DrawMethod = TypeVar("DrawMethod", bound=Callable[..., Any])


def with_lock(draw: DrawMethod) -> DrawMethod:
    """Make a method hold the lock of the stream while it runs."""

    @functools.wraps(draw)
    def locked_draw(self: MersenneTwister, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return draw(self, *args, **kwargs)

    return cast("DrawMethod", locked_draw)


class MersenneTwister:
    """A stream of random numbers equal to that of PyTorch's CPU generator.

    The engine starts when the first number is drawn, so creating a generator costs nothing.
    """

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._lock = threading.RLock()
        self.manual_seed(seed)

    def __reduce__(self) -> Any:
        return _from_state, (self.get_state(),)  # locks cannot be pickled

    # ---------------------------------------------------------------------------------------------------------- seeding
    @with_lock
    def manual_seed(self, seed: Any) -> MersenneTwister:
        """Restart the stream from a seed, an integer from -2**63 to 2**64 - 1. 2**64 is added to a negative one."""
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise ValueError(f"Overflow when unpacking long long: a seed must be from -2**63 to 2**64 - 1, got {number}.")
        self._seed = number % 2**64
        self._bits: Any = None
        self._integers: Any = None  # a method of the same engine that is faster for many words
        self._second: float | None = None  # second number of a Box-Muller pair, not yet returned
        return self

    @with_lock
    def seed(self) -> int:
        """Restart the stream from a seed drawn by the operating system, and return the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8)))
        return self._seed

    def initial_seed(self) -> int:
        """Return the last seed set, as a number from 0 to 2**64 - 1."""
        return self._seed

    @with_lock
    def get_state(self) -> np.ndarray:
        """Return the state as 5056 bytes (uint8) in PyTorch's layout."""
        engine = self._engine().state["state"]
        record = np.zeros((), STATE_DTYPE)
        record["seed"], record["seeded"], record["key"] = self._seed, 1, engine["key"]
        record["next"], record["left"] = engine["pos"], 625 - engine["pos"]
        if self._second is not None:
            record["normal_y"], record["has_normal"] = self._second, 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    @with_lock
    def set_state(self, state: np.ndarray) -> None:
        """Continue from a state returned by `get_state` or by PyTorch's `get_rng_state`."""
        state = np.asarray(state)
        if state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a gradlab.ByteTensor, got dtype {state.dtype}.")
        if state.size != STATE_DTYPE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_DTYPE.itemsize} but found the input RNG state size to be "
                f"{state.size}"
            )
        record = np.frombuffer(state.tobytes(), STATE_DTYPE)[0]
        position = 625 - int(record["left"])
        if record["seeded"] != 1 or not 1 <= position <= 624 or record["key"].max() >= 2**32:
            raise RuntimeError("Invalid mt19937 state: use one returned by get_rng_state().")
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
        """Return the next 32-bit words, as uint64 if there are fewer than MIN_BULK_COUNT and as uint32 otherwise."""
        if count < MIN_BULK_COUNT:
            return self._engine().random_raw(count)
        return self._bulk_integers()(0, 2**32, count, np.uint32)

    def _wide_words(self, count: int) -> np.ndarray:
        """Return the next 64-bit words, each of two 32-bit words with the first in the high half."""
        if count < MIN_BULK_COUNT:
            words = self._engine().random_raw(2 * count)
            return words[0::2] << 32 | words[1::2]
        return self._bulk_integers()(0, 2**64, count, np.uint64)

    def _bulk_integers(self) -> Any:
        if self._integers is None:
            from numpy.random import Generator

            self._integers = Generator(self._engine()).integers
        return self._integers

    def _unit(self, count: int, double: bool) -> np.ndarray:
        """Return uniform numbers in [0, 1), float64 if `double` and float32 otherwise."""
        if count < MIN_BULK_COUNT:
            return (
                (self._wide_words(count) & DOUBLE_BITS) * 2.0**-53
                if double
                else (self._words(count) & SINGLE_BITS).astype(np.float32) * np.float32(2.0**-24)
            )
        return _fill_in_chunks(count, np.float64 if double else np.float32, self._fill_double if double else self._fill_single)

    def _fill_single(self, out: np.ndarray) -> None:
        words = self._words(out.size)
        words &= SINGLE_BITS
        out[...] = words.view(np.int32) if words.itemsize == 4 else words  # int32 converts to float twice as fast
        out *= np.float32(2.0**-24)

    def _fill_double(self, out: np.ndarray) -> None:
        words = self._wide_words(out.size)
        words &= DOUBLE_BITS
        out[...] = words.view(np.int64)
        out *= 2.0**-53

    # ------------------------------------------------------------------------------------------------------------ draws
    def uniform(self, shape: tuple[int, ...], dtype: Any = np.float32, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Draw uniform numbers in [low, high), like `torch.rand` and `Tensor.uniform_`.

        A number that is rounded up to `high` becomes `low`, as in PyTorch.
        """
        dtype = _float_dtype(dtype)
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
        """Draw normal numbers, like `torch.randn` and `Tensor.normal_`.

        For a tensor that is not contiguous they are always drawn in pairs.
        """
        dtype = _float_dtype(dtype)
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
        count = math.prod(shape)
        with self._lock:
            if count < BLOCK or not contiguous:
                drawn = self._gaussians(count)
            else:
                double, rest = dtype == np.float64, count % BLOCK
                drawn, whole = np.empty(count, np.float64 if double else np.float32), count - rest
                unused = 0 if dtype == np.float16 else rest  # drawn for the tail, which is then drawn again
                for start in range(0, whole, CHUNK):
                    stop = min(start + CHUNK, whole)
                    last = rest > 0 and stop == whole
                    uniforms = self._unit(stop - start + last * (unused + BLOCK), double)
                    if last:
                        uniforms = np.concatenate((uniforms[: stop - start], uniforms[-BLOCK:]))
                    normals = _box_muller(uniforms)
                    drawn[start:stop] = normals[: stop - start]
                    if last:
                        drawn[-BLOCK:] = normals[-BLOCK:]
        if (mean, std) != (0.0, 1.0):
            drawn = multiply_add(drawn, drawn.dtype.type(std), drawn.dtype.type(mean))
        if dtype == np.float16:
            drawn = drawn.astype(np.float32, copy=False)  # rounded twice, as in PyTorch
        return drawn.astype(dtype, copy=False).reshape(shape)

    def _gaussians(self, count: int) -> np.ndarray:
        """Draw normal numbers in float64, in pairs (Box-Muller). A surplus second number is kept for the next call."""
        waiting = self._second is not None and count > 0
        drawn = np.empty(count + 1)
        if waiting:
            drawn[0], self._second = self._second, None
        pairs = (count - waiting + 1) // 2
        if pairs:
            uniforms = self._unit(2 * pairs, double=True).reshape(pairs, 2)
            if count < BLOCK:  # `math` gives the same bits as PyTorch
                values: Any = [pair for turn, uniform in uniforms.tolist() for pair in _pair(turn, uniform)]
            else:
                radius, angle = np.sqrt(-2 * np.log1p(-uniforms[:, 1])), 2 * math.pi * uniforms[:, 0]
                values = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1).reshape(-1)
            drawn[waiting : waiting + 2 * pairs] = values
            if waiting + 2 * pairs > count:
                self._second = float(drawn[count])
        return drawn[:count]

    def randint(self, low: int, high: int, shape: tuple[int, ...], wide: bool | None = None) -> np.ndarray:
        """Draw integers from low to high - 1 (int64), like `torch.randint`; from two words each if `wide`."""
        if not low < high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        span = high - low
        wide = span >= MIN_WIDE_SPAN if wide is None else wide

        def fill(out: np.ndarray) -> None:
            words = self._wide_words(out.size) if wide else self._words(out.size)
            kind = words.dtype.type
            if span & (span - 1):
                words -= words // kind(span) * kind(span)  # faster than %, which NumPy does not vectorise
            else:
                words &= kind(span - 1)
            out[...] = words if words.itemsize == 4 else words.view(np.int64)
            if low:
                out += low

        with self._lock:
            return _fill_in_chunks(math.prod(shape), np.int64, fill).reshape(shape)

    def randperm(self, n: int) -> np.ndarray:
        """Draw a permutation of 0 … n - 1 (int64), like `torch.randperm`."""
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
        place = np.arange(n, dtype=np.int64)
        partners = place.copy()
        if n > 1:
            with self._lock:
                words = self._words(n - 1)
            partners[:-1] += (words % np.arange(n, 1, -1).astype(np.uint32)).astype(np.int64)
        if n > MIN_BULK_COUNT:
            return _apply_swaps(place, partners)
        permutation = place.tolist()
        for i, j in enumerate(partners.tolist()):
            permutation[i], permutation[j] = permutation[j], permutation[i]
        return np.array(permutation, np.int64)

    def bernoulli(self, p: float | np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Draw booleans that are True with probability `p`.

        Parameters
        ----------
        p : float or array
            An array gives one draw per element, as in `torch.bernoulli(p)`. A Python number requires `shape` and draws as in
            `Tensor.bernoulli_(p)` and dropout.
        shape : tuple of int, optional
            Shape of the result.
        """
        if isinstance(p, (int, float)) and shape is not None:
            if not 0 <= p <= 1:
                raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
            below = np.uint64(math.ceil(p * 2.0**53))  # compares integers, without conversion to float
            with self._lock:
                return _fill_in_chunks(
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
        """Draw exponential numbers (float64), like `Tensor.exponential_`."""
        if not rate > 0:
            raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
        with self._lock:
            return _fill_in_chunks(
                math.prod(shape),
                np.float64,
                lambda out: self._inverse(out, lambda u: np.multiply(np.log1p(np.negative(u, out=u), out=u), -1.0 / rate, out=u)),
            ).reshape(shape)

    def geometric(self, shape: tuple[int, ...], p: float) -> np.ndarray:
        """Draw numbers of trials until the first success of probability `p` (float64), like `Tensor.geometric_`."""
        if not 0 < p < 1:
            raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
        with self._lock:
            return _fill_in_chunks(
                math.prod(shape), np.float64, lambda out: self._inverse(out, lambda u: np.ceil(np.log(u) / math.log1p(-p)))
            ).reshape(shape)

    def cauchy(self, shape: tuple[int, ...], median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
        """Draw Cauchy numbers (float64), like `Tensor.cauchy_`."""
        if not sigma > 0:
            raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
        with self._lock:
            return _fill_in_chunks(
                math.prod(shape),
                np.float64,
                lambda out: self._inverse(out, lambda u: median + sigma * np.tan(math.pi * (u - 0.5))),
            ).reshape(shape)

    def log_normal(self, shape: tuple[int, ...], mean: float = 1.0, std: float = 2.0) -> np.ndarray:
        """Draw log-normal numbers (float64), like `Tensor.log_normal_`."""
        if not std > 0:
            raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
        with self._lock:
            drawn = self._gaussians(math.prod(shape))
        return np.exp(drawn * std + mean).reshape(shape)

    def _inverse(self, out: np.ndarray, quantile: Callable[[np.ndarray], np.ndarray]) -> None:
        self._fill_double(out)
        with np.errstate(divide="ignore"):
            out[...] = quantile(out)

    @with_lock
    def multinomial(self, weights: np.ndarray, count: int, replacement: bool) -> np.ndarray:
        """Draw `count` indices (int64) per row of `weights` (…, n), with probabilities proportional to the weights."""
        if count == 1 or not replacement:
            with np.errstate(divide="ignore", invalid="ignore"):
                keys = weights / self.exponential(weights.shape).astype(weights.dtype)
            return keys.argmax(-1)[..., None] if count == 1 else np.argsort(-keys, axis=-1, kind="stable")[..., :count]
        sums = np.cumsum(weights, axis=-1, dtype=np.promote_types(weights.dtype, np.float32)).reshape(-1, weights.shape[-1])
        sums /= sums[:, -1:]
        uniforms = self._unit(len(sums) * count, double=True).reshape(len(sums), count)
        drawn = np.array([np.searchsorted(row, u) for row, u in zip(sums, uniforms, strict=True)], np.int64)
        return drawn.reshape(*weights.shape[:-1], count)


def _from_state(state: np.ndarray) -> MersenneTwister:
    generator = MersenneTwister()
    generator.set_state(state)
    return generator


SINGLE_BITS, DOUBLE_BITS = np.uint32(2**24 - 1), np.uint64(2**53 - 1)


def _fill_in_chunks(count: int, dtype: Any, fill: Callable[[np.ndarray], None]) -> np.ndarray:
    """Return an array of `count` numbers, filled by `fill` one chunk at a time."""
    numbers = np.empty(count, dtype)
    for start in range(0, count, CHUNK):
        fill(numbers[start : start + CHUNK])
    return numbers


def _float_dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise NotImplementedError(f"uniform and normal numbers must have a floating-point dtype, got dtype {dtype}.")
    return dtype


def _pair(turn: float, uniform: float) -> tuple[float, float]:
    radius, angle = math.sqrt(-2 * math.log1p(-uniform)), 2 * math.pi * turn
    return radius * math.cos(angle), radius * math.sin(angle)


def _box_muller(uniforms: np.ndarray) -> np.ndarray:
    """Convert uniforms to normals in blocks of 16: eight radii and eight angles become eight cosines and eight sines."""
    half = np.dtype((np.void, BLOCK // 2 * uniforms.itemsize))  # half a block as one item, which is copied faster
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


def _apply_swaps(place: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """Swap each position i of 0 … n - 1 with its partner j ≥ i, in order, without a loop.

    Swap i is the last one to change position i. It stores there the value that position j received in the latest earlier swap m
    with the same partner j, or j itself if there is none. That value was at position m just before swap m. It came from the
    latest swap before m whose partner was m, and so on. These chains are followed by doubling.
    """
    n = len(place)
    order = np.argsort(partners.astype(np.uint16), kind="stable")
    for shift in range(16, n.bit_length(), 16):  # radix sort, 16 bits at a time with NumPy's
        order = order[np.argsort((partners[order] >> shift).astype(np.uint16), kind="stable")]
    target = partners[order]
    again = target[1:] == target[:-1]
    earlier = np.full(n, -1)  # the latest earlier swap with the same partner
    earlier[order[1:][again]] = order[:-1][again]
    last = np.append(~again, True)
    source = place.copy()
    at, swap = target[last], order[last]  # the last swap of each partner
    swap = np.where(swap == at, earlier[swap], swap)  # a swap with itself changes nothing
    moved = swap >= 0
    source[at[moved]] = swap[moved]
    while not np.array_equal(source, further := source[source]):
        source = further
    return np.where(earlier >= 0, source[earlier], partners)


def multiply_add(x: np.ndarray, factor: np.floating, summand: np.floating) -> np.ndarray:
    """Return x * factor + summand rounded once, like the fused instruction in PyTorch's kernels.

    A product of two float32 numbers is exact in float64. For float64 the rounding errors of the product and the sum are recovered
    by Dekker's and Knuth's error-free transformations and added at the end.
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
    """Return the upper 26 bits of a float64 (Veltkamp's split)."""
    scaled = x * (2.0**27 + 1)
    return scaled - (scaled - x)

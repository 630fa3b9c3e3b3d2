"""Nets of several seeds, widths, depths, initialisations and activations, whose gradients are known by a formula.

The formula is the mean-field recursion of Poole et al. 2016 and Schoenholz et al. 2017 ("Deep Information Propagation") for a net
of width n without biases, whose weights are normal with variance σ²/n:

    q' = σ² E[φ(√q z)²],    χ = σ² E[φ′(√q z)²],    z ~ N(0, 1)

On average over the weights, the squared norm of the gradient with respect to a layer's input is χ of that layer times that of its
output, so it changes over the net by the product of all χ. A net is *vanishing* if the root of that product is below `LOST`,
*exploding* if it is above `GAINED`, and *healthy* if it is between `LOST_CLEAR` and `GAINED_CLEAR`. Other nets are not judged:
the doctor may report them or not. `gains` computes the actual gradients of a net.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

LOST, GAINED = 1e-5, 1e5
LOST_CLEAR, GAINED_CLEAR = 1e-2, 1e2

STEP = 0.005
NODES = np.arange(-2400, 2400) * STEP + STEP / 2  # midpoints up to 12 standard deviations; none is at the kink at 0
WEIGHTS = np.exp(-(NODES**2) / 2) * STEP


def mean(f: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return E[f(z)] for a standard normal z, by the midpoint rule."""
    return float((WEIGHTS * f(NODES)).sum() / math.sqrt(2 * math.pi))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -500, 500)))


ACTIVATIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "linear": (lambda x: x, np.ones_like),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) + 0.5 * (x == 0)),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sigmoid": (sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x))),
}
# σ of the initialisations: He et al. 2015, Glorot and Bengio 2010 for equal fans, PyTorch's default for Linear (uniform to 1/√n),
# and common choices by hand.
SCALES: dict[str, Callable[[int], float]] = {
    "he": lambda n: math.sqrt(2),
    "xavier": lambda n: 1.0,
    "default": lambda n: 1 / math.sqrt(3),
    "one": math.sqrt,
    "hundredth": lambda n: 0.01 * math.sqrt(n),
}


@dataclass(frozen=True)
class Net:
    """A net of the sweep with `depth` layers of `width`. Its kind is "mlp", "rnn" (the same weights at each step) or "conv"
    (circular, kernel size 3, `width` channels)."""

    kind: str
    activation: str
    scale: str
    width: int
    depth: int
    seed: int

    @property
    def predicted_gain(self) -> float:
        """Factor by which the gradient norm changes from the last layer to the first, by the recursion."""
        f, slope = ACTIVATIONS[self.activation]
        variance = SCALES[self.scale](self.width) ** 2
        q, log_gain = 1.0, 0.0
        for _ in range(self.depth):
            q = variance * q
            chi = variance * mean(lambda z, q=q: slope(math.sqrt(q) * z) ** 2)
            log_gain += 0.5 * math.log(max(chi, 1e-300))
            q = max(mean(lambda z, q=q: f(math.sqrt(q) * z) ** 2), 1e-300)
        return math.exp(max(min(log_gain, 600.0), -600.0))

    @property
    def truth(self) -> str | None:
        """ "vanishing", "exploding", "healthy", or None if the net is not judged."""
        gain = self.predicted_gain
        if gain < LOST:
            return "vanishing"
        if gain > GAINED:
            return "exploding"
        return "healthy" if LOST_CLEAR < gain < GAINED_CLEAR else None

    def weights(self) -> list[np.ndarray]:
        """Return the weights of all layers. An RNN has one matrix, a convolution three matrices per layer."""
        rng = np.random.default_rng(self.seed)
        sigma = SCALES[self.scale](self.width) / math.sqrt(self.width)
        if self.kind == "conv":
            return [rng.normal(size=(3, self.width, self.width)) * sigma / math.sqrt(3) for _ in range(self.depth)]
        if self.kind == "rnn":
            return [rng.normal(size=(self.width, self.width)) * sigma] * self.depth
        return [rng.normal(size=(self.width, self.width)) * sigma for _ in range(self.depth)]

    def gains(self, batch: int = 16, places: int = 8) -> np.ndarray:
        """Return ‖gradient of layer k's input‖ / ‖gradient of the output‖ for each k and a random upstream gradient, computed
        with NumPy in float64."""
        f, slope = ACTIVATIONS[self.activation]
        rng = np.random.default_rng(self.seed + 1)
        conv = self.kind == "conv"
        x = rng.normal(size=(batch, places, self.width) if conv else (batch, self.width))
        pre = []
        for W in self.weights():
            pre.append(sum(np.roll(x, k - 1, 1) @ W[k] for k in range(3)) if conv else x @ W)
            x = f(pre[-1])
        g = rng.normal(size=x.shape)
        start, found = np.linalg.norm(g), []
        for W, a in zip(reversed(self.weights()), reversed(pre), strict=True):
            g = g * slope(a)
            g = sum(np.roll(g, 1 - k, 1) @ W[k].T for k in range(3)) if conv else g @ W.T
            found.append(np.linalg.norm(g) / start)
        return np.array(found[::-1])

    def text(self) -> str:
        """Return the net, which must be an MLP, as a cell for `row_runs.Run`."""
        assert self.kind == "mlp"
        act = "h @ W" if self.activation == "linear" else f"torch.{self.activation}(h @ W)"
        return (
            f"torch.manual_seed({self.seed})\n"
            f"Ws = [(torch.randn({self.width}, {self.width}) * {SCALES[self.scale](self.width) / math.sqrt(self.width)!r})"
            f".requires_grad_() for _ in range({self.depth})]\n"
            f"h = torch.randn(16, {self.width})\nfor W in Ws:\n    h = {act}\n"
            f"loss = (h * torch.randn(16, {self.width})).sum()\n"
        )


def nets(
    kinds: tuple[str, ...] = ("mlp", "rnn", "conv"),
    widths: tuple[int, ...] = (16, 64, 128),
    depths: tuple[int, ...] = (2, 4, 8, 16, 32),
    seeds: tuple[int, ...] = (0, 1, 2),
) -> Iterator[Net]:
    """Yield the nets of the sweep."""
    for kind, activation, scale, width, depth, seed in itertools.product(kinds, ACTIVATIONS, SCALES, widths, depths, seeds):
        yield Net(kind, activation, scale, width, depth, seed)


def figures(claim: Callable[[Net], str | None], sweep: Iterator[Net]) -> dict[str, float]:
    """Return the share of healthy nets with a finding, the share of other nets without the right one, and the number of each.

    `claim` returns "vanishing", "exploding" or None for a net.
    """
    alarms, misses, healthy, unhealthy = 0, 0, 0, 0
    for net in sweep:
        truth, said = net.truth, claim(net)
        healthy += truth == "healthy"
        unhealthy += truth in ("vanishing", "exploding")
        alarms += truth == "healthy" and said is not None
        misses += truth in ("vanishing", "exploding") and said != truth
    return {"false alarms": alarms / healthy, "misses": misses / unhealthy, "healthy": healthy, "unhealthy": unhealthy}

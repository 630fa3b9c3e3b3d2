"""Generate random programs from tables of lines: operations on small tensors, views, and in-place operations."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

SHAPES = [(3,), (2, 3), (3, 3), (), (2, 1), (1, 3), (2, 3, 3)]
UNARY = """a.tanh() | a.exp() | a.sigmoid() | -a | a * 2 | a + 1.5 | 1 - a | 2 / (a * a + 1) | a ** 2 | a ** 3 | (a * a + 1).log()
(a * a + 1).sqrt() | a.sin() | 2 ** a | a.sum() | a.mean() | a.sum(-1, keepdim=True) | a.mean(0) | a.max(-1).values
a.var(0, correction=0) | a.softmax(-1) | a.log_softmax(0) | lib.cat([a.reshape(-1), a.reshape(-1) * 2]) | lib.stack([a, a * 3])
a[[0, -1]] | a[a > 0] | lib.where(a > 0, a, a * 2) | (a * 1).max() | a.T.reshape(-1) | a[lib.tensor([0, 0, -1])]
a[..., [0, -1, 0]] | a[None, :, [0, 0]] | a[0, ..., [-1, 0]]"""
VIEWS = """a[0] | a[1:] | a[..., ::2] | a.T | a.reshape(-1) | a.unsqueeze(0) | a.squeeze() | a.diagonal() | a[...]
a.transpose(0, -1) | a.flatten() | a[None] | a[:, 0] | a[-1, ...] | a.view(-1) | a[..., 0] | a.expand(2, *a.shape) | a[0, 0]"""
BINARY = """a + b | a * b | a - b | a / (b * b + 1) | lib.maximum(a, b) | lib.where(a > b, a, b)
(a * a + .5) ** b | lib.minimum(a, b) | a @ b"""
WRITES = """a.add_(b) | a.mul_(b) | a.sub_(b) | a.mul_(2) | a.add_(1) | a.exp_() | a.tanh_() | a.zero_() | a.copy_(b) | a.pow_(2)
a.neg_() | a.sigmoid_() | a.relu_() | a.div_(b * b + 1) | a[0] = b | a[...] = b | a[[0, -1]] = b | a[a > 0] = 0.25 | a[1:] *= 2
a[0] += 1 | a[-1] = 1.5 | a += b | a *= b | a **= 2 | a /= 2 | a -= 1 | a[0, 0] = b | a[:, [0, 1]] *= 3 | a[0, [0, -1]] = b
a[..., 0] = b | a.mul_(a) | a.add_(a)"""


def lines(table: str) -> list[str]:
    return table.replace("\n", " | ").split(" | ")


def program(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield pairs (line, name it assigns or ""). Names are x, y, z for leaves and t0, t1, … for results."""
    names = ["x", "y", "z"]
    for i in range(rng.randint(3, 14)):
        table = rng.choices((UNARY, VIEWS, BINARY, WRITES), (30, 20, 16, 34))[0]
        a, b = rng.choice(names[-6:]), rng.choice(names)
        text = "".join({"a": a, "b": b}.get(word, word) for word in words(rng.choice(lines(table))))
        yield (text, "") if table is WRITES else (f"t{i} = {text}", f"t{i}")
        if table is not WRITES:
            names.append(f"t{i}")


def words(text: str) -> list[str]:
    return re.findall(r"\w+|\W", text)


class Run:
    """Namespace of a program run with one library."""

    def __init__(self, lib: Any, leaves: dict[str, np.ndarray]) -> None:
        self.lib, self.names = lib, {"lib": lib}
        self.names |= {k: lib.tensor(v.tolist(), dtype=lib.float64, requires_grad=True) for k, v in leaves.items()}

    def line(self, text: str) -> str:
        """Run a line. Return the name of the error if it raises, "" otherwise."""
        try:
            exec(text, self.names)
        except Exception as error:  # noqa: BLE001  (compared with the other library's)
            return "overlap" if "single memory location" in str(error) else type(error).__name__
        return ""

    def tensors(self) -> dict[str, Any]:
        return {k: v for k, v in self.names.items() if k[0] in "txyz"}

    def gradients(self, chosen: list[str], order: int, seed: int) -> list[Any] | str:
        """Return the gradients of a weighted sum of the chosen tensors with respect to the leaves and themselves.

        Higher orders differentiate a function of the leaves' gradients.
        """
        tensors = self.tensors()
        xs = [tensors[k] for k in ("x", "y", "z", *chosen)]
        weights = [np.random.default_rng(seed + i).standard_normal(tuple(tensors[k].shape)) for i, k in enumerate(chosen)]
        total = sum((tensors[k] * self.lib.from_numpy(np.asarray(w))).sum() for k, w in zip(chosen, weights, strict=True))
        found = []
        try:
            for k in range(order):
                grads = self.lib.autograd.grad(total, xs, create_graph=k + 1 < order, allow_unused=True)
                found.append([None if g is None else values(g).copy() for g in grads])
                onward = [(g * g * 0.5 + g).sum() for g in grads[:3] if g is not None and g.requires_grad]
                if not onward:
                    break
                total = sum(onward[1:], start=onward[0])
        except RuntimeError as error:
            return str(error)[:60].replace("torch.", "gradlab.")
        return found


def values(tensor: Any) -> np.ndarray:
    return tensor.detach().numpy(force=True)

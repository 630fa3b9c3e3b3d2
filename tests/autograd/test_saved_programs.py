"""Random programs with in-place writes and views, run with every feature that changes how tensors are saved.

The features are hooks that store the tensors themselves, copies, or NumPy arrays, `allow_mutation_on_saved_tensors`, anomaly
mode, and checkpointing. The gradients up to the third order must be the same as without them. If a program modifies a saved
tensor, which is an error without a feature, the features that store copies must agree with each other.
"""

from __future__ import annotations

import random
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import gradlab as gl
from gradlab.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks
from gradlab.utils.checkpoint import checkpoint

differential = pytest.importorskip("test_differential", reason="the programs are those of the comparison with torch")
pytestmark = pytest.mark.oracle

WAYS = {
    "plain": nullcontext,
    "itself": lambda: saved_tensors_hooks(lambda z: z, lambda z: z),
    "copies": lambda: saved_tensors_hooks(lambda z: z.detach().clone(), lambda z: z),
    "arrays": lambda: saved_tensors_hooks(lambda z: z.detach().numpy().copy(), gl.tensor),
    "mutation": allow_mutation_on_saved_tensors,
    "anomaly": lambda: gl.autograd.set_detect_anomaly(True, check_nan=False),
    "checkpoint": nullcontext,
}


def execute(run, lines):
    for line, name in lines:
        if run.line(line) and name:
            run.line(f"{name} = x * 1")
    return {k: v for k, v in run.names.items() if k[0] == "t"}


def gradients(seed, way):
    """Return the gradients of the results of a program, or the error."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    run = differential.Run(gl, {k: numbers.standard_normal(rng.choice(differential.SHAPES)).round(2) for k in "xyz"})
    lines = list(differential.program(rng))

    def again(x, y, z):
        inner = differential.Run(gl, {})
        inner.names |= {"x": x, "y": y, "z": z}
        return execute(inner, lines)

    with WAYS[way]():
        if way == "checkpoint":
            run.names |= checkpoint(again, *(run.names[k] for k in "xyz"), use_reentrant=False)
        else:
            execute(run, lines)
        made = [k for k, t in run.tensors().items() if k[0] == "t" and t.requires_grad]
        chosen = rng.sample(made, min(len(made), rng.randint(1, 3)))
        return run.gradients(chosen, rng.choice([1, 2, 3]), seed) if made else []


def same(one, other):
    return (
        not isinstance(one, str)
        and not isinstance(other, str)
        and len(one) == len(other)
        and all(
            (a is None) == (b is None) and (a is None or np.allclose(a, b, rtol=1e-9, atol=0, equal_nan=True))
            for first, second in zip(one, other, strict=True)
            for a, b in zip(first, second, strict=True)
        )
    )


def check(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {way: gradients(seed, way) for way in WAYS}
    if isinstance(found["plain"], str):  # a saved tensor was modified
        assert isinstance(found["anomaly"], str), seed
        assert same(found["mutation"], found["copies"]) or found["mutation"] == found["copies"], seed
        assert isinstance(found["checkpoint"], str) or same(found["checkpoint"], found["copies"]), seed
    else:
        assert [way for way in WAYS if not same(found[way], found["plain"])] == [], seed


def test_programs():
    for seed in range(60):
        check(seed)


@pytest.mark.exhaustive
def test_many_programs():
    for seed in range(10_000, 11_700):
        check(seed)

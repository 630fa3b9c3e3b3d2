"""`python -m benchmarks.jacobians [--rounds N]`: gradlab's time for whole Jacobians divided by that of other libraries.

Dense: y = tanh(W₂ tanh(W₁ x)) of 256 by 256, compared with torch.func.jacrev, torch.autograd.functional.jacobian and, if jax is
installed, jitted jax.jacrev. Sparse: a tridiagonal residual with n unknowns, compared with asdex (which needs jax), for the first
call (including pattern, colouring and, for jax, compilation) and for later ones (gradlab with its plan, jax with its compiled
function).

jax and asdex may be installed in another environment: GRADLAB_JAX_PYTHON names its interpreter. Each measurement runs in its own
process, and gradlab and the other library take turns. Medians over the rounds and the largest acceptable ratio are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
REPEATS = 30
PEERS = {
    "dense/256": (("torch.func", 1.0), ("torch.functional", 0.1), ("jax", 1.5)),
    "tridiagonal/10000": (("asdex", 0.25),),
    "tridiagonal/100000": (("asdex", 0.25),),
}
AGAIN = 3.0  # largest acceptable ratio of later calls, for sparse Jacobians


def time_calls(call: Any) -> dict[str, float]:
    """Return the seconds of the first call and the median of the later ones."""
    spent = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return {"cold": spent[0], "again": median(spent[1:])}


def weights(n: int) -> tuple[Any, Any, Any]:
    import numpy as np

    draw = np.random.default_rng(0)
    return tuple((draw.standard_normal(shape) / n**0.5).astype(np.float32) for shape in ((n, n), (n, n), (n,)))  # type: ignore


def gradlab_dense(n: int) -> dict[str, float]:
    import numpy as np

    import gradlab as gl

    a, b, x = map(gl.tensor, weights(n))
    return time_calls(lambda: np.asarray(gl.jacobian(lambda u: gl.tanh(b @ gl.tanh(a @ u)), x)))


def torch_dense(n: int, functional: bool) -> dict[str, float]:
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    a, b, x = map(torch.from_numpy, weights(n))

    def f(u: Any) -> Any:
        return torch.tanh(b @ torch.tanh(a @ u))

    return time_calls((lambda: torch.autograd.functional.jacobian(f, x)) if functional else (lambda: torch.func.jacrev(f)(x)))


def jax_dense(n: int) -> dict[str, float]:
    import jax
    import jax.numpy as jnp

    a, b, x = map(jnp.asarray, weights(n))
    f = jax.jit(jax.jacrev(lambda u: jnp.tanh(b @ jnp.tanh(a @ u))))
    return time_calls(lambda: jax.block_until_ready(f(x)))


def gradlab_tridiagonal(n: int) -> dict[str, float]:
    import scipy.sparse  # noqa: F401  (imported before the clock starts, as for asdex)

    import gradlab as gl

    def residual(u: Any) -> Any:
        edge = gl.zeros(1)
        return gl.cat([edge, u[:-1]]) - 2 * u + gl.cat([u[1:], edge]) + gl.exp(u) * u**2

    x, plans = gl.linspace(0, 1, n), [None]

    def run() -> None:
        J = gl.jacobian(residual, x, plan=plans[0])
        J.sparse()
        plans[0] = J.plan
        assert J.sweeps == 3

    return time_calls(run)


def asdex_tridiagonal(n: int) -> dict[str, float]:
    import asdex
    import jax
    import jax.numpy as jnp

    def residual(u: Any) -> Any:
        edge = jnp.zeros(1)
        return jnp.concatenate([edge, u[:-1]]) - 2 * u + jnp.concatenate([u[1:], edge]) + jnp.exp(u) * u**2

    x, made = jnp.linspace(0, 1, n), []

    def run() -> None:
        if not made:
            made.append(jax.jit(asdex.jacobian(residual, x)))
        jax.block_until_ready(made[0](x).data)

    return time_calls(run)


WORK = {
    "gradlab": {"dense": gradlab_dense, "tridiagonal": gradlab_tridiagonal},
    "torch.func": {"dense": lambda n: torch_dense(n, False)},
    "torch.functional": {"dense": lambda n: torch_dense(n, True)},
    "jax": {"dense": jax_dense},
    "asdex": {"tridiagonal": asdex_tridiagonal},
}


def measure(library: str, problem: str) -> dict[str, float] | None:
    """Run one measurement in a new process. Return None if the library is not installed."""
    python = os.environ.get("GRADLAB_JAX_PYTHON", sys.executable) if library in ("jax", "asdex") else sys.executable
    ran = subprocess.run(
        [python, str(HERE / "jacobians.py"), "--worker", library, problem],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE.parent,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )
    if ran.returncode:
        if "ModuleNotFoundError" in ran.stderr:
            return None
        raise SystemExit(ran.stderr)
    return json.loads(ran.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jacobians", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        library, problem = options.worker
        kind, n = problem.split("/")
        print(json.dumps(WORK[library][kind](int(n))))
        return
    print(f"{'problem':20s} {'peer':18s} {'when':6s} {'gradlab':>12s} {'peer':>12s} {'ratio':>7s} {'at most':>8s}")
    for problem, peers in PEERS.items():
        for peer, limit in peers:
            pairs = []
            for _ in range(options.rounds):
                ours, theirs = measure("gradlab", problem), measure(peer, problem)
                if theirs is None:
                    break
                pairs.append((ours, theirs))
            if not pairs:
                print(f"{problem:20s} {peer:18s} skipped: not installed. GRADLAB_JAX_PYTHON can name another interpreter")
                continue
            for when, most in (("again", limit),) if problem.startswith("dense") else (("cold", limit), ("again", AGAIN)):
                a, b = ([one[when] for one in side] for side in zip(*pairs, strict=True))
                ratio = median(x / y for x, y in zip(a, b, strict=True))
                print(
                    f"{problem:20s} {peer:18s} {when:6s} {median(a) * 1e6:9.1f} µs {median(b) * 1e6:9.1f} µs {ratio:7.2f} "
                    f"{most:8.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""A graph of torch that is deeper than the stack. Torch frees nodes that Python has accessed by recursion, which may crash."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """
import torch, gradlab as gl

def chain(steps):
    x = torch.randn(1, requires_grad=True)
    y = x.clone()
    for _ in range(steps):
        y = y + y * 0.000001
    return x, y
"""
WAYS = {
    "it is dropped": """
with gl.tracing():
    chain(60_000)
""",
    "it is swept": """
with gl.tracing() as traced:
    x, y = chain(60_000)
    y.backward()
    del y
assert x.grad is not None
assert traced.trace.cut_off and 0 < len(traced.trace.nodes) < 12_000
""",
    "it outlives the block": """
with gl.tracing():
    x, y = chain(60_000)
    y.backward(retain_graph=True)
y = None
""",
    "it is watched": """
w = torch.ones(1, requires_grad=True)
with gl.watch(w):
    x, y = chain(60_000)
    (y * w).backward()
    del y
""",
    "it is drawn": """
x, y = chain(60_000)
assert len(gl.graph(y).trace.nodes) < 12_000
y = None
""",
    "it is explained": """
x, y = chain(60_000)
str(gl.doctor(y))
y = None
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_graph_that_is_deeper_than_the_stack_does_not_crash(way):
    ran = subprocess.run([sys.executable, "-c", PROGRAM + WAYS[way]], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-2000:])
    assert "gradlab failed" not in ran.stderr

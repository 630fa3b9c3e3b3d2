"""Memory stays constant while one kernel runs a cell repeatedly that makes a 50 MB graph, a report and a Jacobian's widget."""

from __future__ import annotations

import pytest

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")

SETUP = """
%load_ext gradlab
import gradlab as gl
x = gl.randn(500_000, requires_grad=True)
w = gl.randn(4, 4, requires_grad=True)
def resident():
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * 4096 / 2**20
"""
REPORT = """%%grad x w
h = x
for _ in range(13):
    h = (h * 1.01).tanh()
z = w.tanh() @ w
loss = h.sum() + z.sum()
"""
WIDGET = """
J = gl.jacobian(z, w)
view = J.widget()
view
"""


@pytest.mark.exhaustive
def test_memory_is_constant_over_50_runs():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        sizes = []

        def run(code):
            heard = []
            reply = client.execute_interactive(code, output_hook=lambda m: heard.append(m["content"]), timeout=120)
            assert reply["content"]["status"] == "ok", reply["content"].get("traceback")
            return heard

        run(SETUP)
        for _ in range(50):
            run(REPORT)
            run(WIDGET)
            said = [content["text"] for content in run("print(resident())") if content.get("name") == "stdout"]
            sizes.append(float("".join(said)))  # a line may be sent in several messages
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    settled, end = max(sizes[5:10]), max(sizes[-5:])
    assert len(sizes) == 50
    assert end <= 1.2 * settled, f"resident memory grew from {settled:.0f} to {end:.0f} MiB: {[round(s) for s in sizes]}"

"""The messages of each live view that a real kernel sends to a front end, such as VS Code or Colab.

gradlab was not run in these two. According to their documentation, they need the display protocol of IPython and the form of
anywidget's views, which these tests check. The module `google.colab.output` is replaced by one that records its calls.
"""

from __future__ import annotations

import re

import pytest

jupyter_client = pytest.importorskip("jupyter_client")
nbformat = pytest.importorskip("nbformat", reason="needs the extra lab")
pytest.importorskip("ipykernel")

VIEW = "application/vnd.jupyter.widget-view+json"
SETUP = """import gradlab as gl
%load_ext gradlab
x = gl.tensor([1., 2., 3.], requires_grad=True)
model = gl.nn.Linear(3, 1)
optimizer = gl.optim.SGD(model.parameters(), lr=0.1)
from gradlab.homework import ask
loss = (x * x.exp()).sum()
def step(w):
    optimizer.zero_grad()
    loss = model(x.detach()).square().sum()
    loss.backward()
    optimizer.step()
    w.log(loss)
"""
OBJECTS = {
    "explorer": "gl.graph(loss).widget()",
    "jacobian": "gl.jacobian(x ** 2, x).widget()",
    "playground": "gl.playground(lambda t: t * t, t=(-2, 2)).widget()",
    "stepper": "gl.step_through(loss).widget()",
}
CELLS = {
    **OBJECTS,
    "playground itself": "gl.playground(lambda t: t * t, t=(-2, 2))",
    "magic": "%graph loss -i",
    "watch": "with gl.watch(model, optimizer) as w:\n    for _ in range(3): step(w)",
}
LOADERS = r"requirejs|require\(|\bdefine\(|jsdelivr|unpkg|\bcdn\b|import\s*\(|(?m:^\s*import\b)|@import|url\(|<script|javascript:"
ADDRESS = r"https?://(?!www\.w3\.org/)"  # the namespaces of SVG and MathML are only names, from which nothing is loaded
COLAB = """import sys, types
google, colab, output = (types.ModuleType(name) for name in ("google", "google.colab", "google.colab.output"))
calls = []
output._widgets = types.SimpleNamespace(_installed_url=None)
def enable_custom_widget_manager():
    calls.append("enabled")
    output._widgets._installed_url = "manager.js"
output.enable_custom_widget_manager = enable_custom_widget_manager
sys.modules |= {"google": google, "google.colab": colab, "google.colab.output": output}"""


class Kernel:
    def __init__(self, client):
        self.client = client

    def run(self, code):
        """Run a cell, which must not raise, and return its messages that front ends read, in their order."""
        messages = []
        reply = self.client.execute_interactive(code, output_hook=messages.append, timeout=120, allow_stdin=False)
        assert reply["content"]["status"] == "ok", reply["content"]
        return messages

    def value(self, expression):
        """Return the text of an expression's value. The kernel may send one line in several messages."""
        messages = self.run(f"print({expression})")
        return "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream").strip()


def start_kernel():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        kernel = Kernel(client)
        kernel.run(SETUP)
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel():
    yield from start_kernel()


@pytest.fixture
def fresh_kernel():
    yield from start_kernel()


def outputs_of(messages):
    """Return the outputs as a notebook saves them, after checking that they are valid."""
    kinds = ("display_data", "execute_result", "stream", "error")
    outputs = [nbformat.v4.output_from_msg(m) for m in messages if m["msg_type"] in kinds]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    nbformat.validate(notebook)
    return outputs


@pytest.mark.parametrize("name", CELLS)
def test_a_live_view_is_a_static_output_with_a_widget_below(kernel, name):
    messages = kernel.run(CELLS[name])
    static, live = outputs_of(messages)
    assert {"text/html", "text/plain"} <= static.data.keys() and VIEW not in static.data
    assert live.data.keys() == {VIEW, "text/plain"} and live.data["text/plain"].startswith("live view of ")
    assert live.data[VIEW].keys() == {"version_major", "version_minor", "model_id"} and live.data[VIEW]["version_major"] == 2
    kinds = [m["msg_type"] for m in messages]
    opened = {m["content"]["comm_id"]: (i, m["content"]) for i, m in enumerate(messages) if m["msg_type"] == "comm_open"}
    at, content = opened[live.data[VIEW]["model_id"]]
    assert at < len(kinds) - kinds[::-1].index("display_data") - 1, "the model is sent before its view"
    state = content["data"]["state"]
    assert content["target_name"] == "jupyter.widget" and state["_model_module"] == state["_view_module"] == "anywidget"
    for text in (state["_esm"], state["_css"], static.data["text/html"]):
        assert not re.findall(f"{LOADERS}|{ADDRESS}", text)
    assert re.findall(r"^export default .*", state["_esm"], re.MULTILINE)


@pytest.mark.parametrize("name", OBJECTS)
def test_one_bundle_has_the_static_output_and_the_widget(kernel, name):
    messages = kernel.run(
        f"shown = {OBJECTS[name]}\ndata, metadata = shown._repr_mimebundle_(include=None, exclude=None)\n"
        "publish = get_ipython().display_pub.publish\npublish(data, metadata)"
    )
    (output,) = outputs_of(messages)
    assert {"text/html", "text/plain", VIEW} <= output.data.keys()
    assert "<img" in output.data["text/html"] or "<svg" in output.data["text/html"]
    assert output.data[VIEW]["model_id"] == kernel.value("shown.model_id")


def test_a_report_is_not_a_widget(kernel):
    messages = kernel.run("%%grad\n(x ** 2).sum();")
    assert all(VIEW not in output.data for output in outputs_of(messages))
    assert not [m for m in messages if m["msg_type"] == "comm_open"]
    for output in outputs_of(messages):
        assert "application/javascript" not in output.data and not re.findall(ADDRESS, output.data["text/html"])
        assert not re.findall("<script|<link|<iframe", output.data["text/html"])


def test_on_colab_only_a_live_view_enables_the_widget_manager(fresh_kernel):
    """Anywidget enables the manager and names it in the metadata of the view."""
    fresh_kernel.run(COLAB)
    fresh_kernel.run("%%grad\n(x ** 2).sum();")
    fresh_kernel.run("display(gl.graph(loss), gl.explain((x ** 2).sum()), gl.doctor(loss), gl.jacobian(x ** 2, x))")
    assert fresh_kernel.value("calls") == "[]"
    static, live = outputs_of(fresh_kernel.run("gl.graph(loss).widget()"))
    assert fresh_kernel.value("calls") == "['enabled']"
    assert live.metadata[VIEW]["colab"]["custom_widget_manager"]["url"] == "manager.js"
    assert {"text/html", "text/plain"} <= static.data.keys()

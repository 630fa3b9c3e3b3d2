"""`%%grad` in a real ipykernel: messages to the front end, top-level await in a running loop, tracebacks, an interrupt."""

import re

import pytest

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")


class Kernel:
    def __init__(self, manager, client):
        self.manager, self.client = manager, client

    def run(self, code, interrupted=False):
        """Return the contents of the reply and of every output, as (kind, content).

        The kernel may send one line in several messages: as in a notebook, adjacent texts of one stream are one output. With
        `interrupted`, interrupt the kernel as soon as the code has printed something.
        """
        outputs = []

        def collect(message):
            nonlocal interrupted
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and outputs and outputs[-1][1].get("name") == content["name"]:
                outputs[-1][1]["text"] += content["text"]
            elif kind in ("display_data", "execute_result", "error", "stream"):
                outputs.append((kind, content))
            if kind == "stream" and interrupted:
                interrupted = False
                self.manager.interrupt_kernel()

        reply = self.client.execute_interactive(code, output_hook=collect, timeout=120, allow_stdin=False)
        return reply["content"], outputs


@pytest.fixture(scope="module")
def kernel():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    kernel = Kernel(manager, client)
    reply, outputs = kernel.run("import gradlab as gl\n%load_ext gradlab\nx = gl.tensor([1., 2., 3.], requires_grad=True)")
    assert reply["status"] == "ok", outputs
    yield kernel
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def output_of(kernel, code):
    """Return the printed text of some code."""
    reply, outputs = kernel.run(code)
    assert reply["status"] == "ok", outputs
    return "".join(content["text"] for kind, content in outputs if kind == "stream").strip()


def clean(kernel):
    return output_of(
        kernel, "from gradlab.core.observers import observers\nprint(observers.active, gl.is_grad_enabled(), 'r' in globals())"
    )


def text(outputs):
    return "\n".join(content["data"].get("text/plain", "") for kind, content in outputs if kind == "display_data")


def test_value_report_and_result(kernel):
    reply, outputs = kernel.run("%%grad\n(x ** 2).sum()")
    assert reply["status"] == "ok"
    assert [kind for kind, _ in outputs] == ["execute_result", "display_data", "display_data"]
    assert outputs[0][1]["data"] == {"text/plain": "tensor(14., grad_fn=<SumBackward0>)"}
    assert [sorted(content["data"]) for _, content in outputs[1:]] == [
        ["text/html", "text/latex", "text/plain"],
        ["image/png", "text/html", "text/plain"],
    ]
    assert sum(len(value) for _, content in outputs for value in content["data"].values()) < 300_000


def test_top_level_await_in_the_running_loop(kernel):
    reply, outputs = kernel.run(
        "%%grad --no-graph\nimport asyncio\nawait asyncio.to_thread(int)\nasync def f(): return (x ** 3).sum()\nloss = await f()"
    )
    assert reply["status"] == "ok" and "loss = 36, with respect to x." in text(outputs)


def test_exception_after_await_is_native(kernel):
    reply, outputs = kernel.run("%%grad -o r\nawait asyncio.sleep(0)\ny = x * 2\n1 / 0\ny.sum()")
    assert (reply["status"], reply["ename"]) == ("error", "ZeroDivisionError")
    assert [kind for kind, _ in outputs] == ["error"]
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(outputs[0][1]["traceback"]))
    assert "gradlab/notebook" not in trace and re.search("line 4|-> 4 ", trace)
    assert clean(kernel) == "() True False"


@pytest.mark.parametrize(
    "body",
    [
        "import threading\nthreading.Event().wait()",
        "import asyncio\nwhile True: await asyncio.sleep(0)",
        "while True: y = (x * 2).sum()",
    ],
)
def test_an_interrupt_restores_the_state(kernel, body):
    reply, outputs = kernel.run(f"%%grad -o r\nprint('started', flush=True)\n{body}\nx.sum()", interrupted=True)
    assert reply["status"] == "error" and reply["ename"] in ("KeyboardInterrupt", "CancelledError")
    assert not any(kind == "display_data" for kind, _ in outputs)
    assert clean(kernel) == "() True False"
    reply, outputs = kernel.run("%%grad --no-graph\n(x ** 2).sum();")
    assert reply["status"] == "ok" and "with respect to x" in text(outputs)


def test_an_error_of_the_magic_fails_the_cell(kernel):
    reply, outputs = kernel.run("%%grad\nx[0] * gl.ones(10, 10)")
    assert (reply["status"], reply["ename"]) == ("error", "RuntimeError")
    assert reply["evalue"].startswith("grad can be implicitly created only for scalar outputs")
    assert [kind for kind, _ in outputs] == ["execute_result", "error"]
    assert "magics.py" not in "\n".join(outputs[1][1]["traceback"])


def test_a_wrong_option_is_one_red_line(kernel):
    reply, outputs = kernel.run("%%grad --nix\nprint('ran')")
    assert reply["status"] == "error" and reply["ename"] == "UsageError"
    assert [(kind, content.get("name")) for kind, content in outputs] == [("stream", "stderr")]
    assert outputs[0][1]["text"].strip().count("\n") == 0


def test_explain_as_a_result_is_several_outputs(kernel):
    reply, outputs = kernel.run("loss = (x ** 2).sum()\ngl.explain(loss)")
    assert reply["status"] == "ok" and [kind for kind, _ in outputs] == ["display_data"] * 2


def test_options_complete(kernel):
    code = "%%grad x --acc"
    kernel.client.complete(code, len(code))
    reply = kernel.client.get_shell_msg(timeout=60)
    assert "--accumulate" in reply["content"]["matches"]


def test_jacobian_is_live_and_closed_by_the_next_run(kernel):
    cell = "%%grad --jacobian --no-graph\nz = x ** 2"
    reply, outputs = kernel.run(cell)
    assert reply["status"] == "ok"
    assert any("application/vnd.jupyter.widget-view+json" in content.get("data", {}) for _, content in outputs)
    count = (
        "from gradlab.notebook.jacobian_widget import JacobianWidget\nimport ipywidgets\n"
        "shown = get_ipython().find_line_magic('grad').__self__._widgets.values()\n"
        "print(len([widget for cell in shown for widget in cell if widget.comm is not None]))"
    )
    assert output_of(kernel, count) == "1"
    kernel.run(cell)
    assert output_of(kernel, count) == "1"


VIEW = "application/vnd.jupyter.widget-view+json"


def test_percent_jacobian_is_a_picture_and_a_live_view_below(kernel):
    cell = "y = x ** 3\n%jacobian y x -i -o J"
    reply, outputs = kernel.run(cell)
    assert reply["status"] == "ok", outputs
    first, second = (content["data"] for _, content in outputs)
    assert {"text/html", "text/plain"} <= first.keys() and VIEW not in first and VIEW in second
    kernel.run("shown = get_ipython().find_line_magic('grad').__self__._widgets.values()")
    kernel.run("held = [w for cell in shown for w in cell if w._jacobian is J]")
    assert kernel.run(cell)[0]["status"] == "ok"
    assert output_of(kernel, "print([w._jacobian for w in held])") == "[None]", "closed by the next run"
    reply, outputs = kernel.run("%jacobian y nothing")
    assert [(kind, content.get("name")) for kind, content in outputs] == [("stream", "stderr")]
    assert outputs[0][1]["text"].strip() == "UsageError: y, nothing: NameError: name 'nothing' is not defined"


def test_an_interrupted_jacobian_reports_it_and_continues(kernel):
    """The progress bar is a widget in a notebook."""
    slow = (
        "import threading, numpy as np\n"
        "K = gl.jacobian(lambda x: x * x.sum(), gl.ones(100), method='batched', chunk_size=1, progress=True)\n"
        "inner = K.runner.values\n"
        "def values(block):\n    if block.number == 7:\n        print('here', flush=True)\n        threading.Event().wait()\n"
        "    return inner(block)\nK.runner.values = values\nnp.asarray(K)"
    )
    reply, outputs = kernel.run(slow, interrupted=True)
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    known = re.fullmatch(
        r"(\d+) of 100 rows of the Jacobian are known and kept\. Another request, .* continues with the others\.", reply["evalue"]
    )
    assert known and int(known[1]) == 7
    assert any(VIEW in content.get("data", {}) for _, content in outputs)
    rows, total, sweeps = output_of(kernel, "K.runner.values = inner\nprint(K.rows_known, np.asarray(K).sum(), K.sweeps)").split()
    assert (rows, total) == (known[1], "20000.0") and int(sweeps) in (100, 101)


def test_the_doctor_after_an_exception_and_after_its_correction(kernel):
    """The failing cell is not recorded, and the extension may be loaded after it."""
    kernel.run("%unload_ext gradlab")
    reply, _ = kernel.run("v = gl.ones(3, requires_grad=True)\ny = v.exp()\ny += 1\ny.sum().backward()")
    assert reply["status"] == "error"
    assert kernel.run("%load_ext gradlab")[0]["status"] == "ok"
    reply, outputs = kernel.run("%doctor")
    told = next(content["data"]["text/plain"] for kind, content in outputs if kind == "execute_result")
    assert told.startswith("Problem: `y += 1` on line 3 modifies a tensor") and "`y = y + 1`" in told and "%%doctor" in told
    assert kernel.run("y = v.exp()\ny = y + 1\ny.sum().backward()")[0]["status"] == "ok"
    reply, outputs = kernel.run("%doctor")
    told = next(content["data"]["text/plain"] for kind, content in outputs if kind == "execute_result")
    assert told.startswith("Nothing was found.") and "1 cell ran since" in told


def test_a_doctor_cell_shows_its_error_with_findings_below(kernel):
    reply, outputs = kernel.run("%%doctor -o d\nh = (x * 2).detach()\nloss = h.sum()\nloss.backward()")
    assert (reply["status"], reply["ename"]) == ("error", "RuntimeError")
    assert [kind for kind, _ in outputs] == ["error", "display_data"]
    told = text(outputs)
    assert told.startswith("Problem: ") and "on line 2" in told
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(next(content for kind, content in outputs if kind == "error")["traceback"]))
    assert "gradlab/notebook" not in trace and re.search("line 4|-> 4 ", trace)
    assert output_of(kernel, "print([f.kind for f in d.findings])") == "['detached']"
    assert clean(kernel) == "() True False"

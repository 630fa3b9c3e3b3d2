"""`reveal(…, then=…)` displays an object below its verdict after a guess, or folded for readers without guesses."""

from __future__ import annotations

import pytest
from e2e.kernels.running import nbclient, nbformat

SETUP = "import gradlab as gl\nfrom gradlab.homework import ask, guess, reveal\nx = gl.tensor([3.0, 2.0], requires_grad=True)"
SHOWN = {
    "graph": "gl.graph(x * x)",
    "live": "gl.jacobian(x * x, x).widget()",
    "html": "type('H', (), {'_repr_html_': lambda self: '<i>slanted</i>', '__repr__': lambda self: 'plain'})()",
    "text": "'<b>'",
}
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module", params=["", "1"])
def run(request):
    """Function `run(source)` that returns the outputs of a cell; `run.reading` is True without guesses."""
    notebook = nbformat.v4.new_notebook()
    client = nbclient.NotebookClient(notebook, timeout=60, store_widget_state=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADLAB_READING", request.param)
        with client.setup_kernel():

            def run(source):
                notebook.cells.append(nbformat.v4.new_code_cell(source))
                return client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1).outputs

            run.reading = request.param == "1"
            run(SETUP)
            yield run


def kinds(outputs):
    return [(WIDGET in one.data, "image/png" in one.data, "text/html" in one.data) for one in outputs]


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_shown_below_or_folded(run, name):
    source = f"reveal(guess.{name}, 4, then={SHOWN[name]})"
    alone = list(run(SHOWN[name]))
    before = run(source)
    assert len(before) == 1
    if run.reading:
        html = before[0].data["text/html"]
        assert html.startswith("<details><summary>What comes out</summary>") and html.endswith("</details>")
        assert "It is <code>4</code>" in html and WIDGET not in before[0].data
        inside = {
            "graph": "<img" in html or "<svg" in html,
            "live": "data-gradlab-twin" in html,
            "html": "<i>slanted</i>" in html,
            "text": "&lt;b&gt;" in html and "<b>" not in html,
        }
        assert inside[name]
    else:
        assert "Say first what you expect" in before[0].data["text/plain"]
    for said in ("4", "5", "4"):
        verdict, *below = run(f"guess.{name} = {said}\n{source}")
        assert ("As you said" if said == "4" else "You said `5`; it is `4`.") in verdict.data["text/plain"]
        assert kinds(below) == kinds(alone)

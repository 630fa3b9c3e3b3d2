"""A cell that trains several models in JupyterLab: a tab for each, by pointer and keys, trusted or not, and exported."""

from __future__ import annotations

import json
import os
import re

import pytest
from lab import expect
from waiting import TIMEOUT_SECONDS

SETUP = """%load_ext gradlab
import gradlab as gl
from gradlab import nn
gl.manual_seed(0)
X, Y = gl.randn(64, 16), gl.randint(0, 4, (64,))
def make(act):
    sizes = [16, 32, 32, 32]
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers, nn.Linear(32, 4))
def look(net):
    net.zero_grad()
    loss = nn.functional.cross_entropy(net(X), Y)
    loss.backward()"""
CELL = """%%grad
for act in [nn.Sigmoid, nn.Tanh, nn.ReLU]:
    net = make(act)
    look(net)"""


LABELS = ["act=Sigmoid", "act=Tanh", "act=ReLU"]


def tab(outputs, label):
    return outputs.locator(".gradlab-tabs > details > summary", has_text=label)


def sentence(outputs, label):
    return outputs.get_by_text(f"once for {label}").first


def test_every_model_has_a_tab(open_notebook):
    page = open_notebook([SETUP, CELL])
    page.run_cell(0)
    page.run_cell(1)
    outputs = page.output(1)
    expect(outputs.locator(".gradlab-tabs > details > summary > span")).to_have_text(LABELS)
    expect(sentence(outputs, "act=ReLU")).to_be_visible()
    expect(sentence(outputs, "act=Sigmoid")).to_be_hidden()
    boxes = [tab(outputs, label).bounding_box() for label in LABELS]
    assert len({box["y"] for box in boxes}) == 1 and boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"], "the tabs are in one row"
    tab(outputs, "act=Sigmoid").click()
    expect(sentence(outputs, "act=Sigmoid")).to_be_visible()
    expect(sentence(outputs, "act=ReLU")).to_be_hidden()
    pane, card = sentence(outputs, "act=Sigmoid").bounding_box(), outputs.locator(".gradlab-tabs").bounding_box()
    assert pane["y"] > boxes[0]["y"] + boxes[0]["height"] and pane["width"] > 0.9 * card["width"], "the report is below all tabs"
    assert [tab(outputs, label).bounding_box()["y"] for label in LABELS] == [boxes[0]["y"]] * 3, "the tabs do not move"
    tab(outputs, "act=Tanh").press("Enter")
    expect(sentence(outputs, "act=Tanh")).to_be_visible()
    expect(sentence(outputs, "act=Sigmoid")).to_be_hidden()
    if folder := os.environ.get("GRADLAB_PICTURES"):
        page.screenshot(f"{folder}/models.png", cell=1)


@pytest.mark.exhaustive
def test_the_tabs_work_in_an_untrusted_or_exported_notebook(open_notebook, browser, jupyter, tmp_path):
    nbconvert, nbformat = pytest.importorskip("nbconvert"), pytest.importorskip("nbformat")
    page = open_notebook([SETUP, CELL])
    page.run_cell(0)
    page.run_cell(1)
    notebook = page.save()
    notebook["metadata"]["downloaded"] = True  # invalidates the signature
    (jupyter.root / "models-untrusted.ipynb").write_text(json.dumps(notebook))
    exported, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.read(page.path, as_version=4))
    path = tmp_path / "models.html"
    path.write_text(re.sub(r"<script\b.*?</script\s*>", "", exported, flags=re.DOTALL | re.IGNORECASE))
    untrusted = f"{jupyter.url}/lab/tree/models-untrusted.ipynb?token={jupyter.token}&reset"
    for address in (untrusted, path.as_uri()):
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        context.set_default_timeout(TIMEOUT_SECONDS * 1000)
        copy = context.new_page()
        copy.goto(address)
        outputs = copy.locator(".jp-CodeCell:has(.gradlab-tabs)")
        expect(sentence(outputs, "act=ReLU")).to_be_visible()
        tab(outputs, "act=Sigmoid").press("Enter")
        expect(sentence(outputs, "act=Sigmoid")).to_be_visible()
        context.close()

"""A cell that trains several models in JupyterLab: a table of them, whose rows open to their reports."""

from __future__ import annotations

import os

from lab import expect

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


def test_every_model_is_shown(open_notebook):
    page = open_notebook([SETUP, CELL])
    page.run_cell(0)
    page.run_cell(1)
    outputs = page.output(1)
    rows = outputs.locator("summary", has_text="act=")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("act=Sigmoid")
    expect(outputs.get_by_text("once for act=Sigmoid").first).to_be_hidden()
    rows.nth(0).click()
    expect(outputs.get_by_text("once for act=Sigmoid").first).to_be_visible()
    if folder := os.environ.get("GRADLAB_PICTURES"):
        page.screenshot(f"{folder}/models.png", cell=1)

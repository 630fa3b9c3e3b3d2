"""A cell that raises in JupyterLab shows the error as usual, and the doctor's explanation below it."""

from __future__ import annotations

import os

from lab import expect

SETUP = """%load_ext gradlab
import gradlab as gl
model = gl.nn.Sequential(gl.nn.Linear(4, 8), gl.nn.ReLU(), gl.nn.Linear(8, 1))
x = gl.ones(16, 3)"""
FAILS = """%%grad
out = model(x)
loss = out.mean()
loss.backward()"""


def test_the_explanation_is_below_the_error(open_notebook, tmp_path):
    page = open_notebook([SETUP, FAILS])
    page.run_cell(0)
    page.run_cell(1)
    outputs = page.output(1).locator(".jp-OutputArea-child")
    error, card = outputs.first, outputs.last
    expect(error).to_contain_text("RuntimeError")
    expect(card).to_contain_text("Problem")
    expect(card).to_contain_text("model[0]")
    expect(card.locator("code, tt, [style*=mono]").first).to_be_visible()
    assert error.bounding_box()["y"] < card.bounding_box()["y"], "the explanation is below the error"
    text = page.text(1)
    assert "__gradlab" not in text and text.count("Problem") == 1
    if folder := os.environ.get("GRADLAB_PICTURES"):
        page.screenshot(f"{folder}/error.png", cell=1)

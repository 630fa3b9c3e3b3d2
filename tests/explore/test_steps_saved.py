"""Saved pages and displays of the steps are complete, bounded and escaped, and load nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.graph.ports import short_number
from gradlab.explore.steps.stepping import step_through_with_names

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</script><script>alert(1)</script>$x$"
ADDRESS = re.compile(r"""(?:src|href|action|data)\s*=|url\(|@import|https?://(?!www\.w3\.org/)""")


def small(name="b"):
    with gl.tracing():
        a, b = gl.tensor(-3.125, requires_grad=True), gl.tensor(2.0, requires_grad=True)
        c = a * b
        out = 2 * (c + b**3).relu()
    return step_through_with_names(out, None, {"a": a, name: b, "c": c, "out": out})


def long(count=300):
    x = gl.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(count):
        y = y * 1.01 + x
    return gl.step_through(y)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="steps">(.*?)</script>', page, re.DOTALL)[1])


def test_a_page_allows_only_its_own_script_and_style(tmp_path):
    page = small().save(tmp_path / "back.html").read_text()
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert allowed["default-src"] == "'none'" and set(allowed) == {
        "default-src",
        "script-src",
        "style-src",
        "base-uri",
        "form-action",
    }
    for source, found in (
        ("script-src", re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)),
        ("style-src", re.findall(r"<style>(.*?)</style>", page, re.DOTALL)),
    ):
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert allowed[source] == f"'sha256-{digest}'"
    text = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not ADDRESS.search(text) and ' style="' not in text
    assert "http://www.w3.org" in page and not re.search(r"fetch\(|XMLHttpRequest|import\(", page)


def test_names_and_sources_are_escaped(tmp_path):
    walk = small(HOSTILE)
    page = walk.save(tmp_path / "back.html").read_text()
    assert page.count("</script>") == 2 and "alert(1)</script>" not in page
    assert any(HOSTILE in node[1] for node in data_of(page)["nodes"].values())
    svg = walk.save(tmp_path / "back.svg").read_text()
    ET.fromstring(svg)
    assert "<script" not in svg
    shown = walk._repr_mimebundle_()["text/html"]
    assert "<script" not in shown and html.escape("</script>")[:9] in shown


def test_a_page_names_its_contents_and_can_omit_them(tmp_path):
    page = small().save(tmp_path / "back.html").read_text()
    assert "3.125" in page and "a * b" in page and "This page contains values" in page
    for name in ("back.html", "back.svg"):
        without = small().save(tmp_path / name, values=False).read_text()
        assert "3.125" not in without and "a * b" not in without and "12" not in re.findall(r">([^<]*)</text>", without)
    page = (tmp_path / "back.html").read_text()
    assert "no number of a tensor and no source" in page
    data = data_of(page)
    kept = json.dumps({key: value for key, value in data.items() if key not in ("figure", "rules")})
    assert "numbers" not in kept and "norm" not in kept and data["sources"] == []
    assert "gl-orange" not in data["figure"]["svg"]


def test_statements_on_one_line_are_in_their_order():
    x = gl.tensor(2.0, requires_grad=True)
    with gl.record_sites():
        y = x**3; z = y.exp(); out = 2 * z  # noqa: E702  # fmt: skip
    ((_, text),) = gl.step_through(out).view()["sources"][0]["lines"]
    assert text == "y = x**3; z = y.exp(); out = 2 * z"


def test_a_step_has_the_rule_with_the_operation_s_arguments():
    x = gl.tensor(2.0, requires_grad=True)
    (step,) = gl.step_through(x**3).view()["steps"]
    assert len(step["rule"]) == 2 and ["mn", "3"] in step["rule"][1]
    assert gl.step_through(x**3).view(values=False)["steps"][0]["rule"] is None


def test_an_animation_is_a_slide_and_can_be_stopped(tmp_path):
    svg = small().save(tmp_path / "back.svg").read_text()
    root = ET.fromstring(svg)
    assert (root.get("width"), root.get("height")) == ("1280", "720")
    style = next(part.text for part in root.iter("{http://www.w3.org/2000/svg}style"))
    assert style.startswith("@media (prefers-reduced-motion:no-preference){") and style.endswith("}}")
    groups = root.findall("{http://www.w3.org/2000/svg}g")
    still, frames = groups[0], groups[1:]
    assert still.get("class") == "still" and still.get("visibility") is None
    assert len(frames) == 6 and all(frame.get("visibility") == "hidden" for frame in frames)
    words = [text.text for text in still.iter("{http://www.w3.org/2000/svg}text")]
    assert "Step 5 of 5" in words and any(text and "= " in text for text in words)
    sizes = [float(text.get("font-size")) for text in still.iter("{http://www.w3.org/2000/svg}text")]
    assert len(sizes) > 10


def test_files_are_bounded(tmp_path):
    walk = long()
    svg = walk.save(tmp_path / "back.svg")
    assert svg.stat().st_size < 1_000_000
    ET.fromstring(svg.read_text())
    assert "the first 120 steps of 600" in svg.read_text()
    assert len(walk.frames().svg()) < 200_000 and "of 600" in walk.frames().svg()
    assert sum(map(len, walk._repr_mimebundle_().values())) < 400_000


@pytest.mark.slow
def test_a_gif_and_a_pdf(tmp_path):
    from PIL import Image

    path = small().save(tmp_path / "back.gif")
    with Image.open(path) as picture:
        assert picture.n_frames == 6 and picture.width * 9 == picture.height * 16 and picture.width >= 640
        assert picture.info["loop"] == 0 and picture.info["duration"] >= 1000
    assert path.stat().st_size < 1_000_000
    path = small().save(tmp_path / "back.pdf")
    data = path.read_bytes()
    assert data.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", data)) == 6
    path = long(60).save(tmp_path / "long.gif")
    assert path.stat().st_size < 1_000_000
    with Image.open(io.BytesIO(path.read_bytes())) as picture:
        assert picture.width * 9 == picture.height * 16


def test_another_suffix_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"\.html, \.svg, \.gif or \.pdf, got 'back\.png'"):
        small().save(tmp_path / "back.png")


def test_the_strip_has_each_operation_once():
    strip = small().frames()
    text = re.sub(r"<[^>]*>", " ", strip.svg())
    for words in ("2·1 = 2 to", "12·2 = 24 to b", "24 − 6.25"):
        assert words in text, words
    numbers = re.findall(r'font-weight="700">(\d+)<', strip.svg())
    assert numbers == ["0", "1", "2", "3", "4", "5"]
    ET.fromstring(strip.svg())


def test_pictures_have_the_numbers_of_small_matrices_and_both_factors():
    gl.manual_seed(0)
    A, B = gl.randn(3, 3, requires_grad=True), gl.randn(3, 3, requires_grad=True)
    C = A @ B
    loss = C.tanh().sum()
    walk = gl.step_through(loss)
    loss.backward()
    root = ET.fromstring(walk.frames().svg())
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    for leaf in (A, B):
        for row in leaf.grad.tolist():
            assert any(line.split() == [short_number(x) for x in row] for line in texts)
    assert "C.grad @ B.T to A, A.T @ C.grad to B" in " ".join(texts)
    table = walk._repr_mimebundle_()["text/html"]
    assert "@ B.T" in table and all(short_number(x) in table for x in A.grad.reshape(-1).tolist())


def test_the_data_of_a_view_are_json_and_end_in_the_gradients():
    x = gl.tensor([np.inf, 1.0], requires_grad=True)
    data = gl.step_through((x * 2).sum()).view()
    assert "numbers" in json.dumps(data, allow_nan=False)
    walk = small()
    data = walk.view()
    last = {share["to"]: share["total"]["numbers"] for step in data["steps"] for share in step["shares"]}
    leaves = {i: node.name for i, node in enumerate(walk.trace.nodes) if node.kind == "leaf"}
    assert {leaves[i]: numbers for i, numbers in last.items() if i in leaves} == {"a": [4.0], "b": [2 * (-3.125 + 12)]}
    assert data["linear"] and data["start"]["numbers"] == [1.0]

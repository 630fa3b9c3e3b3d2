"""The Python part of the live view of a playground without a front end, and its page."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import threading

import numpy as np
import pytest

import gradlab as gl

pytest.importorskip("anywidget")


def bowl(p):
    return p[0] ** 2 / 2 + 2 * p[1] ** 2


@pytest.fixture
def widget():
    made = []

    def make(shown):
        one = shown.widget()
        one.said = []
        one.send = lambda content, buffers=(): one.said.append((content, [bytes(buffer) for buffer in buffers]))
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def ask(widget, what, **more):
    """Send one message, and return the answer with its arrays filled in."""
    name = f"t:{len(widget.said)}"
    widget._handle_custom_msg({"ask": what, "id": name, **more}, [])
    content, raw = widget.said[-1]
    assert content["answer"] == name and content["ask"] == what
    json.dumps(content, allow_nan=False)  # Jupyter sends it as JSON
    arrays = [np.frombuffer(data, "<f8") for data in raw]
    assert content["arrays"] == [[str(k), "f8"] for k in range(len(raw))]

    def fill(data):
        if isinstance(data, dict):
            return arrays[data["array"]] if set(data) == {"array"} else {key: fill(value) for key, value in data.items()}
        return [fill(value) for value in data] if isinstance(data, list) else data

    return fill(content)


def test_messages_are_answered_with_frames(widget):
    P = gl.playground(lambda x: 1 * gl.log(x), x=(-1, 3), at={"x": 2.0})
    w = widget(P)
    assert w.about["inputs"] == [{"name": "x", "low": -1.0, "high": 3.0, "step": 0.01}] and not w.about["recorded"]
    frame = ask(w, "hello")
    while frame["more"]:  # it stops after a while and continues in the next frame
        frame = ask(w, "refine")
    frame = ask(w, "hello")
    curve = frame["picture"]
    known = np.isfinite(curve["values"])
    np.testing.assert_allclose(curve["values"][known], np.log(curve["xs"][known]))
    assert not known.all(), "non-finite numbers are sent in the buffers"
    assert frame["rows"] == [["x", "0.5", "0.5", "agrees"]]
    moved = ask(w, "move", point=[-0.5])
    assert moved["rows"][0][3] == "edge" and "ground" not in moved["picture"] and P.point.tolist() == [-0.5]


def test_paths_are_sent(widget):
    w = widget(gl.playground(bowl, p=[(-4, 4), (-2, 2)], at={"p": [-4, 1.8]}, lr=0.4))
    ask(w, "hello")
    for _ in range(3):
        frame = ask(w, "step")
    assert frame["picture"]["front"].count("<circle") == 4 and frame["steps"] == 3
    assert ask(w, "optimizer", name="Adam")["optimizer"] == "Adam"
    assert ask(w, "rate", lr=0.02)["lr"] == 0.02
    assert ask(w, "reset")["steps"] == 0


def test_an_exception_is_shown_and_answered(widget):
    P = gl.playground(lambda x: x * x, x=(-3, 3))
    w = widget(P)
    assert "unknown request 'burn'" in ask(w, "burn")["error"]
    assert (
        ask(w, "move", point="__import__('os')")["error"]
        and ask(w, "axes")["error"]
        and ask(w, "move", point=[math.inf])["error"]
    )
    w._handle_custom_msg("nonsense", [])
    assert w.said[-1][0]["error"]
    answer = P.lab.answer

    def interrupt(*given):
        raise KeyboardInterrupt

    P.lab.answer = interrupt
    assert ask(w, "hello")["error"] == "interrupted"
    P.lab.answer = answer
    assert "error" not in ask(w, "hello")


def test_messages_may_arrive_in_any_thread(widget):
    w = widget(gl.playground(bowl, p=[(-4, 4), (-2, 2)]))
    ask(w, "hello")
    threads = [
        threading.Thread(target=lambda k=k: w._handle_custom_msg({"ask": "move", "id": str(k), "point": [k, 1.0]}, []))
        for k in range(-3, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = {content["answer"]: content for content, _ in w.said[1:]}
    assert all("error" not in content and content["point"] == [float(k), 1.0] for k, content in said.items()) and len(said) == 7


def test_it_displays_the_static_view_and_the_live_one(widget, monkeypatch):
    import IPython.display

    shown, updated = [], []

    class Handle:
        def update(self, data, **_):
            updated.append(data)

    def display(data, **options):
        shown.append(data)
        return Handle() if options.get("display_id") else None

    monkeypatch.setattr(IPython.display, "display", display)
    P = gl.playground(bowl, p=[(-4, 4), (-2, 2)])
    w = widget(P)
    w._ipython_display_()
    static, live = shown
    assert static["text/html"].startswith("<div data-gradlab-twin>") and "image/svg+xml" not in static
    assert live["text/plain"] == "live view of p[0] ** 2 / 2 + 2 * p[1] ** 2"
    ask(w, "move", point=[1.0, 0.5])
    assert not updated
    assert ask(w, "keep") == {"answer": "t:1", "ask": "keep", "arrays": []}
    assert "at p[0] = 1, p[1] = 0.5" in updated[-1]["text/plain"]
    shown.clear()
    P._ipython_display_()
    assert shown == [w], "a playground displays its live view"


def test_a_page_requests_no_host_and_allows_only_its_own_code(tmp_path):
    P = gl.playground(lambda x: x**2 + 0 * len("</script><img src=x onerror=alert(1)>"), x=(-3, 3))
    text = P.save(tmp_path / "f.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    (code,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (css,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for name, body in (("script", code), ("style", css)):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert "<" not in data and len(json.loads(data)["frames"]) > 100
    assert not re.search(r"""(?:src|href)=["']?https?:""", text) and "<img" not in text.replace(data, "")
    assert "This page contains" in text and len(text) < 700_000
    three = gl.playground(lambda a, b, c: a * b * c, a=(0, 1), b=(0, 1), c=(0, 1)).save(tmp_path / "g.html").read_text()
    assert "<script" not in three and "This page contains" in three

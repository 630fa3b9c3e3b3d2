"""The Python part of the live view of a training without a front end: the content of frames and their rate."""

from __future__ import annotations

import json

import pytest

import gradlab as gl

pytest.importorskip("anywidget")


@pytest.fixture
def loop():
    """Return a watched model and a function that runs a step."""
    net = gl.nn.Sequential(gl.nn.Linear(2, 3), gl.nn.Linear(3, 1))
    optimizer, x = gl.optim.SGD(net.parameters(), lr=0.1), gl.ones(4, 2)
    watch = gl.watch(net, optimizer)
    watch.quiet = True

    def step():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        watch.log(loss)

    return watch, step


def test_the_time_of_a_frame_includes_drawing(loop, clock, monkeypatch):
    from gradlab.explore.watch import page
    from gradlab.notebook.watch_widget import WatchWidget

    watch, step = loop
    draw, drawn = page.live, []

    def slowly(run):
        clock.move(0.05)
        drawn.append(run)
        return draw(run)

    with watch:
        step()
        widget = WatchWidget(watch)
        monkeypatch.setattr(page, "live", slowly)
        clock.move(1)
        before = watch.cost["seconds"]
        step()
        assert len(drawn) == 1 and watch.cost["seconds"] == pytest.approx(before + 0.05)
        clock.move(4.9)  # a frame that takes 0.05 s may be sent once in 5 s
        step()
        assert len(drawn) == 1
        clock.move(0.1)
        step()
        assert len(drawn) == 2
    widget.close()


def test_a_frame_has_the_picture_and_the_changed_numbers(loop, clock):
    from gradlab.notebook.watch_widget import WatchWidget

    watch, step = loop
    with watch:
        widget = WatchWidget(watch)
        sent = []
        widget.send = lambda content, buffers=None: sent.append(content)
        for _ in range(12):
            clock.move(1)
            step()
        assert sent and widget.run["picture"].startswith("<svg")
        for content in sent:
            frame = json.loads(json.dumps(content))["frame"]
            assert frame["picture"].startswith("<svg") and f'data-x="0 {frame["steps"]}"' in frame["picture"]
            assert len(frame["loss"]["mean"]) <= 3, "only the changed columns"
            assert frame["loss"].keys() == {"mean"} and frame["layers"][0].keys() == {"gradient", "ratio"}
    widget.close()

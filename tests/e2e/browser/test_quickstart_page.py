"""The page of `gradlab quickstart` in a browser without a network."""

from __future__ import annotations

import pytest
from e2e.kernels.running import without_torch
from grouped import exhaustive_after_first

from gradlab import cli

pytest.importorskip("nbconvert", reason="needs the extra lab")


@pytest.fixture(scope="module", params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def quickstart(request, tmp_path_factory):
    """Return the page written without PyTorch, and with it."""
    path = tmp_path_factory.mktemp("page") / "quickstart.html"
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "gradlab":
            patch.setenv("PYTHONPATH", without_torch(tmp_path_factory.mktemp("site"))["PYTHONPATH"])
        assert cli.main(["quickstart", "-o", str(path)]) == 0
    return path


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
def test_every_picture_is_shown_without_a_network(browser, quickstart, theme):
    context = browser.new_context(offline=True, color_scheme=theme, viewport={"width": 1000, "height": 900})
    try:
        page = context.new_page()
        asked, complaints = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(quickstart.as_uri())
        page.wait_for_function("[...document.images].every(image => image.complete)")
        assert [url for url in asked if not url.startswith("data:")] == [quickstart.as_uri()]
        assert complaints == []
        sizes = page.evaluate("[...document.images].map(i => [i.naturalWidth, i.naturalHeight, i.clientWidth, i.clientHeight])")
        assert len(sizes) > 6
        assert all(min(size) > 0 for size in sizes)
        for part, look, bright in (("body", "backgroundColor", "light"), (".jp-RenderedHTMLCommon h1", "color", "dark")):
            colour = page.evaluate(f"getComputedStyle(document.querySelector({part!r})).{look}")
            red = int(colour.partition("(")[2].partition(",")[0])
            assert (red > 128) == (theme == bright), f"{look} of {part} is {colour}"
        text = page.inner_text("body")
        assert "Error displaying widget" not in text
        assert "model not found" not in text
        widgets_cell = page.locator(".jp-CodeCell", has_text="J.widget(")
        assert widgets_cell.locator("img").is_visible()  # only the static picture remains
    finally:
        context.close()


@pytest.mark.parametrize("width", [1280, 800])
def test_the_page_begins_with_a_fault_and_its_repair(browser, quickstart, width):
    """In reading order, and not wider than the window."""
    context = browser.new_context(offline=True, viewport={"width": width, "height": 900})
    try:
        page = context.new_page()
        page.goto(quickstart.as_uri())
        page.wait_for_function("[...document.images].every(image => image.complete)")
        text = page.inner_text("body")
        order = [
            "A network that learns nothing",
            "loss = ((out - y) ** 2).mean()",
            "loss 0.617, after 500 steps 0.52",
            "■ Problem out - y on line 12: out has shape (96, 1) and y has shape (96,).",
            "Give both one shape: out.squeeze(1) in place of out",
            "loss = ((out.squeeze(1) - y) ** 2).mean()",
            "loss 0.784, after 500 steps 0.0011",
            "broken.compare(fixed)",
            "− loss = ((out - y) ** 2).mean()",
            "+ loss = ((out.squeeze(1) - y) ** 2).mean()",
            "Gone: out - y on line 12",
            "One loss, all its gradients",
        ]
        words = " ".join(text.split())
        at = 0
        for part in order:
            assert part in words[at:], part
            at = words.index(part, at) + len(part)
        assert words.count("■ Problem") == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        clipped = page.evaluate(
            "[...document.querySelectorAll('.highlight pre')].filter(p => p.scrollWidth > p.clientWidth).map(p => p.innerText)"
        )
        assert clipped == []
    finally:
        context.close()

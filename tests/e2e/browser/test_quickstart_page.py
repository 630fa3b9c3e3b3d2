"""The page that `gradlab quickstart` writes, in a browser that has no network."""

from __future__ import annotations

import pytest
from grouped import exhaustive_after_first

from gradlab import cli

pytest.importorskip("nbconvert", reason="needs the extra lab")


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "quickstart.html"
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
        assert widgets_cell.locator("img").is_visible()  # the static picture is what remains
    finally:
        context.close()

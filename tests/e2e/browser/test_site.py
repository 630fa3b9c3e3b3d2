"""The documentation as it was built: `GRADLAB_SITE=FOLDER` says where. Links lead somewhere, and nothing asks another host."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

SITE = Path(os.environ.get("GRADLAB_SITE", ""))
if not os.environ.get("GRADLAB_SITE"):
    pytest.skip("no documentation: sphinx-build -W docs FOLDER, then GRADLAB_SITE=FOLDER", allow_module_level=True)
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)


class Read(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed((SITE / page).read_text())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag in ("a", "link", "img", "script"):
            self.links |= {attributes[name] for name in ("href", "src") if attributes.get(name)}


read = functools.cache(Read)


@pytest.mark.parametrize("page", PAGES)
def test_links_inside_lead_somewhere(page):
    for link in read(page).links:
        target, anchor = urldefrag(urljoin(f"site:///{page}", link))
        if not target.startswith("site:///"):
            continue
        path = unquote(target.removeprefix("site:///")).partition("?")[0] or "index.html"
        assert (SITE / path).is_file(), link
        if anchor and path.endswith(".html"):
            assert unquote(anchor) in read(path).anchors or anchor in read(path).anchors, link


@pytest.fixture(scope="module")
def address():
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def page_of(browser, address):
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = context.new_page()
    page.asked, page.wrong = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    yield page
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_asks_no_other_host_and_fits_a_phone(page_of, address, path):
    page_of.asked.clear()
    page_of.wrong.clear()
    page_of.goto(f"{address}/{path}")
    elsewhere = [url for url in page_of.asked if not url.startswith((address, "data:", "blob:", "about:"))]
    assert elsewhere == [] and page_of.wrong == []
    assert page_of.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), "it is wider than the screen"


def test_search_finds_a_function(page_of, address):
    page_of.goto(f"{address}/search.html?q=logsumexp")
    page_of.wait_for_selector("#search-results li a")
    assert "logsumexp" in page_of.inner_text("#search-results")


def test_pictures_follow_the_switch_of_the_theme(page_of, address):
    page_of.goto(f"{address}/gallery.html")
    schemes = set()
    for theme in ("light", "dark"):
        page_of.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        page_of.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
        schemes.add(page_of.evaluate("getComputedStyle(document.querySelector('.gradlab-picture')).colorScheme"))
    assert schemes == {"light", "dark"}

"""The documentation built in the folder `GRADLAB_SITE`: links, requests to other hosts, descriptions, pictures, gallery."""

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
    pytest.skip("GRADLAB_SITE is not set: run sphinx-build -W docs FOLDER, then set GRADLAB_SITE=FOLDER", allow_module_level=True)
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
PAGES_WITH_PICTURES = [page for page in PAGES if "gradlab-picture" in (SITE / page).read_text()]


class Read(HTMLParser):
    """Links, anchors and descriptions of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.descriptions: list[str] = []
        self.feed((SITE / page).read_text())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "meta" and attributes.get("name") == "description":
            self.descriptions.append(attributes["content"])
        if tag in ("a", "link", "img", "script"):
            self.links |= {attributes[name] for name in ("href", "src") if attributes.get(name)}


read = functools.cache(Read)


@pytest.mark.parametrize("page", PAGES)
def test_internal_links_have_a_target(page):
    for link in read(page).links:
        target, anchor = urldefrag(urljoin(f"site:///{page}", link))
        if not target.startswith("site:///"):
            continue
        path = unquote(target.removeprefix("site:///")).partition("?")[0] or "index.html"
        assert (SITE / path).is_file(), link
        if anchor and path.endswith(".html"):
            assert unquote(anchor) in read(path).anchors or anchor in read(path).anchors, link


@pytest.mark.parametrize("page", PAGES)
def test_title_and_description_name_pytorch(page):
    """People search for PyTorch's names and errors."""
    (description,) = read(page).descriptions
    assert "PyTorch" in description
    title = (SITE / page).read_text().partition("<title>")[2].partition("</title>")[0]
    assert "PyTorch" in title


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
def page_of(browser):
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = context.new_page()
    page.requested, page.errors = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_requests_no_other_host_and_fits_a_phone(page_of, address, path):
    page_of.requested.clear()
    page_of.errors.clear()
    page_of.goto(f"{address}/{path}")
    elsewhere = [url for url in page_of.requested if not url.startswith((address, "data:", "blob:", "about:"))]
    assert elsewhere == [] and page_of.errors == []
    assert page_of.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"), "the page is wider than the screen"


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


@pytest.fixture(scope="module")
def wide_page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


# Pictures that extend outside their column, or outside a box around them that hides the rest or has to be scrolled.
CUT = """() => [...document.querySelectorAll(".bd-article :is(img, iframe, math)")].filter(picture => {
    const edge = element => element.getBoundingClientRect().right;
    if (picture.closest(".gallery-thumbnail") || !picture.getBoundingClientRect().width) return false;
    for (let box = picture.parentElement; ; box = box.parentElement) {
        const column = box.matches(".bd-article");
        if ((column || getComputedStyle(box).overflowX !== "visible") && edge(picture) > edge(box) + 1) return true;
        if (column) return false;
    }
}).map(picture => picture.alt || picture.title || picture.tagName)"""


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("path", PAGES_WITH_PICTURES)
def test_no_picture_is_cut(wide_page, address, path, width):
    wide_page.set_viewport_size({"width": width, "height": 900})
    wide_page.goto(f"{address}/{path}")
    for theme in ("light", "dark"):
        wide_page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        wide_page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
        assert wide_page.evaluate(CUT) == []


def test_thumbnails_open_the_picture_with_its_code(wide_page, address):
    wide_page.set_viewport_size({"width": 1280, "height": 900})
    wide_page.goto(f"{address}/gallery.html")
    cards = wide_page.eval_on_selector_all(
        ".gallery-card",
        """cards => cards.map(card => ({
            address: card.querySelector("a").href,
            size: [...card.querySelectorAll(".gallery-thumbnail > *")].map(shown => shown.getBoundingClientRect().height),
        }))""",
    )
    assert len(cards) >= 20 and len({card["address"] for card in cards}) == len(cards)
    for card in cards:
        assert max(card["size"]) > 20, f"the picture of {card['address']} is empty"
    uses_torch = []
    for page in dict.fromkeys(urldefrag(card["address"])[0] for card in cards):
        wide_page.goto(page)
        uses_torch.append("import torch" in wide_page.inner_text(".bd-article"))
        for card in cards:
            if card["address"].startswith(f"{page}#"):
                section = wide_page.locator(f"section[id='{card['address'].partition('#')[2]}']")
                assert section.locator(".cell_input").count() and section.locator(".cell_output").count(), card["address"]
    assert uses_torch == sorted(uses_torch, reverse=True) and any(uses_torch), "PyTorch's examples come first"
    wide_page.goto(f"{address}/gallery.html")
    wide_page.locator(".gallery-thumbnail").first.click(force=True)  # the card's link covers the picture
    wide_page.wait_for_url(cards[0]["address"])

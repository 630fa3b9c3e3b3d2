"""Drawings: valid SVG without scripts, measured text, colours for both themes, bounded bitmaps, MIME bundles."""

from __future__ import annotations

import base64
import html.parser
import re
import struct
import sys
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore import drawing as drawing_module
from gradlab.explore.drawing import Drawing, above, beside, escape, text_width, tidy
from gradlab.explore.heat import heatmap
from gradlab.explore.theme import colours, hex_of

SVG = "{http://www.w3.org/2000/svg}"
MALICE = "<script>alert(1)</script> ]]> \" ' & $x$ \\ \x00 \x1b[31m \u202e \ud800 &lt; {{7*7}}"


def square(size=40.0, colour="#2f7cc3", text="a square", alt="A square."):
    return Drawing(f'<rect width="{size}" height="{size}" fill="{colour}"/>', size, size, text, alt)


def noise(side):
    rng = np.random.default_rng(0)
    body = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" fill="#{rng.integers(1 << 24):06x}"/>'
        for x in range(side)
        for y in range(side)
    )
    return Drawing(body, side, side, "", "")


def png_size(picture):
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", picture[16:24])


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.found.append(("text", data))


# ------------------------------------------------------------------------------------------------------------------ SVG
def test_document_is_valid_and_has_no_scripts_or_shared_ids():
    root = ET.fromstring(above(beside(square(), square()), square()).svg())
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    assert {element.tag for element in root.iter()} <= {f"{SVG}{name}" for name in ("svg", "title", "desc", "g", "rect")}
    assert not [element for element in root.iter() if {"id", "style", "class"} & set(element.attrib)]


def test_title_and_description_are_the_alternative_text():
    root = ET.fromstring(square(alt="First <&> line.\nSecond\nand third.").svg())
    assert (root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")) == ("First <&> line.", "Second\nand third.")
    assert [element.tag for element in root][:2] == [f"{SVG}title", f"{SVG}desc"], "browsers only read them as the first children"
    assert ET.fromstring(square(alt="Alone.").svg()).find(f"{SVG}desc") is None


@pytest.mark.parametrize("where", ["content", "attribute"])
def test_text_of_users_is_escaped(where):
    said = escape(MALICE)
    element = ET.fromstring(f"<t>{said}</t>" if where == "content" else f'<t a="{said}"/>')
    read = element.text if where == "content" else element.get("a")
    assert not list(element)
    forbidden = "\x00\x1b\u202e\ud800"
    assert read == "".join("\ufffd" if character in forbidden else character for character in MALICE)


def test_line_ends_survive_in_attributes():
    assert ET.fromstring(f'<t a="{escape("one" + chr(10) + "two" + chr(9) + "x")}"/>').get("a") == "one\ntwo\tx"


@pytest.mark.parametrize(
    ("number", "said"), [(1.0, "1"), (-0.04, "0"), (2.24, "2.2"), (2.36, "2.4"), (-3.0, "-3"), (1e5, "100000")]
)
def test_coordinates_are_short(number, said):
    assert tidy(number) == said


# ------------------------------------------------------------------------------------------------------------- measures
def test_text_widths_match_the_font():
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font

    for name, mono in (("DejaVuSans.ttf", False), ("DejaVuSansMono.ttf", True)):
        font = FT2Font(str(Path(get_data_path()) / "fonts" / "ttf" / name))
        for text in ("MulBackward0", "model.layers[3].weight  64×32", "iiii.WWWW", "z1 = (a - a.mean(0)) / 'x~'"):
            advance = sum(font.load_char(ord(c)).linearHoriAdvance for c in text) / 65536
            font.set_size(12, 72)
            advance = sum(font.load_char(ord(c)).linearHoriAdvance for c in text) / 65536
            assert text_width(text, 12, mono=mono) == pytest.approx(advance, rel=0.02)


def test_wide_characters_have_a_larger_width():
    assert text_width("損失", 10) == 20 and text_width("損失", 10, mono=True) > text_width("ab", 10, mono=True)


# -------------------------------------------------------------------------------------------------------------- colours
def contrast(one, other):
    """Return the contrast ratio by WCAG 2.2."""

    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["VALUE", "GRADIENT", "DIM", "EDGE"])
@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_colours_have_enough_contrast_with_the_background_in_both_themes(name, ground):
    colour = colours("light" if ground == "#ffffff" else "dark")[getattr(drawing_module, name)[4:-1]]
    assert contrast(colour, ground) >= (3 if name == "EDGE" else 4.5)
    assert contrast(hex_of(getattr(drawing_module, name)), ground) >= 3, "if the theme is unknown"


@pytest.mark.parametrize("theme", ["light", "dark", "high-contrast", "high-contrast-dark"])
@pytest.mark.parametrize(
    ("text", "panel"),
    [
        ("INK", "PANEL"),
        ("INK", "VALUE_PANEL"),
        ("INK", "GRADIENT_PANEL"),
        ("QUIET", "PANEL"),
        ("QUIET", "VALUE_PANEL"),
        ("QUIET", "PAPER"),
        ("PAPER", "INK"),
        ("VALUE_INK", "VALUE_PANEL"),
        ("GRADIENT_INK", "GRADIENT_PANEL"),
        ("DIM", "PAPER"),
        ("DIM", "PANEL"),
        ("VALUE", "PAPER"),
        ("GRADIENT", "PAPER"),
    ],
)
def test_text_on_panels_has_enough_contrast(text, panel, theme):
    known = colours(theme)
    ratio = contrast(*(known[getattr(drawing_module, name)[4:-1]] for name in (text, panel)))
    assert ratio >= (7 if theme.startswith("high") else 4.5)


# --------------------------------------------------------------------------------------------------------------- themes
ALL = "".join(f'<rect width="9" height="9" fill="var({name})" stroke="var({name})"/>' for name in colours())


def test_each_colour_is_defined_in_each_theme_and_unique_in_the_light_one():
    known = {theme: colours(theme) for theme in ("light", "dark", "high-contrast", "high-contrast-dark")}
    assert len({frozenset(names) for names in known.values()}) == 1 and len(known["light"]) == 14
    assert len(set(known["light"].values())) == 14, "the dark theme's rules select a colour by its value in the light theme"
    constants = {value[4:-1] for value in vars(drawing_module).values() if isinstance(value, str) and value.startswith("var(")}
    assert constants == set(known["light"])


@pytest.mark.parametrize("theme", ["light", "dark", "high-contrast", "high-contrast-dark"])
def test_a_chosen_theme_has_its_own_colours_and_no_rules(theme):
    root = ET.fromstring(Drawing(ALL, 9, 9, "", "All.").svg(theme=theme))
    boxes = [element for element in root.iter(f"{SVG}rect") if element.get("stroke")]
    assert (
        [element.get("fill") for element in boxes]
        == [element.get("stroke") for element in boxes]
        == list(colours(theme).values())
    )
    assert root.find(f"{SVG}style") is None
    backgrounds = [element.get("fill") for element in root.iter(f"{SVG}rect") if not element.get("stroke")]
    assert backgrounds == ([colours(theme)["--gl-paper"]] if theme.endswith("dark") else [])


def test_without_a_theme_a_picture_is_light_with_rules_for_the_others():
    root = ET.fromstring(Drawing(ALL, 9, 9, "", "All.").svg())
    assert [element.get("fill") for element in root.iter(f"{SVG}rect")] == list(colours("light").values())
    blocks = dict(re.findall(r"@media ([^{]+)\{((?:[^{}]+\{[^{}]*\})*)\}", root.findtext(f"{SVG}style")))
    rules = {when: dict(re.findall(r'\[fill="([^"]+)"\]\{fill:([^}]+)\}', block)) for when, block in blocks.items()}
    light, dark, high, both = (colours(theme) for theme in ("light", "dark", "high-contrast", "high-contrast-dark"))
    dark_now = {name: rules["(prefers-color-scheme:dark)"].get(value, value) for name, value in light.items()}
    high_now = {name: rules["(prefers-contrast:more)"].get(value, value) for name, value in light.items()}
    assert dark_now == dark and high_now == high
    last = rules["(prefers-contrast:more) and (prefers-color-scheme:dark)"]
    assert {name: last.get(light[name], dark_now[name]) for name in light} == both


def test_an_inline_picture_uses_the_variables_of_the_page():
    root = ET.fromstring(Drawing(ALL, 9, 9, "", "All.").inline(role="group", data_level="<code>"))
    assert [element.get("fill") for element in root.iter(f"{SVG}rect")] == [f"var({name})" for name in colours()]
    assert (root.get("role"), root.get("data-level")) == ("group", "<code>") and root.findtext(f"{SVG}title") == "All."


def test_text_of_users_is_not_read_as_a_colour():
    body = f'<text fill="var(--gl-ink)">{escape(chr(34).join(["fill=", "var(--gl-ink)", ""]))}</text>'
    assert ET.fromstring(Drawing(body, 9, 9, "", "").svg(theme="dark")).findtext(f"{SVG}text") == 'fill="var(--gl-ink)"'


def test_an_invalid_theme_or_size_is_an_error():
    with pytest.raises(
        ValueError, match="theme must be one of 'auto', 'light', 'dark', 'high-contrast', 'high-contrast-dark'; got"
    ):
        square().svg(theme="sepia")
    for width in (0, -3, float("nan"), "9"):
        with pytest.raises(ValueError, match="width must be a positive number of pixels; got"):
            square().svg(width=width)
        with pytest.raises(ValueError, match="width must be a whole number of pixels from 1 to 16384; got"):
            square().png(width=width)


def test_a_size_can_be_chosen():
    root = ET.fromstring(Drawing(square().body, 40, 20, "", "").svg(width=100))
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == ("100", "50", "0 0 40 20")


# ----------------------------------------------------------------------------------------------------------------- files
@pytest.mark.e2e
def test_a_pdf_has_the_size_the_text_and_the_lines_of_the_picture():
    pytest.importorskip("typst")
    body = f'<text x="5" y="20" fill="{drawing_module.INK}">‖g‖ × 損失</text><path d="M0 0h9" stroke="{drawing_module.EDGE}"/>'
    for width, points in ((None, 72.0), (192, 144.0)):
        data = Drawing(body, 96, 48, "", "").pdf(width=width)
        boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([0-9.]+) ([0-9.]+)\s*\]", data)
        assert data.startswith(b"%PDF-") and [tuple(map(float, box)) for box in boxes] == [(points, points / 2)]
        streams = (zlib.decompress(part) for part in re.findall(rb"FlateDecode.*?stream\r?\n(.*?)endstream", data, re.DOTALL))
        assert b"/FontFile" in (inside := data + b"".join(streams)) and b"/Subtype/Image" not in inside, "text and lines"


def test_without_the_package_a_pdf_is_an_error_that_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(RuntimeError, match=r"a PDF needs the package typst.*pip install 'gradlab\[pdf\]'"):
        square().pdf()


def test_the_suffix_of_the_file_determines_the_format(tmp_path):
    pytest.importorskip("resvg_py")
    assert ET.parse(square().save(tmp_path / "a.svg")).getroot().tag == f"{SVG}svg"
    assert png_size(square().save(tmp_path / "a.PNG").read_bytes()) == (80, 80)
    with pytest.raises(ValueError, match=r"a picture can be saved as \.svg, \.png or \.pdf; got '\.jpg'"):
        square().save(tmp_path / "a.jpg")


# ------------------------------------------------------------------------------------------------------------ composing
def test_composing_places_and_sizes():
    row = beside(square(40), square(10), gap=5)
    assert (row.width, row.height) == (55, 40)
    column = above(row, square(20), gap=7)
    assert (column.width, column.height) == (55, 67)
    moves = [group.get("transform") for group in ET.fromstring(column.svg()).iter(f"{SVG}g")]
    assert moves == ["translate(0,0)", "translate(0,0)", "translate(45,0)", "translate(0,47)"]
    assert column.text == "a square\n\na square\n\na square" and column.alt == "A square.\n\nA square.\n\nA square."


def test_composing_nothing_and_one():
    assert (above().width, above().height, above().body) == (0, 0, "")
    assert (beside(square()).width, beside(square()).height) == (40, 40)
    ET.fromstring(above().svg())


# -------------------------------------------------------------------------------------------------------------- bitmaps
def test_bitmap_is_bounded_in_pixels():
    pytest.importorskip("resvg_py")
    assert png_size(square(40).png()) == (80, 80)
    assert png_size(square(4000).png()) == (4000, 4000)
    assert png_size(square(4000).bitmap(1_000_000)) == (1200, 1200)
    assert png_size(square(4000).png(width=300)) == (300, 300)
    tall = Drawing(square(10).body, 100, 3000, "", "")
    assert png_size(tall.bitmap(1_000_000)) == (40, 1200)


def test_bitmap_is_bounded_in_bytes_or_omitted():
    pytest.importorskip("resvg_py")
    drawing = noise(60)
    whole = len(drawing.png())
    assert 0 < len(drawing.bitmap(whole // 3)) <= whole // 3
    assert drawing.bitmap(100) is None
    assert "image/png" not in Drawing(square().body, 100, 60_000, "", "").bundle()


def test_a_notebooks_bitmap_of_noisy_maps_is_rendered_once_and_looks_the_same(monkeypatch):
    pytest.importorskip("resvg_py")
    from io import BytesIO

    image = pytest.importorskip("PIL.Image")
    rng, made = np.random.default_rng(0), []
    drawing = above(
        *(beside(*(heatmap(rng.normal(size=(64, 64)), title="W.grad", side=220) for _ in range(3))) for _ in range(2))
    )
    whole = drawing_module.rasterise
    monkeypatch.setattr(drawing_module, "rasterise", lambda *given: made.append(whole(*given)) or made[-1])
    small = drawing.bitmap(75_000)
    assert len(made) == 1 and len(small) <= 75_000 < len(made[0])
    width, height = png_size(small)
    assert (width, height) == png_size(made[0]) and 0.95 < width * height / drawing_module.MAX_PIXELS < 1.01, "whole pixels"

    def on_white(png):
        pixels = np.asarray(image.open(BytesIO(png)).convert("RGBA"), float)
        return pixels[..., :3] * pixels[..., 3:] / 255 + 255 - pixels[..., 3:]

    away = np.abs(on_white(small) - on_white(made[0])).max(axis=-1)
    assert away.mean() < 4 and np.quantile(away, 0.999) < 24, "differences of colours out of 255"


def test_without_pillow_a_bitmap_is_made_smaller(monkeypatch):
    pytest.importorskip("resvg_py")
    monkeypatch.setitem(sys.modules, "PIL", None)
    drawing = noise(60)
    whole = drawing.png()
    small = drawing.bitmap(len(whole) // 3)
    assert len(small) <= len(whole) // 3 and png_size(small) < png_size(whole)


def test_bitmap_has_a_transparent_ground_and_shows_text_without_a_system_font():
    pytest.importorskip("resvg_py")
    from io import BytesIO

    from matplotlib.image import imread

    def pixels(text, family=drawing_module.SANS):
        body = f'<text x="5" y="20" font-family="{family}" fill="#2f7cc3">{text}</text>'
        return imread(BytesIO(Drawing(body, 100, 30, "", "").png()), format="png")

    assert pixels("")[..., 3].max() == 0
    assert pixels("÷")[..., 3].max() > 0.9
    assert pixels("iiii")[..., 3].sum() < pixels("WWWW")[..., 3].sum()
    assert not np.array_equal(pixels("iW"), pixels("iW", drawing_module.MONO))


def test_no_bitmap_without_resvg(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert square().bitmap(10_000) is None
    with pytest.raises(RuntimeError, match="a PNG needs the package resvg_py"):
        square().png()
    assert set(square().bundle()) == {"text/html", "text/plain"}


# --------------------------------------------------------------------------------------------------------------- bundle
def test_bundle_has_an_image_a_bitmap_and_a_text():
    pytest.importorskip("resvg_py")
    drawing = square(alt='Alt <b>&"x"</b>\nline two')
    bundle = drawing._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    [attributes] = [attributes for tag, attributes in Tags(bundle["text/html"]).found if tag == "img"]
    assert attributes["alt"] == drawing.alt
    kind, _, data = attributes["src"].partition(",")
    assert kind == "data:image/svg+xml" and unquote(data) == re.sub("<title>.*</desc>|\n", "", drawing.svg())
    assert png_size(base64.b64decode(bundle["image/png"])) == (80, 80)
    assert bundle["text/plain"] == "a square"


# ------------------------------------------------------------------------------------------------- objects with a picture
def results_with_pictures():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    out = (x**2).sum()
    layer = gl.nn.Linear(2, 1)
    optimizer = gl.optim.SGD(layer.parameters(), lr=0.1)
    with gl.watch(layer, optimizer) as run:
        layer(gl.ones(3, 2)).sum().backward()
        optimizer.step()
    return {
        "graph": gl.graph(out),
        "graphs": gl.graphs(a=out, b=out),
        "paths": gl.graph(out).paths(x),
        "report": gl.explain(out),
        "Jacobian": gl.jacobian(x * 2, x),
        "playground": gl.playground(lambda x: x**2, x=(-1.0, 1.0)),
        "run": run,
    }


@pytest.mark.parametrize("name", ["graph", "graphs", "paths", "report", "Jacobian", "playground", "run"])
def test_every_result_with_a_picture_can_save_it(name):
    pytest.importorskip("resvg_py")
    shown = results_with_pictures()[name]
    assert ET.fromstring(shown.svg(theme="dark", width=321)).get("width") == "321"
    assert png_size(shown.png(width=200, theme="high-contrast"))[0] == 200
    assert callable(shown.pdf)

"""A picture, drawn once as SVG and handed to the notebook as an image, a bitmap and a text.

A `Drawing` is a fragment of SVG with its size, the text that says the same in a terminal, and the sentence that says
it to someone who cannot see it. Explorers make drawings, put them together with `beside` and `above`, and never write
a bundle.

A colour is a variable of `theme`, in an attribute of the element. One file serves the light and the dark theme: the background
stays transparent, what is drawn on it (lines, axis labels) has a contrast of 3:1 or better on white and on #111 in either theme,
and boxes are opaque with text of their own colour. Everything else is said by explicit attributes too, without script, `id`,
foreign object or external font, so that a fragment means the same wherever it is put, even twice on a page. An image takes the
theme of the element that shows it, so `html` needs only to say which theme a notebook is in.

The notebook gets one `<img>` with a data URI and never a bare `image/svg+xml`, on which nbconvert's PDF path fails
and which an untrusted notebook does not show. The PNG is the same SVG, rasterised by resvg with the DejaVu font that
matplotlib brings.
"""

from __future__ import annotations

import base64
import html
import io
import math
import numbers
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from gradlab.explore import terms
from gradlab.explore.theme import USED, Theme, classed, colours, hex_of, resolved, scheme_rules

VALUE = "var(--gl-value)"  # what flows forward: values, leaves
GRADIENT = "var(--gl-gradient)"  # what flows backward: gradients
NEGATIVE = "var(--gl-negative)"  # what counts against the rest
DIM = "var(--gl-dim)"  # axis labels, captions, shapes on edges
EDGE = "var(--gl-edge)"  # lines
INK = "var(--gl-ink)"  # text; also the background of an output
PAPER = "var(--gl-paper)"  # text on INK
PANEL = "var(--gl-panel)"  # the background of an operation
LINE = "var(--gl-line)"  # the outline of an operation
QUIET = "var(--gl-quiet)"  # small text on PANEL
VALUE_PANEL = "var(--gl-value-panel)"  # the background of a leaf, and of a value
VALUE_INK = "var(--gl-value-ink)"  # a value in numbers, on VALUE_PANEL
GRADIENT_PANEL = "var(--gl-gradient-panel)"  # the background of what is active, and of a gradient
GRADIENT_INK = "var(--gl-gradient-ink)"  # a gradient in numbers, on GRADIENT_PANEL

SANS = "system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

RULES = (  # what no inline style can say: which tab is open, that paper has no scroll bar, what is shown on focus
    ".gradlab-tabs>details::details-content{flex:1 0 100%;min-width:0}"
    f".gradlab-tabs>details[open]>summary{{font-weight:600;box-shadow:inset 0 2px {hex_of(VALUE)}}}"
    "@media print{.gradlab-picture{max-width:100%!important}.gradlab-table *{white-space:normal!important}}" + terms.RULES
)

IN_NOTEBOOKS = f"<style>{scheme_rules()}{RULES}</style>"

MAX_SIDE = 1200  # pixels of a bitmap in a notebook
LARGE = 4000  # pixels of one in a file, unless a width is chosen
MAX_BYTES = 100_000  # of a bitmap in a notebook
MAX_PIXELS = 500_000  # of a bitmap in a notebook that has heat maps in it: noise takes time and bytes
LARGEST = 16_384  # pixels of a bitmap's width
UNSAFE_IN_URI = {"%": "%25", "#": "%23", "&": "&amp;", "'": "&#x27;"}  # within an attribute in '
UNUSED_IN_IMAGE = re.compile(r'<title>[^<]*</title>| (?:class|data-[a-z-]+)="[^"]*"')  # an image has neither hover nor script
PICTURES = (".svg", ".png", ".pdf")  # the files that `save` writes
ALT = 800  # characters of the description in a notebook
FEW_COLOURS = 16  # of a picture of lines and text, whose bytes are limited
OTHER_COLOURS = re.compile(r'<image|(?:fill|stroke)="#')  # than those of the theme
DARK = 128  # a colour none of whose parts is larger is that of text
Colour = tuple[int, ...]
LEAST_ZOOM = 0.2  # a bitmap smaller than this shows nothing any more


@dataclass(frozen=True)
class Drawing:
    """A finished picture.

    Attributes
    ----------
    body : str
        SVG elements with explicit attributes, drawn in the rectangle from (0, 0) to (width, height).
    width, height : float
        Size in CSS pixels.
    text : str
        The same for a terminal.
    alt : str
        The same in words, for a screen reader.
    """

    body: str
    width: float
    height: float
    text: str
    alt: str

    def svg(self, *, theme: Theme = "auto", width: float | None = None) -> str:
        """Return a complete SVG document; see `Pictured.svg`."""
        return self._document(theme, width, described=True)

    def _document(self, theme: Theme, width: float | None = None, *, described: bool = False) -> str:
        body, rules = resolved(self.body, theme)
        if theme.endswith("dark"):
            body = f'<rect width="100%" height="100%" fill="{colours(theme)["--gl-paper"]}"/>{body}'
        return self._svg(body, rules, width, self._about() if described else "")

    def _svg(self, body: str, rules: str, width: float | None = None, about: str = "") -> str:
        style = f"<style>{rules}</style>\n" if rules else ""
        return f'<svg xmlns="http://www.w3.org/2000/svg" {self._size(width)} role="img">{about}\n{style}{body}\n</svg>\n'

    def inline(self, *, role: str = "img", **data: str) -> str:
        """Return the drawing as an `<svg>` element for a page that has theme.css, whose theme it takes.

        Parameters
        ----------
        role : str, default "img"
            "group" where parts of the drawing can be focused.
        **data : str
            Attributes for what attaches behaviour: ``data_level="code"`` becomes ``data-level="code"``.

        Returns
        -------
        str
        """
        more = "".join(f' {name.replace("_", "-")}="{escape(value)}"' for name, value in data.items())
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="gl-figure" {self._size()} role="{role}"{more}>'
        return f"{head}{self._about()}{self.body}</svg>"

    def _size(self, width: float | None = None) -> str:
        if width is not None and not (isinstance(width, numbers.Real) and 0 < width < math.inf):
            raise ValueError(f"width must be a positive number of pixels; got {width!r}.")
        own, high = max(self.width, 1), max(self.height, 1)
        shown = own if width is None else float(width)
        size = f'width="{tidy(shown)}" height="{tidy(high * shown / own)}" viewBox="0 0 {tidy(own)} {tidy(high)}"'
        return f'{size} font-family="{SANS}" font-size="12"'

    def _about(self) -> str:
        """The title and the description, which screen readers read."""
        title, _, more = self.alt.partition("\n")
        return f"<title>{escape(title)}</title>" + (f"<desc>{escape(more.strip())}</desc>" if more.strip() else "")

    def png(self, *, width: int | None = None, theme: Theme = "light") -> bytes:
        """Return the drawing as a PNG; see `Pictured.png`."""
        if width is None:
            width = max(1, int(self.width * self._zoom(LARGE) + 1e-6))
        elif not (isinstance(width, numbers.Integral) and 1 <= width <= LARGEST):
            raise ValueError(f"width must be a whole number of pixels from 1 to {LARGEST}; got {width!r}.")
        picture = rasterise(self._document("light" if theme == "auto" else theme), int(width))
        if picture is None:
            raise RuntimeError("a PNG needs the package resvg_py, which is not installed here; save as .svg instead.")
        return picture

    def pdf(self, *, width: float | None = None, theme: Theme = "light") -> bytes:
        """Return the drawing as a PDF of one page, with text that can be searched; see `Pictured.pdf`."""
        return pdf_of(self._document("light" if theme == "auto" else theme, width))

    def save(self, path: Path) -> Path:
        """Write the drawing to a file, as what its name ends in.

        Raises
        ------
        ValueError
            If it ends in none of `PICTURES`.
        """
        match path.suffix.lower():
            case ".svg":
                path.write_text(self.svg(), encoding="utf-8")
            case ".png":
                path.write_bytes(self.png())
            case ".pdf":
                path.write_bytes(self.pdf())
            case other:
                raise ValueError(f"a picture can be saved as .svg, .png or .pdf; got {other or 'a name without an ending'!r}.")
        return path

    def _zoom(self, max_side: int) -> float:
        return min(2.0, max_side / max(self.width, self.height, 1))

    def bitmap(self, max_bytes: int) -> bytes | None:
        """Return the drawing as a PNG for a notebook, whose size is limited.

        Heat maps have `MAX_PIXELS` at most. A file that is larger than `max_bytes` gets a palette, that of the theme where there
        is no heat map, then is scaled down until it is not.

        Returns
        -------
        bytes or None
            None if resvg_py is not installed, or nothing could be recognized in so few bytes.
        """
        zoom = self._zoom(MAX_SIDE)
        palette = None if OTHER_COLOURS.search(self.body) else palette_of(self.body)
        if "<image" in self.body:
            zoom = min(zoom, math.sqrt(MAX_PIXELS / max(self.width * self.height, 1)))
        svg = self._document("light")
        power = 0.75  # of a file's size, as which the zoom goes: guessed first, then as two files tell
        before: tuple[float, int] | None = None
        while zoom >= LEAST_ZOOM:
            picture = rasterise(svg, max(1, int(self.width * zoom + 1e-6)))
            if picture is None or len(picture) <= max_bytes:
                return picture
            picture = in_few_colours(picture, palette)
            if len(picture) <= max_bytes:
                return picture
            if before is not None and len(picture) < before[1]:
                power = min(1.5, max(0.5, math.log(zoom / before[0]) / math.log(len(picture) / before[1])))
            before = zoom, len(picture)
            zoom *= min(0.9, (0.97 * max_bytes / len(picture)) ** power)
        return None

    def data_uri(self) -> str:
        """Return the SVG document as a URI for an `<img>`, whose `alt` describes it; see `image_source`."""
        return image_source(self._svg(*classed(UNUSED_IN_IMAGE.sub("", self.body))))

    def html(self) -> str:
        """Return one `<img>` that holds the drawing, in its own size so that its text can be read: where there is less room, it
        scrolls. With it come the rules that tell it a notebook's theme."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" class="gradlab-picture" style="max-width:none;height:auto"'
        return f'<div style="overflow-x:auto">{self.image(f" {size}")}</div>{IN_NOTEBOOKS}'

    def image(self, attributes: str = "") -> str:
        """Return an `<img>` with the drawing and its description, and further attributes, each after a blank."""
        alt = self.alt if len(self.alt) <= ALT else f"{self.alt[: ALT - 1]}…"
        return f"<img alt=\"{escape(alt)}\" src='{self.data_uri()}'{attributes}>"

    def bundle(self) -> dict[str, str]:
        """What a notebook is given, by MIME type: `text/html`, `text/plain`, and `image/png` where it can be had."""
        data = {"text/html": self.html(), "text/plain": self.text}
        picture = self.bitmap(MAX_BYTES)
        if picture is not None:
            data["image/png"] = base64.b64encode(picture).decode()
        return data

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()


class Pictured:
    """Base class of what has a picture: `drawing()` returns it."""

    def drawing(self) -> Drawing:
        raise NotImplementedError

    def svg(self, *, theme: Theme = "auto", width: float | None = None) -> str:
        """Return the picture as a complete SVG document; see `Drawing.svg`.

        Parameters
        ----------
        theme : {"auto", "light", "dark", "high-contrast", "high-contrast-dark"}, default "auto"
            "auto" follows the reader's theme in a browser, and is light elsewhere. The dark themes paint a background.
        width : float, optional
            In CSS pixels; the height keeps its proportion. By default the picture's own.

        Returns
        -------
        str
        """
        return self.drawing().svg(theme=theme, width=width)

    def png(self, *, width: int | None = None, theme: Theme = "light") -> bytes:
        """Return the picture as a PNG; see `Drawing.png`.

        Parameters
        ----------
        width : int, optional
            In pixels. By default two pixels for each of the picture's own, and at most 4000 a side.
        theme : {"light", "dark", "high-contrast", "high-contrast-dark"}, default "light"

        Returns
        -------
        bytes

        Raises
        ------
        RuntimeError
            If the package resvg_py is not installed.
        """
        return self.drawing().png(width=width, theme=theme)

    def pdf(self, *, width: float | None = None, theme: Theme = "light") -> bytes:
        """Return the picture as a PDF of one page, with vector graphics; see `Drawing.pdf`.

        Parameters
        ----------
        width : float, optional
            In CSS pixels, of which 96 are an inch. By default the picture's own.
        theme : {"light", "dark", "high-contrast", "high-contrast-dark"}, default "light"

        Returns
        -------
        bytes

        Raises
        ------
        RuntimeError
            If the package typst is not installed: ``pip install 'gradlab[pdf]'``.
        """
        return self.drawing().pdf(width=width, theme=theme)


# ------------------------------------------------------------------------------------------------------------ composing
def beside(*drawings: Drawing, gap: float = 24) -> Drawing:
    """The drawings from left to right, their tops in line."""
    return _composed(drawings, gap, lambda drawing: (drawing.width, 0.0))


def above(*drawings: Drawing, gap: float = 24) -> Drawing:
    """The drawings from top to bottom, their left sides in line."""
    return _composed(drawings, gap, lambda drawing: (0.0, drawing.height))


def _composed(drawings: tuple[Drawing, ...], gap: float, extent: Callable[[Drawing], tuple[float, float]]) -> Drawing:
    parts, x, y, width, height = [], 0.0, 0.0, 0.0, 0.0
    for drawing in drawings:
        parts.append(f'<g transform="translate({tidy(x)},{tidy(y)})">\n{drawing.body}\n</g>')
        width, height = max(width, x + drawing.width), max(height, y + drawing.height)
        right, down = extent(drawing)
        x, y = x + right + gap * bool(right), y + down + gap * bool(down)
    return Drawing(
        "\n".join(parts),
        width,
        height,
        text="\n\n".join(d.text for d in drawings if d.text),
        alt="\n\n".join(d.alt for d in drawings if d.alt),
    )


# ----------------------------------------------------------------------------------------------------------------- text
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """`text` with a replacement character for what XML 1.0 cannot carry and what turns the writing direction round."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def escape(text: str) -> str:
    """`text` for the content or a quoted attribute of an XML or HTML element. Line ends survive in attributes too."""
    text = html.escape(clean(text), quote=True)
    return text.replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")


def tidy(number: float) -> str:
    """A coordinate with at most one decimal place, so that equal drawings are equal files."""
    text = f"{number:.1f}"
    return text[:-2].replace("-0", "0") if text.endswith(".0") else text


# Advance widths of DejaVu Sans, the widest of the usual interface fonts, in thousandths of the size, U+0020 to U+007E.
# fmt: off
_ADVANCES = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656,
    557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613,
    635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818,
    592, 592, 525, 636, 337, 636, 838)
# fmt: on
_SIGNS = {"−": 0.838, "×": 0.838, "÷": 0.838, "…": 1.0, "·": 0.318, "▸": 0.77, "∇": 0.684, "‖": 0.5, "\N{EN SPACE}": 0.5}


def text_width(text: str, size: float, mono: bool = False) -> float:
    """About how wide `text` is in pixels at a font size of `size` pixels; the usual fonts are seldom wider."""
    if mono:
        return size * sum(1.2 if wide(character) else 0.602 for character in text)
    return size * sum(_ADVANCES[ord(c) - 32] / 1000 if " " <= c <= "~" else 1.0 if wide(c) else _SIGNS.get(c, 0.75) for c in text)


def wide(character: str) -> bool:
    """Whether a terminal gives the character two columns."""
    return character > "\u02ff" and east_asian_width(character) in "WF"


# --------------------------------------------------------------------------------------------------------------- bitmap
def rasterise(svg: str, width: int) -> bytes | None:
    """An SVG document as a PNG of `width` pixels, or None where resvg_py is not installed."""
    try:
        import resvg_py
    except ImportError:  # Pyodide has no resvg
        return None
    fonts = _bundled_fonts()
    foreign = max(svg) > "\u2fff"  # scripts that DejaVu does not have
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            width=width,
            skip_system_fonts=bool(fonts) and not foreign,
            font_files=fonts,
            font_family="DejaVu Sans",
            sans_serif_family="DejaVu Sans",
            monospace_family="DejaVu Sans Mono",
            image_rendering="optimize_speed",  # of a map's cells, which have sharp edges: quicker, and a third smaller
        )
    )


def pdf_of(svg: str) -> bytes:
    """Return an SVG document as a PDF of one page, of the document's size.

    Raises
    ------
    RuntimeError
        If the package typst is not installed.
    """
    try:
        import typst
    except ImportError:
        raise RuntimeError("a PDF needs the package typst, which is not installed here: pip install 'gradlab[pdf]'.") from None
    page = '#set page(width: auto, height: auto, margin: 0pt, fill: none)\n#image("picture.svg")\n'
    for family, name in ((SANS, "DejaVu Sans"), (MONO, "DejaVu Sans Mono")):
        svg = svg.replace(family, name)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "picture.svg").write_text(svg, encoding="utf-8")
        (Path(folder) / "page.typ").write_text(page, encoding="utf-8")
        fonts = [Path(font).parent for font in _bundled_fonts()[:1]]
        return typst.compile(Path(folder) / "page.typ", font_paths=fonts)


def image_source(svg: str) -> str:
    """Return an SVG document as a data URI, escaped for an attribute of an HTML element in single quotes. It is a fifth smaller
    than in base64."""
    return "data:image/svg+xml," + "".join(UNSAFE_IN_URI.get(character, character) for character in svg.replace("\n", ""))


def in_few_colours(png: bytes, palette: Sequence[Colour] | None = None) -> bytes:
    """Return the PNG with at most 256 colours, or with those of `palette` on white: about a third or a fifth of the size. Return
    it as it is where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:  # matplotlib brings it
        return png
    with Image.open(io.BytesIO(png)) as picture:
        if palette is None:
            few = picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        else:
            white = Image.new("RGBA", picture.size, "white")
            white.alpha_composite(picture.convert("RGBA"))
            colours_of = Image.new("P", (1, 1))
            colours_of.putpalette([part for colour in palette for part in colour])
            few = white.convert("RGB").quantize(palette=colours_of, dither=Image.Dither.NONE)
    file = io.BytesIO()
    few.save(file, "PNG", optimize=True)
    return min(file.getvalue(), png, key=len)


def palette_of(body: str) -> list[Colour]:
    """Return white, the colours of a drawing in the light theme, and those halfway to white that the edges of letters have."""
    light = colours()
    used = [tuple(bytes.fromhex(light[name][1:])) for name in dict.fromkeys(name for _, name in USED.findall(body))]
    dark = [colour for colour in used if max(colour) < DARK]
    halfway = [tuple((part + 255) // 2 for part in colour) for colour in dark]
    return list(dict.fromkeys([(255, 255, 255), *used, *halfway]))[:FEW_COLOURS]


def _bundled_fonts() -> list[str]:
    """The files of the DejaVu fonts in matplotlib, found without importing it."""
    matplotlib = find_spec("matplotlib")
    if matplotlib is None or matplotlib.origin is None:
        return []
    folder = Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf"
    files = (folder / f"DejaVuSans{style}.ttf" for style in ("", "-Bold", "-Oblique", "Mono", "Mono-Bold"))
    return [str(file) for file in files if file.is_file()]

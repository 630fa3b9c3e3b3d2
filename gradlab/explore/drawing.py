"""A picture as SVG, given to the notebook as an image, a bitmap and a text.

A `Drawing` is a fragment of SVG with its size, a text with the same content for terminals, and a description for screen readers.
Explorers make drawings and combine them with `beside` and `above`; they never write a MIME bundle.

A colour is a variable of `theme`, in an attribute of the element. One file serves the light and the dark theme: the background is
transparent, elements on it (lines, axis labels) have a contrast of at least 3:1 on white and on #111 in either theme, and boxes
are opaque and have their own text colour. Everything else is set by explicit attributes, too, without script, `id`, foreign
object or external font, so that a fragment looks the same wherever it is used, even twice on a page. An image uses the theme of
the element that shows it, so `html` only has to set the theme of a notebook.

The notebook gets one `<img>` with a data URI and never a bare `image/svg+xml`, on which nbconvert's PDF export fails and which
untrusted notebooks do not show. The PNG is the same SVG, rasterised by resvg with the DejaVu fonts included in matplotlib.
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
from gradlab.explore.theme import USED, Theme, colours, hex_of, resolve_variables, scheme_rules, use_classes

VALUE = "var(--gl-value)"  # forward: values, leaves
GRADIENT = "var(--gl-gradient)"  # backward: gradients
NEGATIVE = "var(--gl-negative)"  # negative contributions
DIM = "var(--gl-dim)"  # axis labels, captions, shapes on edges
EDGE = "var(--gl-edge)"  # lines
INK = "var(--gl-ink)"  # text; also the background of an output
PAPER = "var(--gl-paper)"  # text on INK
PANEL = "var(--gl-panel)"  # the background of an operation
LINE = "var(--gl-line)"  # the outline of an operation
QUIET = "var(--gl-quiet)"  # small text on PANEL
VALUE_PANEL = "var(--gl-value-panel)"  # the background of a leaf, and of a value
VALUE_INK = "var(--gl-value-ink)"  # a value in numbers, on VALUE_PANEL
GRADIENT_PANEL = "var(--gl-gradient-panel)"  # background of active elements, and of gradients
GRADIENT_INK = "var(--gl-gradient-ink)"  # a gradient in numbers, on GRADIENT_PANEL

SANS = "system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

RULES = (  # not possible with inline styles: the open tab, no scroll bars on paper, explanations on focus
    ".gradlab-tabs>details::details-content{flex:1 0 100%;min-width:0}"
    f".gradlab-tabs>details[open]>summary{{font-weight:600;box-shadow:inset 0 2px {hex_of(VALUE)}}}"
    "@media print{.gradlab-picture{max-width:100%!important}.gradlab-table *{white-space:normal!important}}" + terms.RULES
)

IN_NOTEBOOKS = f"<style>{scheme_rules()}{RULES}</style>"

MAX_SIDE = 1200  # maximum pixels per side of a bitmap in a notebook
LARGE = 4000  # pixels of a bitmap in a file, unless a width is given
MAX_BYTES = 100_000  # maximum size of a bitmap in a notebook
MAX_PIXELS = 500_000  # maximum size of a bitmap with heat maps in a notebook: noise costs time and bytes
LARGEST = 16_384  # maximum width of a bitmap in pixels
UNSAFE_IN_URI = {"%": "%25", "#": "%23", "&": "&amp;", "'": "&#x27;"}  # for an attribute in single quotes
UNUSED_IN_IMAGE = re.compile(r'<title>[^<]*</title>| (?:class|data-[a-z-]+)="[^"]*"')  # an image has neither hover nor script
PICTURES = (".svg", ".png", ".pdf")  # suffixes for `save`
ALT = 800  # characters of the description in a notebook
FEW_COLOURS = 16  # number of colours for a picture of lines and text with a limited size
OTHER_COLOURS = re.compile(r'<image|(?:fill|stroke)="#')  # colours that are not from the theme
DARK = 128  # a colour with no larger component counts as text
Colour = tuple[int, ...]
LEAST_ZOOM = 0.2  # smaller bitmaps are unreadable


@dataclass(frozen=True)
class Drawing:
    """A picture.

    Attributes
    ----------
    body : str
        SVG elements with explicit attributes, drawn in the rectangle from (0, 0) to (width, height).
    width, height : float
        Size in CSS pixels.
    text : str
        Text for a terminal.
    alt : str
        Description for a screen reader.
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
        body, rules = resolve_variables(self.body, theme)
        if theme.endswith("dark"):
            body = f'<rect width="100%" height="100%" fill="{colours(theme)["--gl-paper"]}"/>{body}'
        return self._svg(body, rules, width, self._about() if described else "")

    def _svg(self, body: str, rules: str, width: float | None = None, about: str = "") -> str:
        style = f"<style>{rules}</style>\n" if rules else ""
        return f'<svg xmlns="http://www.w3.org/2000/svg" {self._size(width)} role="img">{about}\n{style}{body}\n</svg>\n'

    def inline(self, *, role: str = "img", **data: str) -> str:
        """Return the drawing as an `<svg>` element for a page with theme.css, whose theme it uses.

        Parameters
        ----------
        role : str, default "img"
            "group" if parts of the drawing can be focused.
        **data : str
            Attributes for scripts: ``data_level="code"`` becomes ``data-level="code"``.

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
        """Return the title and the description for screen readers."""
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
        """Return the drawing as a one-page PDF with searchable text; see `Pictured.pdf`."""
        return pdf_of(self._document("light" if theme == "auto" else theme, width))

    def save(self, path: Path) -> Path:
        """Write the drawing to a file. The suffix selects the format.

        Raises
        ------
        ValueError
            If the suffix is not one of `PICTURES`.
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
        """Return the drawing as a PNG of limited size for a notebook.

        Drawings with heat maps have at most `MAX_PIXELS`. A file larger than `max_bytes` gets a palette (the theme's, if there is
        no heat map), and is then scaled down until it fits.

        Returns
        -------
        bytes or None
            None if resvg_py is not installed, or if a picture of this size would be unreadable.
        """
        zoom = self._zoom(MAX_SIDE)
        palette = None if OTHER_COLOURS.search(self.body) else palette_of(self.body)
        if "<image" in self.body:
            zoom = min(zoom, math.sqrt(MAX_PIXELS / max(self.width * self.height, 1)))
        svg = self._document("light")
        power = 0.75  # exponent of the file size as a function of the zoom: a guess at first, then from two files
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
        return image_source(self._svg(*use_classes(UNUSED_IN_IMAGE.sub("", self.body))))

    def html(self) -> str:
        """Return an `<img>` with the drawing in its own size, so that its text is readable; if there is less room, it scrolls. It
        comes with the rules for a notebook's theme."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" class="gradlab-picture" style="max-width:none;height:auto"'
        return f'<div style="overflow-x:auto">{self.image(f" {size}")}</div>{IN_NOTEBOOKS}'

    def image(self, attributes: str = "") -> str:
        """Return an `<img>` with the drawing and its description. `attributes` are separated by leading blanks."""
        alt = self.alt if len(self.alt) <= ALT else f"{self.alt[: ALT - 1]}…"
        return f"<img alt=\"{escape(alt)}\" src='{self.data_uri()}'{attributes}>"

    def bundle(self) -> dict[str, str]:
        """Return the MIME bundle for a notebook: `text/html`, `text/plain`, and `image/png` if possible."""
        data = {"text/html": self.html(), "text/plain": self.text}
        picture = self.bitmap(MAX_BYTES)
        if picture is not None:
            data["image/png"] = base64.b64encode(picture).decode()
        return data

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()


class Pictured:
    """Base class of objects with a picture: `drawing()` returns it."""

    def drawing(self) -> Drawing:
        raise NotImplementedError

    def svg(self, *, theme: Theme = "auto", width: float | None = None) -> str:
        """Return the picture as a complete SVG document; see `Drawing.svg`.

        Parameters
        ----------
        theme : {"auto", "light", "dark", "high-contrast", "high-contrast-dark"}, default "auto"
            "auto" follows the reader's theme in a browser, and is light elsewhere. The dark themes paint a background.
        width : float, optional
            In CSS pixels; the height is proportional. By default, the picture's own width.

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
            In pixels. By default, twice the picture's own pixels, but at most 4000 per side.
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
        """Return the picture as a one-page PDF with vector graphics; see `Drawing.pdf`.

        Parameters
        ----------
        width : float, optional
            In CSS pixels (96 per inch). By default, the picture's own width.
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
    """Put drawings side by side, aligned at the top."""
    return _compose(drawings, gap, lambda drawing: (drawing.width, 0.0))


def above(*drawings: Drawing, gap: float = 24) -> Drawing:
    """Put drawings below each other, aligned at the left."""
    return _compose(drawings, gap, lambda drawing: (0.0, drawing.height))


def _compose(drawings: tuple[Drawing, ...], gap: float, extent: Callable[[Drawing], tuple[float, float]]) -> Drawing:
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
    """Replace characters that XML 1.0 does not allow, or that change the writing direction."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def escape(text: str) -> str:
    """Escape `text` for the content or a quoted attribute of an XML or HTML element. Line ends are kept in attributes, too."""
    text = html.escape(clean(text), quote=True)
    return text.replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")


def tidy(number: float) -> str:
    """Return a coordinate with at most one decimal place, so that equal drawings are equal files."""
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
    """Estimate the width of `text` in pixels at a font size of `size` pixels. The usual fonts are seldom wider."""
    if mono:
        return size * sum(1.2 if wide(character) else 0.602 for character in text)
    return size * sum(_ADVANCES[ord(c) - 32] / 1000 if " " <= c <= "~" else 1.0 if wide(c) else _SIGNS.get(c, 0.75) for c in text)


def wide(character: str) -> bool:
    """Return whether a character takes two columns in a terminal."""
    return character > "\u02ff" and east_asian_width(character) in "WF"


# --------------------------------------------------------------------------------------------------------------- bitmap
def rasterise(svg: str, width: int) -> bytes | None:
    """Return an SVG document as a PNG of `width` pixels, or None if resvg_py is not installed."""
    try:
        import resvg_py
    except ImportError:  # Pyodide has no resvg
        return None
    fonts = _bundled_fonts()
    foreign = max(svg) > "\u2fff"  # scripts that DejaVu does not support
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            width=width,
            skip_system_fonts=bool(fonts) and not foreign,
            font_files=fonts,
            font_family="DejaVu Sans",
            sans_serif_family="DejaVu Sans",
            monospace_family="DejaVu Sans Mono",
            image_rendering="optimize_speed",  # a map's cells have sharp edges: this is faster, and the file is a third smaller
        )
    )


def pdf_of(svg: str) -> bytes:
    """Return an SVG document as a one-page PDF of the same size.

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
    """Return an SVG document as a data URI, escaped for an HTML attribute in single quotes. It is a fifth smaller than base64."""
    return "data:image/svg+xml," + "".join(UNSAFE_IN_URI.get(character, character) for character in svg.replace("\n", ""))


def in_few_colours(png: bytes, palette: Sequence[Colour] | None = None) -> bytes:
    """Return the PNG with at most 256 colours, or with those of `palette` on white: about a third or a fifth of the size. Return
    it unchanged if Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:  # matplotlib depends on it
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
    """Return white, a drawing's colours in the light theme, and the colours halfway to white at the edges of letters."""
    light = colours()
    used = [tuple(bytes.fromhex(light[name][1:])) for name in dict.fromkeys(name for _, name in USED.findall(body))]
    dark = [colour for colour in used if max(colour) < DARK]
    halfway = [tuple((part + 255) // 2 for part in colour) for colour in dark]
    return list(dict.fromkeys([(255, 255, 255), *used, *halfway]))[:FEW_COLOURS]


def _bundled_fonts() -> list[str]:
    """Return the DejaVu font files of matplotlib, found without importing it."""
    matplotlib = find_spec("matplotlib")
    if matplotlib is None or matplotlib.origin is None:
        return []
    folder = Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf"
    files = (folder / f"DejaVuSans{style}.ttf" for style in ("", "-Bold", "-Oblique", "Mono", "Mono-Bold"))
    return [str(file) for file in files if file.is_file()]

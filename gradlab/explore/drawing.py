"""A picture, drawn once as SVG and handed to the notebook as an image, a bitmap and a text.

A `Drawing` is a fragment of SVG with its size, the text that says the same in a terminal, and the sentence that says
it to someone who cannot see it. Explorers make drawings, put them together with `beside` and `above`, and never write
a bundle.

One file serves the light and the dark theme. The ground stays transparent, what stands on it (lines, axis labels) is
painted in mid-tones whose contrast is 3:1 or better on white and on #111, and boxes are opaque with text of their own
colour. Everything is said by explicit attributes, without script, `id`, foreign object or external font, so that a
fragment means the same wherever it is put, even twice on a page. There is a second set of colours, for what stands on the
ground (`ON_DARK`) and for the boxes in a `<g class="themed">` (`DARK`): the finished document carries a rule for each, which a
browser follows in a dark theme and all else passes over. An image takes the theme of the element that shows it, so that `html`
needs only to say which theme a notebook is in.

The notebook gets one `<img>` with a data URI and never a bare `image/svg+xml`, on which nbconvert's PDF path fails
and which an untrusted notebook does not show. The PNG is the same SVG, rasterised by resvg with the DejaVu font that
matplotlib brings.
"""

from __future__ import annotations

import base64
import html
import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

# On the transparent ground, the same in both themes: contrast on white and on #111 in brackets.
VALUE = "#2d79c0"  # what flows forward: values, leaves               [4.6, 4.1]
GRADIENT = "#be5a0c"  # what flows back: cotangents, gradients           [4.5, 4.2]
DIM = "#6b7787"  # text: axis labels, captions, shapes on edges     [4.6, 4.2]
EDGE = "#7f8a99"  # lines                                            [3.5, 5.4]
# In and around opaque boxes; text has 4.5:1 or better.
INK = "#1c2430"  # text on PANEL and PAPER; also the ground of an output
PAPER = "#ffffff"  # text on INK
PANEL = "#f4f6f9"  # the ground of an operation
LINE = "#c3cad4"  # the outline of an operation
QUIET = "#566070"  # small text on PANEL
VALUE_PANEL = "#e6eff8"  # the ground of a leaf, and of a value
VALUE_INK = "#1d5c9b"  # a value in numbers, on VALUE_PANEL
GRADIENT_PANEL = "#fceede"  # the ground of what is active, and of a gradient
GRADIENT_INK = "#9a4806"  # a gradient in numbers, on GRADIENT_PANEL
DARK = {
    INK: "#e6e9ef",
    PAPER: "#14181f",
    PANEL: "#1d232c",
    LINE: "#4a5564",
    QUIET: "#a7b1be",
    VALUE_PANEL: "#172c42",
    VALUE_INK: "#93c5f2",
    GRADIENT_PANEL: "#38230f",
    GRADIENT_INK: "#f5ae6b",
}
ON_DARK = {VALUE: "#5b9fdd", GRADIENT: "#e08a3f", DIM: "#98a4b3"}  # on #111: 6.7, 7.1, 7.5
THEMED = 'class="themed"'  # of a group whose boxes follow the theme

SANS = "system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# Which theme a notebook is in, by what JupyterLab, Notebook, nbconvert and VS Code write on the page.
NOTEBOOKS = (
    '[data-jp-theme-light="true"] .gradlab-picture{color-scheme:light}'
    '[data-jp-theme-light="false"] .gradlab-picture{color-scheme:dark}'
    '[data-vscode-theme-kind$="light"] .gradlab-picture{color-scheme:light}'
    '[data-vscode-theme-kind$="dark"] .gradlab-picture{color-scheme:dark}'
)

PRINTED = (  # paper has no scroll bar
    "@media print{.gradlab-picture{max-width:100%!important}.gradlab-table *{white-space:normal!important}}"
)

MAX_SIDE = 1200  # pixels of a bitmap
MAX_BYTES = 100_000  # of a bitmap in a notebook
MAX_PIXELS = 500_000  # of a bitmap in a notebook that has heat maps in it: noise takes time and bytes
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

    def svg(self) -> str:
        """A complete SVG document."""
        width, height = tidy(max(self.width, 1)), tidy(max(self.height, 1))
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        label = escape(self.alt.partition("\n")[0])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}" font-family="{SANS}" '
            f'font-size="12">\n{_dark(self.body)}{self.body}\n</svg>\n'
        )

    def png(self, max_side: int = MAX_SIDE, *, max_bytes: int | None = None) -> bytes | None:
        """The drawing as a PNG with a transparent ground.

        Parameters
        ----------
        max_side : int
            The most pixels a side. A smaller drawing gets two pixels for each of its own, a larger one is scaled down.
        max_bytes : int, optional
            For a notebook: heat maps have `MAX_PIXELS` at most. A file that is larger gets a palette of 256 colours, then is
            scaled down until it is not, or given up where nothing is left to see.

        Returns
        -------
        bytes or None
            None where resvg_py is not installed, and where `max_bytes` are too few.
        """
        zoom = min(2.0, max_side / max(self.width, self.height, 1))
        if max_bytes is not None and "<image" in self.body:
            zoom = min(zoom, math.sqrt(MAX_PIXELS / max(self.width * self.height, 1)))
        svg, power = self.svg(), 0.75  # of a file's size, as which the zoom goes: guessed first, then as two files tell
        before: tuple[float, int] | None = None
        while max_bytes is None or zoom >= LEAST_ZOOM:
            picture = rasterise(svg, max(1, int(self.width * zoom + 1e-6)))
            if picture is None or max_bytes is None or len(picture) <= max_bytes:
                return picture
            picture = in_few_colours(picture)
            if len(picture) <= max_bytes:
                return picture
            if before is not None and len(picture) < before[1]:
                power = min(1.5, max(0.5, math.log(zoom / before[0]) / math.log(len(picture) / before[1])))
            before = zoom, len(picture)
            zoom *= min(0.9, (0.97 * max_bytes / len(picture)) ** power)
        return None

    def data_uri(self) -> str:
        """The SVG document as a URI for an `<img>`."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg().encode()).decode()

    def html(self) -> str:
        """One `<img>` that holds the drawing, in its own size so that its type can be read: where there is less room, it scrolls.
        With it the rules that tell it a notebook's theme."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" class="gradlab-picture" style="max-width:none;height:auto"'
        image = f'<img alt="{escape(self.alt)}" src="{self.data_uri()}" {size}>'
        return f'<div style="overflow-x:auto">{image}</div><style>{NOTEBOOKS}{PRINTED}</style>'

    def bundle(self) -> dict[str, str]:
        """What a notebook is given, by MIME type: `text/html`, `text/plain`, and `image/png` where it can be had."""
        data = {"text/html": self.html(), "text/plain": self.text}
        picture = self.png(max_bytes=MAX_BYTES)
        if picture is not None:
            data["image/png"] = base64.b64encode(picture).decode()
        return data

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.bundle()


def _dark(body: str) -> str:
    """A stylesheet with the second set of colours, of those that are used; "" if there are none."""
    sets = [("", ON_DARK), (".themed ", DARK)] if THEMED in body else [("", ON_DARK)]
    rules = "".join(
        f'{within}[{key}="{light}"]{{{key}:{dark}}}'
        for within, colours in sets
        for light, dark in colours.items()
        for key in ("fill", "stroke")
        if f'{key}="{light}"' in body
    )
    return f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>\n" if rules else ""


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


def in_few_colours(png: bytes) -> bytes:
    """The PNG with a palette of 256 colours, about a third of the size, or as it is where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:  # matplotlib brings it
        return png
    with Image.open(io.BytesIO(png)) as picture:
        few = picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    file = io.BytesIO()
    few.save(file, "PNG")
    return min(file.getvalue(), png, key=len)


def _bundled_fonts() -> list[str]:
    """The files of the DejaVu fonts in matplotlib, found without importing it."""
    matplotlib = find_spec("matplotlib")
    if matplotlib is None or matplotlib.origin is None:
        return []
    folder = Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf"
    files = (folder / f"DejaVuSans{style}.ttf" for style in ("", "-Bold", "-Oblique", "Mono", "Mono-Bold"))
    return [str(file) for file in files if file.is_file()]

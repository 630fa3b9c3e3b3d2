"""Slides with one picture for each step, 16:9 with large type: an animated SVG, a GIF, or a PDF with a page for each.

They always have a white background and the colours of the light theme, because a slide is shown on a separate screen.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from gradlab.explore.drawing import DIM, GRADIENT_INK, INK, LINE, MONO, SANS, escape, rasterise, text_width, tidy
from gradlab.explore.labels import shorten
from gradlab.explore.markup import count
from gradlab.explore.steps.picture import Film, PictureState
from gradlab.explore.steps.step_text import short
from gradlab.explore.theme import resolve_variables

WIDE, TALL = 1280.0, 720.0
GRAPH = 40.0, 128.0, 740.0, 552.0  # x, y, width and height of the graph
RIGHT = 830.0  # x of the text
ROOM = 420.0  # width of the text
LARGEST = 2.4  # maximal zoom of a small graph
FITS = GRAPH[2] / 1.3, GRAPH[3] / 1.3  # maximal size of a whole graph, so that its type is large enough
MOST = 120  # slides
SVG_BYTES, GIF_BYTES = 950_000, 950_000
SECONDS = 2.0  # per step
WIDTHS = 960, 800, 640  # of a GIF, tried until it is small enough
COLOURS = 48
GIF_MOST = 60  # slides of a GIF
PAGE = 1600  # width of a page in pixels


def slides(film: Film, title: str) -> Iterator[str]:
    """Yield the SVG elements of each slide, for at most `MOST` steps."""
    total = len(film.steps)
    for number, state in enumerate(film.states()):
        if number > MOST:
            return
        yield _slide(film, state, title, total)


def _slide(film: Film, state: PictureState, title: str, total: int) -> str:
    step = state.step
    stage = film.stage(state)
    x, y, wide, tall = GRAPH
    zoom = min(LARGEST, wide / stage.width, tall / stage.height)
    left, top = x + (wide - stage.width * zoom) / 2, y + (tall - stage.height * zoom) / 2
    parts = [f'<rect width="{WIDE:.0f}" height="{TALL:.0f}" fill="#ffffff"/>']
    head = "The start" if step is None else f"Step {step.number} of {total:,}"
    parts.append(_text(40, 62, 34, INK, head, weight=700))
    after = 40 + text_width(head, 34) * 1.1 + 18
    about = title if step is None else f"{step.label}  {step.operation}"
    parts.append(_text(after, 62, 26, DIM, shorten(about, 44)))
    if step is not None and step.place is not None and film.values:
        where = f"line {step.line}  " if step.line else ""
        parts.append(_text(40, 102, 22, INK, where + shorten(step.place.statement or step.place.source, 78), mono=True))
    parts.append(f'<path d="M{RIGHT - 30} 136V{TALL - 48}" stroke="{LINE}" stroke-width="1.5"/>')
    parts.append(f'<g transform="translate({tidy(left)},{tidy(top)}) scale({zoom:.3f})">{stage.svg(state)}</g>')
    parts += _words(film, state)
    return "".join(parts)


def _words(film: Film, state: PictureState) -> list[str]:
    """Return the text at the right."""
    step = state.step
    if step is None:
        return [
            _text(RIGHT, 190, 26, DIM, "starting with"),
            _text(RIGHT, 236, 34, GRADIENT_INK, _value(film, film.start), weight=700),
        ]
    parts = [_text(RIGHT, 170, 24, DIM, "upstream"), _text(RIGHT, 212, 32, GRADIENT_INK, _value(film, step.upstream), weight=700)]
    y = 278.0
    for name, text, total in state.products[:4]:
        parts.append(_text(RIGHT, y, 24, DIM, f"to {shorten(name, 24)}"))
        parts.append(_fit_text(RIGHT, y + 38, 30, GRADIENT_INK, text, weight=700))
        y += 84
        if total:
            parts.append(_fit_text(RIGHT, y - 6, 26, GRADIENT_INK, f"sum: {total}"))
            y += 40
    if len(state.products) > 4:
        parts.append(_text(RIGHT, y, 22, DIM, f"and to {count(len(state.products) - 4, 'more input')}"))
    elif not state.products:
        parts.append(_text(RIGHT, y, 24, DIM, "passes no gradient on"))
    return parts


def _value(film: Film, held: Any) -> str:
    return shorten(short(held), 26) if film.values else "…"


def _fit_text(x: float, y: float, size: float, ink: str, text: str, weight: int = 400) -> str:
    """Return a line of text, as large as fits."""
    wide = text_width(text, size) * (1.1 if weight > 400 else 1.0)
    return _text(x, y, max(16.0, min(size, size * ROOM / wide)) if wide else size, ink, text, weight=weight)


def _text(x: float, y: float, size: float, ink: str, text: str, *, weight: int = 400, mono: bool = False) -> str:
    font = f' font-family="{MONO}"' if mono else ""
    heavy = f' font-weight="{weight}"' if weight != 400 else ""
    return (
        f'<text x="{tidy(x)}" y="{tidy(y)}" font-size="{tidy(size)}" fill="{ink}"{heavy}{font} xml:space="preserve">'
        f"{escape(text)}</text>"
    )


def document(body: str, alt: str, style: str = "") -> str:
    """Return a slide as an SVG document."""
    body = resolve_variables(body, "light")[0]
    size = f'width="{WIDE:.0f}" height="{TALL:.0f}" viewBox="0 0 {WIDE:.0f} {TALL:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(alt)}" font-family="{SANS}" '
        f'font-size="12">{style}{body}</svg>\n'
    )


# --------------------------------------------------------------------------------------------------------------- formats
def animate(film: Film, title: str, alt: str) -> str:
    """Return an SVG that plays the slides in a loop through its style sheet. For readers who prefer reduced motion, and without
    support for styles, it shows the last slide, with all edges of the sweep."""
    shown: list[str] = []
    size = 0
    for body in slides(film, title):
        size += len(body.encode())
        if size > SVG_BYTES - 4000 and shown:
            break
        shown.append(body)
    last = _last(shown, len(film.steps) + 1)
    period, part = SECONDS * (len(shown) + 1), 100 / (len(shown) + 1)  # the last slide is shown twice as long
    rules = "".join(f".f{i}{{animation-delay:{i * SECONDS:g}s}}" for i in range(len(shown)))
    style = (
        "<style>@media (prefers-reduced-motion:no-preference){"
        f"@keyframes step{{0%{{visibility:visible}}{part:.4f}%,100%{{visibility:hidden}}}}"
        f"@keyframes last{{0%{{visibility:visible}}{2 * part:.4f}%,100%{{visibility:hidden}}}}"
        f".f{{animation:step {period:g}s step-end infinite}}.l{{animation-name:last}}.still{{visibility:hidden}}{rules}}}</style>"
    )
    frames = "".join(
        f'<g class="f f{i}{" l" if i == len(shown) - 1 else ""}" visibility="hidden">{body}</g>' for i, body in enumerate(shown)
    )
    return document(f'<g class="still">{shown[-1]}</g>{frames}{last}', alt, style)


def _last(shown: Sequence[str], whole: int) -> str:
    """Return a note if there are more steps than slides, or ""."""
    if len(shown) == whole:
        return ""
    return _text(40, TALL - 14, 16, DIM, f"the first {count(len(shown) - 1, 'step')} of {whole - 1:,}")


def _rasterise(film: Film, title: str, alt: str, width: int, most: int) -> list[Any]:
    from PIL import Image

    pictures: list[Any] = []
    for body in islice(slides(film, title), most + 1):
        data = rasterise(document(body, alt), width)
        if data is None:
            raise RuntimeError("a PNG needs the package resvg_py, which is not installed here; save as .svg or .html instead.")
        pictures.append(Image.open(io.BytesIO(data)).convert("RGB"))
    return pictures


def gif(film: Film, title: str, alt: str) -> bytes:
    """Return the slides as a GIF of at most `GIF_BYTES`. If it is too large, the slides are reduced, then the last are left out.

    Raises
    ------
    RuntimeError
        If bitmaps cannot be created.
    """
    from PIL import Image

    pictures = _rasterise(film, title, alt, WIDTHS[0], GIF_MOST)
    few: list[Any] = []
    for width in WIDTHS:
        small = [picture.resize((width, width * 9 // 16), Image.Resampling.LANCZOS) for picture in pictures]
        few = [picture.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE) for picture in small]
        data = _gif(few)
        if len(data) <= GIF_BYTES:
            return data
    while len(data) > GIF_BYTES and len(few) > 1:
        few = few[: max(1, int(len(few) * GIF_BYTES / len(data) * 0.95))]
        data = _gif(few)
    return data


def _gif(pictures: Sequence[Any]) -> bytes:
    file = io.BytesIO()
    milliseconds = [int(1000 * SECONDS)] * (len(pictures) - 1) + [int(2000 * SECONDS)]
    pictures[0].save(
        file, "GIF", save_all=True, append_images=pictures[1:], duration=milliseconds, loop=0, optimize=True, disposal=1
    )
    return file.getvalue()


def pdf(film: Film, title: str, alt: str) -> bytes:
    """Return the slides as the pages of a PDF.

    Raises
    ------
    RuntimeError
        If bitmaps cannot be created.
    """
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    file = io.BytesIO()
    with PdfPages(file, metadata={"Title": title, "Creator": "gradlab"}) as pages:
        for picture in _rasterise(film, title, alt, PAGE, MOST):
            sheet = Figure(figsize=(WIDE / 96, TALL / 96), dpi=PAGE / (WIDE / 96))
            axes = sheet.add_axes((0, 0, 1, 1))
            axes.imshow(picture, interpolation="none", aspect="auto")
            axes.set_axis_off()
            pages.savefig(sheet)
    return file.getvalue()

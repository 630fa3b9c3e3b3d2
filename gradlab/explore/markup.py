"""Sentences and numbers that are shown as HTML, LaTeX or plain text.

A sentence is a tuple of `Span`s, so that the user's names and numbers are escaped exactly where they enter a format. Nothing here
concatenates markup and user text by hand. HTML has inline styles: an untrusted notebook loses `<style>`, rules for classes and
CSS variables, and the rest must still be readable.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gradlab.explore.drawing import GRADIENT, VALUE, clean
from gradlab.explore.terms import TERMS
from gradlab.explore.theme import hex_of

MONO = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace);font-size:92%"
PLAIN_CODE = "font-size:92%;background:none;padding:0"  # for <code>, which sets its font in untrusted notebooks, too
NO_MATH = 'class="mathjax_ignore tex2jax_ignore"'  # on elements with user text, so that a `$` in it does not start a formula
STYLES = {
    "plain": "",
    "code": f"{PLAIN_CODE};color:inherit",
    "dim": "opacity:.72",
    "strong": "font-weight:600",
    # mixed with the text's own colour: darker on a light ground, lighter on a dark one
    "value": f"color:color-mix(in srgb,{hex_of(VALUE)} 66%,currentColor)",
    "gradient": f"color:color-mix(in srgb,{hex_of(GRADIENT)} 66%,currentColor)",
    "warning": "font-weight:600",
    "term": "text-decoration:underline dotted;text-underline-offset:3px;cursor:help",
}


class Span(NamedTuple):
    """A piece of a sentence. `kind` is a key of `STYLES`, or several separated by blanks: "code dim". For `term`, the name of the
    term follows a colon: "term:leaf"."""

    text: str
    kind: str = "plain"


Sentence = tuple[Span, ...]


def say(*parts: str | Span | Sequence[Span]) -> Sentence:
    """Make a sentence from strings, spans and sentences."""
    spans: list[Span] = []
    for part in parts:
        if isinstance(part, str):
            spans.append(Span(part))
        elif isinstance(part, Span):
            spans.append(part)
        else:
            spans.extend(part)
    return tuple(spans)


def code(text: str) -> Span:
    """Mark text that the user wrote."""
    return Span(text, "code")


def term(text: str, name: str, kind: str = "") -> Span:
    """Mark a word of `terms.TERMS`, whose explanation is shown on hover and focus; in the style of a `kind`."""
    return Span(text, f"term:{name} {kind}".rstrip())


def join_items(items: Sequence[str | Span | Sequence[Span]], limit: int = 6) -> Sentence:
    """Return "a, b and c" or, for more than `limit` items, "a, b and 98 more"."""
    shown = list(items) if len(items) <= limit else [*items[: limit - 1], f"{len(items) - limit + 1} more"]
    spans: list[Span] = []
    for i, item in enumerate(shown):
        if i:
            spans.append(Span(" and " if i == len(shown) - 1 else ", "))
        spans.extend(say(item))
    return tuple(spans)


def parse_backticks(text: str) -> Sentence:
    """Make a sentence from a text with code in backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an unmatched backtick
        return say(text)
    return tuple(Span(part, "code" if i % 2 else "plain") for i, part in enumerate(parts) if part)


def dim(sentence: Sentence) -> Sentence:
    """Dim a sentence, and strip a blank at its end."""
    if sentence:
        sentence = (*sentence[:-1], sentence[-1]._replace(text=sentence[-1].text.rstrip()))
    return tuple(Span(s.text, s.kind if "dim" in s.kind else f"{s.kind} dim".replace("plain ", "")) for s in sentence)


# ------------------------------------------------------------------------------------------------------------- formats
def escape_html(text: str) -> str:
    """Escape `text` for HTML content and quoted attributes."""
    return html.escape(clean(text), quote=True)


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "×": r"$\times$",
    "−": r"$-$",
    "‖": r"$\|$",
    "ᵀ": r"$^{\top}$",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
    "→": r"$\to$",
    "…": r"\ldots{}",
    "÷": r"$\div$",
    "Δ": r"$\Delta$",
    "■": r"$\bullet$",
    "□": r"$\circ$",
    "-": r"{-}",
}


def escape_latex(text: str) -> str:
    """Escape `text` for LaTeX's text mode. Ligatures (`--`) are prevented, for code."""
    return "".join(_LATEX.get(c, c) for c in clean(text))


def breakable(text: str) -> str:
    """Escape `text`, and allow line breaks after points, brackets, underscores and operators: for code in a narrow column."""
    return "".join(_LATEX.get(c, c) + (r"\allowbreak{}" if c in "._[](),=+*/" else "") for c in clean(text))


def style(kind: str) -> str:
    """Return the inline style of a kind."""
    return ";".join(filter(None, (STYLES[k.partition(":")[0]] for k in kind.split())))


def to_html(sentence: Iterable[Span]) -> str:
    """Return the sentence as inline HTML."""
    parts = []
    for text, kind in sentence:
        body = escape_html(text)
        name, _, rest = kind.removeprefix("term:").partition(" ") if kind.startswith("term:") else ("", "", "")
        if name:
            look = f'<span style="{style(rest)}">{body}</span>' if rest else body
            about = f'title="{escape_html(TERMS[name])}" data-gradlab-term="{name}"'
            parts.append(f'<abbr tabindex="0" {about} style="{STYLES["term"]}">{look}</abbr>')
            continue
        tag = "code" if "code" in kind.split() else "b" if {"strong", "warning"} & set(kind.split()) else "span"
        parts.append(f'<{tag} style="{style(kind)}">{body}</{tag}>' if kind != "plain" else body)
    return "".join(parts)


def to_latex(sentence: Iterable[Span]) -> str:
    """Return the sentence as LaTeX."""
    parts = []
    for text, kind in sentence:
        body = escape_latex(text)
        if "code" in kind.split():
            body = rf"\texttt{{{breakable(text)}}}"
        if {"strong", "warning"} & set(kind.split()):
            body = rf"\textbf{{{body}}}"
        parts.append(body)
    return "".join(parts)


def to_text(sentence: Iterable[Span]) -> str:
    """Return the sentence for a terminal."""
    return clean("".join(span.text for span in sentence))


# ------------------------------------------------------------------------------------------------------------- numbers
def number(x: float, digits: int = 4) -> str:
    """Format a number with `digits` significant digits and a true minus sign: "−0.2749", "1.52e−06", "∞"."""
    if x != x:
        return "NaN"
    if x in (float("inf"), float("-inf")):
        return "∞" if x > 0 else "−∞"
    text = f"{x + 0.0:.{digits}g}"  # −0 is 0
    mantissa, e, exponent = text.partition("e")
    if e:
        exponent = str(int(exponent))
    return (mantissa + e + exponent).replace("-", "−")


def four_digits(x: float) -> str:
    """Format a number for a column, always with four significant digits: "1.010"."""
    return number(x, 4) if not 1e-3 <= abs(x) < 1e4 else f"{x:#.4g}".rstrip(".").replace("-", "−")


def scalar(x: Any, digits: int = 4) -> str:
    """Format one element of an array: a bool, an integer, a real or a complex number."""
    if isinstance(x, bool):
        return str(x)
    if isinstance(x, complex):
        return f"{number(x.real, digits)}{'−' if x.imag < 0 else '+'}{number(abs(x.imag), digits)}j"
    if isinstance(x, int):
        return str(x).replace("-", "−") if abs(x) < 10**6 else number(float(x), digits)
    return number(x, digits)


def shape_text(shape: Sequence[int]) -> str:
    """Return "6×4"; "scalar" for no axes."""
    return "×".join(map(str, shape)) if shape else "scalar"


def size_text(size: float) -> str:
    """Format a number of bytes: "1 byte", "262 kB", "1.2 GB"."""
    if size == 1:
        return "1 byte"
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def group_digits(n: int) -> str:
    """Format an integer with groups of three digits: "12 000"."""
    return f"{n:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with a noun: "1 leaf", "3 leaves", "12 000 elements"."""
    return f"{group_digits(n)} {noun if n == 1 else plural or noun + 's'}"

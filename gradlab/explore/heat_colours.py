"""Colours of heat maps on a scale symmetric about zero, inks for text on them, and bitmaps of these colours."""

from __future__ import annotations

import base64
import struct
import zlib
from functools import cache

import numpy as np

NEGATIVE, ZERO, POSITIVE = (94, 60, 153), (246, 244, 243), (213, 94, 0)
SLATE, BLUE = (107, 119, 135), (33, 102, 172)
Anchors = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]  # colours of −1, 0 and 1
SIGNED: Anchors = (NEGATIVE, ZERO, POSITIVE)
VALUES: Anchors = (SLATE, ZERO, BLUE)  # for values shown beside gradients
NAN = (150, 156, 164)
MARK = (40, 44, 52)
INKS = (MARK, (255, 255, 255), (0, 0, 0))  # for a number in a cell: the first readable one is used
CONTRAST = 4.5  # minimum contrast of a number on its cell


def colour(value: float, bound: float) -> str:
    """Return the fill of a finite value on the scale −bound ... bound: "#rrggbb"."""
    return "#" + bytes(ramp(np.array([value / bound if bound else 0.0]))[0]).hex()


def ramp(t: np.ndarray, anchors: Anchors = SIGNED) -> np.ndarray:
    """Return the colours at −1 <= t <= 1 as uint8, shape t.shape + (3,)."""
    negative, zero, positive = (np.asarray(anchor) for anchor in anchors)
    t = t[..., None]
    return np.asarray(np.rint(zero + np.abs(t) * (np.where(t < 0, negative, positive) - zero)), np.uint8)


def fills(cells: np.ndarray, bound: float, anchors: Anchors = SIGNED) -> np.ndarray:
    """Return the colours of numbers on the scale −bound ... bound: infinities at its ends, NaN gray."""
    with np.errstate(invalid="ignore"):
        t = np.clip(cells / (bound or 1.0), -1, 1)
    if bound == 0:
        t = np.sign(cells)  # zeros, infinities and NaN
    colours = ramp(np.nan_to_num(t, nan=0), anchors)
    colours[np.isnan(cells)] = NAN
    return colours


def ink_on(ground: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the ink for a number on a cell of this colour (0 to 255 each): the first of `INKS` with enough `CONTRAST`."""
    return next(ink for ink in INKS if contrast(ink, ground) >= CONTRAST)


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2, from the relative luminances of sRGB)."""
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(rgb: tuple[int, ...]) -> float:
    parts = (c / 255 for c in rgb)
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@cache
def bar(anchors: Anchors = SIGNED) -> str:
    """Return the colours from −1 to 1 as an image URI, one pixel each."""
    palette = ramp(np.linspace(-1, 1, 33), anchors).tobytes()
    return png_uri(np.arange(33, dtype=np.uint8)[None], palette, bytes([255]) * 33)


def png_uri(pixels: np.ndarray, palette: bytes, opacity: bytes) -> str:
    """Return a palette PNG (ISO/IEC 15948) of `pixels` as an image URI, with 8 bits per pixel, or 2 bits for at most four
    colours."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    depth = 2 if len(opacity) <= 4 else 8
    if depth == 2:
        quarters = np.pad(pixels, ((0, 0), (0, -width % 4)))
        pixels = quarters[:, ::4] << 6 | quarters[:, 1::4] << 4 | quarters[:, 2::4] << 2 | quarters[:, 3::4]
    lines = np.zeros((height, pixels.shape[1] + 1), np.uint8)  # begins with a filter: 0 none, 2 up
    lines[:, 1:] = pixels
    steps = np.diff(pixels, axis=0)
    if np.abs(steps.view(np.int8)).sum(dtype=np.int64) < np.abs(pixels - pixels.mean()).sum() / 2:
        lines[:, 0], lines[1:, 1:] = 2, steps
    file = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 3, 0, 0, 0))
        + chunk(b"PLTE", palette)
        + chunk(b"tRNS", opacity)
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 2))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(file).decode()

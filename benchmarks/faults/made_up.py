"""Made-up files in place of those that the programs read, with the columns and ranges of the real ones and patterns to learn."""

from __future__ import annotations

import csv
import io
import random
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def write(path: Path, kind: str, seed: int) -> None:
    """Write a file of one of `KINDS`; one named .zip is compressed."""
    content = KINDS[kind](random.Random(f"{kind} {seed}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(path.stem, content)
    else:
        path.write_text(content)


def _rows(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written)
    if names:
        writer.writerow(names)
    writer.writerows(rows)
    return written.getvalue()


def weather(draw: random.Random) -> str:
    """Return days of Australian weather: it rains tomorrow where it is windy and has rained. Some numbers are 0."""
    days = []
    for _ in range(3000):
        low, rain, wind = draw.uniform(-5, 30), max(0.0, draw.gauss(-2, 8)), draw.uniform(6, 120)
        numbers = [low, low + draw.uniform(2, 18), rain, wind]
        wet = wind / 60 + rain / 5 + draw.gauss(0, 0.4) > 1.6
        days.append([*(f"{one:.1f}" if draw.random() < 0.975 else 0.0 for one in numbers), "Yes" if wet else "No"])
    return _rows(["MinTemp", "MaxTemp", "Rainfall", "WindGustSpeed", "RainTomorrow"], days)


def digits(draw: random.Random) -> str:
    """Return MNIST as a table: a label from 0 to 9, and 784 pixels from 0 to 255, most of them 0."""
    strokes = {label: draw.sample(range(784), 130) for label in range(10)}
    rows = []
    for _ in range(3000):
        label = draw.randrange(10)
        pixels = [0] * 784
        for place in strokes[label]:
            pixels[place] = draw.randrange(120, 256) if draw.random() < 0.8 else 0
        rows.append([label, *pixels])
    return _rows(["label", *(f"{row}x{column}" for row in range(1, 29) for column in range(1, 29))], rows)


def skin(draw: random.Random) -> str:
    """Return images of 28 by 28 pixels in three colours from 0 to 255, and labels from 0 to 6, most of them 4."""
    colours = {label: [draw.randrange(60, 220) for _ in range(3)] for label in range(7)}
    rows = []
    for _ in range(1000):
        label = draw.choices(range(7), (3, 5, 11, 1, 67, 1, 11))[0]
        tone = draw.uniform(0.8, 1.2)
        pixels = [min(255, max(0, int(colours[label][place % 3] * tone + draw.gauss(0, 25)))) for place in range(2352)]
        rows.append([*pixels, label])
    return _rows([*(f"pixel{place:04d}" for place in range(2352)), "label"], rows)


KINDS: dict[str, Callable[[random.Random], str]] = {"weather": weather, "digits": digits, "skin": skin}

"""Made-up data in the place of what the programs would fetch: always the same, and with something to learn in it."""

from __future__ import annotations

import random
from collections.abc import Callable

SYLLABLES = (
    "ka",
    "ri",
    "no",
    "el",
    "ma",
    "to",
    "shi",
    "an",
    "be",
    "lu",
    "do",
    "ra",
    "mi",
    "sa",
    "ver",
    "in",
    "ja",
    "co",
    "th",
    "os",
    "fe",
    "gu",
    "py",
    "qu",
    "wy",
    "zex",
)


def names() -> str:
    """3 000 names of one to four syllables."""
    drawn = random.Random(0)
    return "\n".join("".join(drawn.choices(SYLLABLES, k=drawn.randint(1, 4))) for _ in range(3_000))


def text(lines: int = 400) -> str:
    """Lines of five to fifteen words, each of which is followed by one of three."""
    drawn = random.Random(1)
    words = ["".join(drawn.choices(SYLLABLES, k=drawn.randint(1, 3))) for _ in range(200)]
    following = {word: drawn.choices(words, k=3) for word in words}
    written = []
    for _ in range(lines):
        line = [drawn.choice(words)]
        while len(line) < 5 or (len(line) < 15 and drawn.random() < 0.9):
            line.append(drawn.choice(following[line[-1]]))
        written.append(" ".join(line))
    return "\n".join(written) + "\n"


def short_text() -> str:
    return text(60)


def cars() -> str:
    """400 rows of the form of UCI's auto-mpg: the mileage falls with the weight, and rises with the year."""
    drawn = random.Random(2)
    rows = []
    for _ in range(400):
        cylinders, weight, year = drawn.choice((4, 6, 8)), drawn.uniform(1600, 5000), drawn.randint(70, 82)
        mileage = 46 - weight / 140 + (year - 70) * 0.7 + drawn.gauss(0, 2)
        numbers = (mileage, cylinders, cylinders * 45, cylinders * 20, weight, drawn.uniform(9, 24), year, drawn.randint(1, 3))
        rows.append(" ".join(f"{number:.1f}" if isinstance(number, float) else str(number) for number in numbers) + '\t"a car"')
    return "\n".join(rows) + "\n"


KINDS: dict[str, Callable[[], str]] = {"names": names, "text": text, "short text": short_text, "cars": cars}

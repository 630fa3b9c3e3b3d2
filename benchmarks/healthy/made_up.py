"""Made-up data in place of the data that the programs fetch. It is deterministic and has patterns to learn."""

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
    """Return 3 000 names of one to four syllables."""
    drawn = random.Random(0)
    return "\n".join("".join(drawn.choices(SYLLABLES, k=drawn.randint(1, 4))) for _ in range(3_000))


def text(lines: int = 400) -> str:
    """Return lines of five to fifteen words. Each word is followed by one of three others."""
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
    """Return 400 rows in the format of UCI's auto-mpg. The mileage decreases with the weight and increases with the year."""
    drawn = random.Random(2)
    rows = []
    for _ in range(400):
        cylinders, weight, year = drawn.choice((4, 6, 8)), drawn.uniform(1600, 5000), drawn.randint(70, 82)
        mileage = 46 - weight / 140 + (year - 70) * 0.7 + drawn.gauss(0, 2)
        numbers = (mileage, cylinders, cylinders * 45, cylinders * 20, weight, drawn.uniform(9, 24), year, drawn.randint(1, 3))
        rows.append(" ".join(f"{number:.1f}" if isinstance(number, float) else str(number) for number in numbers) + '\t"a car"')
    return "\n".join(rows) + "\n"


KINDS: dict[str, Callable[[], str]] = {"names": names, "text": text, "short text": short_text, "cars": cars}

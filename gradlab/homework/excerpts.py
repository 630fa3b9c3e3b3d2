"""Excerpts of texts that may be of any length: a student's errors, guesses and output. Sentences stay whole where they can."""

from __future__ import annotations

import re

BREAK = re.compile(r"\n|(?<!i\.e)(?<!e\.g)[.?!] (?=[A-Z`])")  # the end of a line or of a sentence


def abbreviate(text: str, most: int) -> str:
    """Shorten a text by what is in its middle.

    Parameters
    ----------
    text : str
        A text of any length.
    most : int
        The number of characters up to which it is left as it is.

    Returns
    -------
    str
        The text, or its beginning and its end around "…". They break off after a sentence or a line if there is one nearby,
        else after a word.
    """
    if len(text) <= most:
        return text
    end = 2 * most // 3
    head, tail = text[:end], text[len(text) - (most - end) :]
    breaks = [found.end() for found in BREAK.finditer(head) if found.end() > end // 2] or [head.rfind(" ") + 1 or end]
    begins = [found.end() for found in BREAK.finditer(tail) if found.end() < len(tail) // 2] or [tail.find(" ") + 1]
    return f"{head[: breaks[-1]].rstrip()} … {tail[begins[0] :].lstrip()}"


def first_sentence(text: str) -> str:
    """Return the first sentence, or line, of a text without its full stop."""
    found = BREAK.search(text)
    return (text if found is None else text[: found.end()]).rstrip().removesuffix(".")

"""Excerpts of long texts: a student's errors, guesses and output. They are cut between sentences where possible."""

from __future__ import annotations

import re

BREAK = re.compile(r"\n|(?<!i\.e)(?<!e\.g)[.?!] (?=[A-Z`])")  # the end of a line or of a sentence


def abbreviate(text: str, most: int) -> str:
    """Cut out the middle of a long text.

    Parameters
    ----------
    text : str
        A text of any length.
    most : int
        Texts of at most this many characters are returned unchanged.

    Returns
    -------
    str
        The text, or its beginning and its end around "…". The cuts are at the end of a sentence or a line if one is near,
        else between words.
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

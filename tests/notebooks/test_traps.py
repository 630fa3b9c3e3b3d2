"""Check that a lesson's section and a homework cover each of the fifteen traps of autograd."""

from __future__ import annotations

import json
import re

import pytest

from gradlab import cli

LESSONS, HOMEWORK = 8, 5
# A trap: in the lessons and in the homeworks of these numbers, a section that matches this pattern.
TRAPS = {
    "backward of several outputs": ({5: r"z\.backward\(\)"}, {3: r"Which `v` picks row i"}),
    "what gradient= is for": ({5: r"takes one weight for each element"}, {3: r"v\^T J"}),
    "backward twice, retain_graph": (
        {4: r"backward\(retain_graph=True\)", 5: r"retain_graph"},
        {3: r"message_of_the_second_call", 4: r"retain_graph|second time|carried"},
    ),
    "gradients add up, zero_grad": (
        {3: r"\bUsed twice\b|used twice", 5: r"\*\*adds\*\*", 7: r"zero_grad"},
        {2: r"second (?:call|backward)|adds", 3: r"they add up", 4: r"zero_grad|\.grad = None"},
    ),
    "order of the walk, a node used twice": ({3: r"(?i)in which order"}, {2: r"def order\("}),
    "leaves, x = x - lr * g": (
        {2: r"w = w - 0\.1 \* w\.grad", 7: r"w = w - |rebind"},
        {1: r"def leaves\(", 4: r"[wW]\w* = [wW]\w* - "},
    ),
    ".grad of a non-leaf": ({2: r"retain_grad\(\)"}, {1: r"retain_grad|h\.grad"}),
    "modified in place": ({4: r"\+= 1"}, {4: r"\+= |\*= |\w_\("}),
    "detach, no_grad, .data, item": ({4: r"(?s)(?=.*detach)(?=.*no_grad)(?=.*\.data)(?=.*item)"}, {4: r"detach"}),
    "does not require grad": ({1: r"requires_grad"}, {1: r"requires_grad|broken_", 4: r"no_grad"}),
    "integers": ({1: r"tensor\(\[1, 2\], requires_grad=True\)"}, {1: r"broken_int|whole|integer", 4: r"(?i)integer|\.float\(\)"}),
    "(n) against (n, 1)": (
        {3: r"(?i)bias", 7: r"\(n, 1\)|unsqueeze|squeeze"},
        {2: r"def unbroadcast\(", 4: r"squeeze|\(n, 1\)|\[:, None\]|reshape\(-1, 1\)"},
    ),
    "JVP and VJP, transposed shapes": ({6: r"gl\.func\.jvp"}, {3: r"gl\.func\.jvp"}),
    "gradcheck in float32": ({8: r"(?s)(?=.*gradcheck)(?=.*float32)"}, {5: r"gradcheck"}),
    "cells run again, out of order": ({1: r"three times|again", 7: r"(?i)again|rerun"}, {}),
}


def sections(notebook):
    """The text of a notebook, by its headings."""
    made = [""]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        first, *more = re.split(r"^## ", source, flags=re.MULTILINE) if cell["cell_type"] == "markdown" else [source]
        made[-1] += first + "\n"
        made += [one + "\n" for one in more]
    return made


def place(kind, number):
    """The notebook of a lesson or a homework; None: it is not written yet."""
    pattern = f"lessons/{number:02}_*.ipynb" if kind == "lesson" else f"homework/hw{number}_*/*.ipynb"
    return next(iter(cli.notebooks().glob(pattern)), None)


def places():
    for trap, (lessons, homework) in TRAPS.items():
        for kind, where in (("lesson", lessons), ("homework", homework)):
            for number, words in where.items():
                yield pytest.param(kind, number, words, id=f"{trap} in {kind} {number}")


def test_there_are_fifteen_and_each_has_a_lesson():
    assert len(TRAPS) == 15
    assert all(lessons for lessons, _ in TRAPS.values())
    assert {n for lessons, _ in TRAPS.values() for n in lessons} == set(range(1, LESSONS + 1))
    assert {n for _, homework in TRAPS.values() for n in homework} == set(range(1, HOMEWORK + 1))


@pytest.mark.parametrize(("kind", "number", "words"), list(places()))
def test_each_trap_has_its_place(kind, number, words):
    path = place(kind, number)
    if path is None:
        pytest.skip(f"there is no {kind} {number} yet")
    texts = sections(json.loads(path.read_text(encoding="utf-8")))
    found = [at for at, one in enumerate(texts) if at and re.search(words, one)]
    assert found
    asks = "ask(" if kind == "lesson" else "%check "
    assert any(asks in one for at in found for one in texts[at : at + 2]), "it is asked for there, or in the section that follows"

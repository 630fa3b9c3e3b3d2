"""Long texts: sentences stay whole, and what is left out is in the middle."""

from __future__ import annotations

import pytest
from homework.notebook_of import cells
from homework.submissions import SOURCE

from gradlab.homework import load
from gradlab.homework.excerpts import abbreviate, first_sentence
from gradlab.homework.questions import Question, format_value
from gradlab.notebook.submission import FIRST, LAST, Outputs

SENTENCES = [f"Sentence {i} has, as all of them, i.e. each, {i * i} apples." for i in range(200)]


@pytest.mark.parametrize("most", [200, 500, 2000])
def test_a_long_text_keeps_whole_sentences(most):
    short = abbreviate(" ".join(SENTENCES), most)
    assert most // 2 < len(short) <= most + 3
    head, tail = short.split(" … ")
    first = [sentence for sentence in SENTENCES if sentence in head]
    last = [sentence for sentence in SENTENCES if sentence in tail]
    assert head == " ".join(first) and tail == " ".join(last)
    assert (first[0], last[-1]) == (SENTENCES[0], SENTENCES[-1])


def test_a_short_text_is_left_alone():
    assert abbreviate("one two", 7) == "one two"


def test_a_long_value_keeps_whole_words():
    short = abbreviate(" ".join(f"word{i}" for i in range(100)), 80)
    assert short.startswith("word0 word1 ") and short.endswith(" word99") and len(short) <= 83
    assert all(part == "…" or part in {f"word{i}" for i in range(100)} for part in short.split())


def test_a_long_word_is_shortened_all_the_same():
    assert abbreviate("a" * 60 + "z" * 60, 60) == f"{'a' * 40} … {'z' * 20}"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ValueError: no.", "ValueError: no"),
        ("One. Two.", "One"),
        ("detached in-place, i.e. with .detach_(). This is not", "detached in-place, i.e. with .detach_()"),
        ("x is 3. it is 4", "x is 3. it is 4"),
        ("one line\nand another", "one line"),
    ],
)
def test_the_first_sentence(text, first):
    assert first_sentence(text) == first


# ---------------------------------------------------------------------------------------------------------- where they are used
def error_of(words):
    text = f"def jacobian_by_rows(f, x):\n    raise ValueError({words!r})"
    return str(load(SOURCE).check(1, cells(text)))


def test_a_verdict_contains_a_whole_error():
    words = " ".join(SENTENCES[:30])
    assert len(words) > 1400 and f"raised ValueError: {words}\n" in error_of(words)


def test_a_verdict_on_a_very_long_error_has_its_beginning_and_its_end():
    verdict = error_of(" ".join(SENTENCES))
    assert f"raised ValueError: {SENTENCES[0]} {SENTENCES[1]}" in verdict and f" {SENTENCES[-1]}\n" in verdict


def test_a_verdict_quotes_the_whole_line():
    line = f"return wrong({', '.join(f'argument_{i}=x' for i in range(7))})"
    verdict = str(load(SOURCE).check(1, cells(f"def jacobian_by_rows(f, x):\n    {line}")))
    assert f"`{line}`" in verdict
    assert verdict.count("`") % 2 == 0


def test_a_long_guess_is_quoted_in_a_whole_sentence():
    question = Question("path", choices=("Mul", "Add"))
    guess = " ".join(["I", "guess", "that"] * 40) + " Mul"
    assert question.normalize(guess).words == f"You wrote `{format_value(guess)}`. {question.expected_answer()}"
    assert (
        format_value(guess).startswith("I guess that ") and format_value(guess).endswith(" Mul") and " … " in format_value(guess)
    )


# ------------------------------------------------------------------------------------------------------------------- outputs
def text_of(outputs):
    return "".join(one["text"] for one in outputs.finish())


@pytest.mark.parametrize("many", [1, 100, 850, 5000, 50_000])
@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_of_a_long_output_the_first_and_the_last_lines_are_kept(many, at_once):
    lines = [f"line {i}\n" for i in range(many)] + ["ValueError: no\n"]
    outputs = Outputs()
    for i in range(0, len(lines), at_once):
        outputs.text("".join(lines[i : i + at_once]))
    text, whole = text_of(outputs), "".join(lines)
    if len(whole) <= FIRST[0] and len(lines) <= FIRST[1]:
        assert text == whole
        return
    head, note, tail = text.partition("\n… ")
    if not note:
        assert text == whole and many == 850
        return
    count, _, tail = tail.partition(" characters are left out here …\n")
    assert whole.startswith(head) and whole.endswith(tail) and head[-1:] in ("", "\n")
    assert int(count) == len(whole) - len(head) - len(tail)
    assert set(tail.splitlines(keepends=True)) <= set(lines) and tail.endswith("ValueError: no\n")
    assert len(text) < FIRST[0] + LAST[0] + 100 and text.count("\n") < 1000


def test_text_after_many_pictures_is_kept():
    outputs = Outputs()
    for _ in range(100):
        outputs.data({"image/png": b"png", "text/plain": "a picture"})
    outputs.text("ValueError: no\n")
    made = outputs.finish()
    assert len(made) == 51 and made[-1]["text"].endswith("ValueError: no\n")

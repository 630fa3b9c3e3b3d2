"""Terms: each is escaped, is plain text without a tooltip, and has a section in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gradlab as gl
from gradlab.explore.markup import dim, say, term, to_html, to_latex, to_text
from gradlab.explore.terms import TERMS

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "terms.md"


@pytest.mark.parametrize("name", TERMS)
def test_a_term_has_a_section_in_the_documentation(name):
    assert re.search(rf"^\({name}\)=\n## ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_example_of_a_leaf_prints_the_output_on_the_page(capsys):
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[:2]
    exec(code, {})
    assert capsys.readouterr().out == printed


def test_a_term_is_explained_in_html_and_plain_elsewhere():
    sentence = say("weights of 1 ", term("<leaf>", "leaf", "dim"))
    shown = to_html(sentence)
    assert shown.count("<abbr ") == 1 and f'title="{TERMS["leaf"]}"' in shown and "&lt;leaf&gt;" in shown
    assert 'tabindex="0"' in shown and 'data-gradlab-term="leaf"' in shown
    assert to_text(sentence) == "weights of 1 <leaf>" and "Euclidean" not in to_latex(sentence)
    assert "<abbr " in to_html(dim(sentence))


def test_a_report_explains_each_term_once():
    gl.manual_seed(0)
    model = gl.nn.Sequential(gl.nn.Linear(3, 4), gl.nn.Tanh(), gl.nn.Linear(4, 2))
    y = model(gl.randn(5, 3))
    page = gl.explain(y, weights=gl.ones(5, 2))._repr_mimebundle_()["text/html"]
    assert sorted(re.findall(r'data-gradlab-term="(\w+)"', page)) == ["norm", "ratio", "weighted"]

"""Test `gradlab demo`: it finds the planted fault, the printed fix is the one it applies, and the page is self-contained."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from gradlab import cli
from gradlab.explore.demo import run_story
from gradlab.explore.demo import story as stories
from gradlab.explore.demo.sheet import fit, losses

pytestmark = pytest.mark.slow
LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture(scope="module")
def story(library):
    return run_story(library)


def source(one):
    return one.run.program.source


def test_the_finding_points_to_the_line_of_the_loss(story):
    (finding,) = story.broken.run.diagnosis.findings
    line = source(story.broken).splitlines().index("    loss = ((out - y) ** 2).mean()") + 1
    assert finding.line == line and "(96, 96)" in finding.message
    assert not story.fixed.run.diagnosis.findings and story.fixed.run.exit_status() == 0


def test_the_printed_fix_is_applied_and_advised(story):
    removed, added = story.difference
    assert removed[:2] == "- " and added[:2] == "+ "
    assert source(story.broken).replace(removed[2:], added[2:]) == source(story.fixed)
    (piece,) = re.findall(r"out\.\w+\(\d\)", added)
    assert piece in story.broken.run.diagnosis.findings[0].fix


def test_only_the_fixed_program_learns(story):
    """A network that predicts 0 has a loss of 1/2, the mean square of a sine over whole periods."""
    assert story.broken.losses[-1] == pytest.approx(0.5, abs=0.05)
    assert max(map(abs, story.broken.answers)) < 0.1
    assert story.fixed.losses[-1] < 0.02
    assert all(abs(a - b) < 0.4 for a, b in zip(story.fixed.answers, story.fixed.targets, strict=True))


def test_a_chart_in_the_terminal_has_labels(story):
    for one in (story.broken, story.fixed):
        targets, answers, axis = stories.chart(one).splitlines()
        assert targets.split()[:2] == ["sin", "2x"] and answers.split()[0] == "model(x)"
        assert axis.split("  ")[0] == "" and axis.strip().startswith("x = −3 ") and axis.endswith(" x = 3")
        assert " ▁ is −1, █ is 1 " in axis and len({len(line) for line in (targets, answers, axis)}) == 1
    highest = [i for i, block in enumerate(targets[-60:]) if block == "█"]
    inputs = [-3 + 6 * (i + 0.5) / 60 for i in highest]  # of the columns; sin 2x is largest at π/4 and π/4 − π
    assert all(min(abs(x - 0.785), abs(x + 2.356)) < 0.4 for x in inputs) and len(inputs) > 5


def test_the_plots_of_the_page_have_labels_and_a_description(story):
    sine, loss = fit(story.fixed), losses(story)
    for label in ("x", "−3", "3", "−1", "1", "sin 2x", "model(x)"):
        assert f">{label}</text>" in sine.svg()
    worst = max(abs(a - b) for a, b in zip(story.fixed.answers, story.fixed.targets, strict=True))
    assert sine.alt == f"sin 2x, dashed, and model(x) for x from −3 to 3: they differ by up to {worst:.2g}."
    for label in ("step", "0", "250", "500", "loss before: from 0.62 to 0.52", "loss with the fix: from 0.78 to 0.0011"):
        assert f">{label}</text>" in loss.svg()
    assert loss.alt == "Loss over 500 steps: before the fix from 0.62 to 0.52, with the fix from 0.78 to 0.0011."
    assert f"<title>{loss.alt}</title>" in loss.svg() and f'alt="{sine.alt}"' in sine.html()


class Page(HTMLParser):
    """Parser that collects the text of a page, its tags and the URLs it would fetch."""

    def __init__(self, page):
        super().__init__()
        self.words, self.fetched, self.tags = [], [], set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:")]

    def handle_data(self, data):
        self.words.append(data)


def test_the_command_prints_the_story_and_writes_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "find_spec", lambda name: None)  # as if torch were not installed
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "import gradlab as torch" in shown and "+ loss = ((out.squeeze(1) - y) ** 2).mean()" in shown
    assert "■ Problem" in shown and str(tmp_path / "gradlab-demo.html") in shown
    text = (tmp_path / "gradlab-demo.html").read_text()
    page = Page(text)
    assert not page.fetched and "script" not in page.tags and "default-src 'none'" in text
    assert "prefers-color-scheme:dark" in text
    words = "".join(page.words)
    assert "They broadcast to (96, 96)" in words and "− loss = ((out - y) ** 2).mean()" in words
    assert [path.name for path in tmp_path.iterdir()] == ["gradlab-demo.html"]
    assert cli.main(["demo"]) == 1 and "Use --force" in capsys.readouterr().err
    assert cli.main(["demo", "-o", "none/there.html"]) == 1 and "does not exist" in capsys.readouterr().err

"""Reports of some forty cells that run once in JupyterLab: in JupyterLab, in nbconvert's page of the notebook, and saved.

At three widths, in light and dark, no text of a report is clipped, covered, off the page, too small or too pale.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from grouped import exhaustive_after_first

sys.path.insert(0, str(Path(__file__).parents[2] / "gallery"))  # test folders are not packages

import lab
from cells import IMPORTS
from measuring import measure
from models import written_for

WIDTHS = (1300, 1000, 700)
TALL = 2500  # maximum height of a report in pixels at a width of 1300
LIBRARIES = [pytest.param("gradlab", marks=pytest.mark.exhaustive), pytest.param("torch", marks=pytest.mark.torch)]
REPORTS = ".jp-RenderedHTMLCommon:has(.tex2jax_ignore, .gradlab-picture)"  # without the outputs of Jupyter itself
LAID_OUT = f"""() => {{ {lab.PANEL}
  panel.content.notebookConfig = {{...panel.content.notebookConfig, windowingMode: 'none'}}; }}"""
NAMED = "names => document.querySelectorAll('.jp-Cell').forEach((cell, i) => { cell.dataset.cell = names[i] ?? ''; })"


class Gallery:
    """A notebook after its run: its cells by name, their outputs, and the saved pages of its reports."""

    def __init__(self, library, server, browser):
        self.cells = {one.name: one for one in written_for(library)}
        self.names, sources = [""], [IMPORTS[library]]
        for one in self.cells.values():
            before, cell = one.source(library)
            kept = cell.replace("%%grad", f"%%grad -o report_{one.name}", 1) if one.reports else cell
            self.names += ["", one.name] if before else [one.name]
            sources += [before, kept] if before else [kept]
        self.folder = server.root / f"{library}-pages"
        self.folder.mkdir()
        self.open = lab.NotebookPage(server, browser, sources, width=1300, name=f"{library}.ipynb")
        page = self.open.page
        page.evaluate(LAID_OUT)
        for i in range(len(sources)):  # one cell raises, at which "run all" would stop
            self.open.run_cell(i)
        saved = f"[report.save(r'{self.folder}/' + name[7:] + '.html') and name for name, report in list(globals().items())"
        self.saved = eval(self.open.evaluate(f"{saved} if name.startswith('report_')]"))
        page.evaluate(NAMED, self.names)
        self.notebook = self.open.save()

    def output(self, name):
        """Return all outputs of a cell as text."""
        shown = []
        for output in self.notebook["cells"][self.names.index(name)]["outputs"]:
            data = output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue", "")
            shown.append("".join(data))
        return " ".join("\n".join(shown).split())

    def export(self, theme):
        """Write nbconvert's page of the notebook without the scripts that it would fetch."""
        nbconvert, nbformat = pytest.importorskip("nbconvert"), pytest.importorskip("nbformat")
        page, _ = nbconvert.HTMLExporter(theme=theme).from_notebook_node(nbformat.read(self.open.path, as_version=4))
        path = self.folder.parent / f"{self.folder.name}-{theme}.html"
        path.write_text(re.sub(r"<script\b.*?</script\s*>", "", page, flags=re.DOTALL | re.IGNORECASE))
        return path


@pytest.fixture(scope="module", params=LIBRARIES)
def gallery(request, jupyter, browser):
    if request.param == "torch":
        pytest.importorskip("torch")
    made = Gallery(request.param, jupyter, browser)
    yield made
    made.open.close()


def at_all_widths(page, roots, least):
    """Return the faults of a page by (width, cell, unfolded), after checking that at least `least` outputs are measured."""
    faults = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 1000})
        for unfolded in (False, True):
            page.evaluate("opened => document.querySelectorAll('details').forEach(d => { d.open = opened; })", unfolded)
            lab.wait_until_drawn(page)
            found = measure(page, roots)
            assert len(found) >= least and sum(one["texts"] for one in found) > 40 * least
            for one in found:
                if one["faults"]:
                    faults.setdefault((width, one["cell"], unfolded), []).extend(one["faults"][:5])
                assert width < max(WIDTHS) or unfolded or one["height"] < TALL, (one["cell"], one["height"])
    return faults


def test_each_cell_has_the_expected_output(gallery):
    for name, cell in gallery.cells.items():
        said = gallery.output(name)
        assert [words for words in cell.says if words not in said] == [], f"{name}: {said[:500]}"
        assert (f"report_{name}" in gallery.saved) == cell.reports, f"{name}: {said[:500]}"
        if cell.found:
            kinds = gallery.open.evaluate(f"[one.kind for one in [*report_{name}.findings, *report_{name}.remarks]]")
            assert cell.found in kinds, f"{name}: {kinds}"
        errors = [one for one in gallery.notebook["cells"][gallery.names.index(name)]["outputs"] if one["output_type"] == "error"]
        assert not cell.reports or not errors


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
def test_in_jupyterlab(gallery, theme, tmp_path):
    page = gallery.open.page
    wanted = f"JupyterLab {theme.title()}"
    page.emulate_media(color_scheme=theme)
    page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", wanted)
    page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=str(theme == "light").lower())
    assert at_all_widths(page, f".jp-Cell-outputWrapper {REPORTS}", len(gallery.cells)) == {}
    page.screenshot(path=tmp_path / f"{theme}.png")


@pytest.mark.exhaustive
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_in_an_exported_page(gallery, browser, theme):
    context = browser.new_context(offline=True, color_scheme=theme)
    try:
        page = context.new_page()
        page.goto(gallery.export(theme).as_uri())
        page.evaluate(NAMED, gallery.names)
        assert at_all_widths(page, f".jp-Cell-outputWrapper {REPORTS}", len(gallery.cells)) == {}
    finally:
        context.close()


@pytest.mark.exhaustive
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_in_saved_pages(gallery, browser, theme):
    faults = {}
    context = browser.new_context(offline=True, color_scheme=theme, bypass_csp=True)  # the measurement opens pictures
    try:
        page = context.new_page()
        for path in sorted(gallery.folder.iterdir()):
            page.goto(path.as_uri())
            faults |= {(path.name, *key[::2]): found for key, found in at_all_widths(page, "body > div", 1).items()}
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path.name
    finally:
        context.close()
    assert faults == {}

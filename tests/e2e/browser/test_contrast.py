"""All parts of a view have the contrast of WCAG AA: texts, edges, and marks of choices and of the focus."""

from __future__ import annotations

import numpy as np
import pytest
from contrast import contrast, faint_lines, faint_texts
from each_view import VIEWS, encoder, scalars, watch_training, zscores
from grouped import exhaustive_after_first
from lab import wait_until_drawn

import gradlab as gl

pytest.importorskip("anywidget")
pytest.importorskip("PIL")

THEMES = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "high contrast": {"color_scheme": "light", "contrast": "more"},
    "high contrast, dark": {"color_scheme": "dark", "contrast": "more"},
}
GROUNDS = {"light": "#fff", "dark": "#111418"}
EDGES = ".gl-figure:not(.gl-weighed) path[data-edge], [data-node].gl-chosen > rect, [data-node].gl-active > rect"
PAINTED = """<body style="margin:20px;font:14px sans-serif;background:#fff">{}</body>"""


@pytest.mark.parametrize("theme", exhaustive_after_first(*THEMES))
@pytest.mark.parametrize("name", VIEWS)
def test_texts_of_views_have_enough_contrast(open_widget, name, theme):
    make, prepare = VIEWS[name]
    page = open_widget(make(), **THEMES[theme])
    page.add_style_tag(content=f"body {{ background: {GROUNDS[THEMES[theme]['color_scheme']]} }}")
    prepare(page)
    page.mouse.move(1, 1)
    wait_until_drawn(page)
    measured, faint = faint_texts(page)
    assert measured > 1
    assert sorted(set(faint)) == []
    lines, faint = faint_lines(page, EDGES)
    assert faint == [] and (lines > 3 or name != "explorer-operations")


@pytest.mark.parametrize("theme", exhaustive_after_first(*THEMES))
def test_texts_of_pictures_and_pages_have_enough_contrast(browser, tmp_path, theme):
    names, model = zscores(), encoder()
    pictures = [
        gl.graph(names["loss"], names=names),
        gl.graph(model["loss"], names=model, level="modules"),
        gl.playground(lambda x: x**3 / 3 - x, x=(-2.4, 2.4), at={"x": 1.6}),
        gl.jacobian(names["z1"], names["a"]),
        watch_training(),
    ]
    context = browser.new_context(viewport={"width": 1000, "height": 800}, **THEMES[theme])
    page = context.new_page()
    for picture in pictures:
        page.set_content(f"<body style='background:{GROUNDS[THEMES[theme]['color_scheme']]}'>{picture.svg()}</body>")
        measured, faint = faint_texts(page)
        assert measured > 3 and faint == []
    saved = tmp_path / "page.html"
    for shown in (gl.explain(names["loss"], names=names), gl.step_through(scalars()["loss"]), watch_training()):
        shown.save(saved)
        context = browser.new_context(viewport={"width": 1000, "height": 800}, bypass_csp=True, **THEMES[theme])
        page = context.new_page()
        page.goto(saved.as_uri())
        wait_until_drawn(page)
        measured, faint = faint_texts(page)
        assert measured > 20 and faint == []
        context.close()


@pytest.mark.parametrize(
    "name", ["explorer-code", "explorer-operations", "stepper", "jacobian", "playground-descent", "question-field"]
)
@pytest.mark.parametrize("theme", exhaustive_after_first(*THEMES))
def test_the_focus_has_enough_contrast(open_widget, name, theme):
    """The outline of the focused element contrasts with the background around it."""
    make, prepare = VIEWS[name]
    page = open_widget(make(), **THEMES[theme])
    page.add_style_tag(content=f"body {{ background: {GROUNDS[THEMES[theme]['color_scheme']]} }}")
    prepare(page)
    page.keyboard.press("Tab")
    outlines = page.evaluate(
        """() => [...document.querySelectorAll('.gl-view :is(button, input, select, summary, [tabindex="0"])')]
             .filter(e => e.checkVisibility()).map(e => {
               e.focus();
               const style = getComputedStyle(e), ground = (function behind(n) {
                 const c = n ? getComputedStyle(n).backgroundColor : 'rgb(255, 255, 255)',
                   parts = c.match(/[\\d.]+/g).map(Number);
                 return parts[3] === 0 ? behind(n.parentElement) : c;
                   })(parseFloat(style.outlineOffset) < 0 ? e : e.parentElement);
               return [e.outerHTML.slice(0, 60), style.outlineStyle, style.outlineColor, ground]; })"""
    )
    assert len(outlines) > 1
    for element, style, colour, ground in outlines:
        assert style != "none", element
        assert contrast(_rgb(colour), _rgb(ground)) >= 3, (element, colour, ground)


def _rgb(text):
    parts = [float(x) for x in text.replace("color(srgb", "").strip("rgba() ").replace(",", " ").split("/")[0].split()[:3]]
    return np.array(parts) * (255 if text.startswith("color(") else 1)


@pytest.mark.parametrize(
    ("body", "ratio"),
    [
        ("<p style='color:#777'>word</p>", "4.48"),
        ("<p style='color:#767676'>word</p>", None),
        ("<p style='color:#000;opacity:.4'>word</p>", "2.85"),
        ("<div style='opacity:.5'><p style='color:rgb(0 0 0 / .8)'>word</p></div>", "2.85"),
        ("<p style='color:#999;font-size:24px'>word</p>", "2.85"),
        ("<p style='color:#949494;font-size:24px'>word</p>", None),
        ("<p style='color:#949494;font-size:19px;font-weight:700'>word</p>", None),
        ("<p style='color:#949494;font-size:19px'>word</p>", "3.03"),
        ("<p style='color:color-mix(in srgb, #000 40%, #fff)'>word</p>", "2.85"),
        ("<input placeholder='word'><style>input::placeholder { color: #999; opacity: 1 }</style>", "2.85"),
        ("<input placeholder='word'><style>input::placeholder { color: #000; opacity: .4 }</style>", "2.85"),
        ("<input value='word' style='color:#777'>", "4.48"),
        ("<button disabled style='color:#ccc'>word</button>", None),
        ("<svg><text y='20' fill='#777'>word</text></svg>", "4.48"),
        ("<svg><rect width='90' height='30' fill='#000'/><text y='20' fill='#222'>word</text></svg>", "1.3"),
        ("<svg><text y='20' fill='#222'>word</text><rect width='9' height='3' fill='#000'/></svg>", None),
        ("<svg><circle r='99' fill='#777'/><text y='20' fill='#fff' fill-opacity='.9'>word</text></svg>", "3."),
        ("<div style='height:20px;overflow:hidden'>word<p style='color:#eee'>out of sight</p></div>", None),
        ("<div style='background:#777;width:90px;color:#fff'>word</div>", "4.48"),
    ],
)
def test_the_measured_contrast(browser, body, ratio):
    page = browser.new_page()
    page.set_content(PAINTED.format(body))
    measured, faint = faint_texts(page)
    page.close()
    assert measured == (0 if "disabled" in body else 1)
    assert [fault.split(" ")[0].startswith(ratio) for fault in faint] == ([True] if ratio else [])

"""The live view of the playground in Chromium: sliders, dragging, keys, paths, themes, widths, and the saved page."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from grouped import exhaustive_after_first
from lab import expect

import gradlab as gl

pytest.importorskip("anywidget")


def cubic(x):
    return x**3 / 3 - x


def bowl(p):
    return p[0] ** 2 / 2 + 2 * p[1] ** 2


def curve(**options):
    return gl.playground(cubic, x=(-2.4, 2.4), at={"x": 1.6}, **options)


def contour(**options):
    return gl.playground(bowl, p=[(-5, 5), (-2, 2)], at={"p": [-4, 1.8]}, lr=0.4, **options)


def idle(page):
    expect(page.locator(".gl-playground")).not_to_have_attribute("aria-busy", "true")


STILL = """() => {
    const { x, y, width, height } = document.querySelector('.gl-ground > svg')?.getBoundingClientRect() ?? {};
    const before = window.lastBox;
    window.lastBox = [x, y, width, height];
    return width && height && String(before) === String(window.lastBox) ? { x, y, width, height } : null;
}"""


def plot_box(page):
    """Return the box of the plot area once the view is idle and the box is the same in two frames.

    It is measured in one call, because the element is replaced whenever the plot is drawn, as after a change of its width.
    """
    idle(page)
    return page.wait_for_function(STILL).json_value()


def head(page):
    return page.locator(".gl-head")


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_slider_moves_the_point_and_everything_follows(open_widget):
    P = curve()
    page = open_widget(P.widget())
    expect(head(page)).to_contain_text("at x = 1.6: −0.2347, slope 1.56 · a step of 0.5 adds about 0.5·1.56 = 0.78")
    point = page.locator(".gl-held")
    x, y = middle(point)
    page.get_by_label("x", exact=True).fill("-0.5")
    expect(head(page)).to_contain_text("at x = −0.5: 0.4583, slope −0.75")
    idle(page)
    moved_x, moved_y = middle(point)
    assert moved_x < x and moved_y < y and P.point.tolist() == [-0.5]
    expect(page.locator("tbody tr")).to_have_text("x−0.75−0.75agrees")
    expect(page.get_by_label("x as a number")).to_have_value("-0.5")
    expect(page.locator("pre").first).to_contain_text("x.grad  # -0.75")
    page.get_by_label("x as a number").fill("1.234")
    expect(head(page)).to_contain_text("at x = 1.234:")
    page.get_by_label("x as a number").fill("")
    expect(head(page)).to_contain_text("at x = 1.234:")
    assert page.faults == []


def test_the_point_is_dragged_along_the_curve_and_by_keys(open_widget):
    P = curve()
    page = open_widget(P.widget())
    expect(head(page)).to_contain_text("at x = 1.6")
    frame = plot_box(page)
    page.mouse.move(*middle(page.locator(".gl-held")))
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + 40, steps=6)
    page.mouse.up()
    expect(head(page)).to_contain_text("at x = 0: 0, slope −1")
    idle(page)
    for key in ("ArrowRight", "Shift+ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    expect(head(page)).to_contain_text("at x = 0.1:")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "the point, x = 0.1: the arrow keys move it"
    expect(page.locator(".gl-spoken")).to_contain_text("at x = 0.1: −0.09967, slope −0.99")
    assert P.point == pytest.approx([0.1])
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(head(page)).to_contain_text("at x = 0.11:")


def test_hover_shows_the_numbers(open_widget):
    page = open_widget(curve().widget())
    expect(head(page)).to_contain_text("at x = 1.6")
    frame = plot_box(page)
    page.mouse.move(frame["x"] + frame["width"] * (1 + 2.4) / 4.8, frame["y"] + 30)
    x, value = (float(part.split("= ")[1].replace("−", "-")) for part in page.locator(".gl-read").inner_text().split(": "))
    assert x == pytest.approx(1, abs=0.03) and value == pytest.approx(cubic(x), abs=1e-3)
    assert middle(page.locator(".gl-hair"))[0] == pytest.approx(frame["x"] + frame["width"] * (1 + 2.4) / 4.8, abs=1)
    page.mouse.move(0, 0)
    expect(page.locator(".gl-read")).to_have_text("")
    expect(page.locator(".gl-hair")).to_be_hidden()
    page = open_widget(contour().widget())
    expect(head(page)).to_contain_text("14.48")
    frame = plot_box(page)
    page.mouse.move(frame["x"] + frame["width"] * 0.7, frame["y"] + frame["height"] * 0.75)
    a, b, value = (
        float(number.replace("−", "-")) for number in re.findall(r"[=≈] (\S+?)(?=[,:]|$)", page.locator(".gl-read").inner_text())
    )
    assert (a, b) == pytest.approx((2, -1), abs=0.05) and value == pytest.approx(4, abs=0.3)


def test_a_path_is_stepped_run_dragged_and_reset(open_widget):
    P = contour()
    page = open_widget(P.widget())
    expect(page.locator(".gl-front > path[fill]")).to_have_count(1)
    expect(page.locator(".gl-summary")).to_contain_text(
        "The first step of SGD goes to p[0] = −4 − 0.4·(−4) = −2.4 and p[1] = 1.8 − 0.4·7.2"
    )
    dots = page.locator(".gl-front circle:not(.gl-held)")
    for _ in range(3):
        page.get_by_role("button", name="step").click()
        idle(page)
    expect(dots).to_have_count(3)
    expect(page.locator(".gl-front > path[fill]")).to_have_count(0)
    box = plot_box(page)
    for k, (x, y) in enumerate(P.path[1:]):
        at_x, at_y = middle(dots.nth(k))
        assert at_x == pytest.approx(box["x"] + box["width"] * (x + 5) / 10, abs=1)
        assert at_y == pytest.approx(box["y"] + box["height"] * (2 - y) / 4, abs=1)
    page.mouse.move(*middle(page.locator(".gl-held")))
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.25, steps=5)
    page.mouse.up()
    expect(head(page)).to_contain_text("at p[0] = 4, p[1] = 1")
    idle(page)
    assert P.point == pytest.approx([4, 1], abs=0.05)
    np.testing.assert_allclose(P.path, P.point * np.array([0.6, -0.6]) ** np.arange(4)[:, None], atol=1e-12)
    expect(page.get_by_label("p[0]", exact=True)).to_have_value(f"{P.point[0]:g}")
    page.get_by_label("learning rate as a number").fill("0.6")
    expect(page.locator(".gl-summary")).to_contain_text("higher than it began")
    page.get_by_role("button", name="run").click()
    expect(page.locator(".gl-summary")).to_contain_text("It diverges")
    expect(page.get_by_role("button", name="step")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="reset").click()
    expect(dots).to_have_count(0)
    page.get_by_label("optimizer").select_option("Adam")
    expect(page.locator(".gl-summary")).to_contain_text("No step of Adam with lr = 0.6 yet.")
    expect(page.get_by_role("group", name="equivalent code of the descent")).to_contain_text("gl.optim.Adam([p], lr=0.6)")
    assert page.faults == []


def test_a_learning_rate_by_the_slider(open_widget):
    P = contour(steps=11)
    page = open_widget(P.widget())
    expect(page.locator(".gl-front circle:not(.gl-held)")).to_have_count(11)
    slider = page.get_by_label("learning rate", exact=True)
    slider.focus()
    slider.press("ArrowLeft")
    idle(page)
    expect(page.get_by_label("learning rate as a number")).to_have_value("0.35")
    np.testing.assert_allclose(P.path[1], [-4 * (1 - 0.35), 1.8 * (1 - 4 * 0.35)])
    assert slider.get_attribute("aria-valuetext") == "0.35"


def test_axes_are_chosen(open_widget):
    P = gl.playground(lambda x, y, z: x + 2 * y**2 + 3 * z**3, x=(0, 1), y=(0, 1), z=(0, 1))
    page = open_widget(P.widget())
    names = page.locator(".gl-ground text[font-weight]")
    expect(names).to_have_text(["x", "y"])
    page.get_by_label("vertical axis: input or value").select_option("z")
    expect(names).to_have_text(["x", "z"])
    page.get_by_label("vertical axis: input or value").select_option("f")
    expect(names).to_have_text(["x", "f"])
    expect(page.locator(".gl-ground > svg path:not(.gl-nowhere)")).to_have_count(1)


def test_an_error_of_f_is_shown_and_the_picture_stays(open_widget):
    def picky(x):
        if float(x.detach()) < 0:
            raise ValueError("<b>below</b> 0")
        return x * x

    page = open_widget(gl.playground(picky, x=(-1, 1), at={"x": 0.5}).widget())
    expect(head(page)).to_contain_text("at x = 0.5: 0.25, slope 1")
    page.get_by_label("x", exact=True).fill("-0.5")
    expect(head(page)).to_contain_text("f raised ValueError at x = −0.5: <b>below</b> 0")
    expect(page.locator(".gl-ground > svg path:not(.gl-nowhere)")).to_have_count(1)
    expect(page.locator(".gl-table")).to_be_hidden()
    page.get_by_label("x", exact=True).fill("0.25")
    expect(head(page)).to_contain_text("at x = 0.25")
    assert page.faults == []


def test_a_kink_is_reported(open_widget):
    page = open_widget(gl.playground(lambda x: x.abs(), x=(-3, 3), at={"x": 0.5}).widget())
    expect(page.locator("tbody tr")).to_contain_text("agrees")
    page.get_by_label("x", exact=True).fill("0")
    expect(page.locator("tbody tr")).to_contain_text("kink here")
    expect(page.locator(".gl-note").first).to_contain_text("to the left the slope is −1, to the right 1")


def test_the_curve_of_a_slow_function_is_refined(open_widget, clock):
    def slow(x):
        clock.move(0.004)
        return x * x if float(x.detach()) > -9 else x

    page = open_widget(gl.playground(slow, x=(-1, 1)).widget())
    page.wait_for_function("(document.querySelector('.gl-ground > svg path')?.getAttribute('d').split('L').length ?? 0) > 120")
    assert page.faults == []


def contrast(page, selector, ground):
    colours = page.evaluate(
        """([selector, ground]) => {
          const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
          const style = getComputedStyle(document.querySelector(selector));
          const behind = getComputedStyle(document.querySelector(ground)).backgroundColor;
          return [rgb(style.fill !== 'rgb(0, 0, 0)' ? style.fill : style.color), rgb(behind)];
        }""",
        [selector, ground],
    )

    def luminance(rgb):
        parts = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, light = sorted(map(luminance, colours))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
@pytest.mark.parametrize("width", exhaustive_after_first(700, 340, 1000, 1300))
def test_themes_and_widths(open_widget, theme, width):
    page = open_widget(contour(steps=11).widget(), color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    expect(page.locator(".gl-front circle:not(.gl-held)")).to_have_count(11)
    page.wait_for_function("width => document.querySelector('.gl-take svg').getBoundingClientRect().width < width", arg=width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing overflows at the right"
    outer = page.locator(".gl-playground").bounding_box()
    drawing = page.locator(".gl-take > div > svg").bounding_box()
    for text in page.locator(".gl-take svg text").all():
        box = text.bounding_box()
        assert drawing["x"] - 0.5 <= box["x"] and box["x"] + box["width"] <= drawing["x"] + drawing["width"] + 0.5
        assert text.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 9
    for node in page.locator("button, select, input, .gl-table, .gl-head").all():
        box = node.bounding_box()
        assert box["x"] + box["width"] <= outer["x"] + outer["width"] + 0.5
    for selector in (".gl-ground > text", ".gl-ground > g text", "td:nth-child(2)", ".gl-note", ".gl-summary"):
        assert contrast(page, selector, ".gl-view") >= 4.5, selector
    side = page.locator(".gl-side").bounding_box()
    assert (side["x"] > outer["x"] + 100) == (width > 740), "one column if it is narrow"


def test_the_picture_has_a_title_a_description_and_a_visible_focus(open_widget):
    page = open_widget(contour().widget())
    assert (
        page.locator(".gl-take svg[role=img] > title").text_content()
        == "contours of f over p[0] from −5 to 5 and p[1] from −2 to 2"
    )
    assert "gradient" in page.locator(".gl-take svg[role=img] > desc").text_content()
    while page.evaluate("!document.activeElement.matches('.gl-take')"):
        page.keyboard.press("Tab")
    assert page.locator(".gl-take").evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.keyboard.press("ArrowUp")
    expect(head(page)).to_contain_text("p[1] = 1.8")


def test_the_picture_is_drawn_for_the_width_of_the_view(open_widget):
    page = open_widget(curve().widget())
    for width in (500, 900, 360):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("""() => { const { clientWidth } = document.querySelector('.gl-take');
            return Math.abs(document.querySelector('.gl-take svg').viewBox.baseVal.width - clientWidth) <= 1 }""")
    assert page.faults == []


def test_names_are_escaped(open_widget):
    P = gl.playground(lambda **given: sum(given.values()), {"<img src=x onerror=window.hit=1>": (0, 1), "b": (0, 1)})
    page = open_widget(P.widget())
    expect(head(page)).to_contain_text("<img src=x")
    assert page.evaluate("window.hit === undefined && document.querySelectorAll('img').length === 0")


def test_a_saved_page_works_without_a_kernel(browser, tmp_path):
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    asked, faults = [], []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    file = curve(lr=0.5, steps=2).save(tmp_path / "f.html")
    page.goto(file.as_uri())
    expect(head(page)).to_contain_text("at x = 1.6: −0.2347, slope 1.56")
    page.get_by_label("x", exact=True).fill("-1.2")
    expect(head(page)).to_contain_text("slope 0.44")
    x = float(head(page).inner_text().split("x = ")[1].split(":")[0].replace("−", "-"))
    assert x == pytest.approx(-1.2, abs=0.03) and x * x - 1 == pytest.approx(0.44, abs=0.08)
    expect(page.get_by_role("button", name="step")).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="reset").click()
    expect(head(page)).to_contain_text("at x = 1.6")
    page.get_by_role("button", name="step").click()
    expect(page.locator(".gl-summary")).to_contain_text("1 step of SGD with lr = 0.5")
    expect(page.locator(".gl-front circle:not(.gl-held)")).to_have_count(1)
    page.goto(contour(steps=3).save(tmp_path / "g.html").as_uri())
    expect(page.locator(".gl-ground > svg path").first).to_be_attached()
    frame = plot_box(page)
    page.mouse.click(frame["x"] + frame["width"] * 0.7, frame["y"] + frame["height"] * 0.75)
    expect(head(page)).to_contain_text("at p[0] = 2, p[1] = −1: 4, gradient (2, −4)")
    page.get_by_role("button", name="reset").click()
    page.get_by_role("button", name="run").click()
    expect(page.locator(".gl-summary")).to_contain_text("30 steps of SGD")
    assert faults == [] and all(url.startswith("file:") for url in asked)
    context.close()
    assert math.isfinite(x)


def test_four_inputs_with_a_grey_area(open_widget):
    P = gl.playground(lambda x, y, z, w: (x * y * z).sin() + w * x.log(), x=(-1, 3), y=(0, 1), z=(0, 1), w=(-2, 2))
    page = open_widget(P.widget())
    expect(page.locator("tbody tr")).to_have_count(4)
    assert page.locator("path.gl-nowhere").count() > 0
    page.get_by_label("w", exact=True).fill("1.5")
    expect(head(page)).to_contain_text("w = 1.5")
    idle(page)
    assert P.point[3] == 1.5 and page.faults == []

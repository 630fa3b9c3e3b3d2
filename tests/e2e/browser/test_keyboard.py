"""Every view by keyboard: Tab reaches all controls, the focus is visible and never lost, and all controls have names."""

from __future__ import annotations

import re

import pytest
from each_view import VIEWS, idle
from lab import expect, wait_until_drawn

pytest.importorskip("anywidget")

LOOK = """e => { const of = n => { const s = getComputedStyle(n); return [s.outlineStyle, s.outlineWidth, s.outlineColor,
  s.boxShadow,
  s.borderColor, s.stroke].join(' '); };
  return [e, ...e.querySelectorAll('[data-node] > rect, [data-row] > rect, [aria-selected="true"]')].map(of).join(); }"""
FOCUSED = "() => document.activeElement === document.body ? null : document.activeElement"
REACHABLE = """() => [...document.querySelectorAll(`.gl-view :is(button, input, select, textarea, summary, a[href],
  [tabindex])`)].filter(e =>
  e.checkVisibility({ visibilityProperty: true }) && e.tabIndex >= 0 && !e.matches(':disabled') &&
  !(e.type === 'radio' && document.querySelector(`input[name="${e.name}"]:checked`) !== e && e.name))"""
NAMELESS = """() => [
  ...[...document.querySelectorAll('.gl-view svg:not(svg svg)')].filter(e => !e.closest('[aria-hidden="true"]')
    && e.checkVisibility()).filter(e =>
    !e.getAttribute('aria-label') && !e.querySelector(':scope > title')?.textContent.trim()
    || e.matches('.gl-figure') && !e.querySelector(':scope > title + desc')?.textContent.trim()),
  ...[...document.querySelectorAll('.gl-view img')].filter(e => !e.hasAttribute('alt')),
  ...[...document.querySelectorAll(`.gl-view :is(button, input, select, [role=button],
    [tabindex="0"])`)].filter(e => e.checkVisibility()
    && !(e.getAttribute('aria-label') || e.textContent.trim() || e.title || e.labels?.length || e.placeholder)),
].map(e => e.outerHTML.slice(0, 110))"""


def open_view(open_widget, name):
    make, prepare = VIEWS[name]
    page = open_widget(make())
    page.evaluate("""() => { for (const where of ['prepend', 'append']) { const b = document.createElement('button');
      b.textContent = where; b.id = where; document.body[where](b); } }""")
    return page, prepare


@pytest.mark.parametrize("name", VIEWS)
def test_tab_reaches_every_control_and_shows_where_it_is(open_widget, name):
    page, prepare = open_view(open_widget, name)
    prepare(page)
    wait_until_drawn(page)
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); document.getElementById('prepend').focus(); }")
    wanted = page.evaluate(f"({REACHABLE})().length")
    page.evaluate(f"window.met = new Set(); window.controls = ({REACHABLE})()")
    hidden = []
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "append":
            break
        changed = page.evaluate(
            f"""() => {{ const look = {LOOK}, e = document.activeElement; met.add(e); const focused = look(e);
                 e.blur(); const plain = look(e); e.focus({{ focusVisible: true }});
                 return [focused !== plain, e.outerHTML.slice(0, 90)]; }}"""
        )
        if not changed[0]:
            hidden.append(changed[1])
    else:
        pytest.fail("Tab does not leave the view")
    assert hidden == []
    assert page.evaluate("controls.filter(e => !met.has(e)).map(e => e.outerHTML.slice(0, 90))") == []
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.closest('.gl-view') !== null"), "Shift+Tab returns to the view"


@pytest.mark.parametrize("name", VIEWS)
def test_everything_has_a_name(open_widget, name):
    page, prepare = open_view(open_widget, name)
    prepare(page)
    assert page.evaluate(NAMELESS) == []


def reach(page, locator):
    """Press Tab until a control has the focus."""
    page.evaluate("document.getElementById('prepend').focus()")
    for _ in range(120):
        page.keyboard.press("Tab")
        if locator.evaluate("e => e === document.activeElement"):
            return
    pytest.fail(f"Tab does not reach {locator}")


def press(page, *keys):
    """Press keys, and check that an element has the focus after each."""
    for key in keys:
        page.keyboard.press(key)
        idle(page)
        assert page.evaluate("document.activeElement !== document.body"), key


def test_rows_open_and_are_chosen(open_widget):
    page, _ = open_view(open_widget, "explorer-code")
    reach(page, page.get_by_role("radio", name="Code"))
    press(page, "Enter")
    reach(page, page.get_by_role("tree"))
    press(page, "Home", "ArrowRight", "ArrowDown")
    expect(page.get_by_role("treeitem", selected=True)).to_have_attribute("aria-level", "2")
    press(page, "Enter")
    expect(page.get_by_role("region", name="the selected node")).to_be_focused()
    press(page, "Escape")
    expect(page.get_by_role("tree")).to_be_focused()


def test_folds_open_and_close(open_widget):
    page, _ = open_view(open_widget, "explorer-folds")
    reach(page, page.get_by_role("radio", name="Operations"))
    press(page, "Space")
    stage = page.get_by_role("group", name=re.compile("^the operations"))
    many = page.locator(".gl-figure [data-node]").count()
    reach(page, page.get_by_role("button", name="unfold"))
    press(page, "Enter")
    expect(page.locator(".gl-figure [data-node]")).not_to_have_count(many)
    reach(page, stage)
    press(page, "ArrowUp", "ArrowUp", "Enter")
    expect(page.get_by_role("region", name="the selected node")).to_be_focused()


def test_steps_are_made(open_widget):
    page, _ = open_view(open_widget, "stepper")
    reach(page, page.get_by_role("button", name="next (→)"))
    press(page, "ArrowRight", "ArrowRight")
    expect(page.locator(".gl-stepper")).to_have_attribute("data-step", "2")


def test_rows_of_a_jacobian_are_computed(open_widget):
    page, _ = open_view(open_widget, "jacobian")
    idle(page)
    reach(page, page.get_by_role("button", name="step"))
    press(page, "Enter", "Enter")
    expect(page.locator(".gl-head")).to_contain_text("2 of 4 rows known")


def test_the_point_is_moved(open_widget):
    page, _ = open_view(open_widget, "playground")
    idle(page)
    said = page.locator(".gl-head").inner_text()
    reach(page, page.get_by_label("x", exact=True))
    press(page, "ArrowLeft", "ArrowLeft")
    expect(page.locator(".gl-head")).not_to_have_text(said)


def test_a_step_of_a_training_is_chosen(open_widget):
    page, _ = open_view(open_widget, "watch")
    reach(page, page.get_by_label("step", exact=True))
    press(page, "Home")
    expect(page.locator(".gl-side .gl-caption").first).to_contain_text("step 1")


def test_a_question_is_answered(open_widget):
    page, _ = open_view(open_widget, "question-choices")
    choice = page.get_by_role("button", name="Mul")
    reach(page, choice)
    press(page, "Space")
    expect(choice).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("status")).to_contain_text("Noted: Mul")

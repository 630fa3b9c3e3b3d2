// A weight for each line: sliders with number boxes, one page at a time. Moving one combines rows (or columns) in one sweep.

import { SUPPRESS, button, hasFocus, html, readByTitle } from "../kit/dom.js";
import { short } from "../kit/format.js";
import { clamp } from "../kit/ranges.js";

/** @import { Ask } from "./controls.js" */
/** @import { Shown } from "./shown.js" */

const PAGE = 8; // sliders at a time

/**
 * @param {Shown} shown
 * @param {Ask} wish
 */
function sliders(shown, wish) {
  let first = 0; // the line that the first slider is for
  const root = html("div", { class: "gl-sliders", role: "group", "aria-label": "weights" }),
    choose = html("span"),
    range = html("span", { class: "gl-dim" });
  const pager = html(
    "span",
    { class: "gl-pager" },
    button("◂", "earlier weights", () => turn(-PAGE)),
    button("▸", "later weights", () => turn(PAGE)),
    range,
  );
  readByTitle(pager);
  const caption = html("div", { class: "gl-caption" }, choose, pager);

  /** @param {number} by */
  function turn(by) {
    first = clamp(first + by, 0, pageOf(shown.many - 1));
    make();
  }

  /**
   * @param {number} i
   * @param {number} chosen
   */
  function set(i, chosen) {
    if (chosen) shown.weights.set(i, chosen);
    else shown.weights.delete(i);
    const order = [...shown.weights].sort((a, b) => a[0] - b[0]);
    wish("mix", {}, [Int32Array.from(order, ([k]) => k).buffer, Float64Array.from(order, ([, w]) => w).buffer]);
  }

  function make() {
    const last = Math.min(shown.many, first + PAGE);
    pager.hidden = shown.many <= PAGE;
    range.textContent = last > first ? `${short(shown.name(first))} to ${short(shown.name(last - 1))} of ${shown.many}` : "";
    root.replaceChildren();
    for (let i = first; i < last; i++) root.append(slider(i));
  }

  /** @param {number} i */
  function slider(i) {
    const name = shown.name(i),
      common = { "data-at": i, [SUPPRESS]: "true" };
    const slide = html("input", {
      ...{ type: "range", min: "-1", max: "1", step: "0.05", "aria-label": `weight of ${name}` },
      ...common,
      oninput: () => {
        typed.value = slide.value;
        paint(slide);
        set(i, Number(slide.value));
      },
    });
    const typed = html("input", {
      ...{ type: "number", step: "any", "aria-label": `weight of ${name} as a number` },
      ...common,
      oninput: () => {
        const chosen = Number(typed.value);
        if (typed.value === "" || !Number.isFinite(chosen)) return;
        slide.value = String(chosen);
        paint(slide);
        set(i, chosen);
      },
    });
    slide.value = typed.value = String(shown.weights.get(i) ?? 0);
    paint(slide);
    return html("div", { class: "gl-slider", title: name }, html("code", {}, short(name, 12)), slide, typed);
  }

  /** Show the weights of a frame in the sliders, except in a box where the user is typing. */
  function takeOver() {
    for (const node of root.querySelectorAll("input")) {
      const value = String(shown.weights.get(Number(node.dataset.at)) ?? 0);
      if (node.type === "range" || !hasFocus(node)) node.value = value;
      if (node.type === "range") paint(node);
    }
  }

  return {
    root,
    caption,

    /**
     * Show the weights of a frame, on the page of the line that is shown.
     * @param {boolean} turned whether rows and columns changed places
     */
    follow(turned) {
      const { at } = shown.frame,
        to = at < 0 ? (turned ? 0 : first) : pageOf(at);
      if (to === first && !turned && root.children.length) {
        takeOver();
        return;
      }
      first = to;
      make();
    },

    update() {
      choose.textContent = `choose ${shown.letter}: a weight for each ${shown.line}`;
      root.hidden = caption.hidden = shown.trial;
    },
  };
}

/**
 * Fill a slider from 0, its middle, to its value; at 0 it is empty.
 * @param {HTMLInputElement} slide
 */
function paint(slide) {
  const at = 50 * (1 + Number(slide.value));
  slide.style.setProperty("--gl-from", `${Math.min(50, at)}%`);
  slide.style.setProperty("--gl-to", `${Math.max(50, at)}%`);
  slide.classList.toggle("gl-empty", at === 50);
}

/**
 * The first line of the page that line i is on.
 * @param {number} i
 */
function pageOf(i) {
  return Math.floor(i / PAGE) * PAGE;
}

export { sliders };
